// When kernel launches are watched: only while some kind of call has not shown its kernels in a few whole instances.
//
// A launch costs about 0.7 us more while CUPTI calls us for it, and nothing once the subscription is given up. The window opens
// when something begins whose kernels are still wanted, and closes after a run of beginnings whose kernels are known, or after
// many launches without any beginning. A program that never touches a CUDA device never touches CUPTI.
//
// Any thread. Everything but OnCudaMemory must be called outside of allocator locks and CUPTI callbacks.
#pragma once

#include <atomic>
#include <cstdint>

#include "tracer/preload/hooks.h"

namespace attntrace {

struct WatchSettings {
  int instances = 3;        // whole instances wanted of each kind of call; 0: CUPTI is left alone
  bool everything = false;  // the window never closes: every launch of the process is seen
  bool gpu_time = false;    // device times are taken, see gpu_time.h; goes with `everything`
};
void StartWatch(const AttntraceCupti* cupti, const WatchSettings& settings) noexcept;

extern std::atomic<bool> g_watch_asks;     // something waits for TendWatch
extern std::atomic<bool> g_watch_enabled;  // a CUDA device is in use, and kernels are wanted and can be had

inline bool WatchEnabled() noexcept { return g_watch_enabled.load(std::memory_order_relaxed); }
int WantedInstances() noexcept;

// From memory reports: a CUDA device allocates. May come under the allocator's lock.
void OnCudaMemory(int device) noexcept;
// At the next event of any thread that finds g_watch_asks set.
void TendWatch() noexcept;

// Something begins whose kernels are wanted: opens the window if it can be had.
void WatchNeeded() noexcept;
// Something begins whose kernels are known.
void WatchSettled() noexcept;
// Every launch that is seen.
void CountWatchedLaunch() noexcept;
// A CUDA graph captures attention: from now on graph nodes and graph launches are watched, window or not.
void WatchGraphs() noexcept;

// In a forked child: CUPTI belongs to the parent.
void StopWatchAfterFork() noexcept;

// 0 while the window is closed; else a number that changes whenever launches may have been missed.
uint64_t WatchEpoch() noexcept;
// CUPTI's own functions, by name; null where there is none.
void* CuptiFunction(const char* name) noexcept;

}  // namespace attntrace
