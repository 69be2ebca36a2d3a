// Runs a call on the path that a request names, with its changes.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "kernels/call.h"

namespace attntrace::reference {

// True where this process can run the path at all (flex is Python's).
bool KnowsPath(const std::string& path);

// The output, as the unchanged call would give it. Throws what PyTorch throws; the warnings in which SDPA says why a backend
// does not fit are for the thread's warning handler.
at::Tensor RunPath(const std::string& path, const std::vector<std::string>& changes, const TensorCall& call);

}  // namespace attntrace::reference
