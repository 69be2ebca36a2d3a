// The gradient of a bias, in a pass of its own: each task owns a tile of it and sums over what the bias was broadcast over, so
// no two threads meet. Inside a CPU level's namespace.
#pragma once

#include "kernels/tiled/cpu_backward.h"

namespace attntrace::tiled {
namespace ATTNTRACE_LEVEL {

// Along each dimension either one index, or all of them where it is summed over.
struct BiasTasks {
  int64_t batches, heads, row_tiles, column_tiles;
  explicit BiasTasks(const Call& call) {
    const int64_t* const stride = call.grad_mask.stride;
    batches = stride[0] != 0 ? call.batch : 1;
    heads = stride[1] != 0 ? call.heads : 1;
    row_tiles = stride[2] != 0 ? (call.seq_q + kTileQ - 1) / kTileQ : 1;
    column_tiles = stride[3] != 0 ? (call.seq_kv + kTileKv - 1) / kTileKv : 1;
  }
  int64_t Count() const { return batches * heads * row_tiles * column_tiles; }
};

template <typename T>
void BiasTask(const Call& call, const T* rows_dot, int64_t task, T* memory) {
  const BiasTasks tasks(call);
  const int64_t* const stride = call.grad_mask.stride;
  const BackwardSpace<T> space(call, memory);
  const int64_t column_tile = task % tasks.column_tiles, row_tile = task / tasks.column_tiles % tasks.row_tiles;
  const int64_t head = task / (tasks.column_tiles * tasks.row_tiles) % tasks.heads;
  const int64_t batch = task / (tasks.column_tiles * tasks.row_tiles * tasks.heads);
  const int64_t b_begin = stride[0] != 0 ? batch : 0, b_end = stride[0] != 0 ? batch + 1 : call.batch;
  const int64_t h_begin = stride[1] != 0 ? head : 0, h_end = stride[1] != 0 ? head + 1 : call.heads;
  const int64_t r_begin = row_tile * kTileQ, r_end = stride[2] != 0 ? Least(r_begin + kTileQ, call.seq_q) : call.seq_q;
  const int64_t c_begin = column_tile * kTileKv, c_end = stride[3] != 0 ? Least(c_begin + kTileKv, call.seq_kv) : call.seq_kv;
  // The sum: [c][r], a dimension that is summed over having size one. space.dk and space.dv are free here, and not always large
  // enough.
  T sum[kTileKv * kTileQ];
  for (T& value : sum) value = T();
  const int64_t sum_row = stride[3] != 0 ? kTileQ : 0, sum_column = stride[2] != 0 ? 1 : 0;
  for (int64_t b = b_begin; b < b_end; ++b) {
    for (int64_t h = h_begin; h < h_end; ++h) {
      const int64_t hkv = h / (call.heads / call.heads_kv);
      for (int64_t c0 = c_begin; c0 < c_end; c0 += kTileKv) {
        const int64_t columns = Least(kTileKv, c_end - c0);
        const Left<T> k = LeftRows(call.k, Offset(call.k, b, hkv) + c0 * call.k.stride[2], columns, call.dim, space.k);
        const Left<T> v = LeftRows(call.v, Offset(call.v, b, hkv) + c0 * call.v.stride[2], columns, call.dim_v, space.v);
        for (int64_t r0 = r_begin; r0 < r_end; r0 += kTileQ) {
          const Place at{b, h, r0, Least(kTileQ, r_end - r0), c0, columns};
          if (call.causal && c0 > r0 + at.rows - 1) continue;
          GradientTile(call, rows_dot, at, k, v, space);
          for (int64_t c = 0; c < columns; ++c) {
            for (int64_t r = 0; r < at.rows; ++r) sum[c * sum_row + r * sum_column] += space.ds[c * Padded<T>(at.rows) + r];
          }
        }
      }
    }
  }
  const int64_t rows = stride[2] != 0 ? r_end - r_begin : 1, columns = stride[3] != 0 ? c_end - c_begin : 1;
  const int64_t to = batch * stride[0] + head * stride[1] + r_begin * stride[2] + c_begin * stride[3];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      Store(call.grad_mask.data, call.grad_mask.type, to + r * stride[2] + c * stride[3], sum[c * sum_row + r * sum_column]);
    }
  }
}

}  // namespace ATTNTRACE_LEVEL
}  // namespace attntrace::tiled
