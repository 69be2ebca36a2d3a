// What forward and backward share on the GPU: loads of any type and stride, tiles in shared memory, the score of one pair.
//
// Plain CUDA: every thread computes a square of 4 x 4 numbers of a tile with fused multiply-adds, from eight values that it reads of
// shared memory. Right first; a reference for shapes that no library takes, and its memory is what is compared.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/tiled/call.h"
#include "kernels/tiled/random.h"

namespace attntrace::tiled::cuda {

inline constexpr int kTileQ = 32, kTileKv = 32;  // rows and columns of a tile of scores
inline constexpr int kSide = 4;  // of a thread's square
inline constexpr int kPerThread = kSide * kSide;
inline constexpr int kThreads = kTileQ * kTileKv / kPerThread;
inline constexpr int kAcross = kTileKv / kSide;  // threads side by side in a row of squares

// Where this thread's numbers lie in a tile: rows together, columns apart, so that neighbours read different banks.
__device__ __forceinline__ int RowOf(int i) { return static_cast<int>(threadIdx.x) / kAcross * kSide + i; }
__device__ __forceinline__ int ColumnOf(int j) { return static_cast<int>(threadIdx.x) % kAcross + j * kAcross; }

__device__ __forceinline__ float FromHalf(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
__device__ __forceinline__ uint16_t ToHalf(float value) { return __half_as_ushort(__float2half(value)); }
__device__ __forceinline__ float FromBFloat16(uint16_t bits) { return __bfloat162float(__ushort_as_bfloat16(bits)); }
__device__ __forceinline__ uint16_t ToBFloat16(float value) { return __bfloat16_as_ushort(__float2bfloat16(value)); }

}  // namespace attntrace::tiled::cuda

#define ATTNTRACE_LEVEL cuda
#define ATTNTRACE_HERE __device__ __forceinline__
#include "kernels/tiled/stored.h"

namespace attntrace::tiled::cuda {

__device__ __forceinline__ float Exp(float x) { return expf(x); }
__device__ __forceinline__ double Exp(double x) { return exp(x); }
__device__ __forceinline__ float Log(float x) { return logf(x); }
__device__ __forceinline__ double Log(double x) { return log(x); }

template <typename T>
__device__ __forceinline__ T Infinity() {
  return static_cast<T>(__int_as_float(0x7F800000));
}

__host__ __device__ __forceinline__ int64_t Offset(const Operand& x, int64_t b, int64_t h) { return b * x.stride[0] + h * x.stride[1]; }

// Rows [row0, row0 + count) and `width` columns from column0, zeros beyond `rows`, into to[row][width + 1]: the odd row keeps
// neighbouring rows in different banks.
template <typename T>
__device__ void LoadTile(const Operand& x, int64_t offset, int64_t row0, int64_t rows, int count, int64_t column0, int64_t width,
                         int64_t columns, T* to) {
  for (int64_t i = threadIdx.x; i < count * width; i += kThreads) {
    const int64_t r = i / width, c = i % width;
    const bool inside = row0 + r < rows && column0 + c < columns;
    to[r * (width + 1) + c] =
        inside ? Load<T>(x.data, x.type, offset + (row0 + r) * x.stride[2] + (column0 + c) * x.stride[3]) : T();
  }
}

// The head is walked in slices, so that shared memory does not grow with it.
inline constexpr int kSlice = 32;

// sum[i][j] += left(i, m) right(m, j) over the tile's m; left(i, m) lies at left[RowOf(i) * row_step + m * step], right(m, j) at
// right[ColumnOf(j) * column_step + m * right_step].
template <typename T>
__device__ __forceinline__ void AddSquares(const T* left, int row_step, int step, const T* right, int column_step, int right_step,
                                           T (&sum)[kSide][kSide]) {
#pragma unroll 4
  for (int m = 0; m < kSlice; ++m) {
    T a[kSide], b[kSide];
#pragma unroll
    for (int i = 0; i < kSide; ++i) a[i] = left[RowOf(i) * row_step + m * step];
#pragma unroll
    for (int j = 0; j < kSide; ++j) b[j] = right[ColumnOf(j) * column_step + m * right_step];
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
#pragma unroll
      for (int j = 0; j < kSide; ++j) sum[i][j] += a[i] * b[j];
    }
  }
}

// sum[i][j] += a[row] . b[column] over the head, for this thread's square; both tiles in slices through shared memory.
template <typename T>
__device__ void AddProducts(const Operand& a, int64_t a_offset, int64_t a_row0, int64_t a_rows, const Operand& b, int64_t b_offset,
                            int64_t b_row0, int64_t b_rows, int64_t dim, T* a_tile, T* b_tile, T (&sum)[kSide][kSide]) {
  for (int64_t d0 = 0; d0 < dim; d0 += kSlice) {
    __syncthreads();
    LoadTile(a, a_offset, a_row0, a_rows, kTileQ, d0, kSlice, dim, a_tile);
    LoadTile(b, b_offset, b_row0, b_rows, kTileKv, d0, kSlice, dim, b_tile);
    __syncthreads();
    AddSquares(a_tile, kSlice + 1, 1, b_tile, kSlice + 1, 1, sum);
  }
}

// The score of query r and key c from their product: scale, bias, and -inf for what takes no part.
template <typename T>
__device__ __forceinline__ T Score(const Call& call, int64_t b, int64_t h, int64_t r, int64_t c, T product) {
  if (r >= call.seq_q || c >= call.seq_kv || (call.causal && c > r)) return -Infinity<T>();
  T score = product * static_cast<T>(call.scale);
  if (call.mask.data == nullptr) return score;
  const int64_t at = Offset(call.mask, b, h) + r * call.mask.stride[2] + c * call.mask.stride[3];
  if (call.mask.type == Type::kBool) return static_cast<const unsigned char*>(call.mask.data)[at] != 0 ? score : -Infinity<T>();
  return score + Load<T>(call.mask.data, call.mask.type, at);
}

template <typename T>
__device__ __forceinline__ T DropFactor(const Call& call, int64_t b, int64_t h, int64_t r, int64_t c) {
  if (call.dropout <= 0) return T(1);
  const uint64_t row = static_cast<uint64_t>((b * call.heads + h) * call.seq_q + r);
  return Kept(call.seed, row, static_cast<uint64_t>(c), DropThreshold(call.dropout)) ? static_cast<T>(1 / (1 - call.dropout)) : T();
}

}  // namespace attntrace::tiled::cuda
