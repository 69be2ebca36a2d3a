// Which PyTorch is mapped, and the folder that holds the agent built for it.
//
// Called once, while attaching; reads files, allocates nothing.
#pragma once

#include <cstddef>

namespace attntrace::preload {

// Reads the version ("2.11.0+cu130") from the files that come with the libtorch_cpu.so at `torch_library`: version.py of a
// wheel, build-version of a LibTorch archive. False if neither is there.
bool ReadTorchVersion(const char* torch_library, char* version, size_t size) noexcept;

// Name of the agent's folder for a version, see tracer/spool/names.h. Asks the mapped libc10 for its C++ ABI.
void AgentFolder(const char* version, char* folder, size_t size) noexcept;

}  // namespace attntrace::preload
