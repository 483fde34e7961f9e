#include "kernels/cpu/tile_filter.h"

#include <algorithm>

#include "core/checked.h"

namespace omniconv::kernels {
namespace {

template <typename Real>
std::vector<Real> to_real(const std::vector<double>& values) {
  return std::vector<Real>(values.begin(), values.end());
}

}  // namespace

// The parts of one tile's workspace.
template <typename Real>
struct TileFilter<Real>::Buffers {
  const Real** inputs;  // of a chain
  Real** sums;          // chain_rows rows of results
  Real** entering;      // chain_rows rows of the ring that the row pass writes
  Real* ring;
  Real* widened;  // chain_rows rows, before the row pass
};

template <typename Real>
TileFilter<Real>::TileFilter(const Filter2dTask& task, bool rows_first) : task_(task), rows_first_(rows_first) {
  const Filter2dProblem& problem = task.problem;
  const bool sums_of_pixels = task.weights.form == WeightForm::equal;
  if (rows_first) row_weights_ = to_real<Real>(task.weights.row);
  weights_ = to_real<Real>(rows_first ? task.weights.column : task.weights.values);
  if (sums_of_pixels) std::fill(weights_.begin(), weights_.end(), Real{1});
  finish_ = {problem.output, task.weights.scale,          task.weights.bias,
             sums_of_pixels, task.weights.values.front(), task.weights.accumulate == DataType::f32};

  ring_rows_ = problem.r + chain_rows - 1;
  block_elements_ =
      block_elements_for(ring_rows_ + chain_rows * (rows_first ? 2 : 1), sizeof(Real), Q(problem) * problem.c);
  const std::int64_t reach = checked_multiply(problem.s - 1, problem.c, "a kernel row over all channels");
  widened_pitch_ = round_up(checked_add(block_elements_ + chain_slack, reach, "a widened row"), 16);
  sum_pitch_ = round_up(block_elements_ + chain_slack, 16);
  ring_pitch_ = rows_first ? sum_pitch_ : widened_pitch_;
  const std::int64_t ring = checked_multiply(ring_rows_, ring_pitch_, "the ring of rows");
  const std::int64_t widened = rows_first ? checked_multiply(chain_rows, widened_pitch_, "the widened rows") : 0;
  const std::int64_t reals =
      checked_add(checked_add(ring, widened, "the workspace"), chain_rows * sum_pitch_, "the workspace");
  pointers_bytes_ = round_up((ring_rows_ + 2 * chain_rows) * static_cast<std::int64_t>(sizeof(Real*)), 64);
  workspace_bytes_ = round_up(
      checked_add(pointers_bytes_, checked_multiply(reals, sizeof(Real), "the workspace"), "the workspace"), 64);
}

template <typename Real>
void TileFilter<Real>::run(const RowWindow& input, std::int64_t output_first, const Tile& tile, std::byte* output,
                           std::int64_t output_stride_bytes, std::byte* workspace) const {
  const Filter2dProblem& problem = task_.problem;
  Buffers buffers;
  buffers.inputs = reinterpret_cast<const Real**>(workspace);
  buffers.sums = reinterpret_cast<Real**>(workspace) + ring_rows_;
  buffers.entering = buffers.sums + chain_rows;
  buffers.ring = reinterpret_cast<Real*>(workspace + pointers_bytes_);
  Real* const sums = buffers.ring + ring_rows_ * ring_pitch_;
  buffers.widened = sums + chain_rows * sum_pitch_;
  for (int j = 0; j < chain_rows; ++j) buffers.sums[j] = sums + j * sum_pitch_;

  const std::int64_t base = output_first + tile.row - task_.weights.anchor_y;  // the input row that enters first
  std::int64_t entered = 0;
  Chain<Real> chain{.inputs = buffers.inputs, .weights = weights_.data(), .r = problem.r,
                    .s = rows_first_ ? 1 : problem.s, .step = problem.c, .n = tile.elements,
                    .exact = task_.weights.exact || finish_.times_weight};
  for (std::int64_t row = 0; row < tile.rows; row += chain.count) {
    chain.count = static_cast<int>(std::min<std::int64_t>(chain_rows, tile.rows - row));
    const std::int64_t needed = row + chain.count + problem.r - 1;
    fill_ring(input, base, entered, needed - entered, tile, buffers);
    entered = needed;
    for (std::int64_t i = 0; row + i < needed; ++i)
      buffers.inputs[i] = buffers.ring + (row + i) % ring_rows_ * ring_pitch_;
    chain_and_finish(chain, finish_, buffers.sums, output, output_stride_bytes);
    output += chain.count * output_stride_bytes;
  }
}

// Rows [first, first + count) after `base` enter the ring.
template <typename Real>
void TileFilter<Real>::fill_ring(const RowWindow& input, std::int64_t base, std::int64_t first, std::int64_t count,
                                 const Tile& tile, const Buffers& buffers) const {
  const Filter2dProblem& problem = task_.problem;
  const std::int64_t elements = tile.elements + (problem.s - 1) * problem.c;
  const auto place = [&](std::int64_t i) { return buffers.ring + i % ring_rows_ * ring_pitch_; };
  if (!rows_first_) {
    for (std::int64_t i = first; i < first + count; ++i)
      load_row(task_, input, base + i, tile.element, elements, place(i));
    return;
  }
  Chain<Real> chain{.inputs = buffers.inputs, .weights = row_weights_.data(), .r = 1, .s = problem.s, .step = problem.c,
                    .n = tile.elements, .exact = task_.weights.exact};
  for (std::int64_t i = first; i < first + count; i += chain.count) {
    chain.count = static_cast<int>(std::min<std::int64_t>(chain_rows, first + count - i));
    for (int j = 0; j < chain.count; ++j) {
      Real* const widened = buffers.widened + j * widened_pitch_;
      load_row(task_, input, base + i + j, tile.element, elements, widened);
      buffers.inputs[j] = widened;
      buffers.entering[j] = place(i + j);
    }
    kernels::chain(chain, buffers.entering);
  }
}

template class TileFilter<float>;
template class TileFilter<double>;

}  // namespace omniconv::kernels
