// Forward: FlashAttention-2's online softmax over tiles of K and V. Inside a CPU level's namespace.
#pragma once

#include "kernels/tiled/cpu_tiles.h"

namespace attntrace::tiled {
namespace ATTNTRACE_LEVEL {

// Tiles of one thread, cut out of its part of the workspace.
template <typename T>
struct ForwardSpace {
  T *q, *s, *o, *k, *v, *drop, *most, *sum, *scale;
  static size_t Size(const Call& call) {
    const int64_t d = Padded<T>(call.dim), dv = Padded<T>(call.dim_v);
    return static_cast<size_t>(d * kTileQ + kTileKv * kTileQ * (call.dropout > 0 ? 2 : 1) + kTileQ * dv + kTileKv * (d + dv) +
                               3 * kTileQ);
  }
  ForwardSpace(const Call& call, T* at) {
    const int64_t d = Padded<T>(call.dim), dv = Padded<T>(call.dim_v);
    const auto take = [&at](int64_t n) {
      T* const mine = at;
      at += n;
      return mine;
    };
    q = take(d * kTileQ), s = take(kTileKv * kTileQ), o = take(kTileQ * dv), k = take(kTileKv * d), v = take(kTileKv * dv);
    most = take(kTileQ), sum = take(kTileQ), scale = take(kTileQ);
    drop = call.dropout > 0 ? take(kTileKv * kTileQ) : nullptr;
  }
};

// One tile of scores joins what is known of its rows: s becomes the probabilities relative to the new maximum.
template <typename T>
inline void Join(int64_t columns, int64_t width, const ForwardSpace<T>& space) {
  T *const s = space.s, *const most = space.most, *const sum = space.sum, *const scale = space.scale;
  T top[kTileQ], base[kTileQ];
  for (int64_t r = 0; r < width; ++r) top[r] = most[r];
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < width; ++r) top[r] = s[c * width + r] > top[r] ? s[c * width + r] : top[r];
  }
  for (int64_t r = 0; r < width; ++r) {
    base[r] = top[r] == -kInfinity<T> ? T() : top[r];  // no score yet: -inf - 0 gives 0 below, never a NaN
    scale[r] = Exp(most[r] - base[r]);
    most[r] = top[r];
    sum[r] *= scale[r];
  }
  for (int64_t c = 0; c < columns; ++c) {
#pragma GCC ivdep
    for (int64_t r = 0; r < width; ++r) {
      const T p = Exp(s[c * width + r] - base[r]);
      s[c * width + r] = p;
      sum[r] += p;
    }
  }
}

template <typename T>
void ForwardTile(const Call& call, int64_t b, int64_t h, int64_t r0, T* memory) {
  const ForwardSpace<T> space(call, memory);
  const int64_t rows = Least(kTileQ, call.seq_q - r0), width = Padded<T>(rows), dv = Padded<T>(call.dim_v);
  const int64_t hkv = h / (call.heads / call.heads_kv);
  PackTransposed(call.q, Offset(call.q, b, h) + r0 * call.q.stride[2], rows, call.dim, static_cast<T>(call.scale), space.q,
                 width);
  for (int64_t r = 0; r < kTileQ; ++r) space.most[r] = -kInfinity<T>, space.sum[r] = T();
  for (int64_t i = 0; i < rows * dv; ++i) space.o[i] = T();

  const int64_t end = call.causal ? Least(call.seq_kv, r0 + rows) : call.seq_kv;
  for (int64_t c0 = 0; c0 < end; c0 += kTileKv) {
    const Place at{b, h, r0, rows, c0, Least(kTileKv, end - c0)};
    const Left<T> k = LeftRows(call.k, Offset(call.k, b, hkv) + c0 * call.k.stride[2], at.columns, call.dim, space.k);
    Product(at.columns, width, call.dim, k, space.q, width, space.s, width, false);
    ApplyMask(call, at, space.s, width);
    Join(at.columns, width, space);
    if (space.drop != nullptr) {
      DropFactors(call, at, space.drop, width);
      for (int64_t i = 0; i < at.columns * width; ++i) space.s[i] *= space.drop[i];
    }
    if (c0 > 0) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t j = 0; j < dv; ++j) space.o[r * dv + j] *= space.scale[r];
      }
    }
    const Rows<T> v = RightRows(call.v, Offset(call.v, b, hkv) + c0 * call.v.stride[2], at.columns, call.dim_v, space.v);
    Product(rows, dv, at.columns, Left<T>{space.s, 1, width}, v.data, v.row, space.o, dv, true);
  }

  const int64_t out = Offset(call.out, b, h) + r0 * call.out.stride[2];
  T* const lse = static_cast<T*>(call.lse) + (b * call.heads + h) * call.seq_q + r0;
  for (int64_t r = 0; r < rows; ++r) {
    const T total = space.sum[r], factor = total > T() ? 1 / total : T();
    for (int64_t j = 0; j < call.dim_v; ++j) {
      Store(call.out.data, call.out.type, out + r * call.out.stride[2] + j * call.out.stride[3], space.o[r * dv + j] * factor);
    }
    lse[r] = total > T() ? space.most[r] + Log(total) : kInfinity<T>;
  }
}

}  // namespace ATTNTRACE_LEVEL
}  // namespace attntrace::tiled
