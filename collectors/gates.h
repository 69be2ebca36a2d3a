// Why a fused backend was ruled out, in PyTorch's own words: the checks that SDPA makes are inline functions of the installed headers,
// so an agent compiled for a version runs exactly that version's checks, each by itself.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "collectors/variants.h"

namespace attntrace {

struct SdpaInputs {
  const at::Tensor& q;
  const at::Tensor& k;
  const at::Tensor& v;
  std::optional<at::Tensor> mask;
  double dropout_p;
  bool causal;
  bool gqa;
};

// Every condition that rules out a fused backend for these inputs; empty where none does. Runs no kernel.
void TakeGates(const SdpaInputs& inputs, std::vector<GateText>* gates) noexcept;

// The SDPA switches as bits, so that a call after a change of switches is looked at anew.
uint32_t SdpaSwitches() noexcept;

}  // namespace attntrace
