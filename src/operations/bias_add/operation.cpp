// bias_add as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include <algorithm>
#include <cmath>

#include "core/convert.h"
#include "operations/bias_add/bias_add.h"
#include "operations/bias_add/problem.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays in their order: x, b and y; backward db and dy, and with relu dx and y.
enum : std::size_t { of_x, of_b, of_y };
enum : std::size_t { of_db, of_dy, of_dx, of_output };

// What passes a relu that gave y: where that is above 0, or is none.
bool passes(double y) {
  return !(y <= 0);
}

class BiasAddOperation final : public OperationOf<BiasAddProblem> {
 public:
  std::string_view name() const override { return "bias_add"; }
  std::span<const Solver* const> solvers() const override { return bias_add_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(of(problem)); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const BiasAddProblem& p = of(problem);
    const auto array = [&](const char* name, ArrayRole role) {
      ArraySpec spec{name, p.type, {p.n, p.c, p.h, p.w}, "n, c, h, w"};
      if (p.layout == Layout::nhwc) {
        spec.extents = {p.n, p.h, p.w, p.c};
        spec.axes = "n, h, w, c";
      }
      spec.role = role;
      return spec;
    };
    const auto numbers = [&](const char* name, ArrayRole role) {
      ArraySpec spec{name, p.type, {p.c}, "c"};
      spec.role = role;
      return spec;
    };
    if (p.backward && p.relu)
      return {numbers("db", ArrayRole::out), array("dy", ArrayRole::in), array("dx", ArrayRole::out),
              array("y", ArrayRole::in)};
    if (p.backward) return {numbers("db", ArrayRole::out), array("dy", ArrayRole::in)};
    return {array("x", ArrayRole::in), numbers("b", ArrayRole::in), array("y", ArrayRole::out)};
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"x", "the input; of the forward pass"},          {"b", "a number for each channel"},
            {"y", "the output; backward of relu it is read"}, {"dx", "the input's gradient; of relu"},
            {"dy", "the output's gradient; of bwd"},          {"db", "the gradient of b"}};
  }

  Figures figures(const AnyTask& task) const override {
    const auto& problem = task.as<BiasAddProblem>();
    Figures figures;
    figures.operations = figures.least_operations = static_cast<double>(elements_of(problem));
    figures.longest_sum = problem.backward ? static_cast<double>(ChannelPlanes(problem).positions()) : 2;
    figures.reference_units = figures.longest_sum;
    return figures;
  }

  std::vector<DataKind> data_kinds(const AnyTask&) const override { return {DataKind::integers, DataKind::reals}; }

  void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    const auto& problem = task.as<BiasAddProblem>();
    // With a relu three of four elements or so pass it, so that most of what is expected is something.
    if (problem.relu && array == (problem.backward ? std::size_t{of_output} : std::size_t{of_b}))
      return fill_by(problem.type, seed, data, [&](std::uint64_t bits) {
        const double lowest = problem.backward ? -1 : 2;  // quarters of the others' largest
        return kind == DataKind::reals ? (lowest + 2 + 2 * real_number(bits)) / 4
                                       : 2 * lowest + static_cast<double>(bits % 10);
      });
    if (kind == DataKind::reals) return fill_random(problem.type, 0, seed, data);
    fill_integers(problem.type, exact_integers(figures(task).longest_sum), seed, data);
  }

  void expect(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data, std::span<const double>,
              std::span<const std::int64_t> points, std::span<Expected> expected) const override {
    const auto& problem = task.as<BiasAddProblem>();
    const ChannelPlanes planes(problem);
    const auto number = [&](std::size_t of, std::int64_t at) {
      return load_element(problem.type, data[of] + at * size_of(problem.type));
    };
    const auto dx = [&](std::int64_t at) {
      return !problem.relu || passes(number(of_output, at)) ? number(of_dy, at) : 0;
    };
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::int64_t point = points[i];
      if (!problem.backward) {
        const double x = number(of_x, point), b = number(of_b, point / planes.inner % problem.c);
        expected[i] = {.value = problem.relu && !passes(x + b) ? 0 : x + b, .magnitude = std::fabs(x) + std::fabs(b)};
        continue;
      }
      if (array == of_dx) {
        expected[i] = {.value = dx(point)};  // as it is, and so within a bound of 0
        continue;
      }
      double sum = 0, magnitude = 0;
      for (std::int64_t plane = 0; plane < planes.planes; ++plane)
        for (std::int64_t k = 0; k < planes.inner; ++k) {
          const double own = dx((plane * problem.c + point) * planes.inner + k);
          sum += own, magnitude += std::fabs(own);
        }
      expected[i] = {.value = sum, .magnitude = magnitude};
    }
  }

 protected:
  const text::Notation<BiasAddProblem>& notation() const override { return bias_add_notation(); }
  BiasAddProblem draw(BiasAddProblem problem, Draws& draws) const override {
    problem.n = draws.batch();
    problem.c = draws.channels();
    problem.h = draws.extent();
    problem.w = draws.extent();
    return problem;
  }
};

}  // namespace

void BiasAddPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  BiasAddRun arrays;
  if (problem_.backward) {
    arrays.b = run.arrays[of_db], arrays.y = run.arrays[of_dy];
    if (problem_.relu) arrays.x = run.arrays[of_dx], arrays.output = run.arrays[of_output];
  } else {
    arrays.x = run.arrays[of_x], arrays.b = run.arrays[of_b], arrays.y = run.arrays[of_y];
  }
  append(sequence, arrays, run.workspace);
}

double least_bytes(const BiasAddProblem& problem) {
  const std::int64_t arrays = !problem.backward ? 2 : problem.relu ? 3 : 1;
  return static_cast<double>(arrays * elements_of(problem) + problem.c) * static_cast<double>(size_of(problem.type));
}

ErrorBound bias_add_bound(const BiasAddProblem& problem, std::int64_t chain) {
  // Higher orders are added where a bound is evaluated.
  return {.chain = problem.backward ? static_cast<double>(chain) : 1,
          .constant = 0,
          .f64 = problem.type == DataType::f64,
          .norm = !problem.backward ? "|x| + |b|"
                  : problem.relu    ? "sum|dx|"
                                    : "sum|dy|"};
}

}  // namespace operations

const operations::Operation& operation_of(const BiasAddProblem*) {
  static const operations::BiasAddOperation operation;
  return operation;
}

namespace {

// Calls with(arrays) for those that the problem has.
template <typename With>
auto with_named(const BiasAddProblem& problem, const BiasAddRun& run, const With& with) {
  if (!problem.backward) {
    const NamedOperand all[] = {{"x", run.x}, {"b", run.b}, {"y", run.y}};
    return with(std::span<const NamedOperand>(all));
  }
  const NamedOperand all[] = {{"db", run.b}, {"dy", run.y}, {"dx", run.x}, {"y", run.output}};
  return with(std::span(all).first(problem.relu ? 4 : 2));
}

}  // namespace

Event BiasAddPlan::run(Queue& queue, const BiasAddRun& run) const {
  return with_named(problem(), run, [&](auto arrays) { return plan_.run(queue, arrays, run.workspace); });
}

void BiasAddPlan::append(Sequence& sequence, const BiasAddRun& run) const {
  with_named(problem(), run, [&](auto arrays) { plan_.append(sequence, arrays, run.workspace); });
}

}  // namespace omniconv
