#include "collectors/compiled_backward.h"

#include "collectors/calls.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

using Dense = CompiledDense;

// Which meter looks for blocks of this size; -1 where all are taken.
int MeterFor(Dense* dense, ThreadState* state, const ForwardCall& forward) noexcept {
  for (int i = 0; i < dense->sizes; ++i) {
    if (dense->meters[i].score_elements == forward.score_elements) return i;
  }
  if (dense->sizes == Dense::kSizes) return -1;
  if (!state->memory.Open(&dense->meters[dense->sizes], forward.space, forward.score_elements)) return -1;
  return dense->sizes++;
}

const Meter* MeterOf(const Dense& dense, const ForwardCall& forward) noexcept {
  for (int i = 0; i < dense.sizes; ++i) {
    if (dense.meters[i].score_elements == forward.score_elements) return &dense.meters[i];
  }
  return nullptr;
}

}  // namespace

void BeginCompiledDense(ThreadState* state, const BackwardNode& node) {
  Dense& dense = state->compiled_dense;
  if (dense.depth != 0 || node.sequence < 0) return;
  ForwardTable* const table = ForwardsOf(node.forward_thread);
  if (table == nullptr) return;
  dense.forwards.clear();
  dense.sizes = 0;
  ForwardCall forward;
  for (int n = 0; table->FindInside(node.sequence, n, &forward); ++n) {
    if (forward.path_kind != PathKind::kDense || forward.score_elements <= 0) continue;
    if (MeterFor(&dense, state, forward) >= 0) dense.forwards.push_back(forward);
  }
  if (dense.forwards.empty()) return;
  dense.depth = state->node_depth;
  dense.start_ns = MonotonicNs();
}

void EndCompiledDense(ThreadState* state) {
  Dense& dense = state->compiled_dense;
  if (dense.depth == 0 || state->node_depth >= dense.depth) return;
  dense.depth = 0;
  const bool alone = dense.forwards.size() == 1;  // else the node's bytes and time are no single call's
  const uint64_t ns = MonotonicNs() - dense.start_ns;
  const Inside ours(state);
  for (const ForwardCall& forward : dense.forwards) {
    const Meter* const meter = MeterOf(dense, forward);
    if (meter == nullptr || meter->score_bytes == 0) continue;
    CallRecord record;
    record.site = forward.site;
    record.phase = Phase::kBackward;
    record.op = forward.op;
    record.kernel_op = "CompiledFunctionBackward";
    record.backend = forward.backend;
    record.path_kind = PathKind::kDense;
    record.forward_slot = forward.slot + 1;
    record.space = forward.space;
    record.q = forward.q;
    record.k = forward.k;
    if (alone) {
      TakeMeter(*state, *meter, &record);
      record.host_ns = ns;
    }
    record.score_bytes = meter->score_bytes;
    CountCall(&state->Caches().variants, record, ThreadId(state));
  }
  for (int i = 0; i < dense.sizes; ++i) state->memory.Close(&dense.meters[i]);
  dense.sizes = 0;
}

}  // namespace attntrace
