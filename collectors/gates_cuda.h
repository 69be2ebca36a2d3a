// Gates of the CUDA backends, asked of PyTorch's own checks (sdp::can_use_*_attention of libtorch_cuda).
#pragma once

#include <vector>

#include "collectors/gates.h"

namespace attntrace {

// A check names only the first condition that fails, so it is asked again about inputs with that condition removed, until it takes
// them or nothing helps. These inputs are shapes without memory: nothing is allocated and no kernel runs.
void TakeCudaGates(const SdpaInputs& inputs, std::vector<GateText>* gates);

}  // namespace attntrace
