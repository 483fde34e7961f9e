// Biases as the classic study adds them and sums up their gradients, on OpenCL and CUDA devices.
#include <array>
#include <string>
#include <vector>

#include "core/checked.h"
#include "embedded/rung_bias.kernel.h"
#include "operations/bias_add/bias_add.h"
#include "operations/gpu_limits.h"
#include "operations/rungs/rungs.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

// An array as a matrix whose rows, or columns, are of one channel each.
struct Matrix {
  bool by_rows;
  std::int64_t rows, columns;

  explicit Matrix(const BiasAddProblem& problem) {
    const ChannelPlanes planes(problem);
    by_rows = planes.inner > 1;
    rows = by_rows ? planes.planes * problem.c : planes.planes;
    columns = by_rows ? planes.inner : problem.c;
  }
};

class Plan final : public BiasAddPlanBody {
 public:
  Plan(const BiasAddProblem& problem, devices::Device& device, const RungTile& tile)
      : BiasAddPlanBody(problem), matrix_(problem), tile_(tile) {
    std::vector<devices::Definition> definitions = tile.definitions();
    definitions.push_back({"BY_ROWS", matrix_.by_rows ? "1" : "0"});
    program_ = device.build(std::string(kernels::rung_tiles()) + std::string(rung_bias_kernel), definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const BiasAddRun& run, const Operand&) const override {
    problem().backward ? append_sums(sequence, run) : append_addition(sequence, run);
  }

 private:
  void append_addition(devices::Sequence& sequence, const BiasAddRun& run) const {
    launch_groups(divide_up(matrix_.rows, tile_.m) * divide_up(matrix_.columns, tile_.n),
                  [&](std::int64_t first, std::int64_t groups) {
                    const std::array<devices::KernelArgument, 10> arguments = {run.x.buffer.impl().get(),
                                                                               run.x.offset_bytes / 4,
                                                                               run.b.buffer.impl().get(),
                                                                               run.b.offset_bytes / 4,
                                                                               run.y.buffer.impl().get(),
                                                                               run.y.offset_bytes / 4,
                                                                               matrix_.rows,
                                                                               matrix_.columns,
                                                                               problem().c,
                                                                               first};
                    sequence.launch(program_, "rung_add_bias", {{groups * tile_.group()}, {tile_.group()}}, arguments);
                  });
  }

  void append_sums(devices::Sequence& sequence, const BiasAddRun& run) const {
    const std::int64_t of_group = tile_.is_naive() ? tile_.group() : matrix_.by_rows ? tile_.m : tile_.n;
    launch_groups(divide_up(problem().c, of_group), [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 8> arguments = {run.y.buffer.impl().get(),
                                                                run.y.offset_bytes / 4,
                                                                run.b.buffer.impl().get(),
                                                                run.b.offset_bytes / 4,
                                                                matrix_.rows,
                                                                matrix_.columns,
                                                                problem().c,
                                                                first};
      sequence.launch(program_, "rung_sum_bias", {{groups * tile_.group()}, {tile_.group()}}, arguments);
    });
  }

  Matrix matrix_;
  RungTile tile_;
  std::shared_ptr<devices::Program> program_;
};

std::int64_t local_bytes(const BiasAddProblem& problem, const RungTile& tile) {
  if (tile.is_naive()) return 0;
  const bool by_rows = Matrix(problem).by_rows;
  if (!problem.backward) return (by_rows ? tile.m : tile.n) * 4;
  return (by_rows ? tile.m : tile.m / tile.work) * tile.n * 4;
}

// README.md, "Bound".
std::int64_t chain_of(const BiasAddProblem& problem, const RungTile& tile) {
  const ChannelPlanes planes(problem);
  if (tile.is_naive()) return planes.positions();
  constexpr std::int64_t of_tree = 6;  // 64 sums at most, halves to halves
  return Matrix(problem).by_rows ? planes.planes * divide_up(planes.inner, tile.n) + of_tree
                                 : divide_up(planes.planes, tile.m) + tile.work + of_tree;
}

class RungsGpu final : public BiasAddSolver {
 public:
  std::string_view id() const override { return "bias_add/rungs/gpu.1"; }
  SolverRole role() const override { return SolverRole::study; }
  Answer offer(const BiasAddProblem& problem, const DevicePointer& device,
               const SolverOptions& request) const override {
    if (std::string reason = rung_type_refusal(problem.type); !reason.empty()) return reason;
    if (problem.relu) return "a launch computes one function: activation computes a relu";
    const RungTile tile = rung_tile_of(request);
    if (std::string reason = rung_refusal(*device, tile, local_bytes(problem, tile)); !reason.empty()) return reason;
    const std::int64_t chain = chain_of(problem, tile);
    if (std::string reason = long_chain_refusal(chain); problem.backward && !reason.empty()) return reason;
    return Offer{
        .cost = rung_cost(*device, least_bytes(problem), static_cast<double>(elements_of(problem))),
        .bound = bias_add_bound(problem, chain),
        .tuning = tile.tuning(),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tile); },
    };
  }
  std::span<const Tunable> tunables() const override { return rung_tunables(); }
};

}  // namespace

const BiasAddSolver& bias_add_rungs_gpu() {
  static const RungsGpu solver;
  return solver;
}

}  // namespace omniconv::operations
