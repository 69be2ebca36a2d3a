#include "collectors/calls.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "collectors/cupti/devices.h"
#include "collectors/cupti/launches.h"
#include "collectors/cupti/window.h"
#include "collectors/environment.h"
#include "collectors/event_filter.h"
#include "collectors/fork.h"
#include "collectors/function_backward.h"
#include "collectors/gates.h"
#include "collectors/incidents.h"
#include "collectors/mask.h"
#include "collectors/spool_writer.h"
#include "collectors/tensors.h"

namespace attntrace {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

const c10::IValue* At(const Inputs& inputs, int8_t index) noexcept {
  return index >= 0 && static_cast<size_t>(index) < inputs.size() ? &inputs[static_cast<size_t>(index)] : nullptr;
}

bool Bool(const Inputs& inputs, int8_t index) noexcept {
  const c10::IValue* const value = At(inputs, index);
  return value != nullptr && value->isBool() && value->toBool();
}

// A tensor that will run here: false for wrappers, fakes and what is no tensor.
bool Readable(const c10::IValue* value) noexcept {
  if (value == nullptr) return false;
  const TensorKind kind = KindOf(*value);
  return kind == TensorKind::kPlain || kind == TensorKind::kNested;
}

// Sizes of one dimension counted from the end, in the layout (..., H, S, D) or (..., S, H, D).
int64_t Size(const spool::TensorDef& tensor, int from_end) noexcept {
  const int rank = std::min<int>(tensor.rank, spool::kMaxDims);
  return from_end <= rank && tensor.nested == 0 ? tensor.sizes[rank - from_end] : 0;
}

struct Geometry {
  int64_t rows = 0, columns = 0, elements = 0;  // Sq, Sk, batch x heads x Sq x Sk
};

Geometry GeometryOf(const CallRecord& record, bool rows_first) noexcept {
  Geometry geometry;
  if (record.q.present == 0 || record.k.present == 0 || record.q.rank < 2 || record.k.rank < 2) return geometry;
  const bool swapped = rows_first && record.q.rank >= 3;
  geometry.rows = Size(record.q, swapped ? 3 : 2);
  geometry.columns = Size(record.k, swapped ? 3 : 2);
  int64_t others = 1;
  const int rank = std::min<int>(record.q.rank, spool::kMaxDims);
  for (int i = 0; i < rank; ++i) {
    if (i != rank - 1 && i != rank - (swapped ? 3 : 2)) others *= record.q.sizes[i];
  }
  geometry.elements = others * geometry.rows * geometry.columns;
  return geometry;
}

// Of (B, S, heads x D). Components of different lengths are padded to the longest where their scores are stored.
int64_t RowsOf(const at::Tensor& tensor) noexcept { return tensor.is_nested() ? LongestComponent(tensor) : tensor.size(1); }

bool ReadInputs(const at::RecordFunction& event, const Operator& op, CallRecord* record) {
  const Inputs inputs = event.inputs();
  const Arguments& at = op.arguments;
  const c10::IValue* const q = At(inputs, at.q);
  const c10::IValue* const k = At(inputs, at.k);
  const c10::IValue* const v = At(inputs, at.v);
  if (!Readable(q) || (k != nullptr && k->isTensor() && !Readable(k))) return false;
  record->q = Describe(q->toTensor());
  if (k != nullptr && k->isTensor()) record->k = Describe(k->toTensor());
  if (v != nullptr && Readable(v)) record->v = Describe(v->toTensor());
  record->mask = {};
  record->mask_kind = MaskKind::kNone;
  record->mask_bytes = 0;
  if (const c10::IValue* const mask = At(inputs, at.mask); Readable(mask)) {
    record->mask = Describe(mask->toTensor());
    record->mask_kind = record->mask.dtype == Dtype::kBool ? MaskKind::kBool : MaskKind::kFloat;
    record->mask_bytes = BytesOf(record->mask);
  }
  if (const c10::IValue* const p = At(inputs, at.dropout); p != nullptr && p->isDouble()) record->dropout_p = p->toDouble();
  record->flags = 0;
  if (const c10::IValue* const scale = At(inputs, at.scale); scale != nullptr && scale->isDouble()) {
    record->scale = scale->toDouble();
    record->flags |= spool::kScaleGiven;
  }
  if (Bool(inputs, at.causal)) record->flags |= spool::kCausal;
  const int head = op.rows_first ? 2 : 3;
  if (Bool(inputs, at.gqa) ||
      (record->k.present != 0 && record->q.rank >= 4 && Size(record->q, head) != Size(record->k, head))) {
    record->flags |= spool::kGqa;
  }
  if (at::GradMode::is_enabled()) record->flags |= spool::kGradMode;
  if (c10::InferenceMode::is_enabled()) record->flags |= spool::kInference;
  return true;
}

// What is only worth its cost now and then: the gates for a new kind of call, the mask's content at the 1st, 2nd, 4th, 8th ...
// of it.
void LookClosely(ThreadState* state, const at::RecordFunction& event, const Operator& op) {
  OpenCall& call = state->call;
  CallCaches& caches = state->Caches();
  const uint64_t signature = Mix(SignatureOf(call.record), SdpaSwitches());
  const uint32_t* const seen = caches.looks.Find(signature);
  const uint32_t count = seen != nullptr ? *seen + 1 : 1;
  caches.looks.Put(signature, count);
  const Inputs inputs = event.inputs();
  const bool masked = call.record.mask.present != 0;
  // On a device the mask is copied here, which waits for it: once, and never while a graph is captured.
  const bool on_device = call.record.mask.device == DeviceKind::kCuda;
  const bool readable = on_device ? count == 1 && !IsCapturing(call.record.mask.device_index) : (count & (count - 1)) == 0;
  if (masked && readable) call.content_now = ReadMask(At(inputs, op.arguments.mask)->toTensor());
  if (count != 1 || op.role != Role::kSdpa) return;
  const c10::IValue *const k = At(inputs, op.arguments.k), *const v = At(inputs, op.arguments.v);
  if (!Readable(k) || !Readable(v)) return;
  std::optional<at::Tensor> mask;
  if (masked) mask = At(inputs, op.arguments.mask)->toTensor();
  TakeGates({At(inputs, op.arguments.q)->toTensor(), k->toTensor(), v->toTensor(), mask, call.record.dropout_p,
             (call.record.flags & spool::kCausal) != 0, Bool(inputs, op.arguments.gqa)},
            &call.gates);
  call.gates_taken = true;
}

bool IsSquareMask(const CallRecord& record, const Geometry& geometry) noexcept {
  return record.mask.present != 0 && record.mask.rank >= 2 && geometry.rows > 1 && geometry.columns > 1 &&
         Size(record.mask, 2) == geometry.rows && Size(record.mask, 1) == geometry.columns;
}

PathKind PathOf(const CallRecord& record, const Geometry& geometry) noexcept {
  switch (record.backend) {
    case Backend::kMath:
    case Backend::kEager:
    case Backend::kFlexDense:
      return PathKind::kDense;
    case Backend::kUnknown:
    case Backend::kNone:
    case Backend::kCustom:
    case Backend::kNativeMha:
      return record.score_bytes > 0 ? PathKind::kDense : PathKind::kUnknown;
    default:
      return IsSquareMask(record, geometry) ? PathKind::kQuadratic : PathKind::kFused;
  }
}

}  // namespace

