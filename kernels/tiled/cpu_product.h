// Matrix product of tiles, the one inner loop that counts. Compiled once a CPU level (see cpu_level.cc): everything is inside
// that level's namespace, and nothing of the standard library is used, since the linker would merge its inline functions.
#pragma once

#include <cstdint>

namespace attntrace::tiled {
namespace ATTNTRACE_LEVEL {

template <typename T>
struct Lanes {
  static constexpr int kCount = ATTNTRACE_VECTOR_BYTES / sizeof(T);
  typedef T Vector __attribute__((vector_size(ATTNTRACE_VECTOR_BYTES), aligned(alignof(T)), may_alias));
};

// Rows and vectors of C that are held in registers.
inline constexpr int kRows = ATTNTRACE_REGISTER_ROWS, kVectors = ATTNTRACE_REGISTER_VECTORS;

// A(m, k) lies at a[m * row + k * column]: any strides, so a transposed tile costs nothing.
template <typename T>
struct Left {
  const T* data;
  int64_t row, column;
};

template <typename T, int kM, int kN>
inline __attribute__((always_inline)) void Block(int64_t depth, Left<T> a, const T* b, int64_t b_row, T* c, int64_t c_row,
                                                 bool add) {
  using V = typename Lanes<T>::Vector;
  V sum[kM][kN];
  for (int m = 0; m < kM; ++m) {
    for (int n = 0; n < kN; ++n) sum[m][n] = add ? *reinterpret_cast<const V*>(c + m * c_row + n * Lanes<T>::kCount) : V{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    V right[kN];
    for (int n = 0; n < kN; ++n) right[n] = *reinterpret_cast<const V*>(b + k * b_row + n * Lanes<T>::kCount);
    for (int m = 0; m < kM; ++m) {
      const T left = a.data[m * a.row + k * a.column];
      for (int n = 0; n < kN; ++n) sum[m][n] += left * right[n];
    }
  }
  for (int m = 0; m < kM; ++m) {
    for (int n = 0; n < kN; ++n) *reinterpret_cast<V*>(c + m * c_row + n * Lanes<T>::kCount) = sum[m][n];
  }
}

template <typename T, int kN>
void Columns(int64_t rows, int64_t depth, Left<T> a, const T* b, int64_t b_row, T* c, int64_t c_row, bool add) {
  int64_t m = 0;
  for (; m + kRows <= rows; m += kRows) {
    Block<T, kRows, kN>(depth, {a.data + m * a.row, a.row, a.column}, b, b_row, c + m * c_row, c_row, add);
  }
  for (; m + 2 <= rows; m += 2) {
    Block<T, 2, kN>(depth, {a.data + m * a.row, a.row, a.column}, b, b_row, c + m * c_row, c_row, add);
  }
  if (m < rows) Block<T, 1, kN>(depth, {a.data + m * a.row, a.row, a.column}, b, b_row, c + m * c_row, c_row, add);
}

// C (+)= A B. `columns` is a multiple of Lanes<T>::kCount; rows of B and C are contiguous.
template <typename T>
void Product(int64_t rows, int64_t columns, int64_t depth, Left<T> a, const T* b, int64_t b_row, T* c, int64_t c_row,
             bool add) {
  constexpr int kStep = kVectors * Lanes<T>::kCount;
  int64_t n = 0;
  for (; n + kStep <= columns; n += kStep) Columns<T, kVectors>(rows, depth, a, b + n, b_row, c + n, c_row, add);
  for (; n < columns; n += Lanes<T>::kCount) Columns<T, 1>(rows, depth, a, b + n, b_row, c + n, c_row, add);
}

}  // namespace ATTNTRACE_LEVEL
}  // namespace attntrace::tiled
