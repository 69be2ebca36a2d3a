#include "collectors/inline_reference.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "collectors/cupti/devices.h"
#include "collectors/fault.h"
#include "collectors/python_api.h"
#include "collectors/spool_writer.h"
#include "collectors/thread_state.h"
#include "kernels/inline.h"
#include "tracer/spool/names.h"

namespace attntrace {

std::atomic<uint32_t> g_inline_waiting{0};

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kPatience = 10 * kSecond;  // a backward that has not come by then is not waited for
constexpr uint64_t kBetweenLooks = kSecond / 1000;

struct Waiting {
  uint32_t slot;
  const ThreadState* owner;
  CallRecord call;
  bool wants_backward, saw_backward = false;
  uint64_t since_ns;
  int64_t backward_bytes = 0;
  uint64_t backward_ns = 0;
};

InlineSettings g_settings;
std::atomic<bool> g_on{false};
std::atomic<bool> g_known[spool::kMaxVariants];
std::atomic<uint64_t> g_next_look{0};
std::mutex g_mutex;  // guards the list
std::vector<Waiting>& List() noexcept {
  static auto* const list = new std::vector<Waiting>;
  return *list;
}
uint64_t g_spent_ns = 0;  // one run at a time: g_running
std::atomic<bool> g_running{false};

struct Library {
  decltype(&attntrace_inline_is_quiet) is_quiet = nullptr;
  decltype(&attntrace_inline_run) run = nullptr;
};

Library Open() noexcept {
  Library library;
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&StartInlineReference), &info) == 0 || info.dli_fname == nullptr) return library;
  const char* const slash = strrchr(info.dli_fname, '/');
  char path[4096];
  const int folder = slash == nullptr ? 0 : static_cast<int>(slash + 1 - info.dli_fname);
  if (snprintf(path, sizeof(path), "%.*s%s", folder, info.dli_fname, names::kInlineReference) >=
      static_cast<int>(sizeof(path))) {
    return library;
  }
  void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = dlerror();
    Spool().Note("reference-inline", error != nullptr ? error : "the library of inline reference runs cannot be loaded");
    return library;
  }
  library.is_quiet = reinterpret_cast<decltype(library.is_quiet)>(dlsym(handle, "attntrace_inline_is_quiet"));
  library.run = reinterpret_cast<decltype(library.run)>(dlsym(handle, "attntrace_inline_run"));
  return library;
}

int SpaceOf(int type, int index) noexcept {
  return MemorySpace(type == 0 ? DeviceKind::kCpu : type == 1 ? DeviceKind::kCuda : DeviceKind::kOther, index < 0 ? 0 : index);
}

InlineMeter* MeterOfThisThread() noexcept {
  ThreadState* const state = CurrentThread();
  return state != nullptr ? state->inline_meter : nullptr;
}

int64_t Live(int type, int index) {
  const InlineMeter* const meter = MeterOfThisThread();
  const int space = SpaceOf(type, index);
  return meter != nullptr && space >= 0 ? meter->live[space] : 0;
}

int64_t Peak(int type, int index) {
  const InlineMeter* const meter = MeterOfThisThread();
  const int space = SpaceOf(type, index);
  return meter != nullptr && space >= 0 ? meter->peak[space] : 0;
}

void Reset(int type, int index) {
  InlineMeter* const meter = MeterOfThisThread();
  const int space = SpaceOf(type, index);
  if (meter != nullptr && space >= 0) meter->peak[space] = meter->live[space];
}

void Answer(void* to, const char* purpose, const char* request, const char* response) {
  Guarded("inline reference", false, [&] {
    const std::string text = std::string(purpose) + '\n' + request + '\n' + response;
    const spool::ReferenceDef def{static_cast<uint32_t>(text.size()), 0};
    return Spool().Append(spool::RecordKind::kReference, static_cast<const Waiting*>(to)->slot, &def, sizeof(def), text.data(),
                          text.size());
  });
}

const AttntraceInlineHost kHost = {sizeof(AttntraceInlineHost), Live, Peak, Reset, Answer};

bool IsReady(const Waiting& one, uint64_t now) noexcept {
  return !one.wants_backward || one.saw_backward || now - one.since_ns > kPatience;
}

bool IsQuiet(const ThreadState& state) noexcept {
  return !state.inside && !state.call.open && !state.backward.open && state.node_depth == 0 && state.compiled_depth == 0 &&
         !state.lineage.open() && state.finishing < 0 && !state.block_mask.open && std::uncaught_exceptions() == 0 &&
         Spool().header().counters[static_cast<size_t>(Counter::kOpenCalls)].load(std::memory_order_relaxed) == 0 &&
         !(python::Loaded() && (python::Py().Py_IsInitialized() == 0 || python::Py().PyGILState_Check() != 0));
}

