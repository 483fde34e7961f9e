// update as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/convert.h"
#include "operations/random.h"
#include "operations/update/problem.h"
#include "operations/update/reference/element.h"
#include "operations/update/update.h"

namespace omniconv {
namespace operations {
namespace {

using Rule = UpdateProblem::Rule;

// Places among a problem's arrays; those that it does not have are `none`.
struct Places {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::size_t g = 0, w = 1, m = 2, v = none, copy = none, factor = none, stop = none;
};
Places places_of(const UpdateProblem& problem) {
  Places places;
  std::size_t next = 3;
  if (problem.rule == Rule::adam) places.v = next++;
  if (has_copy(problem)) places.copy = next++;
  if (problem.scaled) places.factor = next++;
  if (problem.guarded) places.stop = next++;
  return places;
}

// Of a run's scalars, in the order of UpdateOperation::scalars, what solvers are given: update.h.
template <typename Number, typename Complement>
std::span<const Number> numbers_of(const UpdateProblem& problem, std::span<const Number> scalars,
                                   const Complement& complement, std::array<Number, most_update_numbers>& numbers) {
  if (problem.rule != Rule::adam) return scalars.first(5);
  numbers = {scalars[0], scalars[1], scalars[2], scalars[3], complement(scalars[4]), scalars[5], complement(scalars[5]),
             scalars[6], scalars[7], scalars[8]};
  return numbers;
}

class UpdateOperation final : public OperationOf<UpdateProblem> {
 public:
  std::string_view name() const override { return "update"; }
  std::span<const Solver* const> solvers() const override { return update_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(of(problem)); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const UpdateProblem& p = of(problem);
    const DataType type = state_type(p);
    std::vector<ArraySpec> arrays = {{"g", p.type, {p.n}, "n", ArrayRole::in},
                                     {"w", type, {p.n}, "n", ArrayRole::in_out},
                                     {"m", type, {p.n}, "n", ArrayRole::in_out}};
    if (p.rule == Rule::adam) arrays.push_back({"v", type, {p.n}, "n", ArrayRole::in_out});
    if (has_copy(p)) arrays.push_back({"copy", p.type, {p.n}, "n", ArrayRole::out});
    if (p.scaled) arrays.push_back({"factor", type, {1}, "one", ArrayRole::in});
    if (p.guarded) arrays.push_back({"stop", DataType::s32, {1}, "one", ArrayRole::in_out});
    return arrays;
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"g", "the gradient"},
            {"w", "the parameters, changed"},
            {"m", "the momentum, or of adam the first moment, changed"},
            {"v", "of adam the second moment, changed"},
            {"copy", "of f16 and bf16 the new parameters in that type"},
            {"factor", "of scaled what g is multiplied by, one number"},
            {"stop", "of guarded the number of the step that stopped all later ones, or 0, one s32, changed"}};
  }

  // In checks sgd and nesterov are exact of small integers.
  std::vector<ScalarSpec> scalars(const AnyTask& task) const override {
    constexpr double none = std::numeric_limits<double>::infinity();
    const auto& problem = task.as<UpdateProblem>();
    std::vector<ScalarSpec> specs = {
        {"rate", 1e-3, -0.5}, {"l1", 0, 0.25}, {"l2", 0, -0.5}, {"clip", none, 2}, {"momentum", 0, 0.5}};
    if (problem.rule == Rule::adam)
      specs = {{"rate", 1e-3, 0.1},    {"l1", 0, 0.02},         {"l2", 0, 0.05},
               {"clip", none, 2},      {"beta1", 0.9, 0.9},     {"beta2", 0.999, 0.98},
               {"epsilon", 1e-8, 0.1}, {"correction1", 1, 0.3}, {"correction2", 1, 0.07}};
    if (problem.guarded) specs.push_back({"number", 1, 3});
    return specs;
  }

  Figures figures(const AnyTask& task) const override {
    const auto& problem = task.as<UpdateProblem>();
    Figures figures;
    figures.operations = static_cast<double>(problem.n) * operations_of_element(problem);
    figures.least_operations = figures.operations;
    figures.longest_sum = 1;
    figures.reference_units = update_bound(problem).constant;
    return figures;
  }

