#include "tracer/preload/profiler_view.h"

#include "tracer/preload/block_table.h"
#include "tracer/preload/spin_lock.h"

namespace attntrace::preload {
namespace {

BlockTable g_table;
size_t g_total = 0;  // bytes, counted as PyTorch does: a block that comes again replaces its entry, not its bytes
SpinLock g_lock;     // guards both

ProfilerReport Added(void* pointer, int64_t bytes, size_t total_allocated) noexcept {
  bool fresh = false;
  if (!g_table.Put(pointer, static_cast<uint64_t>(bytes), &fresh)) return {true, bytes, total_allocated};
  g_total += static_cast<size_t>(bytes);
  return {true, bytes, g_total};
}

ProfilerReport Removed(void* pointer) noexcept {
  uint64_t bytes = 0;
  if (!g_table.Take(pointer, &bytes)) return {};
  g_total -= bytes;
  return {true, -static_cast<int64_t>(bytes), g_total};
}

}  // namespace

ProfilerReport AsProfilerSees(void* pointer, int64_t bytes, size_t total_allocated) noexcept {
  if (pointer == nullptr || !g_lock.Lock()) return {true, bytes, total_allocated};
  ProfilerReport report = bytes < 0 ? Removed(pointer) : Added(pointer, bytes, total_allocated);
  g_lock.Unlock();
  return report;
}

}  // namespace attntrace::preload
