// A request as tensors, and the call that it describes.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "kernels/protocol.h"

namespace attntrace::reference {

struct TensorCall {
  at::Tensor q, k, v;
  std::optional<at::Tensor> mask;
  double dropout = 0;
  bool causal = false, gqa = false;
  std::optional<double> scale;
  uint64_t seed = 0;  // of our own kernel's dropout
};

at::Device DeviceOf(const Request& request);

// Tensors of the sizes, strides and dtypes asked for, filled at random (a mask with what the request says it holds). Throws
// c10::Error for what cannot be built: overlapping strides, unknown dtypes.
TensorCall MakeCall(const Request& request);

// How many numbers a score matrix of all heads has.
int64_t Scores(const TensorCall& call);

}  // namespace attntrace::reference
