// batch as an operation: its arrays, its data for checks, its figures.
#include "operations/operation.h"

#include <algorithm>
#include <array>

#include "core/convert.h"
#include "operations/batch/batch.h"
#include "operations/batch/problem.h"
#include "operations/batch/reference/element.h"
#include "operations/random.h"

namespace omniconv {
namespace operations {
namespace {

// The arrays in their order.
enum : std::size_t { of_images, of_labels, of_order, of_table, of_y, of_classes };

class BatchOperation final : public OperationOf<BatchProblem> {
 public:
  std::string_view name() const override { return "batch"; }
  std::span<const Solver* const> solvers() const override { return batch_solvers(); }
  AnyTask task(const Problem& problem, std::uint64_t) const override { return AnyTask(of(problem)); }

  std::vector<ArraySpec> arrays(const Problem& problem) const override {
    const BatchProblem& p = of(problem);
    ArraySpec y{"y", p.type, {p.n, p.c, p.h, p.w}, "n, c, h, w", ArrayRole::out};
    if (p.layout == Layout::nhwc) {
      y.extents = {p.n, p.h, p.w, p.c};
      y.axes = "n, h, w, c";
    }
    return {{"images", DataType::u8, {p.m, p.c, p.h, p.w}, "m, c, h, w", ArrayRole::in},
            {"labels", DataType::u8, {p.m}, "m", ArrayRole::in},
            {"order", DataType::s32, {p.m}, "m", ArrayRole::in},
            {"table", DataType::f32, {p.c, 256}, "c, 256", ArrayRole::in},
            y,
            {"classes", DataType::s32, {p.n}, "n", ArrayRole::out}};
  }

  std::vector<ArrayHelp> array_help() const override {
    return {{"images", "the images of a data set, of u8"},
            {"labels", "their classes, of u8"},
            {"order", "which of them is where in the epoch, of s32"},
            {"table", "what each of 256 pixels of a channel becomes, of f32"},
            {"y", "the batch's images"},
            {"classes", "their classes, of s32"}};
  }

  // In checks the position and the words of the seed are none of those that they are by default.
  std::vector<ScalarSpec> scalars(const AnyTask& task) const override {
    std::vector<ScalarSpec> scalars = {{"first", 0, 1}};
    if (has_draw(task.as<BatchProblem>()))
      scalars.insert(scalars.end(),
                     {{"epoch", 0, 3}, {"seed0", 0, 0xBADA55}, {"seed1", 0, 0xC0FFEE}, {"seed2", 0, 77}});
    return scalars;
  }

  // A look into the table for each element. Of the set a run reads no more than the batch's images.
  Figures figures(const AnyTask& task) const override {
    const auto& problem = task.as<BatchProblem>();
    Figures figures;
    figures.operations = static_cast<double>(problem.n) * static_cast<double>(elements_of_image(problem));
    figures.least_operations = figures.operations;
    figures.longest_sum = 1;
    figures.bytes = least_bytes(problem);
    return figures;
  }

  std::vector<DataKind> data_kinds(const AnyTask&) const override { return {DataKind::reals}; }

  // Every pixel and label; the order is of images of the set, some of them several times, or of a larger one's numbers.
  void fill(const AnyTask& task, std::size_t array, DataKind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    if (array == of_table) return fill_random(DataType::f32, 0, seed, data);
    const auto& problem = task.as<BatchProblem>();
    const std::uint64_t numbers = problem.gathered ? std::uint64_t{1} << 31 : static_cast<std::uint64_t>(problem.m),
                        limit = array == of_order ? numbers : 256;
    fill_by(array == of_order ? DataType::s32 : DataType::u8, seed, data,
            [=](std::uint64_t bits) { return static_cast<double>((bits >> 16) % limit); });
  }

  void expect(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data,
              std::span<const double> scalars, std::span<const std::int64_t> points,
              std::span<Expected> expected) const override {
    const auto& problem = task.as<BatchProblem>();
    const reference::BatchData read{data[of_images], data[of_labels], data[of_order], data[of_table]};
    const BatchNumbers numbers(scalars);
    for (std::size_t i = 0; i < points.size(); ++i) {
      expected[i] = {.exact = true};
      if (array == of_classes)
        store_element(DataType::s32, reference::batch_class(problem, read, numbers, points[i]), expected[i].bytes);
      else
        store_element(problem.type, reference::batch_element(problem, read, numbers, points[i]), expected[i].bytes);
    }
  }

 protected:
  const text::Notation<BatchProblem>& notation() const override { return batch_notation(); }
  BatchProblem draw(BatchProblem problem, Draws& draws) const override {
    problem.m = draws.one_in(3) ? 1 + draws.below(500) : draws.extent();
    problem.n = draws.batch();
    problem.c = draws.one_in(3) ? draws.channels() : draws.one_of<std::int64_t>({1, 3});
    problem.h = draws.extent();
    problem.w = draws.extent();
    if (draws.one_in(2)) problem.shift = draws.below(std::min(problem.h, problem.w));
    return problem;
  }
};

}  // namespace

void BatchPlanBody::append(devices::Sequence& sequence, const RunArrays& run) const {
  append(sequence,
         BatchArrays{.images = run.arrays[of_images],
                     .labels = run.arrays[of_labels],
                     .order = run.arrays[of_order],
                     .table = run.arrays[of_table],
                     .y = run.arrays[of_y],
                     .classes = run.arrays[of_classes]},
         run.scalars, run.workspace);
}

double least_bytes(const BatchProblem& problem) {
  const std::int64_t of_image = elements_of_image(problem) * (1 + size_of(problem.type)), of_entry = 4 + 1 + 4;
  return static_cast<double>(problem.n) * static_cast<double>(of_image + of_entry) +
         1024 * static_cast<double>(problem.c);
}

}  // namespace operations

const operations::Operation& operation_of(const BatchProblem*) {
  static const operations::BatchOperation operation;
  return operation;
}

std::array<double, 3> seed_scalars(std::uint64_t seed) {
  constexpr std::uint64_t bits = (1 << 24) - 1;
  return {static_cast<double>(seed & bits), static_cast<double>(seed >> 24 & bits), static_cast<double>(seed >> 48)};
}

namespace {

// Calls with(arrays, scalars) for those that the problem has.
template <typename With>
auto with_named(const BatchProblem& problem, const BatchRun& run, const With& with) {
  const std::array<NamedOperand, 6> arrays = {{{"images", run.images},
                                               {"labels", run.labels},
                                               {"order", run.order},
                                               {"table", run.table},
                                               {"y", run.y},
                                               {"classes", run.classes}}};
  const std::array<double, 3> seed = seed_scalars(run.seed);
  const std::array<NamedScalar, operations::most_batch_scalars> scalars = {
      {{"first", run.first}, {"epoch", run.epoch}, {"seed0", seed[0]}, {"seed1", seed[1]}, {"seed2", seed[2]}}};
  return with(std::span<const NamedOperand>(arrays),
              std::span<const NamedScalar>(scalars).first(operations::has_draw(problem) ? scalars.size() : 1));
}

}  // namespace

Event BatchPlan::run(Queue& queue, const BatchRun& run) const {
  return with_named(problem(), run,
                    [&](auto arrays, auto scalars) { return plan_.run(queue, arrays, run.workspace, scalars); });
}

void BatchPlan::append(Sequence& sequence, const BatchRun& run) const {
  with_named(problem(), run,
             [&](auto arrays, auto scalars) { plan_.append(sequence, arrays, run.workspace, scalars); });
}

}  // namespace omniconv
