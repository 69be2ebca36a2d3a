// One attention for our own kernel, as plain numbers and pointers: the seam between whoever has tensors and the kernels, CPU
// and CUDA, which know no PyTorch. The CUDA kernels are a shared library of their own behind this header, so everything is C.
//
//   scores = scale * q k^T + bias          where causal: only j <= i, counted from the top left; where a bool mask: only true
//   out = dropout(softmax(scores)) v       a row without any score left gives zeros
//
// Sizes and strides are in elements. Head h reads key head h / (heads / heads_kv).
#pragma once

#include <cstddef>
#include <cstdint>

namespace attntrace::tiled {

enum class Type : int32_t { kFloat32, kFloat64, kFloat16, kBFloat16, kBool };

inline size_t BytesOf(Type type) {
  return type == Type::kFloat64 ? 8 : type == Type::kFloat32 ? 4 : type == Type::kBool ? 1 : 2;
}

// Strides: batch, head, row, column. A broadcast dimension has stride 0. No data: there is no such tensor.
struct Operand {
  void* data;
  Type type;
  int32_t reserved;
  int64_t stride[4];
};

struct Call {
  int64_t batch, heads, heads_kv, seq_q, seq_kv, dim, dim_v;
  double scale;
  double dropout;  // below 1
  uint64_t seed;   // of the dropout; forward and backward of one call share it
  int32_t causal;
  int32_t threads;  // CPU
  int32_t device;   // CUDA: ordinal
  int32_t reserved;
  Operand q, k, v;  // of one floating type; computed in float64 where that is it, else in float32
  Operand mask;     // kBool, or a floating type that is added
  Operand out;      // of q's type
  void*
      lse;  // (batch, heads, seq_q) contiguous, of the type computed in: log of the sum of exponentials, +inf for an empty row
  // Backward only. Gradients without data are not computed; grad_mask has the mask's strides pattern: 0 where summed over.
  Operand grad_out, grad_q, grad_k, grad_v, grad_mask;
  // Scratch memory of the size below, on the device. Kept apart so that whoever measures memory sees it.
  void* workspace;
};

// Bytes of workspace. CPU: fixed tiles a thread, and in the backward pass at most one gradient a thread and one number a row.
size_t CpuWorkspace(const Call& call, bool backward);
void CpuForward(const Call& call);
void CpuBackward(const Call& call);

}  // namespace attntrace::tiled

extern "C" {
// Exported by libattntrace_tiled_cuda.so. Work is queued on `stream` (a cudaStream_t of the current device). Null, or what CUDA
// said.
size_t attntrace_tiled_cuda_workspace(const attntrace::tiled::Call* call, int backward);
const char* attntrace_tiled_cuda_forward(const attntrace::tiled::Call* call, void* stream);
const char* attntrace_tiled_cuda_backward(const attntrace::tiled::Call* call, void* stream);
}
