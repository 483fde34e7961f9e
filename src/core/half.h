// IEEE binary16 and bfloat16 in software, for scalar code; round to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace omniconv {

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1Fu;
  std::uint32_t mantissa = half & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // exact: a subnormal half is a multiple of 2^-24
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

inline std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);   // NaN
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal result: adding 0.5 leaves the multiple of 2^-24 in the low bits
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// fp32 rounded to odd, which keeps what a second rounding needs to know: together they round once.
inline float rounded_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || nearest != nearest) return nearest;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const bool away = (static_cast<double>(nearest) > value) == (value > 0);  // rounded away from zero
  return std::bit_cast<float>((away ? bits - 1 : bits) | 1u);
}

inline std::uint16_t double_to_half(double value) {
  return float_to_half(rounded_to_odd(value));
}

inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // a quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
inline std::uint16_t to_bfloat16(double value) {
  return to_bfloat16(rounded_to_odd(value));
}

// To the ten bits of mantissa that TF32 units read.
inline float to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return value;
  return std::bit_cast<float>((bits + 0xFFFu + ((bits >> 13) & 1u)) & ~0x1FFFu);
}

inline std::uint16_t to_half(float value) {
  return float_to_half(value);
}
inline std::uint16_t to_half(double value) {
  return double_to_half(value);
}

}  // namespace omniconv