// Takes the largest of this thread's that may be run now.
bool Take(const ThreadState* state, uint64_t now, Waiting* taken) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  std::vector<Waiting>& list = List();
  int best = -1;
  for (size_t i = 0; i < list.size(); ++i) {
    const Waiting& one = list[i];
    if (one.owner != state || !IsReady(one, now)) continue;
    if (one.call.q.device == DeviceKind::kCuda && IsCapturing(one.call.q.device_index)) continue;
    if (best < 0 || one.call.peak_bytes > list[static_cast<size_t>(best)].call.peak_bytes) best = static_cast<int>(i);
  }
  if (best < 0) return false;
  *taken = list[static_cast<size_t>(best)];
  list.erase(list.begin() + best);
  g_inline_waiting.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void Run(ThreadState* state, const Library& library, Waiting one, uint64_t now) {
  AttntraceInlineCall call{};
  call.size = sizeof(call);
  call.q = &one.call.q, call.k = &one.call.k, call.v = &one.call.v, call.mask = &one.call.mask;
  call.backend = NameOf(one.call.backend);
  call.mask_content = NameOf(one.call.mask_content);
  call.flags = one.call.flags;
  call.backward = one.saw_backward ? 1 : 0;
  call.dropout = one.call.dropout_p, call.scale = one.call.scale;
  call.observed_bytes = std::max(one.call.peak_bytes, one.call.kept_bytes + one.backward_bytes);
  call.observed_ns = one.call.host_ns + one.backward_ns;
  call.memory_percent = g_settings.memory_percent;
  call.budget_seconds = g_settings.budget_seconds;
  const uint64_t budget = static_cast<uint64_t>(g_settings.budget_seconds) * kSecond;
  call.deadline_ns = budget == 0 ? ~uint64_t{0} : now + (budget > g_spent_ns ? budget - g_spent_ns : 0);
  call.to = &one;
  InlineMeter meter;
  const Inside ours(state);
  state->inline_meter = &meter;
  library.run(&kHost, &call);
  state->inline_meter = nullptr;
  g_spent_ns += MonotonicNs() - now;
}

}  // namespace

void StartInlineReference(const InlineSettings& settings) noexcept {
  g_settings = settings;
  g_on.store(settings.on, std::memory_order_relaxed);
}

void StopInlineReference() noexcept {
  g_on.store(false, std::memory_order_relaxed);
  g_inline_waiting.store(0, std::memory_order_relaxed);
}

void NoteForInline(ThreadState* state, const CallRecord& call, uint32_t slot, bool recorded) noexcept {
  if (!g_on.load(std::memory_order_relaxed) || slot >= spool::kMaxVariants) return;
  if (call.path_kind != PathKind::kDense && call.path_kind != PathKind::kQuadratic) return;
  if (g_known[slot].load(std::memory_order_relaxed) || g_known[slot].exchange(true, std::memory_order_relaxed)) return;
  const bool measurable = call.q.device == DeviceKind::kCpu || call.q.device == DeviceKind::kCuda;
  if (!measurable || call.q.present == 0 || call.k.present == 0 || call.v.present == 0) return;
  Guarded("inline reference", false, [&] {
    const std::lock_guard<std::mutex> lock(g_mutex);
    const bool differentiable =
        (call.q.requires_grad | call.k.requires_grad | call.v.requires_grad | call.mask.requires_grad) != 0;
    List().push_back({slot, state, call, recorded && differentiable, false, MonotonicNs()});
    List().back().call.gates = nullptr, List().back().call.facts = nullptr;  // the caller's own
    g_inline_waiting.fetch_add(1, std::memory_order_relaxed);
    return true;
  });
}

void NoteBackwardForInline(const CallRecord& call) noexcept {
  if (g_inline_waiting.load(std::memory_order_relaxed) == 0 || call.forward_slot == 0) return;
  const std::lock_guard<std::mutex> lock(g_mutex);
  for (Waiting& one : List()) {
    if (one.slot != call.forward_slot - 1) continue;
    one.saw_backward = true;
    one.backward_bytes = call.peak_bytes;
    one.backward_ns = call.host_ns;
  }
}

void TendInlineReference(ThreadState* state) noexcept {
  if (!g_on.load(std::memory_order_relaxed) || !IsQuiet(*state)) return;
  const uint64_t now = MonotonicNs();
  if (now < g_next_look.load(std::memory_order_relaxed)) return;
  if (g_running.exchange(true, std::memory_order_acquire)) return;
  Guarded("inline reference", false, [&] {
    static const Library library = Open();
    if (library.is_quiet == nullptr || library.run == nullptr) {
      StopInlineReference();
      return false;
    }
    // Factories and parts of operators start below a wrapper: the next operator may not, so the wait between looks begins here.
    if (library.is_quiet() == 0) return false;
    g_next_look.store(now + kBetweenLooks, std::memory_order_relaxed);
    Waiting one{};
    if (Take(state, now, &one)) Run(state, library, std::move(one), now);
    return true;
  });
  g_running.store(false, std::memory_order_release);
}

}  // namespace attntrace
