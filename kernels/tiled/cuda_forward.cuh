// Forward on the GPU: one block of threads a tile of queries, online softmax over the tiles of K and V.
#pragma once

#include "kernels/tiled/cuda_tiles.cuh"

namespace attntrace::tiled::cuda {

// The output of a tile grows in shared memory: kTileQ rows of the head size of v.
template <typename T>
size_t ForwardShared(const Call& call) {
  const size_t slices = (kTileQ + kTileKv) * (kSlice + 1), scores = kTileQ * (kTileKv + 1), rows = 3 * kTileQ;
  return (slices + scores + rows + static_cast<size_t>(kTileQ * call.dim_v)) * sizeof(T);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) Forward(const Call call) {
  extern __shared__ __align__(16) unsigned char shared[];
  T* const a_tile = reinterpret_cast<T*>(shared);
  T* const b_tile = a_tile + kTileQ * (kSlice + 1);
  T* const s = b_tile + kTileKv * (kSlice + 1);
  T* const most = s + kTileQ * (kTileKv + 1);
  T* const sum = most + kTileQ;
  T* const rescale = sum + kTileQ;
  T* const o = rescale + kTileQ;

  const int64_t tiles = (call.seq_q + kTileQ - 1) / kTileQ;
  const int64_t tile = blockIdx.x % tiles, h = blockIdx.x / tiles % call.heads, b = blockIdx.x / tiles / call.heads;
  const int64_t r0 = tile * kTileQ, hkv = h / (call.heads / call.heads_kv);
  const int64_t q_at = Offset(call.q, b, h), k_at = Offset(call.k, b, hkv), v_at = Offset(call.v, b, hkv);
  for (int64_t i = threadIdx.x; i < kTileQ * call.dim_v; i += kThreads) o[i] = T();
  if (threadIdx.x < kTileQ) most[threadIdx.x] = -Infinity<T>(), sum[threadIdx.x] = T();

  const int64_t end = call.causal && r0 + kTileQ < call.seq_kv ? r0 + kTileQ : call.seq_kv;
  for (int64_t c0 = 0; c0 < end; c0 += kTileKv) {
    T product[kSide][kSide] = {};
    AddProducts(call.q, q_at, r0, call.seq_q, call.k, k_at, c0, call.seq_kv, call.dim, a_tile, b_tile, product);
    for (int i = 0; i < kSide; ++i) {
      const int r = RowOf(i);
      for (int j = 0; j < kSide; ++j) {
        const int c = ColumnOf(j);
        s[r * (kTileKv + 1) + c] = Score(call, b, h, r0 + r, c0 + c, product[i][j]);
      }
    }
    __syncthreads();
    if (threadIdx.x < kTileQ) {  // one thread a row
      const int r = threadIdx.x;
      T* const line = s + r * (kTileKv + 1);
      T top = most[r];
      for (int c = 0; c < kTileKv; ++c) top = line[c] > top ? line[c] : top;
      const T base = top == -Infinity<T>() ? T() : top;
      T total = T();
      for (int c = 0; c < kTileKv; ++c) {
        const T p = Exp(line[c] - base);
        total += p;
        line[c] = p == T() ? T() : p * DropFactor<T>(call, b, h, r0 + r, c0 + c);
      }
      rescale[r] = Exp(most[r] - base);
      sum[r] = sum[r] * rescale[r] + total;
      most[r] = top;
    }
    for (int64_t d0 = 0; d0 < call.dim_v; d0 += kSlice) {
      __syncthreads();
      LoadTile(call.v, v_at, c0, call.seq_kv, kTileKv, d0, kSlice, call.dim_v, b_tile);
      __syncthreads();
      T value[kSide][kSide] = {};
      AddSquares(s, kTileKv + 1, 1, b_tile, 1, kSlice + 1, value);
      for (int i = 0; i < kSide; ++i) {
        const int r = RowOf(i);
        for (int j = 0; j < kSide; ++j) {
          const int64_t d = d0 + ColumnOf(j);
          if (d < call.dim_v) o[r * call.dim_v + d] = o[r * call.dim_v + d] * rescale[r] + value[i][j];
        }
      }
    }
    __syncthreads();
  }

  __syncthreads();
  for (int64_t i = threadIdx.x; i < kTileQ * call.dim_v; i += kThreads) {
    const int64_t r = i / call.dim_v, d = i % call.dim_v;
    if (r0 + r >= call.seq_q) continue;
    const T total = sum[r];
    Store(call.out.data, call.out.type, Offset(call.out, b, h) + (r0 + r) * call.out.stride[2] + d * call.out.stride[3],
          total > T() ? o[i] / total : T());
  }
  if (threadIdx.x < kTileQ && r0 + threadIdx.x < call.seq_q) {
    const T total = sum[threadIdx.x];
    static_cast<T*>(call.lse)[(b * call.heads + h) * call.seq_q + r0 + threadIdx.x] =
        total > T() ? most[threadIdx.x] + Log(total) : Infinity<T>();
  }
}

}  // namespace attntrace::tiled::cuda
