// activation as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include <cmath>

#include "core/convert.h"
#include "operations/activation/activation.h"
#include "operations/activation/problem.h"
#include "operations/activation/reference/element.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays in their order.
enum : std::size_t { of_x, of_y, of_dy };

class ActivationOperation final : public OperationOf<ActivationProblem> {
 public:
  std::string_view name() const override { return "activation"; }
  std::span<const Solver* const> solvers() const override { return activation_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(of(problem)); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const ActivationProblem& p = of(problem);
    const auto array = [&](const char* name, bool is_written) {
      ArraySpec spec{name, p.type, {p.n, p.c, p.h, p.w}, "n, c, h, w"};
      if (p.layout == Layout::nhwc) {
        spec.extents = {p.n, p.h, p.w, p.c};
        spec.axes = "n, h, w, c";
      }
      spec.role = is_written ? ArrayRole::out : ArrayRole::in;
      return spec;
    };
    if (p.backward) return {array("dx", true), array("y", false), array("dy", false)};
    return {array("x", false), array("y", true)};
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"x", "the input; of the forward pass"},
            {"y", "the output, which bwd reads"},
            {"dy", "the output's gradient; of bwd"},
            {"dx", "the input's gradient"}};
  }

  Figures figures(const AnyTask& task) const override {
    const auto& problem = task.as<ActivationProblem>();
    const auto elements = static_cast<double>(elements_of(problem));
    Figures figures;
    figures.operations = elements * operations_of_element(problem);
    figures.least_operations = elements;
    figures.longest_sum = 1;
    figures.reference_units = 4;
    return figures;
  }

  std::vector<DataKind> data_kinds(const AnyTask& task) const override {
    if (task.as<ActivationProblem>().function == Activation::relu) return {DataKind::integers, DataKind::reals};
    return {DataKind::reals};
  }

  // Of sigmoid and tanh x is up to 16, a quarter of them up to 1; y is what they can give.
  void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    const auto& problem = task.as<ActivationProblem>();
    const DataType type = problem.type;
    if (kind == DataKind::integers) return fill_random(type, 3, seed, data);
    if (problem.function == Activation::relu || array == of_dy) return fill_random(type, 0, seed, data);
    if (array == of_x)
      return fill_by(type, seed, data, [](std::uint64_t bits) { return (bits % 4 == 0 ? 1 : 16) * real_number(bits); });
    if (problem.function == Activation::tanh) return fill_random(type, 0, seed, data);
    fill_by(type, seed, data, [](std::uint64_t bits) { return (real_number(bits) + 1) / 2; });
  }

  void expect(const AnyTask& task, std::size_t, std::span<const std::byte* const> data, std::span<const double>,
              std::span<const std::int64_t> points, std::span<Expected> expected) const override {
    const auto& problem = task.as<ActivationProblem>();
    const std::int64_t size = size_of(problem.type);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto element = [&](std::size_t array) { return data[array] + points[i] * size; };
      const auto number = [&](std::size_t array) { return load_element(problem.type, element(array)); };
      const double value = problem.backward
                               ? reference::activation_gradient(problem.function, number(of_y), number(of_dy))
                               : reference::activated(problem.function, number(of_x));
      expected[i] = {.value = value, .magnitude = std::fabs(value)};
      if (problem.function != Activation::relu) continue;
      expected[i].exact = true;
      reference::choose(problem.type, element(problem.backward ? of_y : of_x), element(problem.backward ? of_dy : of_x),
                        expected[i].bytes);
    }
  }

 protected:
  const text::Notation<ActivationProblem>& notation() const override { return activation_notation(); }
  ActivationProblem draw(ActivationProblem problem, Draws& draws) const override {
    problem.n = draws.batch();
    problem.c = draws.channels();
    problem.h = draws.extent();
    problem.w = draws.extent();
    return problem;
  }
};

}  // namespace

void ActivationPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  append(sequence, ActivationRun{.x = run.arrays[of_x],
                                 .y = run.arrays[of_y],
                                 .dy = problem_.backward ? run.arrays[of_dy] : Operand(),
                                 .workspace = run.workspace.buffer});
}

double operations_of_element(const ActivationProblem& problem) {
  switch (problem.function) {
    case Activation::relu: return 1;
    case Activation::sigmoid: return problem.backward ? 3 : 4;  // a change of sign, an exponential, a sum, a division
    case Activation::tanh: return problem.backward ? 3 : 1;
  }
  return 1;
}

double least_bytes(const ActivationProblem& problem) {
  const std::int64_t arrays = problem.backward ? 3 : 2;
  return static_cast<double>(elements_of(problem)) * static_cast<double>(arrays * size_of(problem.type));
}

ErrorBound activation_bound(const ActivationProblem& problem) {
  const bool exact = problem.function == Activation::relu;
  const double units = problem.backward ? 2 : problem.function == Activation::sigmoid ? 8 : 6;
  return {.chain = 0,
          .constant = exact ? 0 : units,
          .exact = exact,
          .f64 = problem.type == DataType::f64,
          .norm = problem.backward ? "|dx|" : "|y|"};
}

}  // namespace operations

const operations::Operation& operation_of(const ActivationProblem*) {
  static const operations::ActivationOperation operation;
  return operation;
}

namespace {

// Calls with(arrays) for those that the problem has.
template <typename With>
auto with_named(const ActivationProblem& problem, const ActivationRun& run, const With& with) {
  const NamedOperand all[] = {{problem.backward ? "dx" : "x", run.x}, {"y", run.y}, {"dy", run.dy}};
  return with(std::span(all).first(problem.backward ? 3 : 2));
}

}  // namespace

Event ActivationPlan::run(Queue& queue, const ActivationRun& run) const {
  return with_named(problem(), run, [&](auto arrays) { return plan_.run(queue, arrays, run.workspace); });
}

void ActivationPlan::append(Sequence& sequence, const ActivationRun& run) const {
  with_named(problem(), run, [&](auto arrays) { plan_.append(sequence, arrays, run.workspace); });
}

}  // namespace omniconv
