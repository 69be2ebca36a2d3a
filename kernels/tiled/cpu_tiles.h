// Tiles of one (batch, head): scores laid out column by column of K, [c][r], so that a row's maximum and sum are plain vector
// operations across r and K needs no transposing. Inside a CPU level's namespace.
#pragma once

#include <cstdint>

#include "kernels/tiled/call.h"
#include "kernels/tiled/cpu_numbers.h"
#include "kernels/tiled/cpu_product.h"
#include "kernels/tiled/random.h"

namespace attntrace::tiled {
namespace ATTNTRACE_LEVEL {

inline constexpr int64_t kTileQ = 64, kTileKv = 128;

inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

template <typename T>
inline int64_t Padded(int64_t n) {
  constexpr int64_t lanes = Lanes<T>::kCount;
  return (n + lanes - 1) / lanes * lanes;
}

template <typename T>
inline constexpr Type kTypeOf = sizeof(T) == 8 ? Type::kFloat64 : Type::kFloat32;

inline int64_t Offset(const Operand& operand, int64_t b, int64_t h) { return b * operand.stride[0] + h * operand.stride[1]; }

// Rows of a tensor as they are, where they can be read in place, else a copy in `space`.
template <typename T>
struct Rows {
  const T* data;
  int64_t row;
};

template <typename T>
inline void Pack(const Operand& x, int64_t offset, int64_t rows, int64_t columns, T* to, int64_t to_row) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      to[i * to_row + j] = Load<T>(x.data, x.type, offset + i * x.stride[2] + j * x.stride[3]);
    for (int64_t j = columns; j < to_row; ++j) to[i * to_row + j] = T();
  }
}

// As the right side of a product: rows contiguous and padded to whole vectors.
template <typename T>
inline Rows<T> RightRows(const Operand& x, int64_t offset, int64_t rows, int64_t columns, T* space) {
  if (x.type == kTypeOf<T> && x.stride[3] == 1 && columns % Lanes<T>::kCount == 0) {
    return {static_cast<const T*>(x.data) + offset, x.stride[2]};
  }
  Pack(x, offset, rows, columns, space, Padded<T>(columns));
  return {space, Padded<T>(columns)};
}

// As the left side: any strides do.
template <typename T>
inline Left<T> LeftRows(const Operand& x, int64_t offset, int64_t rows, int64_t columns, T* space) {
  if (x.type == kTypeOf<T>) return {static_cast<const T*>(x.data) + offset, x.stride[2], x.stride[3]};
  Pack(x, offset, rows, columns, space, columns);
  return {space, columns, 1};
}

// to[column][row] times `factor`, rows padded with zeros.
template <typename T>
inline void PackTransposed(const Operand& x, int64_t offset, int64_t rows, int64_t columns, T factor, T* to, int64_t to_row) {
  for (int64_t j = 0; j < columns; ++j) {
    T* const line = to + j * to_row;
    for (int64_t i = 0; i < rows; ++i) line[i] = factor * Load<T>(x.data, x.type, offset + i * x.stride[2] + j * x.stride[3]);
    for (int64_t i = rows; i < to_row; ++i) line[i] = T();
  }
}

// Where a tile lies: rows r0.. of the queries, columns c0.. of the keys, both of one batch and head.
struct Place {
  int64_t b, h, r0, rows, c0, columns;
};

// Adds the bias, and sets to -inf what takes no part. s is [columns][padded rows].
template <typename T>
inline void ApplyMask(const Call& call, const Place& at, T* s, int64_t s_row) {
  if (call.mask.data != nullptr) {
    const Operand& mask = call.mask;
    const int64_t start = Offset(mask, at.b, at.h) + at.r0 * mask.stride[2] + at.c0 * mask.stride[3];
    for (int64_t c = 0; c < at.columns; ++c) {
      T* const line = s + c * s_row;
      const int64_t from = start + c * mask.stride[3];
      if (mask.type == Type::kBool) {
        const uint8_t* const keep = static_cast<const uint8_t*>(mask.data) + from;
        for (int64_t r = 0; r < at.rows; ++r) line[r] = keep[r * mask.stride[2]] ? line[r] : -kInfinity<T>;
      } else {
        for (int64_t r = 0; r < at.rows; ++r) line[r] += Load<T>(mask.data, mask.type, from + r * mask.stride[2]);
      }
    }
  }
  if (call.causal && at.c0 + at.columns - 1 > at.r0) {
    for (int64_t c = 0; c < at.columns; ++c) {
      const int64_t hidden = Least(at.c0 + c - at.r0, at.rows);  // rows i < j see nothing of column j
      for (int64_t r = 0; r < hidden; ++r) s[c * s_row + r] = -kInfinity<T>;
    }
  }
}

// What dropout multiplies each probability with: 0, or 1 / (1 - p).
template <typename T>
inline void DropFactors(const Call& call, const Place& at, T* factor, int64_t row) {
  const uint32_t threshold = DropThreshold(call.dropout);
  const T kept = static_cast<T>(1 / (1 - call.dropout));
  for (int64_t r = 0; r < at.rows; ++r) {
    const uint64_t line = static_cast<uint64_t>((at.b * call.heads + at.h) * call.seq_q + at.r0 + r);
    for (int64_t c = 0; c < at.columns;) {
      const uint64_t column = static_cast<uint64_t>(at.c0 + c);
      const RandomBlock block = Philox(call.seed, line, column / 4);
      for (uint64_t i = column % 4; i < 4 && c < at.columns; ++i, ++c) {
        factor[c * row + r] = block.word[i] >= threshold ? kept : T();
      }
    }
  }
  for (int64_t c = 0; c < at.columns; ++c) {
    for (int64_t r = at.rows; r < row; ++r) factor[c * row + r] = T();
  }
}

}  // namespace ATTNTRACE_LEVEL
}  // namespace attntrace::tiled
