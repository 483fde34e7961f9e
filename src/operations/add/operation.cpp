// add as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include "operations/add/add.h"
#include "operations/add/problem.h"
#include "operations/add/reference/element.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays in their order: x, s and y; backward ds, d and dy.
enum : std::size_t { of_x, of_s, of_y, of_ds = 0, of_d, of_dy };

class AddOperation final : public OperationOf<AddProblem> {
 public:
  std::string_view name() const override { return "add"; }
  std::span<const Solver* const> solvers() const override { return add_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(of(problem)); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const AddProblem& p = of(problem);
    const bool whole = !first_broken_rule(p);
    const auto array = [&](const char* name, ArrayRole role, bool is_shortcut) {
      const std::int64_t channels = is_shortcut ? p.c : p.k,
                         rows = is_shortcut ? p.h
                                : whole     ? P(p)
                                            : 0,
                         columns = is_shortcut ? p.w
                                   : whole     ? Q(p)
                                               : 0;
      ArraySpec spec{name, p.type, {p.n, channels, rows, columns}, is_shortcut ? "n, c, h, w" : "n, k, P, Q"};
      if (p.layout == Layout::nhwc) {
        spec.extents = {p.n, rows, columns, channels};
        spec.axes = is_shortcut ? "n, h, w, c" : "n, P, Q, k";
      }
      spec.role = role;
      return spec;
    };
    if (p.backward)
      return {array("ds", ArrayRole::out, true), array("d", ArrayRole::in, true), array("dy", ArrayRole::in, false)};
    return {array("x", ArrayRole::in, false), array("s", ArrayRole::in, true), array("y", ArrayRole::out, false)};
  }

  bool may_be_same(const Problem& problem, std::size_t output, std::size_t input) const override {
    return of(problem).backward ? output == of_ds && input == of_d : output == of_y && input == of_x;
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"x", "the input; of the forward pass"},
            {"s", "the shortcut, of which is added; of the forward pass"},
            {"y", "the output"},
            {"dy", "the output's gradient; of bwd"},
            {"d", "the gradient that the shortcut has from elsewhere; of bwd"},
            {"ds", "the shortcut's gradient"}};
  }

  Figures figures(const AnyTask& task) const override {
    Figures figures;
    figures.operations = figures.least_operations = static_cast<double>(elements_of_result(task.as<AddProblem>()));
    figures.longest_sum = 1;
    return figures;
  }

  std::vector<DataKind> data_kinds(const AnyTask&) const override { return {DataKind::integers, DataKind::reals}; }

  void fill(const AnyTask& task, std::size_t, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    fill_random(task.as<AddProblem>().type, kind == DataKind::integers ? 3 : 0, seed, data);
  }

  void expect(const AnyTask& task, std::size_t, std::span<const std::byte* const> data, std::span<const double>,
              std::span<const std::int64_t> points, std::span<Expected> expected) const override {
    const auto& problem = task.as<AddProblem>();
    const AddShape shape(problem);
    const std::int64_t size = size_of(problem.type);
    const std::byte *const base = data[problem.backward ? of_d : of_x], *const other =
                                                                            data[problem.backward ? of_dy : of_s];
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::int64_t place = shape.other_element(points[i]);
      expected[i].exact = true;
      reference::added(problem, base + points[i] * size, place == AddShape::none ? nullptr : other + place * size,
                       expected[i].bytes);
    }
  }

 protected:
  const text::Notation<AddProblem>& notation() const override { return add_notation(); }
  AddProblem adapted(AddProblem problem) const override {
    if (problem.backward) problem.relu = false;
    return problem;
  }
  AddProblem draw(AddProblem problem, Draws& draws) const override {
    problem.n = draws.batch();
    problem.c = draws.channels();
    problem.h = draws.extent();
    problem.w = draws.extent();
    problem.k = problem.c + (draws.one_in(2) ? 0 : draws.one_in(2) ? problem.c : draws.below(9));
    problem.stride = draws.stride().rows;
    return problem;
  }
};

}  // namespace

void AddPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  const auto& arrays = run.arrays;
  append(sequence, problem_.backward ? AddArrays{arrays[of_ds], arrays[of_d], arrays[of_dy]}
                                     : AddArrays{arrays[of_y], arrays[of_x], arrays[of_s]});
}

double least_bytes(const AddProblem& problem) {
  const std::int64_t added = problem.n * problem.c * P(problem) * Q(problem);
  return static_cast<double>(2 * elements_of_result(problem) + added) * static_cast<double>(size_of(problem.type));
}

ErrorBound add_bound(const AddProblem& problem) {
  return {.chain = 0, .constant = 0, .exact = true, .f64 = problem.type == DataType::f64, .norm = "|y|"};
}

}  // namespace operations

const operations::Operation& operation_of(const AddProblem*) {
  static const operations::AddOperation operation;
  return operation;
}

namespace {

// Calls with(arrays) for those that the problem has.
template <typename With>
auto with_named(const AddProblem& problem, const AddRun& run, const With& with) {
  const NamedOperand forward[] = {{"x", run.x}, {"s", run.s}, {"y", run.y}},
                     backward[] = {{"ds", run.s}, {"d", run.d}, {"dy", run.y}};
  return with(std::span<const NamedOperand>(problem.backward ? backward : forward));
}

}  // namespace

Event AddPlan::run(Queue& queue, const AddRun& run) const {
  return with_named(problem(), run, [&](auto arrays) { return plan_.run(queue, arrays, run.workspace); });
}

void AddPlan::append(Sequence& sequence, const AddRun& run) const {
  with_named(problem(), run, [&](auto arrays) { plan_.append(sequence, arrays, run.workspace); });
}

}  // namespace omniconv
