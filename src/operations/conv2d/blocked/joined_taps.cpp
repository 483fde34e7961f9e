#include "operations/conv2d/blocked/joined_taps.h"

#include <algorithm>

#include "core/checked.h"
#include "vector/matrix/turn.h"

namespace omniconv::operations {

bool JoinedTaps::serves(const Conv2dProblem& problem) {
  constexpr std::int64_t most_channels = 8;
  return problem.pass == Pass::forward && problem.s > 1 && problem.c / problem.groups <= most_channels;
}

Conv2dProblem JoinedTaps::joined(const Conv2dProblem& problem) {
  Conv2dProblem made = problem;
  made.c = checked_multiply(problem.c, problem.s, "the channels under a row's taps");
  made.w = Q(problem), made.s = 1;
  made.pad_left = made.pad_right = 0, made.stride_w = made.dilation_w = 1;
  return made;
}

void JoinedTaps::pack(const std::byte* w, std::int64_t group, std::int64_t panel, std::int64_t first,
                      kernels::BfloatPair* to) const {
  const auto* const weights = reinterpret_cast<const std::uint16_t*>(w);
  const auto count = static_cast<std::int64_t>(cut_.taps.front().taps.size());
  const std::int64_t rows = cut_.filters.count(panel), depth = cut_.depth,
                     filter = group * g_.k_group + cut_.filters.start(panel);
  to += panel * cut_.panel_pitch() * count + first * count * rows;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t d = 0; d < depth; ++d)
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto weight = [&](std::int64_t channel) {
          if (channel >= g_.c_group * g_.s) return std::uint16_t{0};
          const std::int64_t tap = cut_.taps.front().taps[static_cast<std::size_t>(i)];
          return weights[g_.w_at(filter + row, channel % g_.c_group, tap, channel / g_.c_group)];
        };
        const std::int64_t channel = cut_.terms * (first + d), at = g_.nhwc ? i * depth + d : d * count + i;
        to[at * rows + row] = {weight(channel), weight(channel + 1)};
      }
}

void JoinedTaps::copy(const std::byte* row, std::int64_t first, std::int64_t column, float* lines,
                      kernels::BfloatPair* to) const {
  const auto* const from = reinterpret_cast<const std::uint16_t*>(row);
  const std::int64_t depth = cut_.depth, width = cut_.width, unit = g_.stride_w * g_.x_at(0, 0, 0, 1);
  // Outputs [begin, end) have the channel, and the first of them at `from`.
  struct Line {
    std::int64_t begin = 0, end = 0;
    const std::uint16_t* from = nullptr;
  };
  const auto line_of = [&](std::int64_t channel) {
    if (channel >= g_.c_group * g_.s) return Line{};
    const std::int64_t w = g_.column_of(column, channel / g_.c_group);
    const auto [begin, end] = part_within(w, g_.stride_w, g_.w, width);
    if (begin == end) return Line{};
    return Line{begin, end, from + g_.x_at(0, channel % g_.c_group, 0, w + begin * g_.stride_w)};
  };
  auto* const pairs = reinterpret_cast<kernels::BfloatPair*>(lines);
  for (std::int64_t d = 0; d < depth; ++d) {
    kernels::BfloatPair* const line = pairs + d * width;
    const Line low = line_of(cut_.terms * (first + d)), high = line_of(cut_.terms * (first + d) + 1);
    const std::int64_t begin = std::max(low.begin, high.begin), end = std::min(low.end, high.end);
    const auto one = [&](const Line& some, std::int64_t q) {
      return q >= some.begin && q < some.end ? some.from[(q - some.begin) * unit] : std::uint16_t{0};
    };
    for (std::int64_t q = 0; q < std::min(begin, width); ++q) line[q] = {one(low, q), one(high, q)};
    if (begin < end) {
      kernels::pair_lines(low.from + (begin - low.begin) * unit, high.from + (begin - high.begin) * unit, unit,
                          end - begin, line + begin);
    }
    for (std::int64_t q = std::max(begin, end); q < width; ++q) line[q] = {one(low, q), one(high, q)};
  }
  kernels::turn(kernels::Turned<kernels::BfloatPair>{
      .from = pairs, .ld = width, .lines = depth, .columns = width, .to = to, .pitch = depth, .add = false});
}

}  // namespace omniconv::operations
