// Backward: probabilities are computed again, tile by tile, from the log-sum-exp. Inside a CPU level's namespace.
//
// With D[r] = sum(grad_out * out) of row r:  dS = P * (drop * grad_out v^T - D),  dv = (drop * P)^T grad_out,
// dk = scale dS^T q,  dq = scale dS k,  dbias = dS.
#pragma once

#include "kernels/tiled/cpu_tiles.h"

namespace attntrace::tiled {
namespace ATTNTRACE_LEVEL {

template <typename T>
struct BackwardSpace {
  T *q, *g, *p, *ds, *k, *v, *right, *dk, *dv, *drop, *dq;
  // A thread owns a whole key head with the queries of all its heads, or where there are too few of them, one tile of queries.
  static bool OwnsHeads(const Call& call) { return call.batch * call.heads_kv >= call.threads; }
  static int64_t QueryRows(const Call& call) {
    return (call.heads / call.heads_kv) * (OwnsHeads(call) ? call.seq_q : Least(call.seq_q, kTileQ));
  }
  static bool DirectQuery(const Call& call) {
    return call.grad_q.type == kTypeOf<T> && call.grad_q.stride[3] == 1 && call.dim % Lanes<T>::kCount == 0;
  }
  static size_t Size(const Call& call) {
    const int64_t d = Padded<T>(call.dim), dv = Padded<T>(call.dim_v), wide = d > dv ? d : dv;
    return static_cast<size_t>((d + dv) * kTileQ + kTileKv * kTileQ * (call.dropout > 0 ? 3 : 2) + kTileKv * (d + dv + wide) +
                               kTileKv * (d + dv) +
                               (call.grad_q.data == nullptr || DirectQuery(call) ? 0 : QueryRows(call) * d));
  }
  BackwardSpace(const Call& call, T* at) {
    const int64_t d = Padded<T>(call.dim), dv_row = Padded<T>(call.dim_v), wide = d > dv_row ? d : dv_row;
    const auto take = [&at](int64_t n) {
      T* const mine = at;
      at += n;
      return mine;
    };
    q = take(d * kTileQ), g = take(dv_row * kTileQ), p = take(kTileKv * kTileQ), ds = take(kTileKv * kTileQ);
    k = take(kTileKv * d), v = take(kTileKv * dv_row), right = take(kTileKv * wide), dk = take(kTileKv * d);
    dv = take(kTileKv * dv_row), drop = call.dropout > 0 ? take(kTileKv * kTileQ) : nullptr;
    dq = call.grad_q.data == nullptr || DirectQuery(call) ? nullptr : at;
  }
};

// space.p = probabilities times dropout, space.ds = gradient of the scores. k and v are tiles of the left side.
template <typename T>
inline void GradientTile(const Call& call, const T* rows_dot, const Place& at, Left<T> k, Left<T> v,
                         const BackwardSpace<T>& space) {
  const int64_t width = Padded<T>(at.rows), row = (at.b * call.heads + at.h) * call.seq_q + at.r0;
  PackTransposed(call.q, Offset(call.q, at.b, at.h) + at.r0 * call.q.stride[2], at.rows, call.dim, static_cast<T>(call.scale),
                 space.q, width);
  PackTransposed(call.grad_out, Offset(call.grad_out, at.b, at.h) + at.r0 * call.grad_out.stride[2], at.rows, call.dim_v, T(1),
                 space.g, width);
  Product(at.columns, width, call.dim, k, space.q, width, space.p, width, false);
  ApplyMask(call, at, space.p, width);
  Product(at.columns, width, call.dim_v, v, space.g, width, space.ds, width, false);
  T lse[kTileQ], dot[kTileQ];
  for (int64_t r = 0; r < width; ++r) {
    lse[r] = r < at.rows ? static_cast<const T*>(call.lse)[row + r] : kInfinity<T>;
    dot[r] = r < at.rows ? rows_dot[row + r] : T();
  }
  if (space.drop != nullptr) DropFactors(call, at, space.drop, width);
  for (int64_t c = 0; c < at.columns; ++c) {
    T *const p = space.p + c * width, *const ds = space.ds + c * width;
    if (space.drop == nullptr) {
#pragma GCC ivdep
      for (int64_t r = 0; r < width; ++r) {
        p[r] = Exp(p[r] - lse[r]);
        ds[r] = p[r] * (ds[r] - dot[r]);
      }
    } else {
      const T* const drop = space.drop + c * width;
#pragma GCC ivdep
      for (int64_t r = 0; r < width; ++r) {
        const T whole = Exp(p[r] - lse[r]);
        ds[r] = whole * (drop[r] * ds[r] - dot[r]);
        p[r] = whole * drop[r];
      }
    }
  }
}

template <typename T>
inline void StoreRows(const Operand& to, int64_t offset, int64_t rows, int64_t columns, const T* from, int64_t row, T factor) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      Store(to.data, to.type, offset + i * to.stride[2] + j * to.stride[3], from[i * row + j] * factor);
    }
  }
}

