// A CUDA runtime that only hands out addresses, under a version that no PyTorch brings, for tests of cudaMallocAsync without a
// device.
#include <stddef.h>
#include <stdint.h>

#include <atomic>

#define ATTNTRACE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
std::atomic<uintptr_t> g_next{0x700000000000};
std::atomic<int> g_device{0}, g_allocations{0}, g_frees{0};
}  // namespace

ATTNTRACE_EXPORT int cudaGetDevice(int* device) {
  *device = g_device;
  return 0;
}
ATTNTRACE_EXPORT int cudaMallocAsync(void** pointer, size_t bytes, void*) {
  if (bytes > size_t{1} << 40) return 2;  // cudaErrorMemoryAllocation
  ++g_allocations;
  *pointer = reinterpret_cast<void*>(g_next.fetch_add((bytes + 511) & ~size_t{511}));
  return 0;
}
ATTNTRACE_EXPORT int cudaFreeAsync(void*, void*) {
  ++g_frees;
  return 0;
}
ATTNTRACE_EXPORT void fake_set_device(int device) { g_device = device; }
ATTNTRACE_EXPORT int fake_allocations() { return g_allocations; }
ATTNTRACE_EXPORT int fake_frees() { return g_frees; }
