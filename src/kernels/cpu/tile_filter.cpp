#include "kernels/cpu/tile_filter.h"

#include <algorithm>
#include <type_traits>

#include "core/checked.h"

namespace omniconv::kernels {
namespace {

template <typename Real>
constexpr bool is_bytes = std::is_same_v<Real, std::uint8_t>;

template <typename Real>
std::vector<Real> to_real(const std::vector<double>& values) {
  return std::vector<Real>(values.begin(), values.end());
}

}  // namespace

constexpr std::uintptr_t cache_line = 64;

// Bytes of an output row that are finished before they are copied past the caches: four rows stay in the first level.
constexpr std::int64_t staged_bytes = 4096;

// The parts of one tile's workspace.
template <typename Real>
struct TileFilter<Real>::Buffers {
  const Real** inputs;    // of a chain
  const Real** entered;   // the rows in the ring, or in the image itself
  const Real** upcoming;  // chain_rows rows that enter next
  Real** sums;            // chain_rows rows of results
  Real** entering;        // chain_rows rows of the ring that the row pass writes
  Real* ring;
  Real* widened;  // chain_rows rows, before the row pass
  std::byte* staged;
};

template <typename Real>
TileFilter<Real>::TileFilter(const Filter2dTask& task, bool rows_first) : task_(task), rows_first_(rows_first) {
  const Filter2dProblem& problem = task.problem;
  const bool sums_of_pixels = task.weights.form == WeightForm::equal;
  if constexpr (is_bytes<Real>) {
    byte_weights_ = byte_weights(task.weights.values, problem.r, problem.s);
  } else {
    if (rows_first) row_weights_ = to_real<Real>(task.weights.row);
    weights_ = to_real<Real>(rows_first ? task.weights.column : task.weights.values);
    if (sums_of_pixels) std::fill(weights_.begin(), weights_.end(), Real{1});
  }
  finish_ = {.type = problem.output,
             .scale = task.weights.scale,
             .bias = task.weights.bias,
             .times_weight = sums_of_pixels,
             .weight = task.weights.values.front(),
             .f32 = task.weights.accumulate == DataType::f32};
  if constexpr (is_bytes<Real>) finish_.scale *= byte_weights_.unit;

  ring_rows_ = problem.r + chain_rows - 1;
  block_elements_ =
      block_elements_for(ring_rows_ + chain_rows * (rows_first ? 2 : 1), sizeof(Real), Q(problem) * problem.c);
  const std::int64_t reach = checked_multiply(problem.s - 1, problem.c, "a kernel row over all channels");
  // Bytes are read in whole vectors, and in whole groups of taps.
  slack_ = is_bytes<Real> ? byte_chain_slack + dot_taps * problem.c : chain_slack;
  widened_pitch_ = round_up(checked_add(block_elements_ + slack_, reach, "a widened row"), 64);
  sum_pitch_ = is_bytes<Real> ? 0 : round_up(block_elements_ + chain_slack, 16);
  ring_pitch_ = rows_first ? sum_pitch_ : widened_pitch_;
  const std::int64_t ring = checked_multiply(ring_rows_, ring_pitch_, "the ring of rows");
  const std::int64_t widened = rows_first ? checked_multiply(chain_rows, widened_pitch_, "the widened rows") : 0;
  const std::int64_t reals =
      checked_add(checked_add(ring, widened, "the workspace"), chain_rows * sum_pitch_, "the workspace");
  pointers_bytes_ = round_up((2 * ring_rows_ + 3 * chain_rows) * static_cast<std::int64_t>(sizeof(Real*)), 64);
  workspace_bytes_ = round_up(checked_add(pointers_bytes_ + chain_rows * staged_bytes,
                                          checked_multiply(reals, sizeof(Real), "the workspace"), "the workspace"),
                              64);

  // Stored elements that are sums' elements already need no copy, except at the row's ends.
  const bool in_place = (problem.input == DataType::f32 && sizeof(Real) == 4) ||
                        (problem.input == DataType::f64 && sizeof(Real) == 8) || is_bytes<Real>;
  const std::int64_t edge = round_up(checked_add(reach, slack_, "a kernel row over all channels"), 64);
  if (in_place && edge <= block_elements_ && edge < Q(problem) * problem.c / 8) edge_elements_ = edge;
}

template <typename Real>
Tiling TileFilter<Real>::tiling(std::int64_t rows, int threads) const {
  const Filter2dProblem& problem = task_.problem;
  return {rows, Q(problem) * problem.c, band_rows_for(rows, problem.r, threads), block_elements_, edge_elements_};
}

template <typename Real>
void TileFilter<Real>::run(const RowWindow& input, const Output& output, const Tile& tile, std::byte* workspace) const {
  const Filter2dProblem& problem = task_.problem;
  Buffers buffers;
  buffers.inputs = reinterpret_cast<const Real**>(workspace);
  buffers.entered = buffers.inputs + ring_rows_;
  buffers.upcoming = buffers.entered + ring_rows_;
  buffers.sums = reinterpret_cast<Real**>(workspace) + 2 * ring_rows_ + chain_rows;
  buffers.entering = buffers.sums + chain_rows;
  buffers.ring = reinterpret_cast<Real*>(workspace + pointers_bytes_);
  Real* const sums = buffers.ring + ring_rows_ * ring_pitch_;
  buffers.widened = sums + chain_rows * sum_pitch_;
  buffers.staged = reinterpret_cast<std::byte*>(buffers.widened + (rows_first_ ? chain_rows * widened_pitch_ : 0));
  for (int j = 0; j < chain_rows; ++j) buffers.sums[j] = sums + j * sum_pitch_;

  const std::int64_t base = output.first + tile.row - task_.weights.anchor_y;  // the input row that enters first
  std::int64_t entered = 0;
  Chain<Real> chain = chain_over(tile, buffers);
  std::byte* to = output.data + tile.row * output.stride_bytes + tile.element * size_of(problem.output);
  for (std::int64_t row = 0; row < tile.rows; row += chain.count) {
    chain.count = static_cast<int>(std::min<std::int64_t>(chain_rows, tile.rows - row));
    const std::int64_t needed = row + chain.count + problem.r - 1;
    fill_ring(input, base, entered, needed - entered, tile, buffers);
    entered = needed;
    for (std::int64_t i = 0; row + i < needed; ++i) buffers.inputs[i] = buffers.entered[(row + i) % ring_rows_];
    chain.upcoming = upcoming_rows(input, base + needed, tile, buffers);
    filter_rows(chain, output, tile, to, buffers);
    to += chain.count * output.stride_bytes;
  }
  if (output.stream) stream_fence();
}

template <typename Real>
Chain<Real> TileFilter<Real>::chain_over(const Tile& tile, const Buffers& buffers) const {
  const Filter2dProblem& problem = task_.problem;
  if constexpr (is_bytes<Real>)
    return {.inputs = buffers.inputs,
            .weights = byte_weights_.low.data(),
            .high = byte_weights_.high.empty() ? nullptr : byte_weights_.high.data(),
            .r = problem.r,
            .s = byte_weights_.groups,
            .step = problem.c,
            .n = tile.elements};
  else
    return {.inputs = buffers.inputs,
            .weights = weights_.data(),
            .r = problem.r,
            .s = rows_first_ ? 1 : problem.s,
            .step = problem.c,
            .n = tile.elements,
            .exact = task_.weights.exact || finish_.times_weight};
}

template <typename Real>
void TileFilter<Real>::chain_and_finish(const Chain<Real>& chain, const Finish& finish, std::byte* to,
                                        std::int64_t stride_bytes, const Buffers& buffers) const {
  if constexpr (is_bytes<Real>)
    kernels::chain_and_finish(chain, finish, to, stride_bytes);
  else
    kernels::chain_and_finish(chain, finish, buffers.sums, to, stride_bytes);
}

// The chains of up to chain_rows output rows over the tile's elements.
template <typename Real>
void TileFilter<Real>::filter_rows(Chain<Real> chain, const Output& output, const Tile& tile, std::byte* to,
                                   const Buffers& buffers) const {
  const auto on_lines = [](auto address) { return static_cast<std::uintptr_t>(address) % cache_line == 0; };
  Finish finish = finish_;
  finish.stream = output.stream && finish.type == DataType::f32 && finish.f32 &&
                  on_lines(reinterpret_cast<std::uintptr_t>(to)) && on_lines(output.stride_bytes);
  if (!output.stream || finish.stream) return chain_and_finish(chain, finish, to, output.stride_bytes, buffers);
  const std::int64_t size = size_of(task_.problem.output), staged_elements = staged_bytes / size;
  for (chain.offset = 0; chain.offset < tile.elements; chain.offset += staged_elements) {
    chain.n = std::min(staged_elements, tile.elements - chain.offset);
    chain_and_finish(chain, finish_, buffers.staged, staged_bytes, buffers);
    for (int j = 0; j < chain.count; ++j)
      stream_copy(to + j * output.stride_bytes + chain.offset * size, buffers.staged + j * staged_bytes,
                  chain.n * size);
  }
}

// The image's own row, from the first element that the tile reads; null where it cannot serve as it is.
template <typename Real>
const Real* TileFilter<Real>::row_in_place(const RowWindow& input, std::int64_t row, const Tile& tile) const {
  const Filter2dProblem& problem = task_.problem;
  const std::int64_t elements = tile.elements + (problem.s - 1) * problem.c + slack_;
  const std::int64_t first = tile.element - task_.weights.anchor_x * problem.c;
  if (edge_elements_ == 0 || first < 0 || first + elements > problem.w * problem.c) return nullptr;
  const std::byte* const data = row_data(task_, input, row);
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % alignof(Real) != 0) return nullptr;
  return reinterpret_cast<const Real*>(data) + first;
}

