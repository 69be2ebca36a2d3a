// Our own kernel as a PyTorch function with a gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/call.h"

namespace attntrace::reference {

// Takes what SDPA takes in two to four dimensions, on CPU and CUDA. Throws c10::Error for what it does not take.
at::Tensor TiledAttention(const TensorCall& call);

}  // namespace attntrace::reference
