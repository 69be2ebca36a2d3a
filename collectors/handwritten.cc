// Hand-written attention (see lineage.h): QK^T, steps between, softmax, steps between, PV.
#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectors/calls.h"
#include "collectors/cupti/launches.h"
#include "collectors/cupti/window.h"
#include "collectors/event_filter.h"
#include "collectors/fork.h"
#include "collectors/function_backward.h"
#include "collectors/spool_writer.h"
#include "collectors/tensors.h"

namespace attntrace {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

const at::Tensor* PlainAt(const Inputs& inputs, int index) noexcept {
  if (index < 0 || static_cast<size_t>(index) >= inputs.size()) return nullptr;
  const c10::IValue& value = inputs[static_cast<size_t>(index)];
  return KindOf(value) == TensorKind::kPlain ? &value.toTensor() : nullptr;
}

// Products that autograd itself makes (BmmBackward) run with gradients off; a recompute runs with them on.
bool MayBelongToAttention(const ThreadState& state) noexcept {
  if (state.node_depth == 0) return at::GradMode::is_enabled() || !InsideEngine();
  return at::GradMode::is_enabled() && !state.nodes[std::min(state.node_depth, ThreadState::kMaxNodes) - 1].attention;
}

Stage FindInput(const Lineage& lineage, const c10::IValue& value, int* candidate) noexcept {
  if (KindOf(value) == TensorKind::kPlain) return lineage.Find(StorageOf(value.toTensor()), candidate);
  if (!value.isTensorList()) return Stage::kNone;
  for (const at::Tensor& tensor : value.toTensorVector()) {  // cat: scores with sinks beside them
    if (KindOf(tensor) != TensorKind::kPlain) continue;
    if (const Stage stage = lineage.Find(StorageOf(tensor), candidate); stage != Stage::kNone) return stage;
  }
  return Stage::kNone;
}

// An addend or condition of the scores' own shape, or one that broadcasts over queries or heads: the mask.
void NoteMask(Candidate* from, const Inputs& inputs, const Lineage& lineage, const char* op) noexcept {
  if (from->softmax_seen || from->mask.present != 0) return;
  for (const c10::IValue& value : inputs) {
    if (KindOf(value) != TensorKind::kPlain) continue;
    const at::Tensor& tensor = value.toTensor();
    int candidate = -1;
    if (tensor.dim() < 2 || tensor.size(-1) != from->columns || (tensor.size(-2) != from->rows && tensor.size(-2) != 1))
      continue;
    if (lineage.Find(StorageOf(tensor), &candidate) != Stage::kNone) continue;
    from->mask = Describe(tensor);
    from->mask_added = strncmp(op, "aten::add", 9) == 0 || strncmp(op, "aten::baddbmm", 13) == 0;
    return;
  }
}

spool::TensorDef Unflatten(const Candidate& from, const spool::TensorDef& flat, int64_t rows, int64_t width) noexcept {
  spool::TensorDef def = flat;
  if (from.heads == 0) return def;
  def.rank = 4;
  const int64_t sizes[4] = {from.batch, from.heads, rows, width};
  int64_t stride = 1;
  for (int i = 3; i >= 0; --i) {  // as the product sees them: contiguous per head
    def.sizes[i] = sizes[i];
    def.strides[i] = stride;
    stride *= sizes[i];
  }
  return def;
}

}  // namespace

