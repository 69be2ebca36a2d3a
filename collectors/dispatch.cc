#include "collectors/dispatch.h"

#include <ATen/record_function.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "collectors/calls.h"
#include "collectors/cupti/past_dispatcher.h"
#include "collectors/cupti/window.h"
#include "collectors/event_filter.h"
#include "collectors/fault.h"
#include "collectors/fork.h"
#include "collectors/function_backward.h"
#include "collectors/inline_reference.h"
#include "collectors/lowered.h"
#include "collectors/requests.h"

namespace attntrace {
namespace {

std::atomic<bool> g_on{false};

// What an event's end has to do. Blocks come from a list of the thread's own, so that no event allocates in the steady state.
struct Context final : at::ObserverContext {
  enum Kind : uint8_t { kCall, kNode, kRegion, kCompiledFunction, kFunction, kStep, kBlockMask };
  explicit Context(Kind k) noexcept : kind(k) {}
  static void* operator new(size_t bytes, const std::nothrow_t&) noexcept;
  static void operator delete(void* block) noexcept;
  static void operator delete(void* block, const std::nothrow_t&) noexcept { operator delete(block); }
  Kind kind;
  StepEnd end;
  bool region_watched = false;
  int64_t outer_function = -1;
};

struct FreeBlock {
  FreeBlock* next;
};
thread_local FreeBlock* t_free = nullptr;

void* Context::operator new(size_t bytes, const std::nothrow_t&) noexcept {
  if (t_free == nullptr) return malloc(bytes);
  FreeBlock* const block = t_free;
  t_free = block->next;
  return block;
}

void Context::operator delete(void* block) noexcept {  // an event that ends on another thread leaves its block there
  auto* const free_block = static_cast<FreeBlock*>(block);
  free_block->next = t_free;
  t_free = free_block;
}

using Owned = std::unique_ptr<at::ObserverContext>;
Owned ContextOf(Context::Kind kind) noexcept { return Owned(new (std::nothrow) Context(kind)); }

Owned ContextFor(const StepEnd& end) noexcept {
  if (end.action == EndAction::kNothing) return nullptr;
  auto* const context = new (std::nothrow) Context(Context::kStep);
  if (context != nullptr) context->end = end;
  return Owned(context);
}

// In what OnKnown does while no candidate and no backward is open.
Interest InterestIn(const Operator* op) noexcept {
  if (op == nullptr || op->role == Role::kBarrier || op->role == Role::kSoftmax) return Interest::kNone;
  return op->role == Role::kSum ? Interest::kAfterRange : Interest::kAlways;
}

Owned OnKnown(ThreadState* state, const at::RecordFunction& event, const Operator& op) {
  switch (op.role) {
    case Role::kCompiledRegion:
      ++state->compiled_depth;
      BeginLoweredRegion(state, event.name());
      if (auto* const context = new (std::nothrow) Context(Context::kRegion); context != nullptr) {
        Owned owned(context);
        context->region_watched = BeginRegion(state, event.name());
        return owned;
      }
      --state->compiled_depth;
      return nullptr;
    case Role::kCompiledFunction:
      if (state->compiled_function >= 0) return nullptr;
      state->compiled_function = event.seqNr();
      NoteCompiledFunction(state, event);
      return state->compiled_function >= 0 ? ContextOf(Context::kCompiledFunction) : nullptr;
    case Role::kSdpa:
    case Role::kKernel:
    case Role::kFlexForward:
      if (state->call.open) {
        Refine(state, event, op);
        return nullptr;
      }
      return BeginCall(state, event, op) ? ContextOf(Context::kCall) : nullptr;
    case Role::kKernelBackward:
      return !state->call.open && BeginBackwardCall(state, event, op) ? ContextOf(Context::kCall) : nullptr;
    case Role::kProduct:
      return state->call.open ? nullptr : ContextFor(BeginProduct(state, event, op));
    case Role::kSoftmax:
      return state->call.open || !state->lineage.active() ? nullptr : ContextFor(BeginSoftmax(state, event, op));
    case Role::kDraw:
      NoteConstruction();
      return nullptr;
    case Role::kRange:
      WantSums(state);
      return !state->call.open && state->lineage.active() ? ContextFor(BeginStep(state, event)) : nullptr;
    case Role::kSum:
      if (BeginBlockMask(state, event)) return ContextOf(Context::kBlockMask);
      return !state->call.open && state->lineage.active() ? ContextFor(BeginStep(state, event)) : nullptr;
    case Role::kWhere:
      if (state->call.open) ReadFlexMask(state, event);
      return !state->call.open && state->lineage.active() ? ContextFor(BeginStep(state, event)) : nullptr;
    case Role::kBarrier:
      if (state->lineage.active() && !state->call.open) state->lineage.OnBarrier(&state->memory);
      return nullptr;
    default:
      return nullptr;
  }
}

// Beside what it is to an attention written by hand, whose steps may be functions.
Owned OnFunctionApplied(ThreadState* state, const at::RecordFunction& event) {
  auto* const context = new (std::nothrow) Context(Context::kFunction);
  if (context == nullptr) return nullptr;
  Owned owned(context);
  if (state->lineage.active() && !state->call.open) context->end = BeginStep(state, event);
  context->outer_function = std::exchange(state->function, event.seqNr());
  return owned;
}

Owned OnFunction(ThreadState* state, const at::RecordFunction& event, EventSource source) {
  const char* const name = event.name();
  const Operator* const op = FindOperator(name);
  LearnFunction(source, name, InterestIn(op));
  if (g_watch_asks.load(std::memory_order_relaxed)) TendWatch();
  if (HasLooseCalls(*state)) CountLooseCalls(state);
  // Outside of any backward: whatever was left open there has ended.
  if (state->backward.open && state->node_depth == 0 && !InsideEngine()) CloseBackward(state);
  if (g_inline_waiting.load(std::memory_order_relaxed) != 0 && !InsideEngine()) TendInlineReference(state);
  if (op != nullptr) return OnKnown(state, event, *op);
  if (IsFunctionApplied(event)) return OnFunctionApplied(state, event);
  if (!state->lineage.active() || state->call.open) return nullptr;
  return ContextFor(BeginStep(state, event));
}

Owned Start(const at::RecordFunction& event) {
  if (!g_on.load(std::memory_order_relaxed)) return nullptr;
  ThreadState* const state = CurrentThread();
  if (state == nullptr || state->inside) return nullptr;
  const EventSource source = std::exchange(state->source, {});
  return Guarded("dispatch", Owned(), [&]() -> Owned {
    if (event.scope() == at::RecordScope::BACKWARD_FUNCTION) {
      LearnNode(source, event);
      if (state->torch_thread == 0) state->torch_thread = at::RecordFunction::currentThreadId();
      BeginNode(state, event);
      return ContextOf(Context::kNode);
    }
    return OnFunction(state, event, source);
  });
}

void OnStepEnd(ThreadState* state, const StepEnd& end) {
  state->lineage.Restore(end.former);
  if (end.action == EndAction::kFinishCandidate) FinishCandidate(state, end.candidate);
}

void End(const at::RecordFunction& event, at::ObserverContext* observer) {
  if (observer == nullptr) return;
  ThreadState* const state = CurrentThread();
  if (state == nullptr) return;
  Guarded("dispatch", false, [&] {
    switch (static_cast<Context*>(observer)->kind) {
      case Context::kStep:
        OnStepEnd(state, static_cast<Context*>(observer)->end);
        break;
      case Context::kCall:
        if (state->call.open && state->call.event == &event) FinishCall(state);
        break;
      case Context::kNode:
        EndNode(state, event);
        break;
      case Context::kRegion:
        if (static_cast<Context*>(observer)->region_watched) EndRegion(state);
        EndLoweredRegion(state);
        --state->compiled_depth;
        break;
      case Context::kBlockMask:
        EndBlockMask(state);
        break;
      case Context::kCompiledFunction:
        state->compiled_function = -1;
        break;
      case Context::kFunction: {
        const auto& context = *static_cast<Context*>(observer);
        if (context.end.action != EndAction::kNothing) OnStepEnd(state, context.end);
        state->function = context.outer_function;
        break;
      }
    }
    return true;
  });
}

}  // namespace

void StartDispatch(const uint32_t* global_callbacks) noexcept {
  WatchOperators();
  g_on.store(true, std::memory_order_relaxed);
  const bool others = at::hasGlobalCallbacks();
  at::addGlobalCallback(at::RecordFunctionCallback(Start, End)
                            .needsInputs(true)
                            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  StartEventFilter(global_callbacks, others);
}

void StopDispatch() noexcept {
  g_on.store(false, std::memory_order_relaxed);
  StopInlineReference();
}

}  // namespace attntrace
