// Activations as the classic study computes them, on OpenCL and CUDA devices.
#include <array>
#include <string>
#include <vector>

#include "core/checked.h"
#include "embedded/activation_element.kernel.h"
#include "embedded/rung_activation.kernel.h"
#include "operations/activation/activation.h"
#include "operations/gpu_limits.h"
#include "operations/rungs/rungs.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

class Plan final : public ActivationPlanBody {
 public:
  Plan(const ActivationProblem& problem, devices::Device& device, const RungTile& tile)
      : ActivationPlanBody(problem), tile_(tile) {
    std::vector<devices::Definition> definitions = tile.definitions();
    definitions.push_back({"TYPE", "TYPE_f32"});
    definitions.push_back({"OUTPUT", "TYPE_f32"});
    definitions.push_back({"FUNCTION", problem.function == Activation::relu      ? "FUNCTION_relu"
                                       : problem.function == Activation::sigmoid ? "FUNCTION_sigmoid"
                                                                                 : "FUNCTION_tanh"});
    definitions.push_back({"BACKWARD", problem.backward ? "1" : "0"});
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::stored_elements()) +
                                std::string(activation_element_kernel) + std::string(kernels::rung_tiles()) +
                                std::string(rung_activation_kernel),
                            definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const ActivationRun& run) const override {
    const ActivationProblem& p = problem();
    const Operand &given = p.backward ? run.y : run.x, &dy = p.backward ? run.dy : given,
                  &result = p.backward ? run.x : run.y;
    const std::int64_t elements = elements_of(p);
    launch_groups(divide_up(elements, tile_.m * tile_.n), [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 8> arguments = {given.buffer.impl().get(),
                                                                given.offset_bytes / 4,
                                                                dy.buffer.impl().get(),
                                                                dy.offset_bytes / 4,
                                                                result.buffer.impl().get(),
                                                                result.offset_bytes / 4,
                                                                elements,
                                                                first};
      sequence.launch(program_, "rung_activation", {{groups * tile_.group()}, {tile_.group()}}, arguments);
    });
  }

 private:
  RungTile tile_;
  std::shared_ptr<devices::Program> program_;
};

class RungsGpu final : public RungSolver<ActivationProblem> {
 public:
  std::string_view id() const override { return "activation/rungs/gpu.1"; }

 private:
  std::int64_t local_bytes(const ActivationProblem&, const RungTile& tile) const override {
    return tile.rung == RungTile::tiled ? 2 * tile.m * tile.n * 4 : 0;
  }
  Offer offer_on(const ActivationProblem& problem, const DevicePointer& device, const RungTile& tile) const override {
    const double element = problem.function == Activation::relu || problem.backward ? 4 : 30;
    return {
        .cost = rung_cost(*device, least_bytes(problem), element * static_cast<double>(elements_of(problem))),
        .bound = activation_bound(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tile); },
    };
  }
};

}  // namespace

const ActivationSolver& activation_rungs_gpu() {
  static const RungsGpu solver;
  return solver;
}

}  // namespace omniconv::operations
