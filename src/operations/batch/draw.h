// Which image an output of a batch is made of, and what chance does to it: the same numbers on every device.
// batch.kernel says the same for GPUs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "omniconv/batch.h"

namespace omniconv::operations {

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011).
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
  constexpr std::uint32_t step_0 = 0x9E3779B9, step_1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = multiplier_0 * counter[0], b = multiplier_1 * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += step_0, key[1] += step_1;
  }
  return counter;
}

// The last word of the counter, so that no other use of a seed shares its numbers.
constexpr std::uint32_t use_of_draws = 3;

// A scalar, which is rounded to fp32 first, as GPUs are given it: its whole part, or -1 where it is less than 0, more
// than 2^24 or NaN.
inline std::int64_t whole_part(double scalar) {
  const auto rounded = static_cast<float>(scalar);
  return rounded >= 0 && rounded <= 0x1p24f ? static_cast<std::int64_t>(rounded) : -1;
}

// The scalars of a run, in the order of BatchPlanBody::append.
struct BatchNumbers {
  std::int64_t first = 0;
  std::uint32_t epoch = 0;
  std::array<std::uint32_t, 2> key{};

  explicit BatchNumbers(std::span<const double> scalars) : first(whole_part(scalars[0])) {
    if (scalars.size() == 1) return;
    const auto word = [&](std::size_t i) { return static_cast<std::uint32_t>(whole_part(scalars[i])); };
    epoch = word(1);
    key = {word(2) | word(3) << 24, word(3) >> 8 | word(4) << 16};
  }
};

// The place in the set of the batch's image `i`; -1 where there is none.
inline std::int64_t image_of(const BatchProblem& problem, const std::byte* order, const BatchNumbers& numbers,
                             std::int64_t i) {
  if (numbers.first < 0 || i >= problem.m - numbers.first) return -1;
  std::int32_t image = 0;
  std::memcpy(&image, order + (numbers.first + i) * std::int64_t{sizeof image}, sizeof image);
  return image >= 0 && image < problem.m ? image : -1;
}

// The pixel of element (k, p, q) is that of row p + rows and column q + columns, mirrored w - 1 - q + columns.
struct ImageDraw {
  bool mirrored = false;
  std::int64_t rows = 0, columns = 0;
};

inline ImageDraw draw_of(const BatchProblem& problem, const BatchNumbers& numbers, std::int64_t image) {
  if (!problem.flip && problem.shift == 0) return {};
  const std::array<std::uint32_t, 4> words =
      philox({static_cast<std::uint32_t>(image), 0, numbers.epoch, use_of_draws}, numbers.key);
  const auto shift = [&](std::uint32_t word) {
    const auto choices = static_cast<std::uint64_t>(2 * problem.shift + 1);
    return static_cast<std::int64_t>(word * choices >> 32) - problem.shift;
  };
  return {.mirrored = problem.flip && words[0] >> 31 != 0, .rows = shift(words[1]), .columns = shift(words[2])};
}

}  // namespace omniconv::operations
