// conv2d as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/convert.h"
#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/problem.h"
#include "operations/conv2d/reference/element.h"
#include "operations/conv2d/reference/tile_norms.h"
#include "operations/conv2d/shape.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays in their order.
enum : std::size_t { of_x, of_w, of_y, of_bias };

bool writes(Pass pass, std::size_t array) {
  return array == (pass == Pass::forward ? of_y : pass == Pass::backward_data ? of_x : of_w);
}

class Conv2d final : public OperationOf<Conv2dProblem> {
 public:
  std::string_view name() const override { return "conv2d"; }
  std::string_view word() const override { return {}; }
  std::span<const Solver* const> solvers() const override { return conv2d_solvers(); }
  // Bias and relu are steps of the forward pass: their gradients are the caller's.
  AnyTask task(const Problem& problem, std::uint64_t) const override {
    const Conv2dProblem& p = of(problem);
    const char* const word = p.pass == Pass::forward ? nullptr : p.bias ? "bias" : p.relu ? "relu" : nullptr;
    if (word != nullptr)
      throw bad_input(fmt::format("{}: {} is of the forward pass, and the pass is {}; leave it out", print(p), word,
                                  p.pass == Pass::backward_data ? "bwd_data" : "bwd_filter"));
    return AnyTask(p);
  }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const Conv2dProblem& p = of(problem);
    const bool nhwc = p.layout == Layout::nhwc, forward = p.pass == Pass::forward;
    const bool whole = !first_broken_rule(p);
    const std::int64_t channels = p.c / std::max<std::int64_t>(p.groups, 1), rows = whole ? P(p) : 0,
                       columns = whole ? Q(p) : 0;
    std::vector<ArraySpec> arrays = {
        nhwc ? ArraySpec{"x", p.type, {p.n, p.h, p.w, p.c}, "n, h, w, c"}
             : ArraySpec{"x", p.type, {p.n, p.c, p.h, p.w}, "n, c, h, w"},
        nhwc ? ArraySpec{"w", p.type, {p.k, p.r, p.s, channels}, "k, r, s, c/g"}
             : ArraySpec{"w", p.type, {p.k, channels, p.r, p.s}, "k, c/g, r, s"},
        nhwc ? ArraySpec{"y", p.type, {p.n, rows, columns, p.k}, "n, P, Q, k"}
             : ArraySpec{"y", p.type, {p.n, p.k, rows, columns}, "n, k, P, Q"},
    };
    if (!forward) arrays[of_y].name = "dy";
    if (p.pass == Pass::backward_data) arrays[of_x].name = "dx";
    if (p.pass == Pass::backward_filter) arrays[of_w].name = "dw";
    if (p.bias) arrays.push_back({"bias", p.type, {p.k}, "k"});
    for (std::size_t i = 0; i < arrays.size(); ++i)
      if (writes(p.pass, i)) arrays[i].role = p.accumulate ? ArrayRole::in_out : ArrayRole::out;
    return arrays;
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"x", "the input; of the forward pass and bwd_filter"},
            {"w", "the filter; of the forward pass and bwd_data"},
            {"dy", "the output's gradient; of bwd_data and bwd_filter"},
            {"bias", "k numbers, where the problem says bias", "bias-array"},
            {"y", "what the output held, where the problem says acc", "y0"},
            {"dx", "the same of bwd_data", "y0"},
            {"dw", "the same of bwd_filter", "y0"}};
  }

  Figures figures(const AnyTask& task) const override {
    const auto& problem = task.as<Conv2dProblem>();
    Figures figures;
    figures.operations = figures.least_operations = 2 * multiply_adds(problem);
    figures.longest_sum = longest_sum(problem);
    figures.reference_units = figures.longest_sum / 2 + 2;
    return figures;
  }

  std::vector<DataKind> data_kinds(const AnyTask&) const override { return {DataKind::integers, DataKind::reals}; }
  void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    const auto& problem = task.as<Conv2dProblem>();
    if (kind == DataKind::reals) return fill_reals(problem.type, factors(task), array, seed, data);
    fill_integers(problem.type, exact_integers(longest_sum(problem)), seed, data);
  }
  void expect(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data, std::span<const double>,
              std::span<const std::int64_t> points, std::span<Expected> expected) const override {
    const auto& problem = task.as<Conv2dProblem>();
    const Conv2dShape shape(problem);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const reference::DoubleSum sum = reference::conv2d_element(problem, shape, {data[of_x], data[of_w], data[of_y]},
                                                                 points[i]),
                                 beside = added(problem, shape, array, data, points[i]);
      expected[i] = {.value = sum.value + beside.value, .magnitude = sum.magnitude + beside.magnitude};
    }
  }
  void expect_in_blocks(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data,
                        const BlockExtents& tile, std::span<const std::int64_t> points,
                        std::span<Expected> expected) const override {
    const auto& problem = task.as<Conv2dProblem>();
    const Conv2dShape shape(problem);
    reference::TileNorms norms(problem, {data[of_x], data[of_w], data[of_y]}, tile.rows, tile.columns);
    for (std::size_t i = 0; i < points.size(); ++i)
      expected[i].magnitude = norms.at(points[i]) + added(problem, shape, array, data, points[i]).magnitude;
  }
  std::vector<std::size_t> factors(const AnyTask& task) const override {
    switch (task.as<Conv2dProblem>().pass) {
      case Pass::forward: return {of_x, of_w};
      case Pass::backward_data: return {of_y, of_w};
      case Pass::backward_filter: return {of_x, of_y};
    }
    return {};
  }
  double finished(const AnyTask& task, double value) const override {
    return task.as<Conv2dProblem>().relu && value < 0 ? 0.0 : value;
  }

 protected:
  const text::Notation<Conv2dProblem>& notation() const override { return conv2d_notation(); }
  Conv2dProblem adapted(Conv2dProblem problem) const override {
    if (problem.pass != Pass::forward) problem.bias = problem.relu = false;
    return problem;
  }
  Conv2dProblem draw(Conv2dProblem problem, Draws& draws) const override {
    problem.n = draws.batch();
    draw_channels(problem, draws);
    problem.h = draws.extent();
    problem.w = draws.extent();
    const Draws::Pair window = draws.window(), stride = draws.stride(), dilation = draws.dilation();
    problem.r = window.rows;
    problem.s = window.columns;
    problem.stride_h = stride.rows;
    problem.stride_w = stride.columns;
    problem.dilation_h = dilation.rows;
    problem.dilation_w = dilation.columns;
    // Now and then so wide that outputs look at nothing else.
    const std::int64_t more = draws.one_in(16) ? 3 : 0;
    const Draws::Padding rows = draws.padding(dilation.rows * (window.rows - 1) + 1 + more),
                         columns = draws.padding(dilation.columns * (window.columns - 1) + 1 + more);
    problem.pad_top = rows.before;
    problem.pad_bottom = rows.after;
    problem.pad_left = columns.before;
    problem.pad_right = columns.after;
    return problem;
  }

 private:
  // What is added to the sum of element `at`: bias, and what the output held.
  static reference::DoubleSum added(const Conv2dProblem& problem, const Conv2dShape& shape, std::size_t array,
                                    std::span<const std::byte* const> data, std::int64_t at) {
    const std::int64_t size = size_of(problem.type);
    reference::DoubleSum sum;
    const auto add = [&](const std::byte* element) {
      const double term = load_element(problem.type, element);
      sum.value += term;
      sum.magnitude += std::fabs(term);
    };
    if (problem.bias) {
      const std::int64_t k = shape.nhwc ? at % shape.k : at / (shape.p * shape.q) % shape.k;
      add(data[of_bias] + k * size);
    }
    if (problem.accumulate) add(data[array] + at * size);
    return sum;
  }
  static void draw_channels(Conv2dProblem& problem, Draws& draws) {
    problem.groups = draws.one_in(3) ? draws.channels() : 1;
    const bool grouped = problem.groups > 1, depthwise = grouped && draws.one_in(2);
    const auto small = [&] { return draws.one_of<std::int64_t>({1, 2, 3, 4, 7, 8, 16, 17, 33}); };
    problem.c = problem.groups * (depthwise ? 1 : grouped ? small() : draws.channels());
    problem.k = problem.groups * (depthwise ? 1 + draws.below(3) : grouped ? small() : draws.channels());
  }
};

}  // namespace

