// The reference as a solver: every sum in double precision.
#include <algorithm>

#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/reference/element.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, const DevicePointer& device)
      : Conv2dPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)), shape_(problem) {}
  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Conv2dRun& run) const {
    const Conv2dProblem& problem = this->problem();
    const Conv2dElements all = elements_of(problem);
    const bool forward = problem.pass == Pass::forward;
    const std::int64_t size = size_of(problem.type), elements = forward                               ? all.y
                                                                : problem.pass == Pass::backward_data ? all.x
                                                                                                      : all.w;
    const reference::Conv2dData data{host(run.x), host(run.w), host(run.y)};
    std::byte* const output = host(forward ? run.y : problem.pass == Pass::backward_data ? run.x : run.w);
    const std::int64_t part = std::max<std::int64_t>(elements / 1024, 1);
    cpu_.parallel_for((elements + part - 1) / part, [&](std::int64_t i, int) {
      for (std::int64_t at = i * part; at < std::min(elements, (i + 1) * part); ++at) {
        double value = reference::conv2d_element(problem, shape_, data, at).value;
        if (problem.bias) value += load_element(problem.type, host(run.bias) + k_of(at) * size);
        if (problem.accumulate) value += load_element(problem.type, output + at * size);
        store_element(problem.type, problem.relu && value < 0 ? 0.0 : value, output + at * size);
      }
    });
  }

  // The channel of an element of y.
  std::int64_t k_of(std::int64_t at) const {
    return shape_.nhwc ? at % shape_.k : at / (shape_.p * shape_.q) % shape_.k;
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  Conv2dShape shape_;
};

class Conv2dReference final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 800;  // every element is looked up by itself
    return Offer{
        .cost = {scalar * multiply_adds(problem)},
        // Sums in f64; what is left is far below the rounding of fp32, and of f64 a chain.
        .bound = conv2d_bound(problem, problem.type == DataType::f64 ? longest_sum(problem) : 0),
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }
};

}  // namespace

const Conv2dSolver& conv2d_reference() {
  static const Conv2dReference solver;
  return solver;
}

}  // namespace omniconv::operations
