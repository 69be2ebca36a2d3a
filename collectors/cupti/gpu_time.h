// --gpu-time: how long the kernels of attention calls take on the device, by CUPTI's activity records.
//
// A launch callback gives the launch's correlation id to the call that is open on its thread (its ticket); the record that
// comes much later, in any order and on a thread of CUPTI's, has the same id. Kernels of a CUDA graph are known by the node
// that they were captured as. CUPTI has one set of buffers a process: where a client of the program's has taken them or comes
// to take them, they are its own, and what was not seen is said in the report.
//
// TimeLaunch and TimeNode run inside CUPTI callbacks, on the launching thread, without lock or allocation. Times are ns.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/cupti/kernels.h"
#include "tracer/preload/hooks.h"

namespace attntrace {

extern std::atomic<bool> g_gpu_time_on;
inline bool GpuTimeOn() noexcept { return g_gpu_time_on.load(std::memory_order_relaxed); }

// Once, on the worker, when the agent has its subscription: buffers, records of kernels, a flush a second, the last one at
// exit.
void StartGpuTime(const AttntraceCupti* cupti) noexcept;

// A launch that belongs to what holds this ticket (KernelSet::ticket).
void TimeLaunch(uint32_t* ticket, uint32_t correlation) noexcept;
// What held it is a call of this variant.
void SettleTicket(uint32_t ticket, uint32_t slot) noexcept;

void StopGpuTimeAfterFork() noexcept;

}  // namespace attntrace
