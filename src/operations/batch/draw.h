// Which image an output of a batch is made of, and what chance does to it: the same numbers on every device.
// batch.kernel says the same for GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/philox.h"
#include "omniconv/batch.h"

namespace omniconv::operations {

// The last word of the counter, so that no other use of a seed shares its numbers.
constexpr auto use_of_draws = static_cast<std::uint32_t>(PhiloxUse::batch);

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
  PhiloxKey key{};

  explicit BatchNumbers(std::span<const double> scalars) : first(whole_part(scalars[0])) {
    if (scalars.size() == 1) return;
    const auto word = [&](std::size_t i) { return static_cast<std::uint32_t>(whole_part(scalars[i])); };
    epoch = word(1);
    key = {word(2) | word(3) << 24, word(3) >> 8 | word(4) << 16};
  }
};

// The batch's image `i`: where it lies, and its number in the set; -1 where there is none.
struct BatchImage {
  std::int64_t place = -1, number = -1;
};
inline BatchImage image_of(const BatchProblem& problem, const std::byte* order, const BatchNumbers& numbers,
                           std::int64_t i) {
  if (numbers.first < 0 || i >= problem.m - numbers.first) return {};
  std::int32_t image = 0;
  std::memcpy(&image, order + (numbers.first + i) * std::int64_t{sizeof image}, sizeof image);
  if (problem.gathered) return image >= 0 ? BatchImage{numbers.first + i, image} : BatchImage{};
  return image >= 0 && image < problem.m ? BatchImage{image, image} : BatchImage{};
}

// The pixel of element (k, p, q) is that of row p + rows and column q + columns, mirrored w - 1 - q + columns.
struct ImageDraw {
  bool mirrored = false;
  std::int64_t rows = 0, columns = 0;
};

// Of the image of that number in the set.
inline ImageDraw draw_of(const BatchProblem& problem, const BatchNumbers& numbers, std::int64_t image) {
  if (!problem.flip && problem.shift == 0) return {};
  const PhiloxWords words = philox({static_cast<std::uint32_t>(image), 0, numbers.epoch, use_of_draws}, numbers.key);
  const auto shift = [&](std::uint32_t word) {
    const auto choices = static_cast<std::uint64_t>(2 * problem.shift + 1);
    return static_cast<std::int64_t>(word * choices >> 32) - problem.shift;
  };
  return {.mirrored = problem.flip && words[0] >> 31 != 0, .rows = shift(words[1]), .columns = shift(words[2])};
}

}  // namespace omniconv::operations
