// Backward on the GPU: probabilities again from the log-sum-exp. Three kernels that each own what they write, so nothing is summed
// with atomics and the result is the same every time: dk and dv by tiles of keys, dq by tiles of queries, the bias by its own tiles.
#pragma once

#include "kernels/tiled/cuda_tiles.cuh"

namespace attntrace::tiled::cuda {

// D[row] = sum(grad_out * out): one warp a row.
template <typename T>
__global__ void __launch_bounds__(kThreads) Dot(const Call call, T* dot) {
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (row >= call.batch * call.heads * call.seq_q) return;
  const int64_t r = row % call.seq_q, h = row / call.seq_q % call.heads, b = row / call.seq_q / call.heads;
  const int64_t o = Offset(call.out, b, h) + r * call.out.stride[2], g = Offset(call.grad_out, b, h) + r * call.grad_out.stride[2];
  T sum = T();
  for (int64_t d = threadIdx.x % 32; d < call.dim_v; d += 32) {
    sum += Load<T>(call.out.data, call.out.type, o + d * call.out.stride[3]) *
           Load<T>(call.grad_out.data, call.grad_out.type, g + d * call.grad_out.stride[3]);
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xFFFFFFFFu, sum, step);
  if (threadIdx.x % 32 == 0) dot[row] = sum;
}

template <typename T>
struct Tiles {  // shared memory of a block
  T *a, *b, *p, *ds, *first, *second;
  __device__ Tiles(unsigned char* shared, int64_t first_size) {
    a = reinterpret_cast<T*>(shared), b = a + kTileQ * (kSlice + 1), p = b + kTileKv * (kSlice + 1);
    ds = p + kTileQ * (kTileKv + 1), first = ds + kTileQ * (kTileKv + 1), second = first + first_size;
  }
};
template <typename T>
size_t TilesShared(int64_t accumulated) {
  return static_cast<size_t>((kTileQ + kTileKv) * (kSlice + 1) + 2 * kTileQ * (kTileKv + 1) + accumulated) * sizeof(T);
}

// tiles.p: probabilities times dropout; tiles.ds: gradient of the scores. Both [row][kTileKv + 1], zero outside the matrix.
template <typename T>
__device__ void GradientTile(const Call& call, const T* dot, int64_t b, int64_t h, int64_t r0, int64_t c0, const Tiles<T>& tiles) {
  const int64_t hkv = h / (call.heads / call.heads_kv);
  T product[kSide][kSide] = {}, slope[kSide][kSide] = {};
  AddProducts(call.q, Offset(call.q, b, h), r0, call.seq_q, call.k, Offset(call.k, b, hkv), c0, call.seq_kv, call.dim, tiles.a,
              tiles.b, product);
  AddProducts(call.grad_out, Offset(call.grad_out, b, h), r0, call.seq_q, call.v, Offset(call.v, b, hkv), c0, call.seq_kv, call.dim_v,
              tiles.a, tiles.b, slope);
  for (int i = 0; i < kPerThread; ++i) {
    const int r = RowOf(i / kSide), c = ColumnOf(i % kSide);
    const int64_t row = r0 + r, column = c0 + c;
    T p = T(), ds = T();
    if (row < call.seq_q && column < call.seq_kv) {
      const int64_t line = (b * call.heads + h) * call.seq_q + row;
      const T whole = Exp(Score(call, b, h, row, column, product[i / kSide][i % kSide]) - static_cast<const T*>(call.lse)[line]);
      const T drop = DropFactor<T>(call, b, h, row, column);
      p = whole * drop;
      ds = whole * (drop * slope[i / kSide][i % kSide] - dot[line]);
    }
    tiles.p[r * (kTileKv + 1) + c] = p;
    tiles.ds[r * (kTileKv + 1) + c] = ds;
  }
  __syncthreads();
}

// to[n][dim] += left(n, m) x[m0 + m][dim] over the 32 rows m of a tile of x; left(n, m) lies at left[n * n_step + m * m_step].
template <typename T>
__device__ void Accumulate(const T* left, int n_step, int m_step, const Operand& x, int64_t offset, int64_t m0, int64_t rows,
                           int64_t dim, T* slice, T* to) {
  static_assert(kTileQ == kTileKv && kTileKv == kSlice, "tiles and slices are square");
  for (int64_t d0 = 0; d0 < dim; d0 += kSlice) {
    __syncthreads();
    LoadTile(x, offset, m0, rows, kTileKv, d0, kSlice, dim, slice);
    __syncthreads();
    T value[kSide][kSide] = {};
    AddSquares(left, n_step, m_step, slice, 1, kSlice + 1, value);
    for (int i = 0; i < kSide; ++i) {
      for (int j = 0; j < kSide; ++j) {
        const int64_t d = d0 + ColumnOf(j);
        if (d < dim) to[RowOf(i) * dim + d] += value[i][j];
      }
    }
  }
}

template <typename T>
__device__ void Clear(T* data, int64_t n) {
  for (int64_t i = threadIdx.x; i < n; i += kThreads) data[i] = T();
}

template <typename T>
__device__ void StoreTile(const Operand& to, int64_t offset, int64_t row0, int64_t rows, int64_t dim, const T* from, T factor) {
  __syncthreads();
  for (int64_t i = threadIdx.x; i < kTileQ * dim; i += kThreads) {
    const int64_t r = i / dim, d = i % dim;
    if (row0 + r < rows) Store(to.data, to.type, offset + (row0 + r) * to.stride[2] + d * to.stride[3], from[i] * factor);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) KeysAndValues(const Call call, const T* dot) {
  extern __shared__ __align__(16) unsigned char shared[];
  const bool keys = call.grad_k.data != nullptr, values = call.grad_v.data != nullptr;
  const Tiles<T> tiles(shared, keys ? kTileKv * call.dim : 0);
  const int64_t count = (call.seq_kv + kTileKv - 1) / kTileKv, group = call.heads / call.heads_kv;
  const int64_t c0 = blockIdx.x % count * kTileKv, hkv = blockIdx.x / count % call.heads_kv, b = blockIdx.x / count / call.heads_kv;
  if (keys) Clear(tiles.first, kTileKv * call.dim);
  if (values) Clear(tiles.second, kTileKv * call.dim_v);
  const int64_t begin = call.causal ? c0 / kTileQ * kTileQ : 0;
  for (int64_t h = hkv * group; h < (hkv + 1) * group; ++h) {
    for (int64_t r0 = begin; r0 < call.seq_q; r0 += kTileQ) {
      GradientTile(call, dot, b, h, r0, c0, tiles);
      if (keys) Accumulate(tiles.ds, 1, kTileKv + 1, call.q, Offset(call.q, b, h), r0, call.seq_q, call.dim, tiles.a, tiles.first);
      if (values) {
        Accumulate(tiles.p, 1, kTileKv + 1, call.grad_out, Offset(call.grad_out, b, h), r0, call.seq_q, call.dim_v, tiles.a,
                   tiles.second);
      }
      __syncthreads();
    }
  }
  if (keys) {
    StoreTile(call.grad_k, Offset(call.grad_k, b, hkv), c0, call.seq_kv, call.dim, tiles.first, static_cast<T>(call.scale));
  }
  if (values) {
    StoreTile(call.grad_v, Offset(call.grad_v, b, hkv), c0, call.seq_kv, call.dim_v, tiles.second, T(1));
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) Queries(const Call call, const T* dot) {
  extern __shared__ __align__(16) unsigned char shared[];
  const Tiles<T> tiles(shared, kTileQ * call.dim);
  const int64_t count = (call.seq_q + kTileQ - 1) / kTileQ;
  const int64_t r0 = blockIdx.x % count * kTileQ, h = blockIdx.x / count % call.heads, b = blockIdx.x / count / call.heads;
  const int64_t hkv = h / (call.heads / call.heads_kv);
  Clear(tiles.first, kTileQ * call.dim);
  const int64_t end = call.causal && r0 + kTileQ < call.seq_kv ? r0 + kTileQ : call.seq_kv;
  for (int64_t c0 = 0; c0 < end; c0 += kTileKv) {
    GradientTile(call, dot, b, h, r0, c0, tiles);
    Accumulate(tiles.ds, kTileKv + 1, 1, call.k, Offset(call.k, b, hkv), c0, call.seq_kv, call.dim, tiles.a, tiles.first);
  }
  StoreTile(call.grad_q, Offset(call.grad_q, b, h), r0, call.seq_q, call.dim, tiles.first, static_cast<T>(call.scale));
}

// How the gradient of a bias is cut: along each dimension tiles, or one task that sums over all of it.
struct BiasTasks {
  int64_t batches, heads, rows, columns;
  __host__ __device__ explicit BiasTasks(const Call& call) {
    const int64_t* const stride = call.grad_mask.stride;
    batches = stride[0] != 0 ? call.batch : 1;
    heads = stride[1] != 0 ? call.heads : 1;
    rows = stride[2] != 0 ? (call.seq_q + kTileQ - 1) / kTileQ : 1;
    columns = stride[3] != 0 ? (call.seq_kv + kTileKv - 1) / kTileKv : 1;
  }
  __host__ __device__ int64_t Count() const { return batches * heads * rows * columns; }
};

template <typename T>
__global__ void __launch_bounds__(kThreads) Bias(const Call call, const T* dot) {
  extern __shared__ __align__(16) unsigned char shared[];
  const Tiles<T> tiles(shared, kTileQ * kTileKv);
  const BiasTasks tasks(call);
  const int64_t* const stride = call.grad_mask.stride;
  const int64_t task = blockIdx.x, column = task % tasks.columns, row = task / tasks.columns % tasks.rows;
  const int64_t head = task / (tasks.columns * tasks.rows) % tasks.heads, batch = task / (tasks.columns * tasks.rows * tasks.heads);
  const int64_t b_end = stride[0] != 0 ? batch + 1 : call.batch, h_end = stride[1] != 0 ? head + 1 : call.heads;
  const int64_t r_begin = row * kTileQ, r_end = stride[2] != 0 ? r_begin + kTileQ : call.seq_q;
  const int64_t c_begin = column * kTileKv, c_end = stride[3] != 0 ? c_begin + kTileKv : call.seq_kv;
  T* const sum = tiles.first;  // [kTileQ][kTileKv], summed up at the end where a dimension is
  Clear(sum, kTileQ * kTileKv);
  for (int64_t b = batch; b < b_end; ++b) {
    for (int64_t h = head; h < h_end; ++h) {
      for (int64_t r0 = r_begin; r0 < r_end; r0 += kTileQ) {
        for (int64_t c0 = c_begin; c0 < c_end; c0 += kTileKv) {
          GradientTile(call, dot, b, h, r0, c0, tiles);
          for (int i = threadIdx.x; i < kTileQ * kTileKv; i += kThreads) {
            sum[i] += tiles.ds[i / kTileKv * (kTileKv + 1) + i % kTileKv];
          }
          __syncthreads();
        }
      }
    }
  }
  __syncthreads();
  const int rows = stride[2] != 0 ? kTileQ : 1, columns = stride[3] != 0 ? kTileKv : 1;
  const int64_t to = batch * stride[0] + head * stride[1];
  for (int i = threadIdx.x; i < rows * columns; i += kThreads) {
    const int r = i / columns, c = i % columns;
    if (r_begin + r >= call.seq_q || c_begin + c >= call.seq_kv) continue;
    T value = T();
    for (int rr = r; rr < (rows == 1 ? kTileQ : r + 1); ++rr) {
      for (int cc = c; cc < (columns == 1 ? kTileKv : c + 1); ++cc) value += sum[rr * kTileKv + cc];
    }
    Store(call.grad_mask.data, call.grad_mask.type, to + (r_begin + r) * stride[2] + (c_begin + c) * stride[3], value);
  }
}

}  // namespace attntrace::tiled::cuda
