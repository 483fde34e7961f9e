// pool2d as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include <algorithm>
#include <cstring>

#include "operations/pool2d/data.h"
#include "operations/pool2d/pool2d.h"
#include "operations/pool2d/problem.h"
#include "operations/pool2d/reference/element.h"
#include "operations/pool2d/shape.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays in their order.
enum : std::size_t { of_x, of_y, of_indices };

class Pool2d final : public OperationOf<Pool2dProblem> {
 public:
  std::string_view name() const override { return "pool2d"; }
  std::span<const Solver* const> solvers() const override { return pool2d_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(of(problem)); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const Pool2dProblem& p = of(problem);
    const bool whole = !first_broken_rule(p);
    const std::int64_t rows = whole ? P(p) : 0, columns = whole ? Q(p) : 0;
    const auto array = [&](const char* name, DataType type, std::int64_t height, std::int64_t width,
                           const char* nchw_axes, const char* nhwc_axes, bool is_written) {
      ArraySpec spec{name, type, {p.n, p.c, height, width}, nchw_axes};
      if (p.layout == Layout::nhwc) {
        spec.extents = {p.n, height, width, p.c};
        spec.axes = nhwc_axes;
      }
      spec.role = is_written ? ArrayRole::out : ArrayRole::in;
      return spec;
    };
    std::vector<ArraySpec> arrays = {
        array(p.backward ? "dx" : "x", p.type, p.h, p.w, "n, c, h, w", "n, h, w, c", p.backward),
        array(p.backward ? "dy" : "y", p.type, rows, columns, "n, c, P, Q", "n, P, Q, c", !p.backward)};
    if (has_indices(p))
      arrays.push_back(array("indices", DataType::s32, rows, columns, "n, c, P, Q", "n, P, Q, c", !p.backward));
    return arrays;
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"x", "the input; of the forward pass"},
            {"y", "the output"},
            {"dy", "the output's gradient; of bwd"},
            {"dx", "the input's gradient"},
            {"indices", "of max: which element of its window each output is, r * S + s; written forward, read by bwd"}};
  }

  Figures figures(const AnyTask& task) const override {
    const auto& problem = task.as<Pool2dProblem>();
    Figures figures;
    figures.operations = window_elements(problem);
    figures.least_operations = static_cast<double>(Pool2dShape(problem).y_elements());
    figures.longest_sum = longest_sum(problem);
    figures.reference_units = figures.longest_sum / 2 + 2;
    return figures;
  }

  // Averages of integers are compared exactly where nothing but the last step rounds: README.md.
  std::vector<DataKind> data_kinds(const AnyTask& task) const override {
    const auto& problem = task.as<Pool2dProblem>();
    if (has_indices(problem)) return {DataKind::integers, DataKind::reals};
    const bool narrow = size_of(problem.type) == 2;
    const bool exact = problem.backward ? are_multiples_exact(Pool2dShape(problem), problem.type)
                                        : problem.r * problem.s < (narrow ? 1 << 12 : 1 << 24);
    return exact ? std::vector{DataKind::integers, DataKind::reals} : std::vector{DataKind::reals};
  }

  void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    const auto& problem = task.as<Pool2dProblem>();
    if (array == of_indices) return fill_indices(Pool2dShape(problem), seed, data);
    if (kind == DataKind::reals) return fill_random(problem.type, 0, seed, data);
    if (has_indices(problem) && !problem.backward) return fill_with_specials(problem.type, seed, data);
    if (!has_indices(problem) && problem.backward)
      return fill_multiples(Pool2dShape(problem), problem.type, seed, data);
    fill_integers(problem.type, exact_integers(longest_sum(problem)), seed, data);
  }

  void expect(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data, std::span<const double>,
              std::span<const std::int64_t> points, std::span<Expected> expected) const override {
    const auto& problem = task.as<Pool2dProblem>();
    const Pool2dShape shape(problem);
    for (std::size_t i = 0; i < points.size(); ++i)
      expected[i] = problem.backward ? expected_gradient(problem, shape, data, points[i])
                                     : expected_output(problem, shape, array, data[of_x], points[i]);
  }

 protected:
  const text::Notation<Pool2dProblem>& notation() const override { return pool2d_notation(); }
  Pool2dProblem draw(Pool2dProblem problem, Draws& draws) const override {
    problem.n = draws.batch();
    problem.c = draws.channels();
    problem.h = draws.extent();
    problem.w = draws.extent();
    const Draws::Pair window = draws.window(), stride = draws.stride();
    const bool whole = draws.one_in(8);  // the window is the image
    problem.r = whole ? problem.h : window.rows;
    problem.s = whole ? problem.w : window.columns;
    const Draws::Padding rows = draws.padding(window.rows), columns = draws.padding(window.columns);
    problem.pad_top = rows.before;
    problem.pad_bottom = rows.after;
    problem.pad_left = columns.before;
    problem.pad_right = columns.after;
    problem.stride_h = stride.rows;
    problem.stride_w = stride.columns;
    return problem;
  }

 private:
  static Expected expected_output(const Pool2dProblem& problem, const Pool2dShape& shape, std::size_t array,
                                  const std::byte* x, std::int64_t point) {
    const reference::Pool2dPlace window =
        reference::pool2d_place(shape, point, shape.rows.outputs, shape.columns.outputs);
    if (!has_indices(problem)) {
      const reference::DoubleSum mean = reference::pool2d_average(shape, problem.type, x, window);
      return {.value = mean.value, .magnitude = mean.magnitude};
    }
    const reference::Pool2dMaximum maximum = reference::pool2d_maximum(shape, problem.type, x, window);
    Expected expected{.exact = true};
    if (array == of_indices)
      std::memcpy(expected.bytes, &maximum.index, sizeof maximum.index);
    else
      std::memcpy(expected.bytes, x + maximum.at * size_of(problem.type),
                  static_cast<std::size_t>(size_of(problem.type)));
    return expected;
  }

  static Expected expected_gradient(const Pool2dProblem& problem, const Pool2dShape& shape,
                                    std::span<const std::byte* const> data, std::int64_t point) {
    const reference::Pool2dPlace element =
        reference::pool2d_place(shape, point, shape.rows.extent, shape.columns.extent);
    const reference::DoubleSum sum = reference::pool2d_gradient(
        shape, problem.type, data[of_y], has_indices(problem) ? data[of_indices] : nullptr, element);
    return {.value = sum.value, .magnitude = sum.magnitude};
  }
};

}  // namespace

