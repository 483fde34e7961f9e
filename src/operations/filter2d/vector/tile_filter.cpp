#include "operations/filter2d/vector/tile_filter.h"

#include <algorithm>
#include <type_traits>

#include "core/checked.h"
#include "vector/stream.h"

namespace omniconv::kernels {
namespace {

template <typename Real>
constexpr bool is_bytes = std::is_same_v<Real, std::uint8_t>;

template <typename Real>
std::vector<Real> to_real(const std::vector<double>& values) {
  return std::vector<Real>(values.begin(), values.end());
}

// What stands for the weights where rows are filtered first. Of equal weights pixels alone are summed.
Products products_of(const Weights& weights, bool rows_first) {
  if (!rows_first) return {};
  if (weights.form != WeightForm::equal) return {1, weights.column, weights.row};
  return {1, std::vector<double>(static_cast<std::size_t>(weights.r), 1),
          std::vector<double>(static_cast<std::size_t>(weights.s), 1)};
}

}  // namespace

constexpr std::uintptr_t cache_line = 64;

// Bytes of an output row that are finished before they are copied past the caches: four rows stay in the first level.
constexpr std::int64_t staged_bytes = 4096;

// The parts of one tile's workspace.
template <typename Real>
struct TileFilter<Real>::Buffers {
  const Real** inputs;         // of a chain
  const Real** entered;        // the rows in the ring, or in the image itself
  const std::byte** upcoming;  // chain_rows rows that enter next
  Real** sums;                 // chain_rows rows of results
  Real* ring;
  Real* widened;  // one row, before the row pass
  std::byte* staged;
};

template <typename Real>
TileFilter<Real>::TileFilter(const Filter2dTask& task, bool rows_first)
    : TileFilter(task, products_of(task.weights, rows_first)) {}

template <typename Real>
TileFilter<Real>::TileFilter(const Filter2dTask& task, const Products& products)
    : task_(task), products_(products.count) {
  const Filter2dProblem& problem = task.problem;
  const bool sums_of_pixels = task.weights.form == WeightForm::equal;
  if constexpr (is_bytes<Real>) {
    byte_weights_ = byte_weights(task.weights.values, problem.r, problem.s);
  } else if (rows_first()) {
    row_weights_ = to_real<Real>(products.rows);
    weights_ = to_real<Real>(products.columns);
  } else if (sums_of_pixels) {
    weights_.assign(task.weights.values.size(), 1);
  } else {
    weights_ = to_real<Real>(task.weights.values);
  }
  finish_ = {.type = problem.output,
             .scale = task.weights.scale,
             .bias = task.weights.bias,
             .times_weight = sums_of_pixels,
             .weight = task.weights.values.front(),
             .f32 = task.weights.accumulate == DataType::f32};
  if (premultiplied()) {
    opacity_ = {.channels = problem.c,
                .alpha = problem.alpha_channel,
                .unit = task.weights.opacity_unit,
                .weight = sums_of_pixels ? finish_.weight : 1,
                .opaque_sum = task.weights.opaque_sum,
                .opaque_value = task.weights.opaque_output,
                .scale = finish_.scale,
                .bias = finish_.bias};
    finish_ = {.type = problem.output, .f32 = finish_.f32};  // all else is done when sums are divided
  }
  if constexpr (is_bytes<Real>) finish_.scale *= byte_weights_.unit;

  ring_rows_ = problem.r + chain_rows - 1;
  // (Two products keep twice the sums: longer rows were worth more than the cache that this takes.)
  block_elements_ =
      block_elements_for(ring_rows_ + chain_rows + (rows_first() ? 1 : 0), sizeof(Real), Q(problem) * problem.c);
  if (premultiplied()) block_elements_ = std::max(block_elements_ / problem.c, std::int64_t{1}) * problem.c;
  // With more channels than a block has elements, the taps of its row share none: only what they read is widened, and
  // not what lies between.
  const std::int64_t apart = round_up(block_elements_ + chain_slack, 16);
  tap_step_ = problem.s > 1 ? std::min(problem.c, apart) : problem.c;
  const std::int64_t reach = checked_multiply(problem.s - 1, tap_step_, "a kernel row over all channels");
  // Bytes are read in whole vectors, and in whole groups of taps.
  slack_ = is_bytes<Real> ? byte_chain_slack + dot_taps * problem.c : chain_slack;
  widened_pitch_ = round_up(checked_add(block_elements_ + slack_, reach, "a widened row"), 64);
  sum_pitch_ = is_bytes<Real> ? 0 : round_up(block_elements_ + chain_slack, 16);
  ring_pitch_ = rows_first() ? products_ * sum_pitch_ : widened_pitch_;
  const std::int64_t ring = checked_multiply(ring_rows_, ring_pitch_, "the ring of rows");
  const std::int64_t widened = rows_first() ? widened_pitch_ : 0;
  const std::int64_t reals =
      checked_add(checked_add(ring, widened, "the workspace"), chain_rows * sum_pitch_, "the workspace");
  pointers_bytes_ = round_up((2 * ring_rows_ + 2 * chain_rows) * static_cast<std::int64_t>(sizeof(Real*)), 64);
  workspace_bytes_ = round_up(checked_add(pointers_bytes_ + chain_rows * staged_bytes,
                                          checked_multiply(reals, sizeof(Real), "the workspace"), "the workspace"),
                              64);

  // Stored elements that are sums' elements already need no copy, except at the row's ends, and where taps are apart:
  // their reach is more than a block.
  const bool in_place = (problem.input == DataType::f32 && sizeof(Real) == 4) ||
                        (problem.input == DataType::f64 && sizeof(Real) == 8) || is_bytes<Real>;
  const std::int64_t edge = round_up(checked_add(reach, slack_, "a kernel row over all channels"), 64);
  if (in_place && !premultiplied() && edge <= block_elements_ && edge < Q(problem) * problem.c / 8)
    edge_elements_ = edge;
}

template <typename Real>
Tiling TileFilter<Real>::tiling(std::int64_t rows, int threads) const {
  const Filter2dProblem& problem = task_.problem;
  // What a band does again for the r - 1 rows that it shares: the row pass, or else the widening alone, which many taps
  // outweigh.
  const std::int64_t weight = rows_first() ? problem.r : divide_up(problem.r, problem.s);
  const std::int64_t band_rows = round_up(band_rows_for(rows, weight, threads), chain_rows);
  return {rows, Q(problem) * problem.c, band_rows, block_elements_, edge_elements_};
}

template <typename Real>
void TileFilter<Real>::run(const RowWindow& input, const Output& output, const Tile& tile, std::byte* workspace) const {
  const Filter2dProblem& problem = task_.problem;
  Buffers buffers;
  buffers.inputs = reinterpret_cast<const Real**>(workspace);
  buffers.entered = buffers.inputs + ring_rows_;
  buffers.upcoming = reinterpret_cast<const std::byte**>(buffers.entered + ring_rows_);
  buffers.sums = reinterpret_cast<Real**>(workspace) + 2 * ring_rows_ + chain_rows;
  buffers.ring = reinterpret_cast<Real*>(workspace + pointers_bytes_);
  Real* const sums = buffers.ring + ring_rows_ * ring_pitch_;
  buffers.widened = sums + chain_rows * sum_pitch_;
  buffers.staged = reinterpret_cast<std::byte*>(buffers.widened + (rows_first() ? widened_pitch_ : 0));
  for (int j = 0; j < chain_rows; ++j) buffers.sums[j] = sums + j * sum_pitch_;

  const std::int64_t base = output.first + tile.row - task_.weights.anchor_y;  // the input row that enters first
  std::int64_t entered = 0;
  Chain<Real> chain = chain_over(tile, buffers);
  std::byte* to =
      output.data + tile.row * output.stride_bytes + (tile.element - output.element) * size_of(problem.output);
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
            .step = tap_step_,
            .n = tile.elements};
  else
    return {.inputs = buffers.inputs,
            .weights = weights_.data(),
            .r = problem.r,
            .s = rows_first() ? products_ : problem.s,
            .step = rows_first() ? sum_pitch_ : tap_step_,
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

// The chain that takes finished values to the outputs: one tap of weight 1. It may leave its sums in the same rows,
// since it never writes an element before it has read it.
template <typename Real>
Chain<Real> stored_as_they_are(const Chain<Real>& chain, Real* const* values) {
  static constexpr Real one = 1;
  return {
      .inputs = values, .weights = &one, .r = 1, .s = 1, .step = 1, .n = chain.n, .count = chain.count, .exact = true};
}

// The chains of up to chain_rows output rows over the tile's elements.
template <typename Real>
void TileFilter<Real>::filter_rows(Chain<Real> chain, const Output& output, const Tile& tile, std::byte* to,
                                   const Buffers& buffers) const {
  if constexpr (!is_bytes<Real>) {
    if (premultiplied()) {
      kernels::chain(chain, buffers.sums);
      for (int j = 0; j < chain.count; ++j) divide_by_opacity(opacity_, chain.n, buffers.sums[j]);
      chain = stored_as_they_are(chain, buffers.sums);
    }
  }
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
  load_taps(input, row, tile, place);
  return place;
}

// Widens what the taps of one row read: one stretch, or one for each column of taps where channels keep them apart.
// (Premultiplied blocks are of whole pixels, and never apart.)
template <typename Real>
void TileFilter<Real>::load_taps(const RowWindow& input, std::int64_t row, const Tile& tile, Real* place) const {
  const Filter2dProblem& problem = task_.problem;
  if (tap_step_ != problem.c) {
    for (std::int64_t k = 0; k < problem.s; ++k)
      load_row(task_, input, row, tile.element + k * problem.c, tile.elements, place + k * tap_step_);
    return;
  }
  const std::int64_t elements = tile.elements + (problem.s - 1) * problem.c;
  load_row(task_, input, row, tile.element, elements, place);
  if constexpr (!is_bytes<Real>) {
    if (premultiplied()) premultiply(opacity_, elements, place);
  }
}

// The next chain_rows rows, as far as they are there.
template <typename Real>
Upcoming TileFilter<Real>::upcoming_rows(const RowWindow& input, std::int64_t first, const Tile& tile,
                                         const Buffers& buffers) const {
  const Filter2dProblem& problem = task_.problem;
  const std::int64_t size = size_of(problem.input),
                     element = std::max<std::int64_t>(tile.element - task_.weights.anchor_x * problem.c, 0);
  for (int j = 0; j < chain_rows; ++j) {
    const std::byte* const data = row_data(task_, input, first + j);
    if (data == nullptr) return {};
    buffers.upcoming[j] = data + element * size;
  }
  return {buffers.upcoming, size};
}

// Rows [first, first + count) after `base` enter the ring.
template <typename Real>
void TileFilter<Real>::fill_ring(const RowWindow& input, std::int64_t base, std::int64_t first, std::int64_t count,
                                 const Tile& tile, const Buffers& buffers) const {
  for (std::int64_t i = first; i < first + count; ++i) {
    Real* const place = buffers.ring + i % ring_rows_ * ring_pitch_;
    const Real*& entered = buffers.entered[i % ring_rows_];
    if (rows_first()) {
      filter_row(source_row(input, base + i, tile, buffers.widened), tile, place);
      entered = place;
    } else {
      entered = source_row(input, base + i, tile, place);
    }
  }
}

// The row pass, of one row while it is in the nearest cache: the sums by each product's row side by side.
template <typename Real>
void TileFilter<Real>::filter_row(const Real* from, const Tile& tile, Real* to) const {
  if constexpr (!is_bytes<Real>) {
    const Chain<Real> chain{.inputs = &from,
                            .weights = row_weights_.data(),
                            .r = 1,
                            .s = task_.problem.s,
                            .step = tap_step_,
                            .n = tile.elements,
                            .count = 1,
                            .exact = task_.weights.exact};
    Real* const sums[] = {to, to + sum_pitch_};
    if (products_ == 2)
      kernels::two_chains(chain, sums);
    else
      kernels::chain(chain, sums);
  }
}

template class TileFilter<float>;
template class TileFilter<double>;
template class TileFilter<std::uint8_t>;

}  // namespace omniconv::kernels