// The inputs of a call are tensors of its device; where none was ever reported, its allocator reports nothing.
static void NoteSilentAllocator(int space) noexcept {
  static std::atomic<bool> said{false};
  if (space <= 0 || Spool().header().devices[space - 1].allocated_bytes.load(std::memory_order_relaxed) != 0) return;
  if (said.exchange(true, std::memory_order_relaxed)) return;
  Spool().Note("device-memory",
               "the CUDA allocator in use makes no reports (pluggable ones do not, nor has PyTorch any figure of theirs): "
               "device memory is not counted");
}

void ReadFlexFacts(ThreadState* state, const CallSite& site) {
  CallCaches& caches = state->Caches();
  const uint64_t place = Mix(Mix(0xf1e, site.path), site.module);
  const bool fresh = caches.looks.Find(place) == nullptr;
  caches.looks.Put(place, 1);
  state->flex_facts.clear();
  state->flex_arguments = ReadFlex(fresh ? &state->flex_facts : nullptr);
}

void TakeFlexFacts(const ThreadState& state, CallRecord* record) {
  const FlexArguments& arguments = state.flex_arguments;
  record->facts = &state.flex_facts;
  record->mask_kind = arguments.mask;
  if (arguments.score_mod) record->flags |= spool::kScoreMod;
  if (arguments.causal_asked) record->flags |= spool::kCausalAsked;
}

