// gemm as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include <cmath>

#include "operations/gemm/gemm.h"
#include "operations/gemm/problem.h"
#include "operations/gemm/reference/element.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays in their order.
enum : std::size_t { of_a, of_b, of_c };

class Gemm final : public OperationOf<GemmProblem> {
 public:
  std::string_view name() const override { return "gemm"; }
  Problem read(const text::Words& line, text::Completeness completeness) const override {
    text::Places places;
    const GemmProblem problem = text::read_words(line, notation(), places);
    if (places.find("type").empty()) text::refuse_missing(line, "a type: f32, f64, f16, bf16 or tf32");
    if (places.find("transposition").empty())
      text::refuse_missing(line, "nn, nt, tn or tt: which of the operands are transposed");
    return text::finish<GemmProblem>(problem, line, notation().letters, places, completeness, first_broken_rule);
  }

  std::span<const Solver* const> solvers() const override { return gemm_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(task_for(of(problem))); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const GemmProblem& p = of(problem);
    const auto matrix = [&](const char* name, bool transposed, std::int64_t rows, std::int64_t columns,
                            const char* axes, const char* exchanged) {
      ArraySpec array{name, p.type, {rows, columns}, transposed ? exchanged : axes};
      if (transposed) std::swap(array.extents[0], array.extents[1]);
      if (p.batch > 1) {
        array.extents.insert(array.extents.begin(), p.batch);
        array.axes = "batch, " + array.axes;
      }
      return array;
    };
    std::vector<ArraySpec> arrays = {matrix("a", p.transpose_a, p.m, p.k, "m, k", "k, m"),
                                     matrix("b", p.transpose_b, p.k, p.n, "k, n", "n, k"),
                                     matrix("c", false, p.m, p.n, "m, n", "")};
    arrays[of_c].role = ArrayRole::out;
    return arrays;
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"a", "the first matrix"}, {"b", "the second matrix"}, {"c", "their product"}};
  }

  std::vector<ScalarSpec> scalars(const AnyTask&) const override { return {{"alpha", 1}}; }
  Figures figures(const AnyTask& task) const override {
    Figures figures;
    const GemmTask& t = task.as<GemmTask>();
    figures.operations = figures.least_operations = 2 * multiply_adds(t.problem);
    figures.longest_sum = static_cast<double>(t.problem.k);
    figures.reference_units = figures.longest_sum / 2 + 2;
    return figures;
  }

  std::vector<DataKind> data_kinds(const AnyTask&) const override { return {DataKind::integers, DataKind::reals}; }
  void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    const GemmProblem& problem = task.as<GemmTask>().problem;
    if (kind == DataKind::reals) return fill_reals(problem.type, factors(task), array, seed, data);
    fill_integers(problem.type, exact_integers(static_cast<double>(problem.k)), seed, data);
  }
  void expect(const AnyTask& task, std::size_t, std::span<const std::byte* const> data, std::span<const double> scalars,
              std::span<const std::int64_t> points, std::span<Expected> expected) const override {
    const GemmTask& t = task.as<GemmTask>();
    const GemmProblem& p = t.problem;
    const std::int64_t size = size_of(p.type);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::int64_t column = points[i] % p.n, row = points[i] / p.n % p.m, batch = points[i] / (p.m * p.n);
      const reference::DoubleSum sum = reference::gemm_element(
          p, data[of_a] + batch * t.batch_a * size, t.lda, data[of_b] + batch * t.batch_b * size, t.ldb, row, column);
      expected[i] = {.value = scalars[0] * sum.value, .magnitude = std::abs(scalars[0]) * sum.magnitude};
    }
  }
  std::vector<std::size_t> factors(const AnyTask&) const override { return {of_a, of_b}; }

 protected:
  const text::Notation<GemmProblem>& notation() const override { return gemm_notation(); }
  GemmProblem draw(GemmProblem problem, Draws& draws) const override {
    for (std::int64_t* const extent : {&problem.m, &problem.n, &problem.k})
      *extent = draws.one_in(2) ? draws.extent() : draws.channels();
    problem.batch = draws.one_in(3) ? draws.batch() : 1;
    return problem;
  }
};

}  // namespace

void GemmPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  append(sequence, GemmArrays{.a = run.arrays[of_a],
                              .b = run.arrays[of_b],
                              .c = run.arrays[of_c],
                              .bias = {},
                              .workspace = run.workspace,
                              .alpha = run.scalars[0]});
}

void GemmPlanBody::append_prepare(devices::Sequence& sequence, std::size_t array, const Operand& from,
                                  const Operand& to) const {
  append_prepare(sequence, array == of_a, from, to);
}
void GemmPlanBody::append_prepare(devices::Sequence&, bool, const Operand&, const Operand&) const {
  throw bad_input("this product takes its operands as they are");
}

}  // namespace operations

const operations::Operation& operation_of(const GemmProblem*) {
  static const operations::Gemm operation;
  return operation;
}

}  // namespace omniconv
