// CUDA devices as facts of the environment, asked of the driver that is mapped.
#pragma once

#include <cstdint>

namespace attntrace {

// "device.<n>" and, once, "cuda.driver". For a device that the program uses.
void RecordDevice(int device) noexcept;

// Whether a CUDA graph is capturing this thread's current stream of the device.
bool IsCapturing(int device) noexcept;

}  // namespace attntrace