void Conv2dPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  append(sequence, Conv2dRun{.x = run.arrays[of_x],
                             .w = run.arrays[of_w],
                             .y = run.arrays[of_y],
                             .bias = problem_.bias ? run.arrays[of_bias] : Operand(),
                             .workspace = run.workspace.buffer});
}

double multiply_adds(const Conv2dProblem& problem) {
  return static_cast<double>(problem.n) * static_cast<double>(problem.k) * static_cast<double>(P(problem)) *
         static_cast<double>(Q(problem)) * static_cast<double>(problem.c / problem.groups) *
         static_cast<double>(problem.r) * static_cast<double>(problem.s);
}

double longest_sum(const Conv2dProblem& problem) {
  if (problem.pass == Pass::backward_filter)
    return static_cast<double>(problem.n) * static_cast<double>(P(problem)) * static_cast<double>(Q(problem));
  const std::int64_t channels = problem.pass == Pass::forward ? problem.c : problem.k;
  return static_cast<double>(channels / problem.groups) * static_cast<double>(problem.r) *
         static_cast<double>(problem.s);
}

double least_bytes(const Conv2dProblem& problem) {
  const Conv2dElements elements = elements_of(problem);
  return static_cast<double>(size_of(problem.type)) *
         (static_cast<double>(elements.x) + static_cast<double>(elements.w) + static_cast<double>(elements.y));
}

}  // namespace operations

const operations::Operation& operation_of(const Conv2dProblem*) {
  static const operations::Conv2d operation;
  return operation;
}

Conv2dElements elements_of(const Conv2dProblem& problem) {
  validate(problem);
  return {problem.n * problem.c * problem.h * problem.w,
          problem.k * (problem.c / problem.groups) * problem.r * problem.s,
          problem.n * problem.k * P(problem) * Q(problem)};
}

namespace {

// As the plan names them, of which a problem without a bias has the first three.
std::array<NamedOperand, 4> named(Pass pass, const Conv2dRun& run) {
  return {{{pass == Pass::backward_data ? "dx" : "x", run.x},
           {pass == Pass::backward_filter ? "dw" : "w", run.w},
           {pass == Pass::forward ? "y" : "dy", run.y},
           {"bias", run.bias}}};
}

}  // namespace

Event Conv2dPlan::run(Queue& queue, const Conv2dRun& run) const {
  const auto arrays = named(problem().pass, run);
  return plan_.run(queue, std::span(arrays).first(problem().bias ? 4 : 3), run.workspace);
}

void Conv2dPlan::append(Sequence& sequence, const Conv2dRun& run) const {
  const auto arrays = named(problem().pass, run);
  plan_.append(sequence, std::span(arrays).first(problem().bias ? 4 : 3), run.workspace);
}

}  // namespace omniconv
