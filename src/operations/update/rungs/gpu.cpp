// Updates as the classic study makes them, on OpenCL and CUDA devices.
#include <array>
#include <string>
#include <vector>

#include "core/checked.h"
#include "embedded/rung_update.kernel.h"
#include "embedded/update_element.kernel.h"
#include "operations/gpu_limits.h"
#include "operations/rungs/rungs.h"
#include "operations/update/update.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

class Plan final : public UpdatePlanBody {
 public:
  Plan(const UpdateProblem& problem, devices::Device& device, const RungTile& tile)
      : UpdatePlanBody(problem), tile_(tile) {
    using Rule = UpdateProblem::Rule;
    std::vector<devices::Definition> definitions = tile.definitions();
    definitions.push_back({"TYPE", "TYPE_f32"});
    definitions.push_back({"OUTPUT", "TYPE_f32"});
    definitions.push_back({"RULE", problem.rule == Rule::sgd        ? "RULE_sgd"
                                   : problem.rule == Rule::nesterov ? "RULE_nesterov"
                                                                    : "RULE_adam"});
    definitions.push_back({"SCALED", problem.scaled ? "1" : "0"});
    definitions.push_back({"GUARDED", problem.guarded ? "1" : "0"});
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::exact_root()) +
                                std::string(kernels::exact_division()) + std::string(update_element_kernel) +
                                std::string(kernels::rung_tiles()) + std::string(rung_update_kernel),
                            definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const UpdateArrays& run, std::span<const Scalar> numbers,
              const Scalar& number) const override {
    const Operand &v = run.v.buffer ? run.v : run.m, &factor = run.factor.buffer ? run.factor : run.w,
                  &stop = run.stop.buffer ? run.stop : run.m;
    launch_groups(tiles(), [&](std::int64_t first, std::int64_t groups) {
      std::array<devices::KernelArgument, 15 + most_update_numbers> arguments = {run.g.buffer.impl().get(),
                                                                                 run.g.offset_bytes / 4,
                                                                                 run.w.buffer.impl().get(),
                                                                                 run.w.offset_bytes / 4,
                                                                                 run.m.buffer.impl().get(),
                                                                                 run.m.offset_bytes / 4,
                                                                                 v.buffer.impl().get(),
                                                                                 v.offset_bytes / 4,
                                                                                 factor.buffer.impl().get(),
                                                                                 factor.offset_bytes / 4,
                                                                                 stop.buffer.impl().get(),
                                                                                 stop.offset_bytes / 4,
                                                                                 problem().n,
                                                                                 first,
                                                                                 number};
      for (std::size_t i = 0; i < numbers.size(); ++i) arguments[15 + i] = numbers[i];
      sequence.launch(program_, "rung_update", {{groups * tile_.group()}, {tile_.group()}},
                      std::span(arguments).first(15 + numbers.size()));
    });
  }

 private:
  std::int64_t tiles() const { return divide_up(problem().n, tile_.m * tile_.n); }

  RungTile tile_;
  std::shared_ptr<devices::Program> program_;
};

class RungsGpu final : public RungSolver<UpdateProblem> {
 public:
  std::string_view id() const override { return "update/rungs/gpu.1"; }

 private:
  std::int64_t local_bytes(const UpdateProblem&, const RungTile& tile) const override {
    return tile.rung == RungTile::tiled ? 4 * tile.m * tile.n * 4 : 0;
  }
  Offer offer_on(const UpdateProblem& problem, const DevicePointer& device, const RungTile& tile) const override {
    const double element = problem.rule == UpdateProblem::Rule::adam ? 40 : 10;
    return {
        .cost = rung_cost(*device, least_bytes(problem), element * static_cast<double>(problem.n)),
        .bound = update_bound(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tile); },
    };
  }
};

}  // namespace

const UpdateSolver& update_rungs_gpu() {
  static const RungsGpu solver;
  return solver;
}

}  // namespace omniconv::operations
