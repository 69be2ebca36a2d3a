// Launches our kernel on the GPU: libattntrace_tiled_cuda.so. Knows no PyTorch, so one library serves all its versions.
#include <climits>

#include "kernels/tiled/cuda_backward.cuh"
#include "kernels/tiled/cuda_forward.cuh"

namespace attntrace::tiled::cuda {
namespace {

int64_t Tiles(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }

// More than 48 KiB of shared memory must be asked for; a head that is too large for it is refused in CUDA's words.
template <typename Kernel, typename... Arguments>
const char* Launch(Kernel kernel, int64_t blocks, size_t shared, cudaStream_t stream, Arguments... arguments) {
  if (blocks == 0) return nullptr;
  if (blocks > INT_MAX) return "more tiles than a grid has blocks";
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  if (error == cudaSuccess) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks)), config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = shared, config.stream = stream;
    error = cudaLaunchKernelEx(&config, kernel, arguments...);
  }
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

template <typename T>
const char* RunForward(const Call& call, cudaStream_t stream) {
  return Launch(Forward<T>, call.batch * call.heads * Tiles(call.seq_q, kTileQ), ForwardShared<T>(call), stream, call);
}

size_t MostShared() {
  int device = 0, bytes = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return static_cast<size_t>(bytes);
}

// One pass where both gradients of a tile fit into shared memory, else one each.
template <typename T>
const char* RunKeysAndValues(const Call& call, const T* dot, cudaStream_t stream) {
  const int64_t blocks = call.batch * call.heads_kv * Tiles(call.seq_kv, kTileKv);
  const bool keys = call.grad_k.data != nullptr, values = call.grad_v.data != nullptr;
  if (!keys && !values) return nullptr;
  const size_t shared = TilesShared<T>(kTileKv * ((keys ? call.dim : 0) + (values ? call.dim_v : 0)));
  if (!keys || !values || shared <= MostShared()) return Launch(KeysAndValues<T>, blocks, shared, stream, call, dot);
  Call only_keys = call, only_values = call;
  only_keys.grad_v.data = only_values.grad_k.data = nullptr;
  const char* const error = RunKeysAndValues(only_keys, dot, stream);
  return error != nullptr ? error : RunKeysAndValues(only_values, dot, stream);
}

template <typename T>
const char* RunBackward(const Call& call, cudaStream_t stream) {
  T* const dot = static_cast<T*>(call.workspace);
  const int64_t rows = call.batch * call.heads * call.seq_q;
  const char* error = Launch(Dot<T>, Tiles(rows * 32, kThreads), 0, stream, call, dot);
  const T* const dots = dot;
  if (error == nullptr) error = RunKeysAndValues(call, dots, stream);
  if (error == nullptr && call.grad_q.data != nullptr) {
    error = Launch(Queries<T>, call.batch * call.heads * Tiles(call.seq_q, kTileQ), TilesShared<T>(kTileQ * call.dim), stream, call, dots);
  }
  if (error == nullptr && call.grad_mask.data != nullptr) {
    error = Launch(Bias<T>, BiasTasks(call).Count(), TilesShared<T>(kTileQ * kTileKv), stream, call, dots);
  }
  return error;
}

}  // namespace
}  // namespace attntrace::tiled::cuda

using attntrace::tiled::Call;
using attntrace::tiled::Type;

extern "C" {

__attribute__((visibility("default"))) size_t attntrace_tiled_cuda_workspace(const Call* call, int backward) {
  const size_t rows = static_cast<size_t>(call->batch * call->heads * call->seq_q);
  return backward ? rows * (call->q.type == Type::kFloat64 ? sizeof(double) : sizeof(float)) : 0;
}

__attribute__((visibility("default"))) const char* attntrace_tiled_cuda_forward(const Call* call, void* stream) {
  using namespace attntrace::tiled::cuda;
  const auto queue = static_cast<cudaStream_t>(stream);
  // This library has a CUDA runtime of its own, with its own idea of the current device.
  if (const cudaError_t error = cudaSetDevice(call->device); error != cudaSuccess) return cudaGetErrorString(error);
  return call->q.type == Type::kFloat64 ? RunForward<double>(*call, queue) : RunForward<float>(*call, queue);
}

__attribute__((visibility("default"))) const char* attntrace_tiled_cuda_backward(const Call* call, void* stream) {
  using namespace attntrace::tiled::cuda;
  const auto queue = static_cast<cudaStream_t>(stream);
  // This library has a CUDA runtime of its own, with its own idea of the current device.
  if (const cudaError_t error = cudaSetDevice(call->device); error != cudaSuccess) return cudaGetErrorString(error);
  return call->q.type == Type::kFloat64 ? RunBackward<double>(*call, queue) : RunBackward<float>(*call, queue);
}

}  // extern "C"