StepEnd BeginProduct(ThreadState* state, const at::RecordFunction& event, const Operator& op) {
  StepEnd end;
  const Inputs inputs = event.inputs();
  const at::Tensor* const a = PlainAt(inputs, op.arguments.q);
  const at::Tensor* const b = PlainAt(inputs, op.arguments.k);
  if (a == nullptr || b == nullptr || a->dim() != 3 || b->dim() != 3) return end;
  Lineage& lineage = state->lineage;
  int candidate = -1;
  for (const at::Tensor* const weights : {a, b}) {
    if (lineage.Find(StorageOf(*weights), &candidate) != Stage::kWeights) continue;
    const at::Tensor* const values = weights == a ? b : a;
    Candidate& from = lineage.candidate(candidate);
    // P (b, Sq, Sk) x V (b, Sk, Dv), or transposed. A window is padded on its sides before it meets its values.
    const bool fits =
        weights->size(0) == a->size(0) && weights->numel() >= from.rows &&
        (values->size(1) == from.columns || values->size(2) == from.columns || weights->size(2) <= 2 * from.columns);
    if (!fits) continue;
    from.v = Describe(*values);
    if (values->size(1) != weights->size(2)) std::swap(from.v.sizes[1], from.v.sizes[2]);
    end.action = EndAction::kFinishCandidate;
    end.candidate = candidate;
    state->finishing = candidate;
    end.former = lineage.Descend(-1, Stage::kNone);
    return end;
  }
  if (OwnBackward(state) == nullptr && !MayBelongToAttention(*state)) return end;
  const int space = MemorySpace(a->is_cuda() ? DeviceKind::kCuda : DeviceKind::kCpu, a->is_cuda() ? a->device().index() : 0);
  if (!(a->is_cuda() || a->is_cpu()) || a->numel() == 0 || b->numel() == 0) return end;
  const int fresh = lineage.Begin(&state->memory);
  Candidate& from = lineage.candidate(fresh);
  from.space = space;
  from.rows = a->size(1);
  from.columns = b->size(2);
  from.score_elements = a->size(0) * from.rows * from.columns;
  from.q = Describe(*a);
  from.k = Describe(*b);
  from.first_sequence = static_cast<int64_t>(at::sequence_number::peek());
  from.start_ns = MonotonicNs();
  // Whether this product begins an attention is not known yet, so it is no reason to open the window.
  from.kernels.Start(0, space > 0 && WatchEnabled() ? WatchEpoch() : 0, 0);
  NoteCapture(&from.kernels, space);
  if (!state->memory.Open(&from.meter, space, from.score_elements)) from.meter.space = -1;
  if (op.arguments.q == 1) NoteMask(&from, inputs, lineage, op.name);  // baddbmm adds a mask on the way
  end.action = EndAction::kRestoreWatch;
  end.former = lineage.Descend(fresh, Stage::kScores);
  return end;
}

StepEnd BeginSoftmax(ThreadState* state, const at::RecordFunction& event, const Operator& op) {
  StepEnd end;
  const Inputs inputs = event.inputs();
  const at::Tensor* const scores = PlainAt(inputs, 0);
  if (scores == nullptr || scores->dim() < 3) return BeginStep(state, event);
  Lineage& lineage = state->lineage;
  int candidate = -1;
  if (lineage.Find(StorageOf(*scores), &candidate) != Stage::kScores) return BeginStep(state, event);
  Candidate& from = lineage.candidate(candidate);
  if (inputs.size() > 1 && inputs[1].isInt()) {  // over keys, not over anything else
    const int64_t dim = inputs[1].toInt();
    if (dim != -1 && dim != scores->dim() - 1) return BeginStep(state, event);
  }
  if (!from.softmax_seen) {
    AttachAfterFork();
    from.softmax_seen = true;
    from.softmax = op.name;
    if (scores->dim() == 4) {
      from.batch = scores->size(0);
      from.heads = scores->size(1);
      if (from.batch * from.heads * from.rows != from.score_elements / from.columns) from.heads = 0;
    }
    const Inside ours(state);
    from.site = Where(&state->Caches().paths, state->compiled_depth);
    KernelSet* kernels = &from.kernels;
    if (FunctionBackward* const own = OwnBackward(state); own != nullptr && own->alone) {
      if (!std::exchange(own->collects, true)) own->kernels = from.kernels;
      kernels = &own->kernels;
    }
    WantKernels(state, kernels, from.space, Mix(Mix(Mix(from.site.path, 0x5d), from.rows), from.columns));
    if (from.site.flex) ReadFlexFacts(state, from.site);
  }
  const char* const name = op.name;
  if (name[0] != 0 && name[strlen(name) - 1] == '_') lineage.Promote(StorageOf(*scores));
  end.action = EndAction::kRestoreWatch;
  end.former = lineage.Descend(candidate, Stage::kWeights);
  return end;
}

