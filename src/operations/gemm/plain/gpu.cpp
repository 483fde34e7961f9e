// Matrix products on OpenCL and CUDA devices by work items that share nothing: for devices that cannot run `tiled`, and
// for products too small for its tiles.
#include <algorithm>
#include <cmath>

#include "embedded/plain.kernel.h"
#include "operations/gemm/gpu_text.h"
#include "operations/gemm/plain/plain.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t rows_of_an_item = 4;

class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& product, devices::Device& device, const PlainShape& shape)
      : GemmPlanBody(product), group_(shape.group), tiles_(tiles_of(product.problem, shape.tile_m, shape.tile_n)) {
    std::vector<devices::Definition> definitions = gemm_definitions(product);
    definitions.push_back({"GROUP", std::to_string(shape.group)});
    definitions.push_back({"ROWS", std::to_string(rows_of_an_item)});
    definitions.push_back({"ITEMS_N", std::to_string(shape.items_n)});
    definitions.push_back({"COLUMNS", std::to_string(shape.columns)});
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(plain_kernel), definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    launch_batches(task().problem.batch, tiles_, [&](std::int64_t first, std::int64_t batches) {
      sequence.launch(program_, "plain", {{tiles_ * batches * group_, 1}, {group_, 1}},
                      gemm_arguments(task(), arrays, first));
    });
  }

 private:
  std::int64_t group_, tiles_;
  std::shared_ptr<devices::Program> program_;
};

// A work item waits for what it loads, term by term: on an H200 100 cycles, and more where its rows lie apart, 306 of
// 4096 terms of one column; and to begin and to end. So many groups of a compute unit wait at once.
double waiting_cost(const GemmProblem& problem, const PlainShape& shape, double tiles, const devices::Device& device) {
  constexpr double least_cycles = 100, row_cycles = 4, start_cycles = 700, at_once = 8, multiply_adds_a_cycle = 128;
  const double units = std::max(device.info().compute_units, 1),
               rows = static_cast<double>(shape.group / shape.items_n),
               rounds = std::ceil(tiles * static_cast<double>(problem.batch) / (at_once * units));
  return (static_cast<double>(problem.k) * std::max(least_cycles, row_cycles * rows) + start_cycles) * rounds *
         multiply_adds_a_cycle * units;
}

// A compute unit reads a line of memory in a cycle: one for each row or column that neighbouring work items read
// elements of where these lie apart, and one where they are neighbours.
double line_cost(const GemmProblem& problem, const PlainShape& shape) {
  constexpr double warp = 32, multiply_adds_a_cycle = 128;
  const double m = static_cast<double>(problem.m), n = static_cast<double>(problem.n),
               k = static_cast<double>(problem.k) * static_cast<double>(problem.batch),
               items = static_cast<double>(shape.items_n), columns = std::ceil(n / static_cast<double>(shape.tile_n)),
               loads_of_b = m * n * k / (static_cast<double>(rows_of_an_item) * warp);
  const double of_a = problem.transpose_a ? 0 : m * k * columns * std::max(1.0, items / warp),
               of_b = loads_of_b * (problem.transpose_b ? std::min(warp, items) : 1);
  return (of_a + of_b) * multiply_adds_a_cycle;
}

class PlainGpu final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/plain/gpu.1"; }
  Answer offer(const GemmTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = gemm_gpu_refusal(task, *device); !reason.empty()) return reason;
    const bool is_gpu = device->info().is_gpu;
    const PlainShape shape = plain_shape_for(task.problem, is_gpu);
    if (std::string reason = group_refusal(*device, shape.group); !reason.empty()) return reason;
    const std::int64_t tiles = tiles_of(task.problem, shape.tile_m, shape.tile_n);
    if (tiles > most_groups) return fmt::format("a launch has at most {} tiles, not {}", most_groups, tiles);
    // A GPU's loads are an instruction for every two multiply-adds, and slower. PoCL reaches 0.4 of its peak.
    const double compute = (is_gpu ? 6 : 2.5) * multiply_adds(task.problem);
    // Sums are stored when all is waited for.
    const double waits = is_gpu ? std::max(waiting_cost(task.problem, shape, static_cast<double>(tiles), *device),
                                           line_cost(task.problem, shape)) +
                                      byte_cost(*device) * stored_bytes(task)
                                : 0;
    return Offer{
        .cost = {launched(*device, 1,
                          launch_cost(*device) + std::max({compute, waits, byte_cost(*device) * least_bytes(task)}))},
        .bound = gemm_bound(task, static_cast<double>(task.problem.k)),
        .plan = [=] { return plan_of_shape(task, *device, shape); },
    };
  }
};

}  // namespace

// As many work items side by side as the columns fill, then the others below them, and only then more columns for each.
// A processor's work items have vectors of columns instead.
PlainShape plain_shape_for(const GemmProblem& problem, bool is_gpu) {
  constexpr std::int64_t group = 64, cpu_group = 8, cpu_columns = 16;
  PlainShape shape{group, 1, 0, 0, 0};
  if (is_gpu) {
    while (shape.items_n < group && shape.items_n < problem.n) shape.items_n *= 2;
    shape.columns = std::clamp<std::int64_t>(divide_up(problem.n, shape.items_n), 1, 4);
  } else {
    shape.group = cpu_group;
    shape.columns = std::min<std::int64_t>(problem.n, cpu_columns);
  }
  shape.tile_m = rows_of_an_item * (shape.group / shape.items_n);
  shape.tile_n = shape.columns * shape.items_n;
  return shape;
}

std::shared_ptr<const GemmPlanBody> plan_of_shape(const GemmTask& task, devices::Device& device,
                                                  const PlainShape& shape) {
  return std::make_shared<Plan>(task, device, shape);
}

const GemmSolver& gemm_plain_gpu() {
  static const PlainGpu solver;
  return solver;
}

}  // namespace omniconv::operations
