// A library that allocates by cudaMallocAsync: built once under the name of PyTorch's, which is counted, and once under
// another.
#include <stddef.h>

extern "C" int cudaMallocAsync(void** pointer, size_t bytes, void* stream);
extern "C" int cudaFreeAsync(void* pointer, void* stream);

#define ATTNTRACE_EXPORT extern "C" __attribute__((visibility("default")))

ATTNTRACE_EXPORT void* allocate(size_t bytes) {
  void* pointer = nullptr;
  int result = cudaMallocAsync(&pointer, bytes, nullptr);
  return result == 0 ? pointer : nullptr;
}
ATTNTRACE_EXPORT int release(void* pointer) {
  volatile int result = cudaFreeAsync(pointer, nullptr);  // no call in tail position: whose it is would be hidden
  return result;
}
