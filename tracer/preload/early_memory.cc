#include "tracer/preload/early_memory.h"

#include <atomic>

namespace attntrace::preload {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

std::atomic<int64_t> g_live{0};
std::atomic<int64_t> g_peak{0};
std::atomic<uint64_t> g_allocated_bytes{0};
std::atomic<uint64_t> g_allocations{0};
std::atomic<uint64_t> g_frees{0};

}  // namespace

void CountEarly(int64_t bytes) noexcept {
  int64_t live = g_live.fetch_add(bytes, kRelaxed) + bytes;
  if (bytes < 0) {
    g_frees.fetch_add(1, kRelaxed);
    return;
  }
  g_allocated_bytes.fetch_add(static_cast<uint64_t>(bytes), kRelaxed);
  g_allocations.fetch_add(1, kRelaxed);
  int64_t peak = g_peak.load(kRelaxed);
  while (live > peak && !g_peak.compare_exchange_weak(peak, live, kRelaxed)) {
  }
}

void CountedSoFar(AttntraceStart* start) noexcept {
  start->cpu_live_bytes = g_live.load(kRelaxed);
  start->cpu_peak_bytes = g_peak.load(kRelaxed);
  start->cpu_allocated_bytes = g_allocated_bytes.load(kRelaxed);
  start->cpu_allocations = g_allocations.load(kRelaxed);
  start->cpu_frees = g_frees.load(kRelaxed);
}

void HandOver(const AttntraceHooks& hooks, const AttntraceStart& start) noexcept {
  if (hooks.memory == nullptr) return;
  AttntraceStart now{};
  CountedSoFar(&now);
  auto allocated = static_cast<int64_t>(now.cpu_allocated_bytes - start.cpu_allocated_bytes);
  int64_t freed = allocated - (now.cpu_live_bytes - start.cpu_live_bytes);
  constexpr int8_t kCpu = 0;
  if (allocated > 0) hooks.memory(nullptr, allocated, 0, 0, kCpu, -1);
  if (freed > 0) hooks.memory(nullptr, -freed, 0, 0, kCpu, -1);
}

}  // namespace attntrace::preload
