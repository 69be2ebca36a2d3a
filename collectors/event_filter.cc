#include "collectors/event_filter.h"

#include <torch/csrc/autograd/function.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>

#include "collectors/cupti/window.h"
#include "collectors/forwards.h"
#include "collectors/operator_entries.h"

namespace torch::autograd {
TORCH_API int get_current_graph_task_id();  // in engine.h, which takes long to compile
}

namespace attntrace {
namespace {

constexpr int kSumsAfterRange = 256;  // create_block_mask sums once; a mask_mod may sum before it

enum class Verdict : uint8_t { kUnknown, kKeep, kSkip, kEngine, kAfterRange };

// Verdicts by address, open addressing; only added to. Addresses are of code and vtables and have no use for their top byte.
class Verdicts {
 public:
  Verdict Of(const void* address) const noexcept {
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    for (size_t i = 0; i < kProbes; ++i) {
      const uintptr_t entry = entries_[(Place(wanted) + i) % kEntries].load(std::memory_order_relaxed);
      if ((entry & kAddress) == wanted) return static_cast<Verdict>(entry >> 56);
      if (entry == 0) break;
    }
    return Verdict::kUnknown;
  }
  void Put(const void* address, Verdict verdict) noexcept {
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    if ((wanted & ~kAddress) != 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < kProbes; ++i) {  // no room among these: the place goes on making its events
      std::atomic<uintptr_t>& entry = entries_[(Place(wanted) + i) % kEntries];
      const uintptr_t taken = entry.load(std::memory_order_relaxed);
      if (taken != 0 && (taken & kAddress) != wanted) continue;
      entry.store(wanted | static_cast<uintptr_t>(verdict) << 56, std::memory_order_relaxed);
      return;
    }
  }

 private:
  static constexpr size_t kEntries = 1 << 14, kProbes = 8;
  static constexpr uintptr_t kAddress = ~uintptr_t{0} >> 8;
  static size_t Place(uintptr_t address) noexcept { return (address * 0x9e3779b97f4a7c15u) >> 50; }
  std::atomic<uintptr_t> entries_[kEntries] = {};
  std::mutex mutex_;
};

Verdicts g_places;   // return addresses
Verdicts g_classes;  // vtables of autograd nodes
std::atomic<const uint32_t*> g_callbacks{nullptr};
uint32_t g_callbacks_with_ours = 0;

// Null: every event is to be made.
ThreadState* Quiet(void** thread) noexcept {
  auto* state = static_cast<ThreadState*>(*thread);
  if (state == nullptr) {
    const uint32_t* const callbacks = g_callbacks.load(std::memory_order_acquire);
    state = callbacks == nullptr ? nullptr : CurrentThread();
    if (state == nullptr) return nullptr;
    state->slot = thread;
    *thread = state;
  }
  state->source = {};
  if (state->inside) return nullptr;
  // A profiler that watches all threads adds a global callback, any other one of its thread's own.
  if (__atomic_load_n(g_callbacks.load(std::memory_order_relaxed), __ATOMIC_RELAXED) != g_callbacks_with_ours) return nullptr;
  if (!at::get_record_function_tls_().sorted_tls_callbacks_.empty()) return nullptr;
  if (state->lineage.active() || state->backward.open || state->loose_calls) return nullptr;
  if (g_watch_asks.load(std::memory_order_relaxed)) return nullptr;
  if (g_inline_waiting.load(std::memory_order_relaxed) != 0) return nullptr;
  return state;
}

// A node of a class that was seen to be of no interest by itself, and of no forward call that is known.
bool IsIdleNode() noexcept {
  const auto node = torch::autograd::get_current_node();  // shared_ptr, or intrusive_ptr from 2.15 on
  if (node == nullptr) return false;
  const void* const vtable = *reinterpret_cast<const void* const*>(node.get());
  if (g_classes.Of(vtable) != Verdict::kSkip) return false;
  ForwardTable* const table = ForwardsOf(node->thread_id());
  return table != nullptr && !table->Owns(static_cast<int64_t>(node->sequence_nr()));
}

}  // namespace

void StartEventFilter(const uint32_t* global_callbacks, bool others_before) noexcept {
  if (others_before) return;
  g_callbacks_with_ours = __atomic_load_n(global_callbacks, __ATOMIC_SEQ_CST);
  g_callbacks.store(global_callbacks, std::memory_order_release);
}

int SkipEvent(void* result, uint8_t, const void* caller, void** thread) noexcept {
  ThreadState* const state = Quiet(thread);
  if (state == nullptr) return 0;
  const Verdict verdict = g_places.Of(caller);
  if (verdict == Verdict::kAfterRange) {
    if (state->sums_wanted > 0) {
      --state->sums_wanted;
      return 0;
    }
  } else if (verdict != Verdict::kSkip && !(verdict == Verdict::kEngine && IsIdleNode())) {
    if (verdict != Verdict::kKeep) state->source = {caller, EventSource::kStep};
    return 0;
  }
  new (result) decltype(at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION))();
  return 1;
}

