// What a CUDA kernel is, by its name: the one table from kernels to library, phase, and fused or not.
//
// Used inside the traced process (which launches are attention) and outside (what a report says about a kernel). Allocates
// nothing. Takes names as CUPTI gives them, mangled, and demangled ones alike.
#pragma once

#include <string_view>

#include "tracer/spool/words.h"

namespace attntrace {

enum class KernelKind : uint8_t {
  kOther,   // nothing that this table knows
  kFused,   // computes attention without storing scores; one launch a call
  kPart,    // of a fused call: combines, preprocesses, converts
  kDense,   // a softmax over stored scores
  kLinear,  // linear attention: never blamed
};

struct KernelFacts {
  KernelKind kind = KernelKind::kOther;
  Backend backend = Backend::kUnknown;
  Phase phase = Phase::kForward;
  const char* library = "";  // for people: "PyTorch flash", "cuDNN", ...
};

KernelFacts FactsOfKernel(std::string_view name) noexcept;

// How many rows the table has, and which of them a name is read by; -1 none. For the test that holds a real name to each.
int KernelRows() noexcept;
int RowOfKernel(std::string_view name) noexcept;

}  // namespace attntrace