// A part of one key head's work: its columns [c_begin, c_end) against the queries [r_begin, r_end) of all heads of its group.
// dk and dv come out whole where the queries are all of them, dq where the keys are.
template <typename T>
struct Part {
  int64_t b, hkv, c_begin, c_end, r_begin, r_end;
  bool dq, dkv;
};

template <typename T>
void BackwardPart(const Call& call, const T* rows_dot, const Part<T>& part, T* memory) {
  const BackwardSpace<T> space(call, memory);
  const int64_t d = Padded<T>(call.dim), dv = Padded<T>(call.dim_v), group = call.heads / call.heads_kv;
  const bool want_dq = part.dq && call.grad_q.data != nullptr;
  const bool direct = BackwardSpace<T>::DirectQuery(call);
  const int64_t span = part.r_end - part.r_begin;
  const auto dq_at = [&](int64_t g, int64_t r) {
    if (!direct) return Rows<T>{space.dq + (g * span + r - part.r_begin) * d, d};
    const int64_t offset = Offset(call.grad_q, part.b, part.hkv * group + g) + r * call.grad_q.stride[2];
    return Rows<T>{static_cast<T*>(call.grad_q.data) + offset, call.grad_q.stride[2]};
  };
  if (want_dq) {
    for (int64_t g = 0; g < group; ++g) {
      for (int64_t r = part.r_begin; r < part.r_end; ++r) {
        T* const line = const_cast<T*>(dq_at(g, r).data);
        for (int64_t j = 0; j < d; ++j) line[j] = T();
      }
    }
  }
  for (int64_t c0 = part.c_begin; c0 < part.c_end; c0 += kTileKv) {
    const int64_t columns = Least(kTileKv, part.c_end - c0);
    const int64_t k_at = Offset(call.k, part.b, part.hkv) + c0 * call.k.stride[2];
    const int64_t v_at = Offset(call.v, part.b, part.hkv) + c0 * call.v.stride[2];
    const Left<T> k = LeftRows(call.k, k_at, columns, call.dim, space.k),
                  v = LeftRows(call.v, v_at, columns, call.dim_v, space.v);
    for (int64_t i = 0; i < columns * d; ++i) space.dk[i] = T();
    for (int64_t i = 0; i < columns * dv; ++i) space.dv[i] = T();
    // Under a causal mask the rows above the diagonal have no part in these columns.
    const int64_t first = call.causal ? c0 / kTileQ * kTileQ : 0;
    for (int64_t g = 0; g < group; ++g) {
      for (int64_t r0 = part.r_begin > first ? part.r_begin : first; r0 < part.r_end; r0 += kTileQ) {
        const Place at{part.b, part.hkv * group + g, r0, Least(kTileQ, part.r_end - r0), c0, columns};
        const int64_t width = Padded<T>(at.rows);
        GradientTile(call, rows_dot, at, k, v, space);
        if (part.dkv) {
          const Rows<T> out = RightRows(call.grad_out, Offset(call.grad_out, at.b, at.h) + r0 * call.grad_out.stride[2],
                                        at.rows, call.dim_v, space.right);
          Product(columns, dv, at.rows, Left<T>{space.p, width, 1}, out.data, out.row, space.dv, dv, true);
          const Rows<T> q =
              RightRows(call.q, Offset(call.q, at.b, at.h) + r0 * call.q.stride[2], at.rows, call.dim, space.right);
          Product(columns, d, at.rows, Left<T>{space.ds, width, 1}, q.data, q.row, space.dk, d, true);
        }
        if (want_dq) {
          const Rows<T> right = RightRows(call.k, k_at, columns, call.dim, space.right);
          const Rows<T> to = dq_at(g, r0);
          Product(at.rows, d, columns, Left<T>{space.ds, 1, width}, right.data, right.row, const_cast<T*>(to.data), to.row,
                  true);
        }
      }
    }
    if (part.dkv && call.grad_k.data != nullptr) {
      StoreRows(call.grad_k, Offset(call.grad_k, part.b, part.hkv) + c0 * call.grad_k.stride[2], columns, call.dim, space.dk, d,
                static_cast<T>(call.scale));
    }
    if (part.dkv && call.grad_v.data != nullptr) {
      StoreRows(call.grad_v, Offset(call.grad_v, part.b, part.hkv) + c0 * call.grad_v.stride[2], columns, call.dim_v, space.dv,
                dv, T(1));
    }
  }
  if (!want_dq) return;
  for (int64_t g = 0; g < group; ++g) {
    const Rows<T> from = dq_at(g, part.r_begin);
    StoreRows(call.grad_q, Offset(call.grad_q, part.b, part.hkv * group + g) + part.r_begin * call.grad_q.stride[2], span,
              call.dim, from.data, from.row, static_cast<T>(call.scale));
  }
}

}  // namespace ATTNTRACE_LEVEL
}  // namespace attntrace::tiled
