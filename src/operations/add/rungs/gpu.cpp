// Sums with shortcuts as the classic study adds arrays, on OpenCL and CUDA devices.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/checked.h"
#include "embedded/add_element.kernel.h"
#include "embedded/rung_add.kernel.h"
#include "operations/add/add.h"
#include "operations/gpu_limits.h"
#include "operations/rungs/rungs.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

class Plan final : public AddPlanBody {
 public:
  Plan(const AddProblem& problem, devices::Device& device, const RungTile& tile)
      : AddPlanBody(problem), shape_(problem), tile_(tile) {
    constexpr std::int64_t most_narrow = std::int64_t{1} << 30;
    const std::int64_t most = problem.n * std::max(shape_.result.of_image(), shape_.other.of_image());
    std::vector<devices::Definition> definitions = tile.definitions();
    definitions.push_back({"TYPE", "TYPE_f32"});
    definitions.push_back({"OUTPUT", "TYPE_f32"});
    const auto choose = [&](const char* symbol, bool value) { definitions.push_back({symbol, value ? "1" : "0"}); };
    choose("BACKWARD", problem.backward), choose("NHWC", shape_.nhwc), choose("RELU", problem.relu);
    definitions.push_back({"STRIDE", std::to_string(std::min(problem.stride, std::max(problem.h, problem.w)))});
    definitions.push_back({"index_t", most < most_narrow ? "int" : "long"});
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::stored_elements()) +
                                std::string(add_element_kernel) + std::string(kernels::rung_tiles()) +
                                std::string(rung_add_kernel),
                            definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const AddArrays& run) const override {
    const std::int64_t elements = elements_of_result(problem());
    launch_groups(divide_up(elements, tile_.m * tile_.n), [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 15> arguments = {run.base.buffer.impl().get(),
                                                                 run.base.offset_bytes / 4,
                                                                 run.other.buffer.impl().get(),
                                                                 run.other.offset_bytes / 4,
                                                                 run.result.buffer.impl().get(),
                                                                 run.result.offset_bytes / 4,
                                                                 elements,
                                                                 first,
                                                                 shape_.result.channels,
                                                                 shape_.result.rows,
                                                                 shape_.result.columns,
                                                                 shape_.other.channels,
                                                                 shape_.other.rows,
                                                                 shape_.other.columns,
                                                                 shape_.before};
      sequence.launch(program_, "rung_add", {{groups * tile_.group()}, {tile_.group()}}, arguments);
    });
  }

 private:
  AddShape shape_;
  RungTile tile_;
  std::shared_ptr<devices::Program> program_;
};

class RungsGpu final : public RungSolver<AddProblem> {
 public:
  std::string_view id() const override { return "add/rungs/gpu.1"; }

 private:
  std::int64_t local_bytes(const AddProblem&, const RungTile& tile) const override {
    return tile.rung == RungTile::tiled ? 2 * tile.m * tile.n * 4 : 0;
  }
  Offer offer_on(const AddProblem& problem, const DevicePointer& device, const RungTile& tile) const override {
    return {
        .cost = rung_cost(*device, least_bytes(problem), 30 * static_cast<double>(elements_of_result(problem))),
        .bound = add_bound(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tile); },
    };
  }
};

}  // namespace

const AddSolver& add_rungs_gpu() {
  static const RungsGpu solver;
  return solver;
}

}  // namespace omniconv::operations