int SkipRecord(void* record, uint8_t, const void* caller, void** thread) noexcept {
  ThreadState* const state = Quiet(thread);
  if (state == nullptr) return 0;
  const Verdict verdict = g_places.Of(caller);
  if (verdict != Verdict::kSkip) {
    if (verdict == Verdict::kUnknown) state->source = {caller, EventSource::kRecord};
    return 0;
  }
  new (record) at::RecordFunction(at::StepCallbacks());
  return 1;
}

// Callbacks of the thread's own are for PyTorch to compare; new global ones it takes up by their version, at the next event.
int SameRecordState(const void* state) noexcept {
  const auto& asked = *static_cast<const at::RecordFunctionTLS*>(state);
  const at::RecordFunctionTLS& present = at::get_record_function_tls_();
  return asked.tls_record_function_enabled_ == present.tls_record_function_enabled_ && asked.sorted_tls_callbacks_.empty() &&
         present.sorted_tls_callbacks_.empty();
}

void WantSums(ThreadState* state) noexcept { state->sums_wanted = kSumsAfterRange; }

void LearnFunction(EventSource source, const char* name, Interest interest) {
  if (source.caller == nullptr) return;
  Verdict verdict = Verdict::kKeep;
  if (source.kind == EventSource::kRecord) {
    if (strncmp(name, "autograd::engine::evaluate_function: ", 37) == 0) verdict = Verdict::kSkip;
  } else if (interest != Interest::kAlways && MakesOnly(source.caller, name)) {
    verdict = interest == Interest::kNone ? Verdict::kSkip : Verdict::kAfterRange;
  }
  g_places.Put(source.caller, verdict);
}

void LearnNode(EventSource source, const at::RecordFunction& event) {
  if (source.caller == nullptr || source.kind != EventSource::kStep) return;
  const auto node = torch::autograd::get_current_node();  // shared_ptr, or intrusive_ptr from 2.15 on
  if (node == nullptr) return;
  const auto number = static_cast<int64_t>(node->sequence_nr());
  const bool same = number == event.seqNr() && node->thread_id() == event.forwardThreadId();
  if (g_places.Of(source.caller) != Verdict::kEngine) {
    // A node that runs another one by itself makes that one's event from a place of its own.
    if (same && node->sequence_nr() == std::numeric_limits<uint64_t>::max())
      return;  // every gradient accumulation has this number
    g_places.Put(source.caller, same ? Verdict::kEngine : Verdict::kKeep);
  }
  if (!same) return;
  const void* const vtable = *reinterpret_cast<const void* const*>(node.get());
  if (g_classes.Of(vtable) != Verdict::kUnknown) return;
  // Functions written in Python share a class, and so tell nothing by it; those of extensions may launch anything.
  const bool plain = IsOfTorch(vtable) && strstr(event.name(), "NotImplemented") == nullptr;
  g_classes.Put(vtable, plain ? Verdict::kSkip : Verdict::kKeep);
}

bool InsideEngine() noexcept { return torch::autograd::get_current_graph_task_id() != -1; }

}  // namespace attntrace
