// Backward of attention: which autograd nodes belong to which forward call, and what they ran.
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>

#include "collectors/calls.h"
#include "collectors/compiled_backward.h"
#include "collectors/cupti/launches.h"
#include "collectors/cupti/past_dispatcher.h"
#include "collectors/dispatch.h"
#include "collectors/environment.h"
#include "collectors/function_backward.h"
#include "collectors/incidents.h"
#include "collectors/spool_writer.h"
#include "collectors/tensors.h"

namespace attntrace {
namespace {

BackwardNode* Top(ThreadState* state) noexcept {
  if (state->node_depth == 0 || state->node_depth > ThreadState::kMaxNodes) return nullptr;
  return &state->nodes[state->node_depth - 1];
}

void OpenFor(ThreadState* state, const ForwardCall& forward, uint64_t forward_thread) {
  OpenBackward& backward = state->backward;
  backward = OpenBackward{};
  backward.open = true;
  backward.forward = forward;
  backward.forward_thread = forward_thread;
  backward.start_ns = MonotonicNs();
  if (!state->memory.Open(&backward.meter, forward.space, forward.score_elements)) backward.meter.space = -1;
  StartKernels(state, &backward.kernels, forward.space, Mix(forward.slot + 1, 0xb0));
}

bool Continues(const OpenBackward& open, const ForwardCall& forward, uint64_t thread) noexcept {
  return open.open && open.forward_thread == thread && open.forward.first == forward.first && open.forward.end == forward.end;
}

void Name(OpenBackward* backward, const char* name) noexcept { strncpy(backward->node, name, sizeof(backward->node) - 1); }

CallRecord RecordOf(const ForwardCall& forward) noexcept {
  CallRecord record;
  record.site = forward.site;
  record.phase = Phase::kBackward;
  record.op = forward.op;
  record.forward_slot = forward.slot + 1;
  record.space = forward.space;
  record.q = forward.q;
  record.k = forward.k;
  return record;
}

bool IsAccumulation(const char* name) noexcept { return strstr(name, "AccumulateGrad") != nullptr; }

// The newest graph of a derivative of attention, made by create_graph=True: whose it is. The node that throws in place of a
// second derivative has no sequence number that would tell.
struct DerivativeGraph {
  ForwardCall forward;
  uint32_t created_at = 0;
};
std::mutex g_graph_mutex;
DerivativeGraph g_graph;

void NoteDerivative(ThreadState* state, const ForwardCall& forward) {
  const Inside ours(state);
  const uint32_t path = Where(&state->Caches().paths, 0).path;
  const std::lock_guard<std::mutex> lock(g_graph_mutex);
  g_graph = {forward, path};
}

void RecordRefusal(ThreadState* state) {
  DerivativeGraph graph;
  {
    const std::lock_guard<std::mutex> lock(g_graph_mutex);
    graph = g_graph;
  }
  if (graph.forward.op == nullptr || graph.forward.op[0] == 0) return;
  Incident incident;
  incident.kind = IncidentKind::kDoubleBackward;
  incident.site = graph.forward.site;
  incident.op = graph.forward.op;
  incident.type = NameOf(graph.forward.backend);
  incident.create_path = graph.created_at;
  incident.thread = ThreadId(state);
  incident.q = graph.forward.q;
  incident.k = graph.forward.k;
  const Inside ours(state);
  RecordIncident(incident);
}

}  // namespace

void BeginNode(ThreadState* state, const at::RecordFunction& event) {
  const int depth = state->node_depth++;
  if (depth >= ThreadState::kMaxNodes) return;
  BackwardNode& node = state->nodes[depth];
  node = BackwardNode{};
  node.sequence = event.seqNr();
  node.forward_thread = event.forwardThreadId();
  const char* const name = event.name();
  node.refuses = strstr(name, "NotImplemented") != nullptr;
  if (node.sequence < 0 || IsAccumulation(name)) return;  // gradients land as soon as they are ready, between any two nodes
  ForwardTable* const table = ForwardsOf(node.forward_thread);
  ForwardCall forward;
  const bool known = table != nullptr && table->Find(node.sequence, &forward);
  const bool ours = known && forward.around == NodeAround::kNone;
  if (!ours) {
    if (depth == 0 && state->backward.open) CloseBackward(state);
    if (known && forward.around == NodeAround::kFunction) BeginFunctionNode(state, event, forward);
    if (strcmp(name, "CompiledFunctionBackward") == 0) {
      BeginCompiledNode(state, node);
      BeginCompiledDense(state, node);
    }
    return;
  }
  OpenBackward& backward = state->backward;
  if (!Continues(backward, forward, node.forward_thread)) {
    if (backward.open) CloseBackward(state);
    OpenFor(state, forward, node.forward_thread);
  }
  bool softmax = false;
  const Backend backend = BackendOfNode(name, &softmax);
  if (backend != Backend::kUnknown) {
    backward.backend = backend;
    Name(&backward, name);
    node.attention = true;
    if (at::GradMode::is_enabled()) NoteDerivative(state, forward);
  } else if (softmax) {
    backward.softmax = true;
    Name(&backward, name);
    node.attention = true;
  }
}

void EndNode(ThreadState* state, const at::RecordFunction& event) {
  if (state->node_depth == 0) return;
  const int depth = --state->node_depth;
  EndFunctionNode(state);
  EndCompiledDense(state);
  if (depth >= ThreadState::kMaxNodes) return;
  OpenBackward& backward = state->backward;
  const BackwardNode& node = state->nodes[depth];
  EndCompiledNode(state, node);
  if (node.refuses && std::uncaught_exceptions() > 0) RecordRefusal(state);
  if (!backward.open || node.sequence < backward.forward.first || node.sequence >= backward.forward.end ||
      node.forward_thread != backward.forward_thread) {
    return;
  }
  if (backward.meter.space >= 0) {
    backward.peak_bytes = backward.meter.Peak();
    backward.kept_bytes = state->memory.net[backward.meter.space] - backward.meter.start_net;
    backward.gross = state->memory.Gross(backward.meter);
  }
  backward.end_ns = MonotonicNs();
  if (node.sequence == backward.forward.first) CloseBackward(state);  // its first forward step is its last backward step
}

void CloseBackward(ThreadState* state) noexcept {
  OpenBackward& backward = state->backward;
  if (!backward.open) return;
  backward.open = false;
  if (backward.meter.space >= 0) state->memory.Close(&backward.meter);
  CallRecord record = RecordOf(backward.forward);
  if (backward.backend != Backend::kUnknown) {
    record.backend = backward.backend;
    const bool dense = backward.backend == Backend::kFlexDense;
    record.path_kind = dense                                                ? PathKind::kDense
                       : backward.forward.path_kind == PathKind::kQuadratic ? PathKind::kQuadratic
                                                                            : PathKind::kFused;
  } else if (backward.softmax) {  // the softmax's own backward ran: scores were stored
    record.backend = backward.forward.backend;
    record.path_kind = PathKind::kDense;
  } else {
    return;  // only steps around an attention: views, scaling
  }
  record.kernel_op = backward.node;
  record.peak_bytes = backward.peak_bytes;
  record.kept_bytes = backward.kept_bytes;
  record.score_bytes = backward.meter.score_bytes;
  record.allocated_bytes = backward.gross;
  record.host_ns = backward.end_ns - backward.start_ns;
  const Inside ours(state);
  FinishKernels(state, backward.kernels, CountCall(&state->Caches().variants, record, ThreadId(state)));
  NoteBackwardForInline(record);
}

bool BeginBackwardCall(ThreadState* state, const at::RecordFunction& event, const Operator& op) {
  if (state->backward.open) {  // the node that runs it is a known forward's; a custom node is told by what it calls
    OpenBackward& backward = state->backward;
    if (backward.backend == Backend::kUnknown) {
      backward.backend = op.backend;
      Name(&backward, op.name);
    }
    return false;
  }
  const c10::ArrayRef<const c10::IValue> inputs = event.inputs();
  const int8_t q = op.arguments.q;
  if (q < 0 || static_cast<size_t>(q) >= inputs.size()) return false;
  const TensorKind kind = KindOf(inputs[static_cast<size_t>(q)]);
  if (kind != TensorKind::kPlain && kind != TensorKind::kNested) return false;
  OpenCall& call = state->call;
  BackwardNode* const node = Top(state);
  ForwardCall forward;
  ForwardTable* const table = node != nullptr ? ForwardsOf(node->forward_thread) : nullptr;
  const bool known = table != nullptr && node->sequence >= 0 && table->FindInside(node->sequence, node->inside, &forward);
  call.record = known ? RecordOf(forward) : CallRecord{};
  CallRecord& record = call.record;
  if (known) {
    ++node->inside;
    record.path_kind = forward.path_kind;
  } else {
    Spool().Add(Counter::kBackwardUnmatched);
    record.phase = Phase::kBackward;
    record.op = op.name;
    record.site.no_path_reason = "backward of a forward that was not seen";
  }
  record.q = Describe(inputs[static_cast<size_t>(q)].toTensor());
  record.space = MemorySpace(record.q.device, record.q.device == DeviceKind::kCuda ? record.q.device_index : 0);
  record.backend = op.backend;
  record.kernel_op = op.name;
  call.open = true;
  call.event = &event;
  Spool().Add(Counter::kOpenCalls);
  call.gates_taken = false;
  call.start_ns = MonotonicNs();
  if (!state->memory.Open(&call.meter, record.space, known ? forward.score_elements : 0)) call.meter.space = -1;
  StartKernels(state, &call.kernels, record.space, Mix(Mix(record.forward_slot, 0xb1), reinterpret_cast<uintptr_t>(op.name)));
  return true;
}

}  // namespace attntrace
