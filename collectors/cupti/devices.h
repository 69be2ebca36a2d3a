// CUDA devices as facts of the environment, asked of the driver that is mapped.
#pragma once

#include <cstdint>

namespace attntrace {

// "device.<n>" and, once, "cuda.driver". For a device that the program uses.
void RecordDevice(int device) noexcept;

// What the driver says is in use on the current device, beyond what PyTorch has reserved: into the spool's totals. Not inside a
// CUPTI callback or under the allocator's lock; does nothing while a graph is captured. Returns the bytes in use, -1 unknown.
int64_t ReadDeviceMemory() noexcept;
// So many bytes came to be in use on the current device while CUPTI was switched on.
void NoteCuptiMemory(int64_t bytes) noexcept;

// Whether a CUDA graph is capturing this thread's current stream of the device.
bool IsCapturing(int device) noexcept;

}  // namespace attntrace