  std::vector<DataKind> data_kinds(const AnyTask& task) const override {
    if (task.as<UpdateProblem>().rule == Rule::adam) return {DataKind::reals};
    return {DataKind::integers, DataKind::reals};
  }

  // All finite; nothing is stopped. Some parameters are 0, whose sign is; of g half is clipped.
  void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    const auto& problem = task.as<UpdateProblem>();
    const Places places = places_of(problem);
    const DataType type = array == places.g ? problem.type : state_type(problem);
    if (array == places.stop) return fill_by(DataType::s32, seed, data, [](std::uint64_t) { return 0.0; });
    if (kind == DataKind::integers) {
      if (array == places.factor) return fill_by(type, seed, data, [](std::uint64_t) { return 2.0; });
      return fill_random(type, 3, seed, data);
    }
    fill_by(type, seed, data, [&](std::uint64_t bits) {
      const double number = real_number(bits);
      if (array == places.g) return 4 * number;
      if (array == places.w) return bits % 16 == 0 ? 0 : number;
      if (array == places.factor) return (number + 3) / 4;
      return array == places.v ? (number + 1) / 2 : number;
    });
  }

  // With the norms of README.md of update/direct.
  void expect(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data,
              std::span<const double> scalars, std::span<const std::int64_t> points,
              std::span<Expected> expected) const override {
    const auto& problem = task.as<UpdateProblem>();
    const Places places = places_of(problem);
    if (array == places.stop) {
      expected[0] = {.exact = true};
      return store_element(DataType::s32, 0.0, expected[0].bytes);
    }
    std::array<double, most_update_numbers> held{};
    const reference::UpdateNumbers numbers =
        reference::update_numbers(problem, numbers_of<double>(
                                               problem, scalars, [](double beta) { return 1 - beta; }, held));
    const DataType type = state_type(problem);
    const double factor = problem.scaled ? load_element(type, data[places.factor]) : 1;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto number = [&](std::size_t from) {
        return from == Places::none ? 0 : load_element(type, data[from] + points[i] * size_of(type));
      };
      const double g = factor * load_element(problem.type, data[places.g] + points[i] * size_of(problem.type));
      const reference::UpdateState before{number(places.w), number(places.m), number(places.v)};
      expected[i] = expectation(problem.rule, numbers, g, before, array == places.m, array == places.v);
    }
  }

 protected:
  const text::Notation<UpdateProblem>& notation() const override { return update_notation(); }
  UpdateProblem draw(UpdateProblem problem, Draws& draws) const override {
    problem.n = draws.extent() * (draws.one_in(2) ? draws.extent() : 1);
    return problem;
  }

 private:
  static Expected expectation(Rule rule, const reference::UpdateNumbers& n, double g, const reference::UpdateState& x,
                              bool is_m, bool is_v) {
    const reference::UpdateState after = reference::updated(rule, n, g, x);
    const double of_g = std::fabs(g) + std::fabs(n.l2 * x.w) + std::fabs(n.l1);
    if (rule != Rule::adam) {
      const double of_m = std::fabs(n.momentum * x.m) + of_g;
      if (is_m) return {.value = after.m, .magnitude = of_m};
      const double of_change = rule == Rule::sgd ? of_m : of_g + std::fabs(n.momentum) * of_m;
      return {.value = after.w, .magnitude = std::fabs(x.w) + std::fabs(n.rate) * of_change};
    }
    const double of_m = std::fabs(x.m) + n.gain1 * (of_g + std::fabs(x.m)),
                 of_v = n.beta2 * x.v + n.gain2 * of_g * of_g;
    if (is_m) return {.value = after.m, .magnitude = of_m};
    if (is_v) return {.value = after.v, .magnitude = of_v};
    const double cancelled = of_v == 0 ? 1 : of_v / after.v, root = std::sqrt(n.correction2);
    const double rate = std::fabs(n.rate) / n.correction1 * root, divisor = std::sqrt(after.v) + n.epsilon * root;
    return {.value = after.w,
            .magnitude = std::fabs(x.w) + rate * of_m / divisor * (1 + cancelled),
            .condition = cancelled};
  }
};

}  // namespace

void UpdatePlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  const Places places = places_of(problem_);
  const auto array = [&](std::size_t place) { return place == Places::none ? Operand() : run.arrays[place]; };
  std::array<Scalar, most_update_numbers> held;
  append(sequence,
         UpdateArrays{.g = array(places.g),
                      .w = array(places.w),
                      .m = array(places.m),
                      .v = array(places.v),
                      .copy = array(places.copy),
                      .factor = array(places.factor),
                      .stop = array(places.stop)},
         numbers_of<Scalar>(problem_, run.scalars, Scalar::complement, held),
         problem_.guarded ? run.scalars.back() : Scalar(1));
}

double operations_of_element(const UpdateProblem& problem) {
  const double gradient = (problem.scaled ? 1 : 0) + 2 + 4;  // clipped, and two terms of w
  return gradient + (problem.rule == Rule::sgd ? 4 : problem.rule == Rule::nesterov ? 6 : 12);
}

double least_bytes(const UpdateProblem& problem) {
  const std::int64_t states = problem.rule == Rule::adam ? 3 : 2, size = size_of(problem.type),
                     gradients = 1 + (has_copy(problem) ? 1 : 0);
  return static_cast<double>(problem.n) *
         static_cast<double>(2 * states * size_of(state_type(problem)) + gradients * size);
}

ErrorBound update_bound(const UpdateProblem& problem) {
  return {.chain = 0,
          .constant = problem.rule == Rule::adam ? 6.0 : 3.0,
          .f64 = problem.type == DataType::f64,
          .norm = "sum|terms|"};
}

}  // namespace operations

const operations::Operation& operation_of(const UpdateProblem*) {
  static const operations::UpdateOperation operation;
  return operation;
}

AdamCorrections adam_corrections(std::int64_t step, double beta1, double beta2) {
  if (step < 1) throw bad_input(fmt::format("adam_corrections: step is {}: must be at least 1", step));
  const auto correction = [&](double beta) {
    if (!(beta >= 0 && beta < 1))
      throw bad_input(fmt::format("adam_corrections: a beta is {}: must be from 0 to less than 1", beta));
    return -std::expm1(static_cast<double>(step) * std::log(beta));
  };
  return {correction(beta1), correction(beta2)};
}

namespace {

// Calls with(arrays, scalars) for those that the problem has.
template <typename With>
auto with_named(const UpdateProblem& problem, const UpdateRun& run, const With& with) {
  std::array<NamedOperand, 7> arrays = {{{"g", run.g}, {"w", run.w}, {"m", run.m}}};
  std::size_t count = 3;
  if (problem.rule == UpdateProblem::Rule::adam) arrays[count++] = {"v", run.v};
  if (operations::has_copy(problem)) arrays[count++] = {"copy", run.copy};
  if (problem.scaled) arrays[count++] = {"factor", run.factor};
  if (problem.guarded) arrays[count++] = {"stop", run.stop};
  std::array<NamedScalar, 10> scalars = {{{"rate", run.rate}, {"l1", run.l1}, {"l2", run.l2}, {"clip", run.clip}}};
  std::size_t scalar_count = 4;
  const auto add = [&](std::initializer_list<NamedScalar> more) {
    for (const NamedScalar& one : more) scalars[scalar_count++] = one;
  };
  if (problem.rule == UpdateProblem::Rule::adam)
    add({{"beta1", run.beta1},
         {"beta2", run.beta2},
         {"epsilon", run.epsilon},
         {"correction1", run.correction1},
         {"correction2", run.correction2}});
  else
    add({{"momentum", run.momentum}});
  if (problem.guarded) add({{"number", run.number}});
  return with(std::span<const NamedOperand>(arrays).first(count),
              std::span<const NamedScalar>(scalars).first(scalar_count));
}

}  // namespace

Event UpdatePlan::run(Queue& queue, const UpdateRun& run) const {
  return with_named(problem(), run,
                    [&](auto arrays, auto scalars) { return plan_.run(queue, arrays, run.workspace, scalars); });
}

void UpdatePlan::append(Sequence& sequence, const UpdateRun& run) const {
  with_named(problem(), run,
             [&](auto arrays, auto scalars) { plan_.append(sequence, arrays, run.workspace, scalars); });
}

}  // namespace omniconv
