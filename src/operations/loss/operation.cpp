// loss as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/convert.h"
#include "operations/loss/loss.h"
#include "operations/loss/problem.h"
#include "operations/loss/reference/row.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays in their order: the target is the labels, or t. Behind dx are the sums of losses.
enum : std::size_t { of_x, of_target, of_y, of_dx = of_y, of_sums };

class LossOperation final : public OperationOf<LossProblem> {
 public:
  std::string_view name() const override { return "loss"; }
  std::span<const Solver* const> solvers() const override { return loss_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(of(problem)); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const LossProblem& p = of(problem);
    const auto whole = [&](const char* name) { return ArraySpec{name, p.type, {p.n, p.c}, "n, c"}; };
    const auto of_rows = [&](const char* name, DataType type) { return ArraySpec{name, type, {p.n}, "n"}; };
    std::vector<ArraySpec> arrays = {whole("x"),
                                     p.loss == Loss::softmax ? of_rows("labels", DataType::s32) : whole("t"),
                                     p.backward ? whole("dx") : of_rows("y", loss_type(p))};
    arrays.back().role = ArrayRole::out;
    if (!p.sums) return arrays;
    arrays.push_back(of_rows("y", loss_type(p)));
    arrays.back().role = ArrayRole::in_out;
    return arrays;
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"x", "the network's output; of softmax the logits"},
            {"labels", "of softmax: the class of each row, of s32"},
            {"t", "of mse: what x should be"},
            {"y", "the loss of each row; with sums it is added to"},
            {"dx", "the gradient of x"}};
  }

  std::vector<ScalarSpec> scalars(const AnyTask& task) const override {
    if (!task.as<LossProblem>().backward) return {};
    return {{"scale", 1}};
  }

  Figures figures(const AnyTask& task) const override {
    const auto& problem = task.as<LossProblem>();
    const auto elements = static_cast<double>(elements_of(problem));
    Figures figures;
    figures.operations = elements * operations_of_element(problem);
    figures.least_operations = elements;
    figures.longest_sum = static_cast<double>(problem.c);
    figures.reference_units = figures.longest_sum / 2 + 8;
    return figures;
  }

  // The squared error of small integers is rounded by its last division alone. Its gradient, and its sum with another
  // small integer, are exact where the row's length is a power of two.
  std::vector<DataKind> data_kinds(const AnyTask& task) const override {
    const auto& problem = task.as<LossProblem>();
    const auto length = static_cast<std::uint64_t>(problem.c);
    constexpr std::uint64_t most_squares = (1 << 24) / (4 * most_integer * most_integer);
    const bool exact =
        problem.loss == Loss::mse && length <= most_squares && (!problem.backward || std::has_single_bit(length));
    return exact ? std::vector{DataKind::integers, DataKind::reals} : std::vector{DataKind::reals};
  }

  // Logits are up to 16, those of a quarter of the rows up to 1.
  void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    const auto& problem = task.as<LossProblem>();
    if (array == of_sums)
      return fill_random(loss_type(problem), kind == DataKind::integers ? most_integer : 0, seed, data);
    if (kind == DataKind::integers) return fill_random(problem.type, most_integer, seed, data);
    if (problem.loss == Loss::mse) return fill_random(problem.type, 0, seed, data);
    const auto classes = static_cast<std::uint64_t>(problem.c);
    if (array == of_target)
      return fill_by(DataType::s32, seed, data, [=](std::uint64_t bits) {
        return static_cast<double>((bits >> 16) % std::min(classes, most_label));
      });
    fill_by(problem.type, seed, data, [=, at = std::uint64_t{0}](std::uint64_t bits) mutable {
      return (at++ / classes % 4 == 3 ? 1 : 16) * real_number(bits);
    });
  }

  void expect(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data,
              std::span<const double> scalars, std::span<const std::int64_t> points,
              std::span<Expected> expected) const override {
    const auto& problem = task.as<LossProblem>();
    const bool of_gradient = problem.backward && array == of_dx;
    problem.loss == Loss::softmax ? expect_softmax(problem, of_gradient, data, scalars, points, expected)
                                  : expect_squared(problem, of_gradient, data, scalars, points, expected);
    if (array != of_sums) return;
    // One addition, of half a unit: any bound has three units of the norm at the least.
    const DataType type = loss_type(problem);
    for (std::size_t i = 0; i < points.size(); ++i) {
      expected[i].value += load_element(type, data[of_sums] + points[i] * size_of(type));
      expected[i].magnitude += std::abs(expected[i].value) / 6;
    }
  }

 protected:
  const text::Notation<LossProblem>& notation() const override { return loss_notation(); }
  LossProblem adapted(LossProblem problem) const override {
    if (!problem.backward) problem.sums = false;
    return problem;
  }
  LossProblem draw(LossProblem problem, Draws& draws) const override {
    problem.n = draws.one_in(2) ? draws.batch() : draws.extent();
    problem.c = draws.one_in(8) ? 1 + draws.below(20000) : draws.one_in(2) ? draws.channels() : draws.extent();
    return problem;
  }

 private:
  static constexpr int most_integer = 3;
  static constexpr std::uint64_t most_label = std::uint64_t{1} << 31;  // classes that labels can name

  // Neighbouring points are of one row, which is summed up once.
  static void expect_softmax(const LossProblem& problem, bool of_gradient, std::span<const std::byte* const> data,
                             std::span<const double> scalars, std::span<const std::int64_t> points,
                             std::span<Expected> expected) {
    std::int64_t known = -1;
    reference::SoftmaxRow row;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::int64_t at = of_gradient ? points[i] / problem.c : points[i];
      const std::byte* const x = data[of_x] + at * problem.c * size_of(problem.type);
      if (at != known) row = reference::softmax_row(problem.type, x, problem.c), known = at;
      std::int32_t label = 0;
      std::memcpy(&label, data[of_target] + at * size_of(DataType::s32), sizeof label);
      const reference::LossNumber number = of_gradient
                                               ? reference::softmax_gradient(row, problem.type, x, problem.c, label,
                                                                             points[i] - at * problem.c, scalars[0])
                                               : reference::softmax_loss(row, problem.type, x, problem.c, label);
      expected[i] = {.value = number.value, .magnitude = number.norm};
    }
  }

  static void expect_squared(const LossProblem& problem, bool of_gradient, std::span<const std::byte* const> data,
                             std::span<const double> scalars, std::span<const std::int64_t> points,
                             std::span<Expected> expected) {
    const std::int64_t size = size_of(problem.type);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::int64_t at = points[i] * (of_gradient ? 1 : problem.c) * size;
      const std::byte *const x = data[of_x] + at, *const t = data[of_target] + at;
      const double value = of_gradient
                               ? reference::squared_gradient(load_element(problem.type, x),
                                                             load_element(problem.type, t), problem.c, scalars[0])
                               : reference::squared_loss(problem.type, x, t, problem.c);
      expected[i] = {.value = value, .magnitude = std::abs(value)};
    }
  }
};

}  // namespace

void LossPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  LossArrays arrays{.x = run.arrays[of_x], .target = run.arrays[of_target]};
  if (problem_.backward) arrays.dx = run.arrays[of_dx], arrays.scale = run.scalars[0];
  if (has_losses(problem_)) arrays.y = run.arrays[problem_.sums ? of_sums : of_y];
  append(sequence, arrays);
}

double operations_of_element(const LossProblem& problem) {
  if (problem.loss == Loss::mse) return !problem.backward ? 3 : problem.sums ? 4 : 2;
  return problem.backward ? 5 : 4;  // a comparison, a difference, an exponential, a sum; a product
}

double least_bytes(const LossProblem& problem) {
  const auto whole = static_cast<double>(elements_of(problem) * size_of(problem.type)),
             rows = static_cast<double>(problem.n), losses = rows * static_cast<double>(size_of(loss_type(problem)));
  const double target = problem.loss == Loss::mse ? whole : 4 * rows,
               result = !problem.backward ? losses : whole + (problem.sums ? 2 * losses : 0);
  return whole + target + result;
}

ErrorBound loss_bound(const LossProblem& problem, double chain, double rescalings) {
  const bool softmax = problem.loss == Loss::softmax, losses = has_losses(problem);
  const char* const norm = problem.sums       ? (softmax ? "(|dx|, y and spread)" : "(|dx|, y)")
                           : problem.backward ? (softmax ? "(|dx| and spread)" : "|dx|")
                                              : (softmax ? "(y + spread)" : "y");
  return {.chain = softmax || losses ? chain : 0,
          .constant = softmax  ? 12 + 4 * rescalings
                      : losses ? 3
                               : 2.5,
          .f64 = problem.type == DataType::f64,
          .norm = norm};
}

}  // namespace operations

const operations::Operation& operation_of(const LossProblem*) {
  static const operations::LossOperation operation;
  return operation;
}

namespace {

// Calls with(arrays, scalars) for those that the problem has.
template <typename With>
auto with_named(const LossProblem& problem, const LossRun& run, const With& with) {
  const NamedOperand target =
      problem.loss == Loss::softmax ? NamedOperand{"labels", run.labels} : NamedOperand{"t", run.t};
  const NamedOperand arrays[] = {
      {"x", run.x}, target, problem.backward ? NamedOperand{"dx", run.dx} : NamedOperand{"y", run.y}, {"y", run.y}};
  const NamedScalar scale{"scale", run.scale};
  return with(std::span(arrays).first(problem.sums ? 4 : 3), std::span(&scale, problem.backward ? 1 : 0));
}

}  // namespace

Event LossPlan::run(Queue& queue, const LossRun& run) const {
  return with_named(problem(), run,
                    [&](auto arrays, auto scalars) { return plan_.run(queue, arrays, run.workspace, scalars); });
}

void LossPlan::append(Sequence& sequence, const LossRun& run) const {
  with_named(problem(), run,
             [&](auto arrays, auto scalars) { plan_.append(sequence, arrays, run.workspace, scalars); });
}

}  // namespace omniconv
