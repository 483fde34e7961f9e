#include "operations/filter2d/vector/real_box_filter.h"

#include <algorithm>

#include "core/checked.h"
#include "operations/filter2d/vector/real_box.h"
#include "vector/stream.h"

namespace omniconv::kernels {
namespace {

// Of the second-level cache, for the sums of a block of rows.
constexpr std::int64_t kept_bytes = std::int64_t{1} << 20;
// Windows that are made and finished at once, in the first-level cache.
constexpr std::int64_t chunk_elements = 1024;

}  // namespace

template <typename Real>
RealBoxFilter<Real>::RealBoxFilter(const Filter2dTask& task) : task_(task) {
  const Filter2dProblem& problem = task.problem;
  finish_ = {.type = problem.output,
             .scale = task.weights.scale,
             .bias = task.weights.bias,
             .f32 = task.weights.accumulate == DataType::f32};
  reach_ = checked_multiply(problem.s - 1, problem.c, "a kernel row over all channels");
  const std::int64_t fitting = kept_bytes / static_cast<std::int64_t>(sizeof(Real)) / problem.r - reach_;
  const std::int64_t least = std::max<std::int64_t>(1024, checked_multiply(reach_, 2, "a block of columns"));
  block_elements_ = std::min(std::max(fitting, least), Q(problem) * problem.c);
  chunk_elements_ = std::min(std::max(chunk_elements, least), block_elements_);
  pitch_ = round_up(checked_add(block_elements_ + real_box_slack, reach_, "a row of sums"), 16);
  chunk_pitch_ = round_up(real_box_pitch(chunk_elements_, problem.s, problem.c), 16);
  // r rows of one block, the sum of the next one's first rows; scratch, sums and results of a chunk of an output row.
  const std::int64_t chunks = checked_multiply(real_box_levels(problem.s) + 3, chunk_pitch_, "the workspace");
  const std::int64_t rows = checked_multiply(problem.r + 1, pitch_, "the workspace");
  workspace_bytes_ =
      round_up(checked_multiply(checked_add(rows, chunks, "the workspace"), sizeof(Real), "the workspace"), 64);
}

template <typename Real>
Tiling RealBoxFilter<Real>::tiling(std::int64_t rows, int threads) const {
  const Filter2dProblem& problem = task_.problem;
  // A band loads r - 1 rows before its first result: let it be tall, since columns give tiles too.
  const std::int64_t least = std::max<std::int64_t>(16, 4 * problem.r);
  Tiling tiling{rows, Q(problem) * problem.c, std::clamp(rows / (4 * threads) + 1, std::min(least, rows), rows),
                block_elements_};
  const std::int64_t wanted = 2 * threads, bands = divide_up(rows, tiling.band_rows);
  if (bands * tiling.blocks() < wanted)
    tiling.block_elements =
        std::min(std::max(divide_up(tiling.elements, divide_up(wanted, bands)), std::max<std::int64_t>(512, reach_)),
                 block_elements_);
  return tiling;
}

template <typename Real>
void RealBoxFilter<Real>::run(const RowWindow& input, const Output& output, const Tile& tile,
                              std::byte* workspace) const {
  const Filter2dProblem& problem = task_.problem;
  Real* const block = reinterpret_cast<Real*>(workspace);
  Real* const total = block + problem.r * pitch_;  // of the rows of the next block that are in the window
  const std::int64_t n = tile.elements + reach_;
  const auto weight = static_cast<Real>(task_.weights.values.front());
  const auto place = [&](std::int64_t i) { return block + i % problem.r * pitch_; };

  // Row i of the blocks is the first of output row i's window.
  const auto enter = [&](std::int64_t i, Real* into) {
    load_row(task_, input, i - task_.weights.anchor_y, tile.element, n, place(i));
    real_box_enter(place(i), weight, into, i % problem.r == 0, n);
  };
  // Each row of a whole block becomes the sum from it to the block's last.
  const auto sum_up_from = [&](std::int64_t i) {
    for (std::int64_t j = problem.r - 2; j >= i % problem.r; --j) real_box_add(place(j), place(j + 1), n);
  };

  const std::int64_t first = output.first, begin = first + tile.row, end = begin + tile.rows;
  const std::int64_t next_block = round_up(begin + 1, problem.r);
  for (std::int64_t i = begin; i < next_block; ++i) enter(i, nullptr);
  sum_up_from(begin);
  for (std::int64_t i = next_block; i < begin + problem.r; ++i) enter(i, total);

  for (std::int64_t p = begin; p < end; ++p) {
    write_row(place(p), p % problem.r == 0 ? nullptr : total, output, tile, p - first, total + pitch_);
    if (p + 1 == end) break;
    enter(p + problem.r, total);
    if ((p + 1) % problem.r == 0) sum_up_from(p + 1);
  }
  if (output.stream) stream_fence();
}

// Row `row` of the run's output within the tile, whose column sums are upper + lower.
template <typename Real>
void RealBoxFilter<Real>::write_row(const Real* upper, const Real* lower, const Output& output, const Tile& tile,
                                    std::int64_t row, Real* workspace) const {
  const Filter2dProblem& problem = task_.problem;
  const std::int64_t size = size_of(problem.output);
  Real* const sums = workspace;
  std::byte* const staged = reinterpret_cast<std::byte*>(sums + chunk_pitch_);  // of elements up to f64, so two pitches
  Real* const scratch = sums + 3 * chunk_pitch_;
  std::byte* to = output.data + row * output.stride_bytes + tile.element * size;
  for (std::int64_t e = 0; e < tile.elements; e += chunk_elements_, to += chunk_elements_ * size) {
    const std::int64_t n = std::min(chunk_elements_, tile.elements - e);
    real_box_windows({upper + e, lower == nullptr ? nullptr : lower + e, problem.s, problem.c, n, scratch, sums});
    finish(finish_, sums, n, output.stream ? staged : to);
    if (output.stream) stream_copy(to, staged, n * size);
  }
}

template class RealBoxFilter<float>;
template class RealBoxFilter<double>;

}  // namespace omniconv::kernels
