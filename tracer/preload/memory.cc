// The three functions through which PyTorch's allocators report, defined in front of libc10's and chained to them.
//
// While tracing, the CPU allocator is told that memory is being profiled, always: an allocation that goes unseen would come
// back as a free of unknown size. It then keeps a table of blocks under a mutex, which brings two duties that are ours, since
// untraced programs hardly ever meet them: a forked child must not find that mutex locked, and no block may be looked up after
// the table was destroyed at exit.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <atomic>

#include "tracer/preload/attach.h"
#include "tracer/preload/c10_memory.h"
#include "tracer/preload/early_memory.h"
#include "tracer/preload/profiler_view.h"
#include "tracer/preload/settings.h"

namespace attntrace::preload {
namespace {

constexpr int8_t kCpu = 0;  // c10::DeviceType::CPU

// What this thread's last question was answered. The allocator asks, enters its mutex, leaves it and reports, so a thread whose
// answer is not used up may be inside. Shared memory maps report without having asked.
enum class Asked : uint8_t { kNo, kProfilerOff, kProfilerOn };
thread_local Asked t_asked = Asked::kNo;
std::atomic<int> g_threads_inside{0};

std::atomic<bool> g_stopped{false};   // from here on the real answer is given
std::atomic<bool> g_prepared{false};  // the handlers below are registered

void Stop() noexcept { g_stopped.store(true, std::memory_order_relaxed); }

// The child has this memory as it was at the fork: if another thread was inside then, the allocator's mutex is locked for ever.
void AfterForkInChild() noexcept {
  int mine = t_asked == Asked::kNo ? 0 : 1;
  if (g_threads_inside.load(std::memory_order_relaxed) != mine) Stop();
  g_threads_inside.store(mine, std::memory_order_relaxed);
}

// At the first question: the allocator has just made its table, so a handler registered now runs right before the table's
// destructor.
void Prepare() noexcept {
  int saved_errno = errno;
  if (atexit(Stop) != 0 || pthread_atfork(nullptr, nullptr, AfterForkInChild) != 0) Stop();
  errno = saved_errno;
}

inline bool Watching() noexcept {
  return GetSettings().tracing && !g_stopped.load(std::memory_order_relaxed) && !AttachWasDeclined();
}

inline void Remember(bool profiler_on) noexcept {
  if (t_asked == Asked::kNo) g_threads_inside.fetch_add(1, std::memory_order_relaxed);
  t_asked = profiler_on ? Asked::kProfilerOn : Asked::kProfilerOff;
}

inline Asked TakeAnswer() noexcept {
  Asked asked = t_asked;
  if (asked != Asked::kNo) {
    t_asked = Asked::kNo;
    g_threads_inside.fetch_sub(1, std::memory_order_relaxed);
  }
  return asked;
}

}  // namespace
}  // namespace attntrace::preload

namespace c10 {

using namespace attntrace::preload;

bool memoryProfilingEnabled() {
  auto real = GetRealMemory().enabled;
  bool profiler_on = real != nullptr && real();
  if (!Watching()) return profiler_on;
  if (!g_prepared.load(std::memory_order_relaxed) && !g_prepared.exchange(true)) Prepare();
  Remember(profiler_on);
  return true;
}

void reportMemoryUsageToProfiler(void* pointer, int64_t bytes, size_t total_allocated, size_t total_reserved, Device device) {
  if (const AttntraceHooks* hooks = ConnectedHooks(); hooks != nullptr) {
    if (hooks->memory != nullptr) hooks->memory(pointer, bytes, total_allocated, total_reserved, device.type, device.index);
  } else if (device.type == kCpu) {
    CountEarly(bytes);
  }
  if (device.type == kCpu) {
    switch (TakeAnswer()) {
      case Asked::kNo:
        break;
      case Asked::kProfilerOff:
        return;
      case Asked::kProfilerOn:
        ProfilerReport report = AsProfilerSees(pointer, bytes, total_allocated);
        if (!report.wanted) return;
        bytes = report.bytes;
        total_allocated = report.total_allocated;
        break;
    }
  }
  if (auto real = GetRealMemory().usage) real(pointer, bytes, total_allocated, total_reserved, device);
}

void reportOutOfMemoryToProfiler(int64_t bytes, size_t total_allocated, size_t total_reserved, Device device) {
  if (const AttntraceHooks* hooks = ConnectedHooks(); hooks != nullptr && hooks->out_of_memory != nullptr) {
    hooks->out_of_memory(bytes, total_allocated, total_reserved, device.type, device.index);
  }
  if (auto real = GetRealMemory().out_of_memory) real(bytes, total_allocated, total_reserved, device);
}

}  // namespace c10
