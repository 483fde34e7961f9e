// filter2d as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>

#include "core/convert.h"
#include "operations/filter2d/filter2d.h"
#include "operations/filter2d/kernels.h"
#include "operations/filter2d/problem.h"
#include "operations/filter2d/random_image.h"
#include "operations/filter2d/reference/filter2d.h"
#include "operations/filter2d/reference/pixel.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays in their order.
enum : std::size_t { of_x, of_y };

struct Point {
  std::int64_t p, q, ch;
};

std::int64_t index_of(const Filter2dProblem& problem, const Point& point) {
  return (point.p * Q(problem) + point.q) * problem.c + point.ch;
}
Point point_of(const Filter2dProblem& problem, std::int64_t index) {
  const std::int64_t columns = Q(problem);
  return {index / problem.c / columns, index / problem.c % columns, index % problem.c};
}

// The fewest multiply-adds an output element that the weights' forms let a filter hope for: r + s for a product of a
// column and a row, four for equal weights (running sums: two additions along each axis), else one a weight.
double least_multiply_adds(const Filter2dTask& task) {
  const auto of = [](const Weights& weights) {
    const std::int64_t taps = weights.r * weights.s;
    if (weights.form == WeightForm::equal) return std::min<std::int64_t>(taps, 4);
    return weights.form == WeightForm::rank_one ? std::min(taps, weights.r + weights.s) : taps;
  };
  return static_cast<double>(of(task.weights) + (task.second ? of(*task.second) : 0));
}

class Filter2d final : public OperationOf<Filter2dProblem> {
 public:
  std::string_view name() const override { return "filter2d"; }
  Problem read(const text::Words& line, text::Completeness completeness) const override {
    return read_filter2d(line, completeness);
  }

