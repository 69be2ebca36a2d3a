// The CUDA half of our own kernel: a shared library beside this program or library, built where there is a CUDA compiler, found
// at run time.
#pragma once

#include "kernels/tiled/call.h"

namespace attntrace::reference {

struct TiledCudaLibrary {
  decltype(&attntrace_tiled_cuda_workspace) workspace = nullptr;
  decltype(&attntrace_tiled_cuda_forward) forward = nullptr;
  decltype(&attntrace_tiled_cuda_backward) backward = nullptr;
};

// Throws c10::Error where the library is missing or cannot be loaded.
const TiledCudaLibrary& TiledCuda();

}  // namespace attntrace::reference
