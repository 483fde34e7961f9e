// What the kernels of products of parts count by: tiles, steps, and quotients by multiplication. No device.
#pragma once

#include <bit>
#include <cstdint>

namespace omniconv::operations::split_gemm {

constexpr std::int64_t tile_rows = 128, step_terms = 64;

// divisor_t of parts.kernel, of a number from 1 on.
struct Divisor {
  std::uint32_t multiplier = 0, shift = 0;

  Divisor() = default;
  explicit Divisor(std::int64_t by)
      : shift(31 + static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(by - 1)))) {
    multiplier = static_cast<std::uint32_t>(((std::uint64_t{1} << shift) + static_cast<std::uint64_t>(by) - 1) /
                                            static_cast<std::uint64_t>(by));
  }
  std::int64_t divided(std::int64_t n) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(n) * multiplier >> shift);
  }
};

}  // namespace omniconv::operations::split_gemm
