// Memory that may still be taken, in bytes. Knows no PyTorch.
#pragma once

#include <cstdint>

namespace attntrace::reference {

// Of the machine and of the control groups that this process is in; INT64_MAX where nothing limits it.
int64_t FreeMainMemory();

// Of the current CUDA device, as its driver says; -1 where no driver is mapped or it does not answer.
int64_t FreeDeviceMemory();

}  // namespace attntrace::reference
