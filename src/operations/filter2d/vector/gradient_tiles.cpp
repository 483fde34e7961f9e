#include "operations/filter2d/vector/gradient_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/checked.h"
#include "vector/stream.h"

namespace omniconv::kernels {
namespace {

constexpr std::int64_t cache_line = 64;

Finish finish_of(const Filter2dTask& task) {
  return {.type = task.problem.output,
          .scale = task.weights.scale,
          .bias = task.weights.bias,
          .f32 = task.weights.accumulate == DataType::f32};
}

// Step 6 for up to chain_rows rows of magnitudes: a chain of one weight, 1. `scratch` holds as many rows.
template <typename Real>
void finish_rows(Finish finish, Real* const* magnitudes, Real* const* scratch, int rows, std::int64_t elements,
                 const MagnitudeOutput& output, std::byte* to) {
  const auto on_lines = [](auto address) { return static_cast<std::int64_t>(address) % cache_line == 0; };
  finish.stream = output.stream && finish.type == DataType::f32 && finish.f32 &&
                  on_lines(reinterpret_cast<std::intptr_t>(to)) && on_lines(output.stride_bytes);
  constexpr Real one = 1;
  const Real* inputs[chain_rows];
  std::copy_n(magnitudes, rows, inputs);
  chain_and_finish(
      Chain<Real>{
          .inputs = inputs, .weights = &one, .r = 1, .s = 1, .step = 1, .n = elements, .count = rows, .exact = true},
      finish, scratch, to, output.stride_bytes);
}

bool sums_are_small(const Filter2dTask& task) {
  const auto small = [&](const Weights& weights) {
    const bool whole =
        std::all_of(weights.values.begin(), weights.values.end(), [](double w) { return w == std::nearbyint(w); });
    return weights.exact && whole && largest_sum(weights, task.problem.input) <= largest_exact_sum;
  };
  return is_integer(task.problem.input) && small(task.weights) && small(*task.second);
}

}  // namespace

// --- any pair

template <typename Real>
auto PairTiles<Real>::make_kernel(const Filter2dTask& task, const Weights& weights, bool rows_first) -> Kernel {
  Filter2dTask sums{task.problem, weights};
  sums.problem.output = weights.accumulate;
  sums.weights.scale = 1;
  sums.weights.bias = 0;
  const bool wide_sums = weights.form == WeightForm::equal && !pixel_sums_fit_f32(sums);
  if (wide_sums || weights.accumulate == DataType::f64) return TileFilter<double>(sums, rows_first);
  return TileFilter<float>(sums, rows_first);
}

template <typename Real>
PairTiles<Real>::PairTiles(const Filter2dTask& task, bool x_rows_first, bool y_rows_first)
    : problem_(task.problem),
      x_(make_kernel(task, task.weights, x_rows_first)),
      y_(make_kernel(task, *task.second, y_rows_first)),
      exact_(sums_are_small(task)),
      finish_(finish_of(task)) {
  constexpr std::int64_t kept_bytes = 256 * 1024;  // of both sums, in a core's second-level cache
  constexpr std::int64_t least_elements = 512, granule = 64;
  // The r - 1 rows that neighbouring groups both read do not weigh.
  rows_at_once_ = round_up(std::max<std::int64_t>(8, checked_multiply(2, problem_.r, "rows at once")), chain_rows);
  const std::int64_t row_bytes = checked_multiply(rows_at_once_, 2 * sizeof(Real), "rows at once");
  const std::int64_t fitting = std::max(kept_bytes / row_bytes / granule * granule, least_elements);
  const auto tiling_of = [](const Kernel& kernel) {
    return std::visit([](const auto& filter) { return filter.tiling(1, 1); }, kernel);
  };
  const Tiling x = tiling_of(x_), y = tiling_of(y_);
  block_elements_ = std::min({x.block_elements, y.block_elements, fitting});
  pitch_ = round_up(std::max(block_elements_, x.edge_elements) + chain_slack, 16);
  sums_bytes_ = checked_multiply(checked_multiply(rows_at_once_, pitch_, "the sums of both kernels"), sizeof(Real),
                                 "the sums of both kernels");
  const auto bytes_of = [](const Kernel& kernel) {
    return std::visit([](const auto& filter) { return filter.workspace_bytes(); }, kernel);
  };
  workspace_bytes_ = round_up(checked_add(checked_multiply(2, sums_bytes_, "the workspace"),
                                          std::max(bytes_of(x_), bytes_of(y_)), "the workspace"),
                              cache_line);
}

template <typename Real>
Tiling PairTiles<Real>::tiling(std::int64_t rows, int threads) const {
  Tiling tiling = std::visit([&](const auto& filter) { return filter.tiling(rows, threads); }, x_);
  tiling.block_elements = block_elements_;
  return tiling;
}

template <typename Real>
void PairTiles<Real>::run(const RowWindow& input, const MagnitudeOutput& output, const Tile& tile,
                          std::byte* workspace) const {
  std::byte* const sums[] = {workspace, workspace + sums_bytes_};
  std::byte* const rest = workspace + 2 * sums_bytes_;
  const std::int64_t pitch_bytes = pitch_ * static_cast<std::int64_t>(sizeof(Real));
  std::byte* to = output.data + tile.row * output.stride_bytes + tile.element * size_of(problem_.output);
  for (std::int64_t row = 0; row < tile.rows; row += rows_at_once_) {
    const std::int64_t rows = std::min(rows_at_once_, tile.rows - row);
    const Tile part{0, rows, tile.element, tile.elements};
    for (int i = 0; i < 2; ++i)
      std::visit(
          [&](const auto& filter) {
            filter.run(input, {sums[i], pitch_bytes, output.first + tile.row + row, false, tile.element}, part, rest);
          },
          i == 0 ? x_ : y_);
    for (std::int64_t first = 0; first < rows; first += chain_rows) {
      const int count = static_cast<int>(std::min<std::int64_t>(chain_rows, rows - first));
      Real *gx[chain_rows], *gy[chain_rows];
      for (int j = 0; j < count; ++j) {
        gx[j] = reinterpret_cast<Real*>(sums[0]) + (first + j) * pitch_;
        gy[j] = reinterpret_cast<Real*>(sums[1]) + (first + j) * pitch_;
        magnitudes(gx[j], gy[j], tile.elements, exact_, gx[j]);
      }
      finish_rows<Real>(finish_, gx, gy, count, tile.elements, output, to);
      to += count * output.stride_bytes;
    }
  }
  if (output.stream) stream_fence();
}

template class PairTiles<float>;
template class PairTiles<double>;

// --- central differences of bytes

namespace {

struct Factors {
  std::array<std::int64_t, 3> column, row;
};

// The integer kernel as column times row, the entries of the one that is named having no common divisor.
std::optional<Factors> integer_factors(const Weights& weights, bool primitive_row) {
  if (weights.r != 3 || weights.s != 3) return {};
  std::array<std::int64_t, 9> w{};
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = static_cast<std::int64_t>(weights.values[i]);
    if (static_cast<double>(w[i]) != weights.values[i]) return {};
  }
  const auto largest = std::max_element(w.begin(), w.end(), [](auto a, auto b) { return std::abs(a) < std::abs(b); });
  const std::size_t pivot = static_cast<std::size_t>(largest - w.begin());
  Factors factors;
  for (std::size_t i = 0; i < 3; ++i) {
    factors.column[i] = w[3 * i + pivot % 3];
    factors.row[i] = w[pivot / 3 * 3 + i];
  }
  auto& primitive = primitive_row ? factors.row : factors.column;
  auto& other = primitive_row ? factors.column : factors.row;
  const std::int64_t divisor = std::gcd(std::gcd(primitive[0], primitive[1]), primitive[2]);
  for (std::int64_t& value : primitive) value /= divisor;
  const std::int64_t at_pivot = primitive[primitive_row ? pivot % 3 : pivot / 3];
  for (std::int64_t& value : other) {
    if (value % at_pivot != 0) return {};
    value /= at_pivot;
  }
  for (std::size_t i = 0; i < 9; ++i)
    if (factors.column[i / 3] * factors.row[i % 3] != w[i]) return {};
  return factors;
}

// Of either sign: the magnitude does not see it.
bool is_central_difference(const std::array<std::int64_t, 3>& taps) {
  return taps[1] == 0 && std::abs(taps[0]) == 1 && taps[2] == -taps[0];
}

std::optional<DifferencePair::Smoothing> smoothing(const std::array<std::int64_t, 3>& taps) {
  if (taps[0] != taps[2]) return {};
  return DifferencePair::Smoothing{static_cast<std::int16_t>(taps[0]), static_cast<std::int16_t>(taps[1])};
}

// How far the chains of rule 3 may end from the exact sum of integer weights and bytes: the factors' product need not
// be the weights (3 / 10 is no float), and every step down the column rounds by half a unit at most. Sums along rows of
// integers are exact.
double largest_deviation(const Weights& weights) {
  if (weights.exact) return 0;
  constexpr double pixel = 255;
  double positive = 0, negative = 0;
  for (const double w : weights.row) (w > 0 ? positive : negative) += std::fabs(w) * pixel;
  double deviation = 0, partial = 0;
  for (std::size_t i = 0; i < weights.column.size(); ++i) {
    for (std::size_t j = 0; j < weights.row.size(); ++j)
      deviation += std::fabs(weights.column[i] * weights.row[j] - weights.values[i * weights.row.size() + j]) * pixel;
    partial += std::fabs(weights.column[i]) * std::max(positive, negative) * (1 + 1e-6);  // what was rounded before
    if (partial > 0) deviation += std::ldexp(1.0, std::ilogb(partial) - 24);
  }
  return deviation;
}

bool is_rounded_to_bytes(const Filter2dTask& task) {
  return task.problem.output == DataType::u8 && task.weights.scale == 1 && task.weights.bias == 0;
}

// Whether magnitudes of the exact sums have the promised bits: where the promised sums are exact, and where bytes are
// written. The root of an integer up to 255.5^2 keeps a distance of 1/4 / 512 from the halves between bytes; the
// deviation of both sums and the three roundings of the magnitude, half a unit of 256 each, must not reach across.
bool exact_sums_serve(const Filter2dTask& task) {
  const double x = largest_deviation(task.weights), y = largest_deviation(*task.second);
  if (x == 0 && y == 0) return true;
  return is_rounded_to_bytes(task) && std::hypot(x, y) + 3 * 256 * 0x1p-24 < 0.25 / 512;
}

}  // namespace

