#include "collectors/function_backward.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>

#include <cstring>
#include <exception>

#include "collectors/calls.h"
#include "collectors/cupti/launches.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

// Scores of whole heads: rows x columns of the candidate are Sq x Sk, in (B, H, S, D), (B, S, H, D) or (B, S, D).
bool CoversHeads(const Candidate& candidate, const ForwardCall& forward) noexcept {
  const spool::TensorDef& q = forward.q;
  const int64_t square = candidate.rows * candidate.columns;
  if (q.rank == 3) return candidate.rows == q.sizes[1] && square * q.sizes[0] == forward.score_elements;
  for (const int rows : {1, 2}) {
    if (q.rank == 4 && candidate.rows == q.sizes[rows] && square * q.sizes[0] * q.sizes[3 - rows] == forward.score_elements) {
      return true;
    }
  }
  return false;
}

void Count(ThreadState* state, const ForwardCall& forward, CallRecord* record, const char* node, const KernelSet& kernels) {
  record->site = forward.site;
  record->phase = Phase::kBackward;
  record->op = forward.op;
  record->kernel_op = node;
  record->forward_slot = forward.slot + 1;
  record->backend = Backend::kEager;
  record->q = forward.q;
  record->k = forward.k;
  const Inside ours(state);
  FinishKernels(state, kernels, CountCall(&state->Caches().variants, *record, ThreadId(state)));
  NoteBackwardForInline(*record);
}

}  // namespace

bool IsFunctionApplied(const at::RecordFunction& event) {
  return event.seqNr() >= 0 && at::GradMode::is_enabled() && strstr(event.name(), "::") == nullptr;
}

void BeginFunctionNode(ThreadState* state, const at::RecordFunction& event, const ForwardCall& newest) {
  if (state->function_depth == ThreadState::kMaxFunctions) return;
  FunctionBackward& own = state->functions[state->function_depth++];
  own = FunctionBackward{};
  own.depth = state->node_depth;
  own.sequence = event.seqNr();
  own.forward_thread = event.forwardThreadId();
  own.forward = newest;
  own.gradients = at::GradMode::is_enabled();
  strncpy(own.node, event.name(), sizeof(own.node) - 1);
  ForwardCall other;
  own.alone = !ForwardsOf(own.forward_thread)->FindInside(own.sequence, 1, &other);
  own.start_ns = MonotonicNs();
  if (!own.alone || !state->memory.Open(&own.meter, newest.space, newest.score_elements)) own.meter.space = -1;
}

void EndFunctionNode(ThreadState* state) {
  if (state->function_depth == 0 || state->functions[state->function_depth - 1].depth <= state->node_depth) return;
  FunctionBackward& own = state->functions[--state->function_depth];
  CallRecord record;
  TakeMeter(*state, own.meter, &record);
  state->memory.Close(&own.meter);
  if (!own.ran || std::uncaught_exceptions() > 0) return;
  record.space = own.forward.space;
  record.path_kind = own.dense || record.score_bytes > 0 ? PathKind::kDense : PathKind::kUnknown;
  record.host_ns = MonotonicNs() - own.start_ns;
  CountNested(state, record.space, record.allocated_bytes);
  Count(state, own.forward, &record, own.node, own.kernels);
}

FunctionBackward* OwnBackward(ThreadState* state) {
  if (state->function_depth == 0) return nullptr;
  FunctionBackward& own = state->functions[state->function_depth - 1];
  if (own.depth != state->node_depth || at::GradMode::is_enabled() != own.gradients) return nullptr;
  // Where the backward itself is differentiated, gradients do not tell a checkpoint's recompute.
  if (own.gradients && strncmp(own.node, "Checkpoint", 10) == 0) return nullptr;
  // Nodes that are of no interest run inside it without an event.
  const auto node = torch::autograd::get_current_node();
  return node != nullptr && static_cast<int64_t>(node->sequence_nr()) == own.sequence ? &own : nullptr;
}

void FinishInFunction(ThreadState* state, FunctionBackward* own, int index) {
  Candidate& candidate = state->lineage.candidate(index);
  if (own->alone) {  // its node is measured as a whole
    own->ran = true;
    own->dense = own->dense || CoversHeads(candidate, own->forward);
    state->lineage.Drop(index, &state->memory);
    return;
  }
  ForwardCall forward;
  const bool known = ForwardsOf(own->forward_thread)->FindInside(own->sequence, own->inside, &forward);
  CallRecord record;
  record.space = candidate.space;
  record.host_ns = MonotonicNs() - candidate.start_ns;
  TakeMeter(*state, candidate.meter, &record);
  if (known) record.path_kind = CoversHeads(candidate, forward) ? PathKind::kDense : PathKind::kUnknown;
  const KernelSet kernels = candidate.kernels;
  state->lineage.Drop(index, &state->memory);
  if (!known) return;  // more of them than the forward had calls
  ++own->inside;
  CountNested(state, record.space, record.allocated_bytes);
  Count(state, forward, &record, own->node, kernels);
}

void CountNested(ThreadState* state, int space, uint64_t bytes) noexcept {
  if (state->backward.open && state->backward.meter.space == space) state->backward.meter.nested_gross += bytes;
  for (int i = 0; i < state->function_depth; ++i) {
    if (state->functions[i].meter.space == space) state->functions[i].meter.nested_gross += bytes;
  }
}

}  // namespace attntrace
