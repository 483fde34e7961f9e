// Losses as the classic study reduces rows, on OpenCL and CUDA devices.
#include <array>
#include <string>
#include <vector>

#include "core/checked.h"
#include "embedded/rung_loss.kernel.h"
#include "operations/gpu_limits.h"
#include "operations/loss/loss.h"
#include "operations/rungs/rungs.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

class Plan final : public LossPlanBody {
 public:
  Plan(const LossProblem& problem, devices::Device& device, const RungTile& tile) : LossPlanBody(problem), tile_(tile) {
    std::vector<devices::Definition> definitions = tile.definitions();
    definitions.push_back({"LOSS", problem.loss == Loss::softmax ? "LOSS_softmax" : "LOSS_mse"});
    definitions.push_back({"BACKWARD", problem.backward ? "1" : "0"});
    program_ = device.build(
        std::string(kernels::exact_division()) + std::string(kernels::rung_tiles()) + std::string(rung_loss_kernel),
        definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const LossArrays& arrays) const override {
    const LossProblem& p = problem();
    const std::int64_t of_group = tile_.is_naive() ? tile_.group() : tile_.m;
    const Operand& result = p.backward ? arrays.dx : arrays.y;
    launch_groups(divide_up(p.n, of_group), [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 11> arguments = {arrays.x.buffer.impl().get(),
                                                                 arrays.x.offset_bytes / 4,
                                                                 arrays.target.buffer.impl().get(),
                                                                 arrays.target.offset_bytes / 4,
                                                                 result.buffer.impl().get(),
                                                                 result.offset_bytes / 4,
                                                                 p.n,
                                                                 p.c,
                                                                 first,
                                                                 static_cast<float>(2.0 / static_cast<double>(p.c)),
                                                                 arrays.scale};
      sequence.launch(program_, "rung_loss", {{groups * tile_.group()}, {tile_.group()}}, arguments);
    });
  }

 private:
  RungTile tile_;
  std::shared_ptr<devices::Program> program_;
};

// README.md, "Bound".
double chain_of(const LossProblem& problem, const RungTile& tile) {
  constexpr std::int64_t of_tree = 6;  // 64 sums at most, halves to halves
  return static_cast<double>(tile.is_naive() ? problem.c : divide_up(problem.c, tile.n) + of_tree);
}

class RungsGpu final : public RungSolver<LossProblem> {
 public:
  std::string_view id() const override { return "loss/rungs/gpu.1"; }

 private:
  std::string task_refusal(const LossProblem& problem) const override {
    return problem.sums ? "a launch computes one function: leave out sums" : "";
  }
  std::int64_t local_bytes(const LossProblem&, const RungTile& tile) const override {
    return tile.is_naive() ? 0 : tile.m * tile.n * 4;
  }
  Offer offer_on(const LossProblem& problem, const DevicePointer& device, const RungTile& tile) const override {
    return {
        .cost = rung_cost(*device, least_bytes(problem), 40 * static_cast<double>(elements_of(problem))),
        .bound = loss_bound(problem, chain_of(problem, tile), 0),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tile); },
    };
  }
};

}  // namespace

const LossSolver& loss_rungs_gpu() {
  static const RungsGpu solver;
  return solver;
}

}  // namespace omniconv::operations