void Pool2dPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  append(sequence, Pool2dRun{.x = run.arrays[of_x],
                             .y = run.arrays[of_y],
                             .indices = has_indices(problem_) ? run.arrays[of_indices] : Operand(),
                             .workspace = run.workspace.buffer});
}

double longest_sum(const Pool2dProblem& problem) {
  const Pool2dShape shape(problem);
  if (problem.backward)
    return static_cast<double>(shape.rows.most_windows()) * static_cast<double>(shape.columns.most_windows());
  return static_cast<double>(problem.r) * static_cast<double>(problem.s);
}

double window_elements(const Pool2dProblem& problem) {
  return static_cast<double>(Pool2dShape(problem).y_elements()) * static_cast<double>(problem.r) *
         static_cast<double>(problem.s);
}

double least_bytes(const Pool2dProblem& problem) {
  const Pool2dShape shape(problem);
  const std::int64_t size = size_of(problem.type), of_output = size + (has_indices(problem) ? 4 : 0);
  return static_cast<double>(size * shape.x_elements()) + static_cast<double>(of_output * shape.y_elements());
}

ErrorBound pool2d_bound(const Pool2dProblem& problem) {
  const bool exact = has_indices(problem) && !problem.backward;
  return {.chain = exact ? 0 : longest_sum(problem),
          .constant = has_indices(problem) ? 0.0 : 1.0,
          .exact = exact,
          .f64 = problem.type == DataType::f64,
          .norm = has_indices(problem) ? "sum|dy|"
                  : problem.backward   ? "sum|dy/divisor|"
                                       : "sum|x|/divisor"};
}

}  // namespace operations

const operations::Operation& operation_of(const Pool2dProblem*) {
  static const operations::Pool2d operation;
  return operation;
}

namespace {

// Calls with(arrays) for those that the problem has.
template <typename With>
auto with_named(const Pool2dProblem& problem, const Pool2dRun& run, const With& with) {
  const NamedOperand all[] = {
      {problem.backward ? "dx" : "x", run.x}, {problem.backward ? "dy" : "y", run.y}, {"indices", run.indices}};
  return with(std::span(all).first(operations::has_indices(problem) ? 3 : 2));
}

}  // namespace

Event Pool2dPlan::run(Queue& queue, const Pool2dRun& run) const {
  return with_named(problem(), run, [&](auto arrays) { return plan_.run(queue, arrays, run.workspace); });
}

void Pool2dPlan::append(Sequence& sequence, const Pool2dRun& run) const {
  with_named(problem(), run, [&](auto arrays) { plan_.append(sequence, arrays, run.workspace); });
}

}  // namespace omniconv
