// Tensors that Python's objects hold. Needs the GIL; runs no code of the program's.
#pragma once

#include <ATen/core/Tensor.h>

#include "collectors/python_api.h"

namespace attntrace {

// What a torch.Tensor holds; undefined for what is of any other class, a subclass among them. `_cdata` is a field that
// PyTorch's own C code returns: the address of the tensor's implementation, in every version.
at::Tensor TensorOf(python::Object* object);

}  // namespace attntrace
