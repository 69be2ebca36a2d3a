// The changes of kernels/protocol.h, made on tensors.
#pragma once

#include <string>

#include "kernels/call.h"

namespace attntrace::reference {

struct ChangedCall {
  TensorCall call;
  double output_dropout = 0;
};

void Change(const std::string& name, ChangedCall* changed);

// What makes the changed call's output that of the original one: squeezed, cut, cast back.
at::Tensor Restore(const TensorCall& original, const ChangedCall& changed, at::Tensor output);

}  // namespace attntrace::reference