StepEnd BeginStep(ThreadState* state, const at::RecordFunction& event) {
  StepEnd end;
  if (state->finishing >= 0) return end;  // parts of PV itself: over a gradient that is one number expanded, one a matrix
  const Inputs inputs = event.inputs();
  Lineage& lineage = state->lineage;
  for (size_t i = 0; i < inputs.size() && i < 8; ++i) {
    int candidate = -1;
    const Stage stage = FindInput(lineage, inputs[i], &candidate);
    if (stage == Stage::kNone) continue;
    if (!lineage.Step(candidate, &state->memory)) return end;
    if (const at::Tensor* const buffer = PlainAt(inputs, 0); buffer != nullptr && strcmp(event.name(), "aten::copy_") == 0) {
      lineage.OnCopy(StorageOf(*buffer), static_cast<int64_t>(buffer->storage().nbytes()), candidate, stage);
    }
    if (stage == Stage::kScores) NoteMask(&lineage.candidate(candidate), inputs, lineage, event.name());
    end.action = EndAction::kRestoreWatch;
    end.former = lineage.Descend(candidate, stage);
    return end;
  }
  return end;
}

void FinishCandidate(ThreadState* state, int index) {
  Lineage& lineage = state->lineage;
  Candidate& from = lineage.candidate(index);
  state->finishing = -1;
  if (!from.live || !from.softmax_seen) return;
  if (FunctionBackward* const own = OwnBackward(state); own != nullptr) return FinishInFunction(state, own, index);
  CallRecord record;
  record.site = from.site;
  record.phase = ForwardPhase(*state);
  record.op = from.site.flex ? "flex_attention" : "hand-written";
  record.backend = from.site.flex ? Backend::kFlexDense : Backend::kEager;
  record.path_kind = PathKind::kDense;
  record.kernel_op = from.softmax;
  if (at::GradMode::is_enabled()) record.flags |= spool::kGradMode;
  if (c10::InferenceMode::is_enabled()) record.flags |= spool::kInference;
  const int64_t width = from.q.sizes[2];
  record.q = Unflatten(from, from.q, from.rows, width);
  record.k = Unflatten(from, from.k, from.columns, width);
  if (from.heads == 0) std::swap(record.k.sizes[1], record.k.sizes[2]);  // the product saw K transposed
  record.v = Unflatten(from, from.v, from.columns, from.v.sizes[2]);
  record.mask = from.mask;
  if (from.mask.present != 0) {
    record.mask_kind = from.mask.dtype == Dtype::kBool ? MaskKind::kBool : MaskKind::kFloat;
    record.mask_bytes = BytesOf(from.mask);
  }
  if (from.site.flex) {  // what its reference adds to the scores is made from the mask's blocks, and says nothing of it
    record.mask = {};
    record.mask_bytes = 0;
    TakeFlexFacts(*state, &record);
  }
  if (from.mask_added && from.mask.dtype == Dtype::kBool) record.flags |= spool::kMaskAdded;
  record.space = from.space;
  record.host_ns = ElapsedSince(from.start_ns);
  TakeMeter(*state, from.meter, &record);
  CountNested(state, from.space, record.allocated_bytes);
  const int64_t first = from.first_sequence;
  const int64_t elements = from.score_elements;
  const KernelSet kernels = from.kernels;
  lineage.Drop(index, &state->memory);
  const Inside ours(state);
  const auto end = static_cast<int64_t>(at::sequence_number::peek());
  FinishKernels(state, kernels,
                CommitForward(state, record, first, (record.flags & spool::kGradMode) != 0 ? end : -1, elements));
}

}  // namespace attntrace
