// Kernel names, interned by content: a module that was loaded again may have another kernel at the same address.
//
// Any thread, also inside a CUPTI callback; a known name takes no lock.
#pragma once

#include <cstdint>

#include "tracer/spool/format.h"
#include "tracer/spool/kernel_names.h"

namespace attntrace {

using KernelId = uint16_t;
inline constexpr KernelId kOtherKernels = 0;  // whatever found no room

struct KernelEntry {
  spool::StringId string = 0;
  const char* name = "";  // lives for ever
  KernelFacts facts;
};

KernelId InternKernel(const char* name) noexcept;
const KernelEntry& KernelOf(KernelId id) noexcept;

// What one call launched, by kernel, in the order of their first launch.
struct KernelSet {
  static constexpr int kMost = 24;
  uint64_t key = 0;     // what is counted as the same kind of call (see Watch)
  uint64_t epoch = 0;   // of the window at its start, 0 closed
  uint64_t token = 0;   // of a call that a CUDA graph is capturing, else 0
  uint32_t ticket = 0;  // its device time, see gpu_time.h; 0 until its first launch
  uint32_t total = 0;
  int used = 0;
  struct {
    KernelId kernel;
    uint32_t launches;
  } list[kMost];

  void Start(uint64_t new_key, uint64_t new_epoch, uint64_t new_token) noexcept {
    key = new_key;
    epoch = new_epoch;
    token = new_token;
    ticket = 0;
    total = 0;
    used = 0;
  }
  void Add(KernelId kernel) noexcept {
    ++total;
    for (int i = 0; i < used; ++i) {
      if (list[i].kernel == kernel) {
        ++list[i].launches;
        return;
      }
    }
    if (used == kMost - 1) kernel = kOtherKernels;  // the last place is for all that find none
    if (used < kMost) {
      list[used++] = {kernel, 1};
    } else {
      ++list[kMost - 1].launches;
    }
  }
};

}  // namespace attntrace