std::optional<DifferencePair> difference_pair(const Filter2dTask& task) {
  if (task.problem.input != DataType::u8 || !task.second) return {};
  for (const Weights* weights : {&task.weights, &*task.second})
    if (largest_sum(*weights, DataType::u8) > largest_exact_sum) return {};
  const auto x = integer_factors(task.weights, true), y = integer_factors(*task.second, false);
  if (!x || !y || !is_central_difference(x->row) || !is_central_difference(y->column)) return {};
  const auto x_smoothing = smoothing(x->column), y_smoothing = smoothing(y->row);
  if (!x_smoothing || !y_smoothing || !exact_sums_serve(task)) return {};
  return DifferencePair{*x_smoothing, *y_smoothing};
}

struct DifferenceTiles::Buffers {
  const std::uint8_t* inputs[difference_rows + 2];
  std::uint8_t* rows;  // copies of rows that reach past the image's edges
  std::int16_t* scratch;
  float *magnitudes[difference_rows], *finished[difference_rows];
};

DifferenceTiles::DifferenceTiles(const Filter2dTask& task, const DifferencePair& pair)
    : task_(task), pair_(pair), finish_(finish_of(task)) {
  const Filter2dProblem& problem = task.problem;
  rounded_ = is_rounded_to_bytes(task);
  constexpr std::int64_t usual_chunk = 1024;  // of four rows: what is summed down stays in the first-level cache
  const std::int64_t reach = checked_multiply(2, problem.c, "a kernel row over all channels");
  chunk_elements_ = std::min(std::max(usual_chunk, reach), Q(problem) * problem.c);
  row_pitch_ = round_up(checked_add(chunk_elements_ + difference_slack, reach, "a row"), 64);
  real_pitch_ = round_up(chunk_elements_ + difference_slack, 64);
  const std::int64_t rows = checked_multiply(difference_rows + 2, row_pitch_, "the workspace");
  const std::int64_t scratch = checked_multiply(difference_scratch(chunk_elements_, problem.c), 2, "the workspace");
  const std::int64_t reals = rounded_ ? 0 : checked_multiply(2 * difference_rows * 4, real_pitch_, "the workspace");
  workspace_bytes_ = checked_add(checked_add(rows, scratch, "the workspace"), reals, "the workspace");
}

