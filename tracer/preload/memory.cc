// The three functions through which PyTorch's allocators report, defined in front of libc10's and chained to them, so that
// PyTorch's own profiler sees what it would see without us. They are the same in every PyTorch from 2.6 to 2.15.
//
// libc10 is mapped RTLD_LOCAL below torch._C, out of RTLD_NEXT's sight, so the real ones are looked up in its handle.
#include "tracer/preload/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>

#include <atomic>

#include "tracer/preload/attach.h"
#include "tracer/preload/libraries.h"
#include "tracer/preload/settings.h"

namespace c10 {

// As c10::Device is passed: two bytes in one register.
struct Device {
  int8_t type;
  int8_t index;
};
static_assert(sizeof(Device) == 2);

#define ATTNTRACE_EXPORT __attribute__((visibility("default")))
ATTNTRACE_EXPORT bool memoryProfilingEnabled();
ATTNTRACE_EXPORT void reportMemoryUsageToProfiler(void* pointer, int64_t bytes, size_t total_allocated, size_t total_reserved,
                                                  Device device);
ATTNTRACE_EXPORT void reportOutOfMemoryToProfiler(int64_t bytes, size_t total_allocated, size_t total_reserved, Device device);

}  // namespace c10

namespace attntrace::preload {
namespace {

constexpr int8_t kCpu = 0;  // c10::DeviceType::CPU

struct Real {
  std::atomic<bool> resolved{false};  // looked for; the pointers stay null where there is none
  std::atomic<decltype(&c10::memoryProfilingEnabled)> enabled{nullptr};
  std::atomic<decltype(&c10::reportMemoryUsageToProfiler)> usage{nullptr};
  std::atomic<decltype(&c10::reportOutOfMemoryToProfiler)> out_of_memory{nullptr};
};
Real g_real;

struct Counters {
  std::atomic<int64_t> live{0};
  std::atomic<int64_t> peak{0};
  std::atomic<uint64_t> allocated_bytes{0};
  std::atomic<uint64_t> allocations{0};
  std::atomic<uint64_t> frees{0};
};
Counters g_cpu;

template <typename Function>
void Find(void* library, const char* name, std::atomic<Function>& to) noexcept {
  to.store(reinterpret_cast<Function>(dlsym(library, name)), std::memory_order_relaxed);
}

// PyTorch reports the first time while its libraries are being loaded, before it has any allocator lock to hold.
inline void EnsureResolved() noexcept {
  if (!g_real.resolved.load(std::memory_order_acquire)) ResolveMemory();
}

void Count(int64_t bytes) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  int64_t live = g_cpu.live.fetch_add(bytes, kRelaxed) + bytes;
  if (bytes < 0) {
    g_cpu.frees.fetch_add(1, kRelaxed);
    return;
  }
  g_cpu.allocated_bytes.fetch_add(static_cast<uint64_t>(bytes), kRelaxed);
  g_cpu.allocations.fetch_add(1, kRelaxed);
  int64_t peak = g_cpu.peak.load(kRelaxed);
  while (live > peak && !g_cpu.peak.compare_exchange_weak(peak, live, kRelaxed)) {
  }
}

}  // namespace

void ResolveMemory() noexcept {
  if (g_real.resolved.load(std::memory_order_acquire)) return;
  int saved_errno = errno;
  char path[PATH_MAX];
  // The handle is kept: libc10 must stay as long as its functions are known here.
  void* c10 = FindLibrary("libc10", path, sizeof(path)) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (c10 != nullptr) {
    Find(c10, "_ZN3c1022memoryProfilingEnabledEv", g_real.enabled);
    Find(c10, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", g_real.usage);
    Find(c10, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE", g_real.out_of_memory);
  }
  g_real.resolved.store(true, std::memory_order_release);
  errno = saved_errno;
}

void CountedSoFar(AttntraceStart* start) noexcept {
  start->cpu_live_bytes = g_cpu.live.load(std::memory_order_relaxed);
  start->cpu_peak_bytes = g_cpu.peak.load(std::memory_order_relaxed);
  start->cpu_allocated_bytes = g_cpu.allocated_bytes.load(std::memory_order_relaxed);
  start->cpu_allocations = g_cpu.allocations.load(std::memory_order_relaxed);
  start->cpu_frees = g_cpu.frees.load(std::memory_order_relaxed);
}

void HandOver(const AttntraceHooks& hooks, const AttntraceStart& start) noexcept {
  if (hooks.memory == nullptr) return;
  AttntraceStart now{};
  CountedSoFar(&now);
  auto allocated = static_cast<int64_t>(now.cpu_allocated_bytes - start.cpu_allocated_bytes);
  int64_t freed = allocated - (now.cpu_live_bytes - start.cpu_live_bytes);
  if (allocated > 0) hooks.memory(nullptr, allocated, 0, 0, kCpu, -1);
  if (freed > 0) hooks.memory(nullptr, -freed, 0, 0, kCpu, -1);
}

}  // namespace attntrace::preload

namespace c10 {

using namespace attntrace::preload;

// Asked by the CPU allocator before it reports. Always yes under tracing: an allocation that goes unseen would come back as a
// free of unknown size.
bool memoryProfilingEnabled() {
  EnsureResolved();
  if (GetSettings().tracing && !AttachWasDeclined()) return true;
  auto real = g_real.enabled.load(std::memory_order_relaxed);
  return real != nullptr && real();
}

void reportMemoryUsageToProfiler(void* pointer, int64_t bytes, size_t total_allocated, size_t total_reserved, Device device) {
  if (const AttntraceHooks* hooks = ConnectedHooks(); hooks != nullptr) {
    if (hooks->memory != nullptr) hooks->memory(pointer, bytes, total_allocated, total_reserved, device.type, device.index);
  } else if (device.type == kCpu) {
    Count(bytes);
  }
  EnsureResolved();
  if (auto real = g_real.usage.load(std::memory_order_relaxed)) real(pointer, bytes, total_allocated, total_reserved, device);
}

void reportOutOfMemoryToProfiler(int64_t bytes, size_t total_allocated, size_t total_reserved, Device device) {
  if (const AttntraceHooks* hooks = ConnectedHooks(); hooks != nullptr && hooks->out_of_memory != nullptr) {
    hooks->out_of_memory(bytes, total_allocated, total_reserved, device.type, device.index);
  }
  EnsureResolved();
  if (auto real = g_real.out_of_memory.load(std::memory_order_relaxed)) real(bytes, total_allocated, total_reserved, device);
}

}  // namespace c10
