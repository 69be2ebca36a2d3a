// Elements of any type as numbers to compute with, and back. Inside a CPU level's namespace, or on the GPU in `cuda`: whoever
// includes this has defined ATTNTRACE_LEVEL, ATTNTRACE_HERE (how its functions are declared) and, in that namespace, FromHalf,
// ToHalf, FromBFloat16 and ToBFloat16 between float and the bits.
#pragma once

#include <cstdint>

#include "kernels/tiled/call.h"

namespace attntrace::tiled {
namespace ATTNTRACE_LEVEL {

template <typename T>
ATTNTRACE_HERE T Load(const void* data, Type type, int64_t at) {
  switch (type) {
    case Type::kFloat32:
      return static_cast<T>(static_cast<const float*>(data)[at]);
    case Type::kFloat64:
      return static_cast<T>(static_cast<const double*>(data)[at]);
    case Type::kFloat16:
      return static_cast<T>(FromHalf(static_cast<const uint16_t*>(data)[at]));
    case Type::kBFloat16:
      return static_cast<T>(FromBFloat16(static_cast<const uint16_t*>(data)[at]));
    case Type::kBool:
      return static_cast<T>(static_cast<const uint8_t*>(data)[at] != 0);
  }
  return T();
}

template <typename T>
ATTNTRACE_HERE void Store(void* data, Type type, int64_t at, T value) {
  switch (type) {
    case Type::kFloat32:
      static_cast<float*>(data)[at] = static_cast<float>(value);
      return;
    case Type::kFloat64:
      static_cast<double*>(data)[at] = static_cast<double>(value);
      return;
    case Type::kFloat16:
      static_cast<uint16_t*>(data)[at] = ToHalf(static_cast<float>(value));
      return;
    case Type::kBFloat16:
      static_cast<uint16_t*>(data)[at] = ToBFloat16(static_cast<float>(value));
      return;
    case Type::kBool:
      return;
  }
}

}  // namespace ATTNTRACE_LEVEL
}  // namespace attntrace::tiled
