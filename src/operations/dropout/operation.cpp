// dropout as an operation: its arrays, its numbers, its data for checks, its figures.
#include "operations/operation.h"

#include <array>
#include <cmath>

#include "operations/dropout/dropout.h"
#include "operations/dropout/problem.h"
#include "operations/dropout/reference/element.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays and the scalars in their order.
enum : std::size_t { of_x, of_y };
enum : std::size_t { of_rate, of_seed, of_seed_high, of_stream, of_step };

// A whole number of 32 bits.
std::uint32_t word_of(const char* name, double value) {
  if (value >= 0 && value < 0x1p32 && value == std::floor(value)) return static_cast<std::uint32_t>(value);
  throw bad_input(fmt::format("{} is {}: must be a whole number from 0 to 2^32 - 1", name, value));
}

DropoutNumbers numbers_of(DataType type, std::span<const double> scalars) {
  const double rate = scalars[of_rate];
  if (!(rate >= 0 && rate < 1)) throw bad_input(fmt::format("rate is {}: must be from 0 to less than 1", rate));
  return {.threshold = dropout_threshold(rate),
          .scale = dropout_scale(type, rate),
          .seed = static_cast<std::uint64_t>(word_of("seed_high", scalars[of_seed_high])) << 32 |
                  word_of("seed", scalars[of_seed]),
          .stream = word_of("stream", scalars[of_stream])};
}

class DropoutOperation final : public OperationOf<DropoutProblem> {
 public:
  std::string_view name() const override { return "dropout"; }
  std::span<const Solver* const> solvers() const override { return dropout_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(of(problem)); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const DropoutProblem& p = of(problem);
    return {{"x", p.type, {p.n}, "n", ArrayRole::in}, {"y", p.type, {p.n}, "n", ArrayRole::out}};
  }

  bool may_be_same(const Problem&, std::size_t output, std::size_t input) const override {
    return output == of_y && input == of_x;
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"x", "the input, or the output's gradient"}, {"y", "the output, or the input's gradient"}};
  }

  std::vector<ScalarSpec> scalars(const AnyTask&) const override {
    return {
        {"rate", 0.5, 0.3}, {"seed", 0, 0x9ABCDEF0}, {"seed_high", 0, 0x12345678}, {"stream", 0, 7}, {"step", 0, 5}};
  }

  Figures figures(const AnyTask& task) const override {
    Figures figures;
    figures.operations = figures.least_operations = static_cast<double>(task.as<DropoutProblem>().n);
    figures.longest_sum = 1;
    return figures;
  }

  std::vector<DataKind> data_kinds(const AnyTask&) const override { return {DataKind::reals}; }

  void fill(const AnyTask& task, std::size_t, DataKind, std::uint64_t seed, std::span<std::byte> data) const override {
    fill_random(task.as<DropoutProblem>().type, 0, seed, data);
  }

  void expect(const AnyTask& task, std::size_t, std::span<const std::byte* const> data, std::span<const double> scalars,
              std::span<const std::int64_t> points, std::span<Expected> expected) const override {
    const DataType type = task.as<DropoutProblem>().type;
    const DropoutNumbers numbers = numbers_of(type, scalars);
    PhiloxStream words = dropout_words(numbers, scalars[of_step]);
    for (std::size_t i = 0; i < points.size(); ++i) {
      expected[i].exact = true;
      reference::dropped(type, numbers, words.word(static_cast<std::uint64_t>(points[i])),
                         data[of_x] + points[i] * size_of(type), expected[i].bytes);
    }
  }

 protected:
  const text::Notation<DropoutProblem>& notation() const override { return dropout_notation(); }
  DropoutProblem draw(DropoutProblem problem, Draws& draws) const override {
    problem.n = draws.extent() * (draws.one_in(2) ? draws.extent() : 1);
    return problem;
  }
};

}  // namespace

void DropoutPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  constexpr const char* fixed[] = {"rate", "seed", "seed_high", "stream"};
  std::array<double, std::size(fixed)> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (run.scalars[i].is_changing())
      throw bad_input(fmt::format("{} is changing: of dropout step alone may be", fixed[i]));
    values[i] = run.scalars[i].value();
  }
  const DropoutNumbers numbers = numbers_of(problem_.type, values);
  const Scalar& step = run.scalars[of_step];
  if (const double value = step.value();
      !step.is_changing() && !(value >= 0 && value <= most_dropout_step && value == std::floor(value)))
    throw bad_input(fmt::format("step is {}: must be a whole number from 0 to 2^24", value));
  append(sequence, run.arrays[of_x], run.arrays[of_y], numbers, step);
}

std::uint32_t dropout_threshold(double rate) {
  return static_cast<std::uint32_t>(std::min(std::ceil(rate * 0x1p32), 0x1p32 - 1));
}

double dropout_scale(DataType type, double rate) {
  const double scale = 1 / (1 - rate);
  return type == DataType::f64 ? scale : static_cast<double>(static_cast<float>(scale));
}

double least_bytes(const DropoutProblem& problem) {
  return 2 * static_cast<double>(problem.n) * static_cast<double>(size_of(problem.type));
}

ErrorBound dropout_bound(const DropoutProblem& problem) {
  return {.chain = 0, .constant = 0, .exact = true, .f64 = problem.type == DataType::f64, .norm = "|y|"};
}

}  // namespace operations

const operations::Operation& operation_of(const DropoutProblem*) {
  static const operations::DropoutOperation operation;
  return operation;
}

namespace {

// Calls with(arrays, scalars).
template <typename With>
auto with_named(const DropoutRun& run, const With& with) {
  const NamedOperand arrays[] = {{"x", run.x}, {"y", run.y}};
  const NamedScalar scalars[] = {{"rate", run.rate},
                                 {"seed", static_cast<double>(run.seed & 0xFFFFFFFF)},
                                 {"seed_high", static_cast<double>(run.seed >> 32)},
                                 {"stream", static_cast<double>(run.stream)},
                                 {"step", run.step}};
  return with(std::span<const NamedOperand>(arrays), std::span<const NamedScalar>(scalars));
}

}  // namespace

Event DropoutPlan::run(Queue& queue, const DropoutRun& run) const {
  return with_named(run, [&](auto arrays, auto scalars) { return plan_.run(queue, arrays, run.workspace, scalars); });
}

void DropoutPlan::append(Sequence& sequence, const DropoutRun& run) const {
  with_named(run, [&](auto arrays, auto scalars) { plan_.append(sequence, arrays, run.workspace, scalars); });
}

}  // namespace omniconv