Tiling DifferenceTiles::tiling(std::int64_t rows, int threads) const {
  constexpr std::int64_t widest = 65536;  // six rows stay in the second-level cache; long rows are prefetched best
  const std::int64_t elements = Q(task_.problem) * task_.problem.c;
  return {rows, elements, round_up(band_rows_for(rows, task_.problem.r, threads), difference_rows),
          std::min(elements, std::max(widest, chunk_elements_))};
}

void DifferenceTiles::run(const RowWindow& input, const MagnitudeOutput& output, const Tile& tile,
                          std::byte* workspace) const {
  Buffers buffers;
  buffers.rows = reinterpret_cast<std::uint8_t*>(workspace);
  buffers.scratch = reinterpret_cast<std::int16_t*>(buffers.rows + (difference_rows + 2) * row_pitch_);
  auto* const reals = reinterpret_cast<float*>(buffers.scratch + difference_scratch(chunk_elements_, task_.problem.c));
  for (int j = 0; j < difference_rows; ++j) {
    buffers.magnitudes[j] = rounded_ ? nullptr : reals + j * real_pitch_;
    buffers.finished[j] = rounded_ ? nullptr : reals + (difference_rows + j) * real_pitch_;
  }
  Differences differences{.pair = pair_, .inputs = buffers.inputs, .step = task_.problem.c, .scratch = buffers.scratch};
  const std::int64_t size = size_of(task_.problem.output);
  for (std::int64_t row = tile.row; row < tile.row + tile.rows; row += differences.count) {
    differences.count = static_cast<int>(std::min<std::int64_t>(difference_rows, tile.row + tile.rows - row));
    const std::int64_t first = output.first + row - task_.weights.anchor_y;
    for (std::int64_t e = tile.element; e < tile.element + tile.elements; e += differences.n) {
      differences.n = std::min(chunk_elements_, tile.element + tile.elements - e);
      gather(input, first, differences.count + 2, e, differences.n, buffers);
      store(differences, output, output.data + row * output.stride_bytes + e * size, buffers);
    }
  }
  if (output.stream) stream_fence();
}

