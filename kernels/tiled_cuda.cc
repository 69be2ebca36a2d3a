#include "kernels/tiled_cuda.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <string>

namespace attntrace::reference {
namespace {

// Of the program or the library that this code is in.
std::string FolderOfThis() {
  Dl_info info;
  static const char here = 0;
  const std::string whole = dladdr(&here, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
  return whole.substr(0, whole.rfind('/') + 1);
}

TiledCudaLibrary Open(std::string* error) {
  TiledCudaLibrary library;
  void* const handle = dlopen((FolderOfThis() + "libattntrace_tiled_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    *error = dlerror();
    return library;
  }
  library.workspace = reinterpret_cast<decltype(library.workspace)>(dlsym(handle, "attntrace_tiled_cuda_workspace"));
  library.forward = reinterpret_cast<decltype(library.forward)>(dlsym(handle, "attntrace_tiled_cuda_forward"));
  library.backward = reinterpret_cast<decltype(library.backward)>(dlsym(handle, "attntrace_tiled_cuda_backward"));
  return library;
}

}  // namespace

const TiledCudaLibrary& TiledCuda() {
  static std::string error;
  static const TiledCudaLibrary library = Open(&error);
  TORCH_CHECK(library.workspace != nullptr && library.forward != nullptr && library.backward != nullptr,
              "our CUDA kernel is not installed: ", error);
  return library;
}

}  // namespace attntrace::reference
