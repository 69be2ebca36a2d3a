#pragma once

#include <cstdint>

using __half = _Float16;
inline __half __ushort_as_half(uint16_t bits) { return __builtin_bit_cast(__half, bits); }
inline uint16_t __half_as_ushort(__half value) { return __builtin_bit_cast(uint16_t, value); }
inline float __half2float(__half value) { return static_cast<float>(value); }
inline __half __float2half(float value) { return static_cast<__half>(value); }