// Rows [row, row + rows) as the differences of `elements` from `element` on read them: in the image itself where it can
// be. Inputs after these repeat the last.
void DifferenceTiles::gather(const RowWindow& input, std::int64_t row, int rows, std::int64_t element,
                             std::int64_t elements, Buffers& buffers) const {
  const Filter2dProblem& problem = task_.problem;
  const std::int64_t first = element - task_.weights.anchor_x * problem.c, count = elements + 2 * problem.c;
  const bool inside = first >= 0 && first + count + difference_slack <= problem.w * problem.c;
  for (int i = 0; i < rows; ++i) {
    const std::byte* const data = inside ? row_data(task_, input, row + i) : nullptr;
    std::uint8_t* const copy = buffers.rows + i * row_pitch_;
    if (data == nullptr) load_row(task_, input, row + i, element, count, copy);
    buffers.inputs[i] = data == nullptr ? copy : reinterpret_cast<const std::uint8_t*>(data) + first;
  }
  for (int i = rows; i < difference_rows + 2; ++i) buffers.inputs[i] = buffers.inputs[rows - 1];
}

void DifferenceTiles::store(const Differences& differences, const MagnitudeOutput& output, std::byte* to,
                            const Buffers& buffers) const {
  if (rounded_)
    return rounded_difference_magnitudes(differences, reinterpret_cast<std::uint8_t*>(to), output.stride_bytes);
  difference_magnitudes(differences, buffers.magnitudes);
  finish_rows(finish_, buffers.magnitudes, buffers.finished, differences.count, differences.n, output, to);
}

}  // namespace omniconv::kernels
