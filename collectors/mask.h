// What a mask says: read from its memory, so that "this mask is plain causal" is an observation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "tracer/spool/words.h"

namespace attntrace {

// For a mask of bool or floating point whose last two dimensions are (rows, columns). Larger than kMaxMaskElements: kUnread.
// One on a CUDA device is copied to the host, which waits for the device; there the bound is kMaxCopiedElements.
// Bool: true attends. Float: 0 attends, a large negative number or -inf does not, anything else is a bias (kOther).
inline constexpr int64_t kMaxMaskElements = int64_t{1} << 26;
inline constexpr int64_t kMaxCopiedElements = int64_t{1} << 24;
MaskContent ReadMask(const at::Tensor& mask) noexcept;

// Sum of a tensor of whole numbers (int32, int64), on the CPU or, copied as above, on a CUDA device. False where it cannot be
// read.
bool SumCounts(const at::Tensor& counts, int64_t* sum) noexcept;

}  // namespace attntrace