  std::span<const Solver* const> solvers() const override { return filter2d_solvers(); }
  // The weights that the text names.
  AnyTask task(const Problem& problem, std::uint64_t seed) const override {
    const Filter2dProblem& p = of(problem);
    return AnyTask(task_for(p, filter_for(p, seed)));
  }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const Filter2dProblem& p = of(problem);
    const bool whole = !first_broken_rule(p);
    return {{"x", p.input, {p.h, p.w, p.c}, "h, w, c", ArrayRole::in},
            {"y", p.output, {whole ? P(p) : 0, whole ? Q(p) : 0, p.c}, "P, Q, c", ArrayRole::out}};
  }
  std::vector<ArrayHelp> array_help() const override { return {{"x", "the image"}, {"y", "the filtered image"}}; }

  Figures figures(const AnyTask& any) const override {
    const auto& task = any.as<Filter2dTask>();
    const double elements = output_elements(task.problem);
    const double taps = static_cast<double>(task.problem.r) * static_cast<double>(task.problem.s);
    Figures figures;
    figures.operations = (task.second ? 4 : 2) * elements * taps;
    figures.least_operations = 2 * least_multiply_adds(task) * elements;
    figures.longest_sum = taps;
    figures.pixels = elements / static_cast<double>(task.problem.c);
    figures.reference_units = taps / 2 + 4;
    return figures;
  }

  std::string describe(const AnyTask& any) const override {
    const auto& task = any.as<Filter2dTask>();
    const bool exact = task.weights.exact && (!task.second || task.second->exact);
    return fmt::format("weights: {}{}{}", task.second ? "a pair, " : "", omniconv::name(task.weights.form),
                       exact ? "; every sum is exact in fp32, whatever its order" : "");
  }

  std::vector<DataKind> data_kinds(const AnyTask&) const override { return {DataKind::reals}; }
  void fill(const AnyTask& task, std::size_t, DataKind, std::uint64_t seed, std::span<std::byte> data) const override {
    fill_random(task.as<Filter2dTask>(), seed, data);
  }

  // Every corner, then points of which a quarter lie on an edge.
  std::vector<std::int64_t> sample(const AnyTask& task, const ArraySpec&, std::int64_t samples,
                                   std::uint64_t seed) const override {
    const Filter2dProblem& problem = task.as<Filter2dTask>().problem;
    const std::int64_t rows = P(problem), columns = Q(problem);
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    std::vector<std::int64_t> points;
    for (const std::int64_t p : {std::int64_t{0}, rows - 1})
      for (const std::int64_t q : {std::int64_t{0}, columns - 1})
        points.push_back(index_of(problem, {p, q, below(problem.c)}));
    const std::int64_t near_rows = std::min(rows, problem.r), near_columns = std::min(columns, problem.s);
    while (static_cast<std::int64_t>(points.size()) < samples) {
      Point point{below(rows), below(columns), below(problem.c)};
      switch (below(16)) {
        case 0: point.p = below(near_rows); break;
        case 1: point.p = rows - 1 - below(near_rows); break;
        case 2: point.q = below(near_columns); break;
        case 3: point.q = columns - 1 - below(near_columns); break;
        default: break;
      }
      points.push_back(index_of(problem, point));
    }
    return points;
  }

  void expect(const AnyTask& any, std::size_t, std::span<const std::byte* const> data, std::span<const double>,
              std::span<const std::int64_t> points, std::span<Expected> expected) const override {
    const auto& task = any.as<Filter2dTask>();
    const Filter2dProblem& problem = task.problem;
    const RowWindow x{data[of_x], problem.w * problem.c * size_of(problem.input), 0, problem.h};
    const bool exact = is_bit_exact(problem);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto [p, q, ch] = point_of(problem, points[i]);
      expected[i] = {.exact = exact};
      if (exact) {
        reference::definition_element(task, x, p, q, ch, expected[i].bytes);
        expected[i].value = load_element(problem.output, expected[i].bytes);
        continue;
      }
      const auto result = reference::double_element(task, x, p, q, ch);
      expected[i].value = result.value;
      expected[i].magnitude = result.magnitude;
      expected[i].condition = result.condition;
    }
  }

  // The sum of |w|, times the largest |x| that any tile of so many rows and columns which may hold the element reads.
  // Tiles follow each other from the first column, but from any row. What has such a norm has no promised bits.
  void expect_in_blocks(const AnyTask& any, std::size_t, std::span<const std::byte* const> data,
                        const BlockExtents& tile, std::span<const std::int64_t> points,
                        std::span<Expected> expected) const override {
    const auto& task = any.as<Filter2dTask>();
    const Weights& weights = task.weights;
    const Filter2dProblem& problem = task.problem;
    const RowWindow x{data[of_x], problem.w * problem.c * size_of(problem.input), 0, problem.h};
    double sum = 0;
    for (const double weight : weights.values) sum += std::fabs(weight);
    std::map<std::array<std::int64_t, 3>, double> largest;  // of blocks as large as tiles, and a channel
    const auto largest_around = [&](std::int64_t block, std::int64_t block_column, std::int64_t ch) {
      const std::int64_t top = (block - 1) * tile.rows - weights.anchor_y,
                         left = block_column * tile.columns - weights.anchor_x;
      double found = 0;
      for (std::int64_t h = top; h < top + 3 * tile.rows + weights.r - 1; ++h)
        for (std::int64_t w = left; w < left + tile.columns + weights.s - 1; ++w)
          found = std::max(found, std::fabs(reference::pixel(task, x, h, w, ch)));
      return found;
    };
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto [p, q, ch] = point_of(problem, points[i]);
      const std::array key{p / tile.rows, q / tile.columns, ch};
      if (!largest.contains(key)) largest[key] = largest_around(key[0], key[1], ch);
      expected[i].magnitude = std::fabs(weights.scale) * sum * largest[key] + std::fabs(weights.bias);
      if (!expected[i].exact) continue;
      expected[i].exact = false;
      expected[i].value = reference::double_element(task, x, p, q, ch).value;
    }
  }

  std::string place(const AnyTask& task, const ArraySpec& array, std::int64_t point) const override {
    const auto [p, q, ch] = point_of(task.as<Filter2dTask>().problem, point);
    return fmt::format("{}[{}, {}, {}]", array.name, p, q, ch);
  }

 protected:
  const text::Notation<Filter2dProblem>& notation() const override { return filter2d_notation(); }
  Filter2dProblem draw(Filter2dProblem problem, Draws& draws) const override {
    using enum DataType;
    problem.input = draws.one_of({u8, u8, u8, u16, s16, s32, f16, f32, f32, f64});
    problem.output = draws.one_in(3) ? draws.one_of({u8, u16, s16, s32, f16, f32, f64}) : problem.input;
    problem.h = draws.extent();
    problem.w = draws.extent();
    problem.c = draws.one_in(8) ? draws.channels() : 1 + draws.below(5);
    problem.border = {.mode = static_cast<BorderMode>(draws.below(6)), .value = draws.one_of({0.0, 0.0, 7.0, -2.5})};
    problem.flip = draws.one_in(4);
    const bool is_pair = draw_kernel(problem, draws);  // which has no weights for opacity
    if (problem.c > 1 && !is_pair && draws.one_in(3)) problem.alpha_channel = draws.below(problem.c);
    return problem;
  }

 private:
  // Whether it is a pair of kernels.
  static bool draw_kernel(Filter2dProblem& problem, Draws& draws) {
    if (draws.one_in(3)) {
      problem.kernel =
          draws.one_of({"gaussian:3", "gaussian:5,1.1", "gaussian:4", "box:3", "box:7x2", "laplacian", "log:5,0.9",
                        "sobel", "prewitt", "scharr", "sobel-x", "scharr-y", "sharpen", "unsharp:9,1.5,0.8",
                        "unsharp:13,2,0.8", "unsharp:15,2,0.8", "gaussian:16", "emboss", "motion:7,30"});
      const Kernel kernel = named_kernel(problem.kernel);
      problem.r = kernel.r;
      problem.s = kernel.s;
      return !kernel.second_weights.empty();
    }
    problem.kernel = draws.one_of({"random", "integer", "rank1", "equal"});
    const Draws::Pair window = draws.window();
    problem.r = window.rows;
    problem.s = window.columns;
    return false;
  }
};

