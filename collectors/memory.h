// Memory of one thread: what it allocated and freed, and meters over stretches of its life (an open attention call).
//
// Fed by the preload's memory reports, which may come under PyTorch's allocator lock: this file counts, and does nothing else.
// All of it is used by its own thread only, so nothing is atomic but the process totals in the spool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tracer/spool/format.h"

namespace attntrace {

// 0 the CPU, 1 + i CUDA device i.
inline constexpr int kMemorySpaces = 1 + spool::kMaxDevices;
inline int MemorySpace(DeviceKind kind, int index) noexcept {
  if (kind == DeviceKind::kCuda && index >= 0 && index < spool::kMaxDevices) return 1 + index;
  return kind == DeviceKind::kCpu ? 0 : -1;
}

// Highest sum over what was live when it was opened, bytes allocated, and the largest block of a score matrix's size.
struct Meter {
  int space = -1;
  int64_t start_net = 0;
  int64_t peak_net = 0;
  uint64_t start_gross = 0;
  uint64_t nested_gross = 0;   // of calls inside this one that were counted on their own
  int64_t score_elements = 0;  // batch x heads x Sq x Sk, 0 unknown
  int64_t score_bytes = 0;

  int64_t Peak() const noexcept { return peak_net - start_net; }
};

struct ThreadMemory {
  static constexpr int kMaxMeters = 8;
  int64_t net[kMemorySpaces] = {};     // allocated minus freed by this thread, ever
  uint64_t gross[kMemorySpaces] = {};  // allocated by this thread, ever
  Meter* meters[kMaxMeters] = {};
  int open = 0;

  bool Open(Meter* meter, int space, int64_t score_elements) noexcept {
    if (space < 0 || open == kMaxMeters) return false;
    *meter = Meter{};
    meter->space = space;
    meter->start_net = meter->peak_net = net[space];
    meter->start_gross = gross[space];
    meter->score_elements = score_elements;
    meters[open++] = meter;
    return true;
  }
  void Close(Meter* meter) noexcept {
    for (int i = 0; i < open; ++i) {
      if (meters[i] == meter) {
        meters[i] = meters[--open];
        return;
      }
    }
  }
  uint64_t Gross(const Meter& meter) const noexcept { return gross[meter.space] - meter.start_gross - meter.nested_gross; }

  void Count(int space, int64_t bytes) noexcept {
    net[space] += bytes;
    if (bytes <= 0) return;
    gross[space] += static_cast<uint64_t>(bytes);
    for (int i = 0; i < open; ++i) {
      Meter& meter = *meters[i];
      if (meter.space != space) continue;
      if (net[space] > meter.peak_net) meter.peak_net = net[space];
      if (meter.score_elements > 0 && bytes > meter.score_bytes && IsScoreBlock(bytes, meter.score_elements)) {
        meter.score_bytes = bytes;
      }
    }
  }

  // A block of `elements` values of 2, 4 or 8 bytes; CUDA blocks are rounded up to 512 bytes.
  static bool IsScoreBlock(int64_t bytes, int64_t elements) noexcept {
    for (int64_t width = 2; width <= 8; width *= 2) {
      const int64_t exact = elements * width;
      if (bytes == exact || bytes == ((exact + 511) & ~int64_t{511})) return true;
    }
    return false;
  }
};

// Process totals, in the spool's header. Called once for each report, from any thread.
void CountProcess(int space, int64_t bytes, size_t device_live, size_t device_reserved) noexcept;
void CountAttributed(int space, uint64_t bytes) noexcept;
int64_t LiveBytes(int space) noexcept;

}  // namespace attntrace
