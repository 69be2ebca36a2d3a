#include "kernels/tiled_cuda.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <string>

namespace attntrace::reference {
namespace {

std::string FolderOfThisProgram() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string whole(path, length > 0 ? static_cast<size_t>(length) : 0);
  return whole.substr(0, whole.rfind('/') + 1);
}

TiledCudaLibrary Open(std::string* error) {
  TiledCudaLibrary library;
  void* const handle = dlopen((FolderOfThisProgram() + "libattntrace_tiled_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
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