uint64_t ElapsedSince(uint64_t start_ns) noexcept { return MonotonicNs() - start_ns; }

void TakeMeter(const ThreadState& state, const Meter& meter, CallRecord* record) noexcept {
  if (meter.space < 0) return;
  record->peak_bytes = meter.Peak();
  record->kept_bytes = state.memory.net[meter.space] - meter.start_net;
  record->score_bytes = meter.score_bytes;
  record->allocated_bytes = state.memory.Gross(meter);
}

Phase ForwardPhase(const ThreadState& state) noexcept {
  return state.node_depth > 0 || InsideEngine() ? Phase::kRecompute : Phase::kForward;
}

bool BeginCall(ThreadState* state, const at::RecordFunction& event, const Operator& op) {
  OpenCall& call = state->call;
  call.record = CallRecord{};
  if (!ReadInputs(event, op, &call.record)) {
    Spool().Add(Counter::kTracingEvents);
    return false;
  }
  AttachAfterFork();
  CallRecord& record = call.record;
  call.gates_taken = false;
  call.content_now = MaskContent::kUnread;
  call.rows_first = op.rows_first;
  {
    const Inside ours(state);
    record.site = Where(&state->Caches().paths, state->compiled_depth);
    record.op = op.name;
    record.phase = ForwardPhase(*state);
    if (op.role == Role::kKernel || op.role == Role::kFlexForward) {
      record.backend = op.backend;
      record.kernel_op = op.name;
      if (op.role == Role::kKernel) record.flags |= spool::kDirect;
    }
    if (op.role == Role::kFlexForward) {
      ReadFlexFacts(state, record.site);
      TakeFlexFacts(*state, &record);
    } else {
      LookClosely(state, event, op);
    }
  }
  Geometry geometry = GeometryOf(record, call.rows_first);
  if (const c10::IValue* const heads = At(event.inputs(), op.arguments.heads);
      heads != nullptr && heads->isInt() && record.q.rank == 3 && record.k.rank == 3) {
    geometry.elements = record.q.sizes[0] * heads->toInt() * RowsOf(At(event.inputs(), op.arguments.q)->toTensor()) *
                        RowsOf(At(event.inputs(), op.arguments.k)->toTensor());  // (B, S, heads x D)
  }
  record.space = MemorySpace(record.q.device, record.q.device == DeviceKind::kCuda ? record.q.device_index : 0);
  call.first_sequence = static_cast<int64_t>(at::sequence_number::peek());
  call.open = true;
  call.event = &event;
  Spool().Add(Counter::kOpenCalls);
  call.start_ns = MonotonicNs();
  if (!state->memory.Open(&call.meter, record.space, geometry.elements)) call.meter.space = -1;
  StartKernels(state, &call.kernels, record.space, WatchEnabled() ? Mix(SignatureOf(record), SdpaSwitches()) : 0);
  return true;
}

void Refine(ThreadState* state, const at::RecordFunction& event, const Operator& op) {
  CallRecord& record = state->call.record;
  // _native_multi_head_attention is one of its own only where it asks for no kernel: on CUDA it takes SDPA's where it can.
  const bool open = record.backend == Backend::kUnknown || (record.backend == Backend::kNativeMha && op.role == Role::kKernel);
  if (!open) return;
  if (op.role == Role::kKernel) {
    record.backend = op.backend;
    record.kernel_op = op.name;
    return;
  }
  if (op.role != Role::kSdpa) return;
  // SDPA inside SDPA: autocast has cast the inputs; these are what the backend is chosen for.
  CallRecord inner = record;
  if (!ReadInputs(event, op, &inner)) return;
  if (inner.q.dtype != record.q.dtype) inner.flags |= spool::kAutocast;
  record = inner;
  const Inside ours(state);
  LookClosely(state, event, op);
}

