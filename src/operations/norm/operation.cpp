// norm as an operation: its arrays, its numbers, its data for checks, its figures.
#include "operations/operation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/convert.h"
#include "operations/norm/norm.h"
#include "operations/norm/problem.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays and the scalars in their order.
enum : std::size_t { of_g, of_factor, of_sum };
enum : std::size_t { of_most, of_scale };

void require(const char* name, const Scalar& scalar, bool (*is_right)(double), const char* rule) {
  if (!scalar.is_changing() && !is_right(scalar.value()))
    throw bad_input(fmt::format("{} is {}: must be {}", name, scalar.value(), rule));
}

class NormOperation final : public OperationOf<NormProblem> {
 public:
  std::string_view name() const override { return "norm"; }
  std::span<const Solver* const> solvers() const override { return norm_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(of(problem)); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const NormProblem& p = of(problem);
    return {{"g", p.type, {p.n}, "n", ArrayRole::in},
            {"factor", sum_type(p), {1}, "one", ArrayRole::out},
            {"sum", sum_type(p), {1}, "one", p.accumulate ? ArrayRole::in_out : ArrayRole::out}};
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"g", "the gradient"},
            {"factor", "what it is to be multiplied by, one number"},
            {"sum", "the sum of squares, one number; with acc it is added to"}};
  }

  std::vector<ScalarSpec> scalars(const AnyTask&) const override {
    return {{"most", std::numeric_limits<double>::infinity(), 2}, {"scale", 1, 0.5}};
  }

  Figures figures(const AnyTask& task) const override {
    const auto n = static_cast<double>(task.as<NormProblem>().n);
    Figures figures;
    figures.operations = figures.least_operations = 2 * n;
    figures.longest_sum = n;
    figures.reference_units = n / 2 + 3;  // squares and additions one after the other, and the factor's lines
    return figures;
  }

  std::vector<DataKind> data_kinds(const AnyTask&) const override { return {DataKind::integers, DataKind::reals}; }

  // Squares of integers add up to 2^24 at most, with those that were there.
  void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    const auto& problem = task.as<NormProblem>();
    const auto n = static_cast<double>(problem.n);
    if (array == of_sum)
      return fill_by(sum_type(problem), seed, data, [&](std::uint64_t bits) {
        return kind == DataKind::integers ? static_cast<double>(bits % 3) : (real_number(bits) + 1) * n / 6;
      });
    if (kind == DataKind::reals) return fill_random(problem.type, 0, seed, data);
    ExactIntegers integers = exact_integers(n);
    if (integers.sparse_ones > 1) integers.sparse_ones = static_cast<std::int64_t>(std::ceil(n / 0x1p22));
    fill_integers(problem.type, integers, seed, data);
  }

  // Of integers every order gives the same sum, and so the bits of the factor.
  void expect(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data,
              std::span<const double> scalars, std::span<const std::int64_t>,
              std::span<Expected> expected) const override {
    const auto& problem = task.as<NormProblem>();
    double sum = problem.accumulate ? load_element(sum_type(problem), data[of_sum]) : 0;
    bool is_whole = sum == std::floor(sum);
    for (std::int64_t i = 0; i < problem.n; ++i) {
      const double g = load_element(problem.type, data[of_g] + i * size_of(problem.type));
      sum += g * g;
      is_whole = is_whole && g == std::floor(g);
    }
    if (array == of_sum) {
      expected[0] = {.value = sum, .magnitude = sum};
      return;
    }
    if (problem.type == DataType::f64)
      expected[0] = expected_factor<double>(sum, scalars, is_whole && sum <= 0x1p53);
    else
      expected[0] = expected_factor<float>(sum, scalars, is_whole && sum <= 0x1p24);
  }

 protected:
  const text::Notation<NormProblem>& notation() const override { return norm_notation(); }
  NormProblem draw(NormProblem problem, Draws& draws) const override {
    problem.n = draws.extent() * (draws.one_in(2) ? draws.extent() : 1);
    return problem;
  }

 private:
  template <typename Real>
  static Expected expected_factor(double sum, std::span<const double> scalars, bool is_exact) {
    const auto most = static_cast<Real>(scalars[of_most]), scale = static_cast<Real>(scalars[of_scale]);
    Expected expected;
    expected.value = norm_factor<double>(sum, most, scale);
    expected.magnitude = std::fabs(expected.value);
    expected.exact = is_exact;
    if (is_exact)
      store_element(sizeof(Real) == 8 ? DataType::f64 : DataType::f32,
                    static_cast<double>(norm_factor<Real>(static_cast<Real>(sum), most, scale)), expected.bytes);
    return expected;
  }
};

}  // namespace

void NormPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  const Scalar &most = run.scalars[of_most], &scale = run.scalars[of_scale];
  require(
      "most", most, [](double value) { return value >= 0; }, "at least 0");
  require(
      "scale", scale, [](double value) { return value > 0 && std::isfinite(value); }, "a finite number above 0");
  append(sequence, NormArrays{.g = run.arrays[of_g],
                              .factor = run.arrays[of_factor],
                              .sum = run.arrays[of_sum],
                              .workspace = run.workspace,
                              .most = most,
                              .scale = scale});
}

double least_bytes(const NormProblem& problem) {
  return static_cast<double>(problem.n) * static_cast<double>(size_of(problem.type)) +
         static_cast<double>((problem.accumulate ? 3 : 2) * size_of(sum_type(problem)));
}

ErrorBound norm_bound(const NormProblem& problem, std::int64_t chain) {
  // Higher orders are added where a bound is evaluated.
  return {.chain = static_cast<double>(chain),
          .constant = 3,
          .f64 = problem.type == DataType::f64,
          .norm = "(sum, |factor|)"};
}

std::int64_t norm_chain(const NormProblem& problem) {
  constexpr std::int64_t of_tree = 9;  // 512 chains, halves to halves
  const std::int64_t of_element = std::min(elements_of_norm_piece / norm_chains, divide_up(problem.n, norm_chains)),
                     of_pieces = divide_up(pieces_of(problem), norm_chains);
  return of_element + of_tree + of_pieces + of_tree + (problem.accumulate ? 1 : 0);
}

}  // namespace operations

const operations::Operation& operation_of(const NormProblem*) {
  static const operations::NormOperation operation;
  return operation;
}

namespace {

// Calls with(arrays, scalars).
template <typename With>
auto with_named(const NormRun& run, const With& with) {
  const NamedOperand arrays[] = {{"g", run.g}, {"factor", run.factor}, {"sum", run.sum}};
  const NamedScalar scalars[] = {{"most", run.most}, {"scale", run.scale}};
  return with(std::span<const NamedOperand>(arrays), std::span<const NamedScalar>(scalars));
}

}  // namespace

Event NormPlan::run(Queue& queue, const NormRun& run) const {
  return with_named(run, [&](auto arrays, auto scalars) { return plan_.run(queue, arrays, run.workspace, scalars); });
}

void NormPlan::append(Sequence& sequence, const NormRun& run) const {
  with_named(run, [&](auto arrays, auto scalars) { plan_.append(sequence, arrays, run.workspace, scalars); });
}

}  // namespace omniconv