// The row as chains read it: in the image itself where it can be, else widened into `place`.
template <typename Real>
const Real* TileFilter<Real>::source_row(const RowWindow& input, std::int64_t row, const Tile& tile,
                                         Real* place) const {
  if (const Real* const in_place = row_in_place(input, row, tile)) return in_place;
  load_row(task_, input, row, tile.element, tile.elements + (task_.problem.s - 1) * task_.problem.c, place);
  return place;
}

// The next chain_rows rows, where they will be read in place; else null.
template <typename Real>
const Real* const* TileFilter<Real>::upcoming_rows(const RowWindow& input, std::int64_t first, const Tile& tile,
                                                   const Buffers& buffers) const {
  if (rows_first_) return nullptr;
  for (int j = 0; j < chain_rows; ++j)
    if ((buffers.upcoming[j] = row_in_place(input, first + j, tile)) == nullptr) return nullptr;
  return buffers.upcoming;
}

// Rows [first, first + count) after `base` enter the ring.
template <typename Real>
void TileFilter<Real>::fill_ring(const RowWindow& input, std::int64_t base, std::int64_t first, std::int64_t count,
                                 const Tile& tile, const Buffers& buffers) const {
  const Filter2dProblem& problem = task_.problem;
  const auto place = [&](std::int64_t i) { return buffers.ring + i % ring_rows_ * ring_pitch_; };
  if (!rows_first_) {
    for (std::int64_t i = first; i < first + count; ++i)
      buffers.entered[i % ring_rows_] = source_row(input, base + i, tile, place(i));
    return;
  }
  if constexpr (!is_bytes<Real>) {
    Chain<Real> chain{.inputs = buffers.inputs,
                      .weights = row_weights_.data(),
                      .r = 1,
                      .s = problem.s,
                      .step = problem.c,
                      .n = tile.elements,
                      .exact = task_.weights.exact};
    for (std::int64_t i = first; i < first + count; i += chain.count) {
      chain.count = static_cast<int>(std::min<std::int64_t>(chain_rows, first + count - i));
      for (int j = 0; j < chain.count; ++j) {
        buffers.inputs[j] = source_row(input, base + i + j, tile, buffers.widened + j * widened_pitch_);
        buffers.entering[j] = place(i + j);
        buffers.entered[(i + j) % ring_rows_] = buffers.entering[j];
      }
      kernels::chain(chain, buffers.entering);
    }
  }
}

template class TileFilter<float>;
template class TileFilter<double>;
template class TileFilter<std::uint8_t>;

}  // namespace omniconv::kernels
