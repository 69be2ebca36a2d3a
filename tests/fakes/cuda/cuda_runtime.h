// Just enough of CUDA to run our kernels' own source on a CPU: the threads of a block are fibers that take turns at every
// __syncthreads, one block after the other. For the logic, not for races between threads nor for speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __shared__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  explicit dim3(unsigned n) : x(n) {}
};

namespace attntrace::fake_cuda {

inline constexpr size_t kMostShared = 232448;  // of an H100
inline int g_launches = 0;

void RunBlock(unsigned threads, const std::function<void()>& body);
void Yield();
unsigned Thread();
inline unsigned g_block = 0;
inline double g_lanes[1024];

struct ThreadIndex {
  struct X {
    operator unsigned() const { return Thread(); }
  } x;
};
struct BlockIndex {
  struct X {
    operator unsigned() const { return g_block; }
  } x;
};

}  // namespace attntrace::fake_cuda

inline constexpr attntrace::fake_cuda::ThreadIndex threadIdx{};
inline constexpr attntrace::fake_cuda::BlockIndex blockIdx{};

inline void __syncthreads() { attntrace::fake_cuda::Yield(); }

template <typename T>
T __shfl_down_sync(unsigned, T value, int step) {
  using namespace attntrace::fake_cuda;
  const unsigned thread = Thread();
  g_lanes[thread] = static_cast<double>(value);
  Yield();
  const T got =
      thread % 32 + static_cast<unsigned>(step) < 32 ? static_cast<T>(g_lanes[thread + static_cast<unsigned>(step)]) : value;
  Yield();
  return got;
}

inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin };
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel, cudaFuncAttribute, int bytes) {
  return static_cast<size_t>(bytes) <= attntrace::fake_cuda::kMostShared ? cudaSuccess : cudaErrorInvalidValue;
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return "invalid argument"; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  return *value = static_cast<int>(attntrace::fake_cuda::kMostShared), cudaSuccess;
}

template <typename... Expected, typename... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...), Given... arguments) {
  ++attntrace::fake_cuda::g_launches;
  for (unsigned block = 0; block < config->gridDim.x; ++block) {
    attntrace::fake_cuda::g_block = block;
    attntrace::fake_cuda::RunBlock(config->blockDim.x, [&] { kernel(arguments...); });
  }
  return cudaSuccess;
}
