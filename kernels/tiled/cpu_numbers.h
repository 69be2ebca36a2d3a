// Numbers: conversions between what is stored and what is computed in, and an exponential that vectorises. Inside a CPU level's
// namespace, like cpu_product.h.
#pragma once

#include <cstdint>

#include "kernels/tiled/call.h"

namespace attntrace::tiled {
namespace ATTNTRACE_LEVEL {

inline float FromBFloat16(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }

inline uint16_t ToBFloat16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16);
}

inline float FromHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, rest = bits & 0x7FFFu;
  if (rest >= 0x7C00u) return __builtin_bit_cast(float, sign | 0x7F800000u | ((rest & 0x3FFu) << 13));
  const float magnitude = __builtin_bit_cast(float, rest << 13) * 0x1p112f;  // subnormals come out right by the product
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, magnitude));
}

inline uint16_t ToHalf(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value), sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 puts the last place at 2^-24, and the addition rounds
    const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, shifted) - 0x3F000000u));
  }
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1)) >> 13));
}

}  // namespace ATTNTRACE_LEVEL
}  // namespace attntrace::tiled

#define ATTNTRACE_HERE inline
#include "kernels/tiled/stored.h"

namespace attntrace::tiled {
namespace ATTNTRACE_LEVEL {

inline constexpr float kFloatInfinity = __builtin_inff();
template <typename T>
inline constexpr T kInfinity = static_cast<T>(__builtin_inf());

// exp for x <= 0 or little above; 0 where the result would not be a normal number, -inf included. Within 2 units in the last
// place.
inline __attribute__((always_inline)) float Exp(float x) {
  const float clamped = x < -87.0f ? -87.0f : x;
  const float shifted = clamped * 1.44269504088896341f + 12582912.0f;  // rounds to an integer in the low bits
  const float n = shifted - 12582912.0f;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const uint32_t bits = __builtin_bit_cast(uint32_t, p) + (__builtin_bit_cast(uint32_t, shifted) << 23);
  return x < -87.0f ? 0.0f : __builtin_bit_cast(float, bits);
}

inline __attribute__((always_inline)) double Exp(double x) {
  const double clamped = x < -708.0 ? -708.0 : x;
  const double shifted = clamped * 1.4426950408889634074 + 6755399441055744.0;
  const double n = shifted - 6755399441055744.0;
  const double r = (clamped - n * 0.693145751953125) - n * 1.42860682030941723212e-6;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r * r + r + 1.0;
  const uint64_t bits = __builtin_bit_cast(uint64_t, p) + (__builtin_bit_cast(uint64_t, shifted) << 52);
  return x < -708.0 ? 0.0 : __builtin_bit_cast(double, bits);
}

inline float Log(float x) { return __builtin_logf(x); }
inline double Log(double x) { return __builtin_log(x); }

}  // namespace ATTNTRACE_LEVEL
}  // namespace attntrace::tiled