void FinishCall(ThreadState* state) {
  OpenCall& call = state->call;
  CallRecord& record = call.record;
  call.open = false;
  Spool().Add(Counter::kOpenCalls, ~uint64_t{0});  // one less
  record.host_ns = ElapsedSince(call.start_ns);
  TakeMeter(*state, call.meter, &record);
  state->memory.Close(&call.meter);
  CountNested(state, call.meter.space, record.allocated_bytes);
  // An operator that throws has refused or failed: no attention ran. But a checkpoint stops its recompute by throwing out of
  // the last operator that it needs, after its kernel.
  const bool stopped_early = record.phase == Phase::kRecompute && record.backend != Backend::kUnknown;
  const Inside ours(state);
  if (std::uncaught_exceptions() > 0 && !stopped_early) {
    RecordFailedCall(record, ThreadId(state), call.gates_taken ? &call.gates : nullptr);
    return;
  }
  if (record.phase == Phase::kBackward) {
    record.path_kind = record.path_kind == PathKind::kQuadratic ? PathKind::kQuadratic : PathKind::kFused;
    FinishKernels(state, call.kernels, CountCall(&state->Caches().variants, record, ThreadId(state)));
    NoteBackwardForInline(record);
    return;
  }
  const Geometry geometry = GeometryOf(record, call.rows_first);
  if (record.backend == Backend::kUnknown) record.backend = Backend::kNone;
  record.mask_content = call.content_now;
  record.path_kind = PathOf(record, geometry);
  if (record.path_kind != PathKind::kDense) record.score_bytes = 0;  // a workspace that happens to have that size
  // On the CPU there is one fused backend, and where it ran its gates are empty and say nothing.
  std::erase_if(call.gates, [&](const GateText& gate) { return gate.backend == record.backend; });
  const bool told = record.backend == Backend::kMath || record.q.device == DeviceKind::kCuda;
  record.gates = call.gates_taken && told ? &call.gates : nullptr;
  const auto end = static_cast<int64_t>(at::sequence_number::peek());
  const int64_t recorded = (record.flags & spool::kGradMode) != 0 ? end : -1;
  FinishKernels(state, call.kernels, CommitForward(state, record, call.first_sequence, recorded, geometry.elements));
}

uint32_t CommitForward(ThreadState* state, const CallRecord& record, int64_t first, int64_t end, int64_t score_elements) {
  const uint32_t slot = CountCall(&state->Caches().variants, record, ThreadId(state));
  if (slot < spool::kMaxVariants && record.mask_content != MaskContent::kUnread) {
    Spool().counters(slot).mask_contents.fetch_or(uint64_t{1} << static_cast<unsigned>(record.mask_content),
                                                  std::memory_order_relaxed);
  }
  RefreshEnvironment();
  NoteSilentAllocator(record.space);
  NoteForInline(state, record, slot, end > first || state->compiled_function >= 0);
  ForwardCall forward;
  forward.first = first;
  forward.end = end;
  if (end <= first) {  // autograd recorded nothing, unless this runs inside an autograd function, whose node then is its
    const bool compiled = state->compiled_function >= 0;
    forward.first = compiled ? state->compiled_function : state->function;
    if (forward.first < 0) return slot;
    forward.end = forward.first + 1;
    forward.around = compiled ? NodeAround::kCompiled : NodeAround::kFunction;
  }
  forward.slot = slot;
  forward.space = record.space;
  forward.score_elements = score_elements;
  forward.op = record.op;
  forward.site = record.site;
  forward.backend = record.backend;
  forward.path_kind = record.path_kind;
  forward.q = record.q;
  forward.k = record.k;
  if (state->torch_thread == 0) state->torch_thread = at::RecordFunction::currentThreadId();
  if (ForwardTable* const table = ForwardsOf(state->torch_thread); table != nullptr) table->Add(forward);
  return slot;
}

}  // namespace attntrace
