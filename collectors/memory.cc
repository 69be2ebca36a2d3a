#include "collectors/memory.h"

#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

template <typename T, typename U>
void RaiseTo(std::atomic<T>* at, U value) noexcept {
  T seen = at->load(std::memory_order_relaxed);
  while (static_cast<T>(value) > seen && !at->compare_exchange_weak(seen, static_cast<T>(value), std::memory_order_relaxed)) {
  }
}

std::atomic<uint64_t>& Total(Counter counter) noexcept { return Spool().header().counters[static_cast<size_t>(counter)]; }

}  // namespace

void CountProcess(int space, int64_t bytes, size_t device_live, size_t device_reserved) noexcept {
  if (space == 0) {
    // Live may dip below zero for storage that was there before us; the peak is of live as seen.
    const auto live =
        static_cast<int64_t>(Total(Counter::kCpuLiveBytes).fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed) +
                             static_cast<uint64_t>(bytes));
    if (bytes > 0) {
      Total(Counter::kCpuAllocatedBytes).fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
      Total(Counter::kCpuAllocations).fetch_add(1, std::memory_order_relaxed);
      if (live > 0) RaiseTo(&Total(Counter::kCpuPeakBytes), live);
    } else {
      Total(Counter::kCpuFrees).fetch_add(1, std::memory_order_relaxed);
    }
    return;
  }
  spool::DeviceTotals& device = Spool().header().devices[space - 1];
  device.live_bytes.store(static_cast<int64_t>(device_live), std::memory_order_relaxed);
  device.reserved_now.store(static_cast<int64_t>(device_reserved), std::memory_order_relaxed);
  if (bytes > 0) {
    device.allocated_bytes.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
    RaiseTo(&device.peak_bytes, device_live);
    RaiseTo(&device.reserved_bytes, device_reserved);
  }
}

void CountAttributed(int space, uint64_t bytes) noexcept {
  if (space == 0) {
    Total(Counter::kCpuAttributedBytes).fetch_add(bytes, std::memory_order_relaxed);
  } else if (space > 0) {
    Spool().header().devices[space - 1].attributed_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
}

int64_t LiveBytes(int space) noexcept {
  if (space == 0) return static_cast<int64_t>(Total(Counter::kCpuLiveBytes).load(std::memory_order_relaxed));
  return space > 0 ? Spool().header().devices[space - 1].live_bytes.load(std::memory_order_relaxed) : 0;
}

}  // namespace attntrace