const char* norm_of(const Filter2dTask& task) {
  if (task.second) return "hypot(sum|x*wx|, sum|x*wy|)";
  if (task.weights.alpha_rule == AlphaRule::premultiplied) return "(sums of magnitudes / mean opacity)";
  return "sum|x*w|";
}

}  // namespace

void Filter2dPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  const Filter2dProblem& problem = task_.problem;
  append(sequence, Filter2dRun{.input = run.arrays[of_x].buffer,
                               .output = run.arrays[of_y].buffer,
                               .workspace = run.workspace.buffer,
                               .input_offset_bytes = run.arrays[of_x].offset_bytes,
                               .output_offset_bytes = run.arrays[of_y].offset_bytes,
                               .input_stride_bytes = problem.w * problem.c * size_of(problem.input),
                               .output_stride_bytes = Q(problem) * problem.c * size_of(problem.output),
                               .input_rows = problem.h,
                               .output_rows = P(problem)});
}

double output_elements(const Filter2dProblem& problem) {
  return static_cast<double>(P(problem)) * static_cast<double>(Q(problem)) * static_cast<double>(problem.c);
}

double image_bytes(const Filter2dProblem& problem) {
  const double inputs =
      static_cast<double>(problem.h) * static_cast<double>(problem.w) * static_cast<double>(problem.c);
  return inputs * static_cast<double>(size_of(problem.input)) +
         output_elements(problem) * static_cast<double>(size_of(problem.output));
}

Offer offer_of(const Filter2dTask& task, FilterOffer offer) {
  offer.bound.exact = is_bit_exact(task.problem) && offer.keeps_bits;
  offer.bound.f64 = task.weights.accumulate == DataType::f64;
  if (offer.bound.tile.rows == 0) offer.bound.norm = norm_of(task);
  return {.cost = {offer.operations * output_elements(task.problem), image_bytes(task.problem)},
          .bound = offer.bound,
          .workspace_bytes = offer.workspace_bytes,
          .is_as_promised = offer.keeps_bits || !is_bit_exact(task.problem),
          .tuning = std::move(offer.tuning),
          .plan = std::move(offer.plan)};
}

}  // namespace operations

const operations::Operation& operation_of(const Filter2dProblem*) {
  static const operations::Filter2d operation;
  return operation;
}

}  // namespace omniconv
