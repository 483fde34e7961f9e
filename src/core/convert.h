// Scalar loads and stores of every element type: step 6 of docs/arithmetic.md, in the one place that spells it out.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/half.h"
#include "omniconv/types.h"

namespace omniconv {

// Round to nearest even and saturate; NaN becomes 0.
template <typename Integer, typename Real>
Integer saturate(Real value) {
  if (std::isnan(value)) return 0;
  const Real rounded = std::nearbyint(value);
  // 2^31 - 1 is no fp32 value: compare with the first value above the range instead.
  constexpr Real above = static_cast<Real>(std::numeric_limits<Integer>::max() / 2 + 1) * 2;
  if (rounded >= above) return std::numeric_limits<Integer>::max();
  if (rounded <= static_cast<Real>(std::numeric_limits<Integer>::lowest()))
    return std::numeric_limits<Integer>::lowest();
  return static_cast<Integer>(rounded);
}

// One stored element, exactly; f64 holds every value of every type.
inline double load_element(DataType type, const std::byte* from) {
  const auto as = [from]<typename T>(T value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  switch (type) {
    case DataType::u8: return as(std::uint8_t{});
    case DataType::u16: return as(std::uint16_t{});
    case DataType::s16: return as(std::int16_t{});
    case DataType::s32: return as(std::int32_t{});
    case DataType::f16: return half_to_float(as(std::uint16_t{}));
    case DataType::bf16: return std::bit_cast<float>(static_cast<std::uint32_t>(as(std::uint16_t{})) << 16);
    case DataType::tf32:
    case DataType::f32: return as(float{});
    case DataType::f64: return as(double{});
  }
  return 0;
}

// Converts `value` (float or double) to the stored type in one rounding.
template <typename Real>
void store_element(DataType type, Real value, std::byte* to) {
  const auto put = [to](auto stored) { std::memcpy(to, &stored, sizeof stored); };
  switch (type) {
    case DataType::u8: return put(saturate<std::uint8_t>(value));
    case DataType::u16: return put(saturate<std::uint16_t>(value));
    case DataType::s16: return put(saturate<std::int16_t>(value));
    case DataType::s32: return put(saturate<std::int32_t>(value));
    case DataType::f16: return put(to_half(value));
    case DataType::bf16: return put(to_bfloat16(value));
    case DataType::tf32:
    case DataType::f32: return put(static_cast<float>(value));
    case DataType::f64: return put(static_cast<double>(value));
  }
}

}  // namespace omniconv
