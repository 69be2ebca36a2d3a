// Tensor memory as PyTorch's allocators report it: the same three functions of c10 that the preload stands in front of in a
// traced program, here defined by the executable itself.
#pragma once

#include <cstdint>

namespace attntrace::reference {

// `type` is c10::DeviceType: 0 CPU, 1 CUDA. Any thread.
int64_t LiveBytes(int type, int index);
int64_t PeakBytes(int type, int index);  // highest since the last reset
void ResetPeak(int type, int index);     // to what is live

}  // namespace attntrace::reference
