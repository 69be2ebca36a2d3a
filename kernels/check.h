// The answer in float64, by PyTorch's own math, to hold a run against.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "kernels/call.h"

namespace attntrace::reference {

// False where the scores in float64 would be too much for the purpose.
bool CanCheck(const TensorCall& call);

// Largest absolute difference of the output and of the gradients of `inputs` (in that order; undefined ones are skipped).
double LargestDifference(const TensorCall& call, const std::vector<at::Tensor>& inputs, const at::Tensor& out,
                         const at::Tensor& grad_out, const std::vector<at::Tensor>& grads);

}  // namespace attntrace::reference
