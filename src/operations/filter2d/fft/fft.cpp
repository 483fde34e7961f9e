#include "operations/filter2d/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/checked.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t alignment = 256;  // of the workspace's arrays

// Why transforms do not serve the task; empty if they may.
std::string refusal_of(const Filter2dTask& task) {
  if (std::string reason = alpha_refusal(task); !reason.empty()) return reason;
  if (task.second) return pair_refusal;
  return {};
}

// The least and the largest number of the type in the normal range.
struct NormalRange {
  double least, largest;
};
NormalRange normal_range(DataType type) {
  if (type == DataType::f64) return {std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
  return {std::numeric_limits<float>::min(), std::numeric_limits<float>::max()};
}

// Of tiles of `side` squared elements. Twice an image's spectrum is 2 side^2 max|x| at most and twice the kernel's
// 2 sum|w|; products of these, with the sums inside of a complex one, 8 side^2 max|x| sum|w|, and sums of a tile's
// products side^2 times that. Another factor of two is for roundings.
double largest_pixel(const Weights& weights, DataType type, std::int64_t side) {
  double sum = 1;  // or more
  for (const double weight : weights.values) sum += std::fabs(weight);
  return normal_range(type).largest / (16.0 * std::pow(static_cast<double>(side), 4) * sum);
}

}  // namespace

Conv2dProblem band_problem(const Filter2dTask& task, std::int64_t rows) {
  const Filter2dProblem& problem = task.problem;
  Conv2dProblem band;
  band.type = task.weights.accumulate;
  band.n = 1, band.c = band.k = band.groups = problem.c;
  band.h = checked_add(rows, problem.r - 1, "the rows of a band");
  band.w = checked_add(Q(problem), problem.s - 1, "the columns of a band");
  band.r = problem.r, band.s = problem.s;
  return band;
}

std::int64_t band_rows(const Filter2dProblem& problem, std::int64_t tile_rows, std::int64_t enough,
                       std::int64_t most_rows) {
  const std::int64_t elements = tile_rows * Q(problem) * problem.c,
                     tiles = std::min(divide_up(enough, elements), most_rows / tile_rows);
  return std::min(tile_rows * std::max<std::int64_t>(tiles, 1), P(problem));
}

std::int64_t FilterBand::input_at() const {
  return round_up(convolution.workspace_bytes, alignment);
}
std::int64_t FilterBand::output_at() const {
  return input_at() + round_up(elements_of(problem).x * size_of(problem.type), alignment);
}
std::int64_t FilterBand::notes_at() const {
  return output_at() + round_up(elements_of(problem).y * size_of(problem.type), alignment);
}

std::int64_t FilterBand::workspace_bytes() const {
  return notes_at() + 4 * problem.h;
}

Buffer FilterBand::spectra_of(const Buffer& filters, const Conv2dPlanBody& plan, devices::Device& device) const {
  const Buffer spectra(device.allocate(convolution.prepared.at(1).bytes));
  const auto queue = device.make_queue();
  auto sequence = queue->take_sequence();
  plan.append_prepare(*sequence, 1, {filters}, {spectra});
  queue->submit(sequence).wait();
  return spectra;
}

double FilterBand::operations(const Filter2dProblem& filtered) const {
  return static_cast<double>(divide_up(P(filtered), rows)) * convolution.cost.multiply_adds / output_elements(filtered);
}

// As that of the filter: the last multiply-add rounds once more. Tiles begin with a run's first row, so that the norm
// is of every tile that may hold an element.
ErrorBound FilterBand::bound(const Filter2dProblem& filtered) const {
  ErrorBound bound = convolution.bound;
  bound.constant += filtered.input == DataType::s32 ? 2 : 1;  // which is rounded to fp32
  bound.norm = "(sum|w| * max|x| of the tiles around)";
  return bound;
}

std::variant<FilterBand, std::string> cut_bands(const Filter2dTask& task, const DevicePointer& device,
                                                const SolverOptions& request, const Conv2dSolver& solver,
                                                std::int64_t enough, std::int64_t most_rows) {
  if (std::string reason = refusal_of(task); !reason.empty()) return reason;
  SolverOptions of_band{.max_error = request.max_error,
                        .relative_error = request.relative_error,
                        .tuning = request.tuning,
                        .prepared = {"w"}};
  // The tile is that of the whole image, so that all bands have it.
  const Answer whole = solver.offer(band_problem(task, P(task.problem)), device, of_band);
  if (whole.offer() == nullptr) return whole.refusal();
  of_band.tuning = whole.offer()->tuning.to_text();
  const std::int64_t tile_rows = whole.offer()->bound.tile.rows, limit = request.max_workspace_bytes;
  const double largest = largest_pixel(task.weights, task.weights.accumulate, whole.offer()->tuning.at("tile"));
  if (!(largest >= normal_range(task.weights.accumulate).least))
    return "the weights are too large for transforms of tiles";
  // Half as many rows of tiles until a limit of the workspace is kept; else the last of them, which comes nearest.
  for (std::int64_t rows = band_rows(task.problem, tile_rows, enough, most_rows);;
       rows = round_up(rows / 2, tile_rows)) {
    const Conv2dProblem problem = band_problem(task, rows);
    const Answer answer = solver.offer(problem, device, of_band);
    if (answer.offer() == nullptr) return answer.refusal();
    FilterBand band{problem, *answer.offer(), rows, largest};
    if (limit < 0 || band.workspace_bytes() <= limit || rows <= tile_rows) return band;
  }
}

}  // namespace omniconv::operations
