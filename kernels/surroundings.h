// What a reference run may touch of its process. In attntrace-reference everything; inside the traced program
// (--reference=inline) nothing that another thread could notice.
#pragma once

#include <ATen/core/Generator.h>

namespace attntrace::reference {

// True inside the traced program: SDPA's switches stay as the program set them. Defined by main.cc and by inline.cc.
bool InProgram();

// Random numbers of our own for a device: the program's generators are never drawn from.
at::Generator OwnGenerator(at::Device device);

}  // namespace attntrace::reference
