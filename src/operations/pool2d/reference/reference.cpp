// The reference as a solver: every sum in double precision.
#include <cstring>

#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/host_operand.h"
#include "operations/pool2d/pool2d.h"
#include "operations/pool2d/reference/element.h"

namespace omniconv::operations {
namespace {

class Plan final : public Pool2dPlanBody {
 public:
  Plan(const Pool2dProblem& problem, const DevicePointer& device)
      : Pool2dPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)), shape_(problem) {}
  void append(devices::Sequence& sequence, const Pool2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Pool2dRun& run) const {
    const bool backward = problem().backward;
    const std::int64_t elements = backward ? shape_.x_elements() : shape_.y_elements();
    const std::int64_t part = std::max<std::int64_t>(elements / 1024, 1);
    cpu_.parallel_for((elements + part - 1) / part, [&](std::int64_t i, int) {
      for (std::int64_t at = i * part; at < std::min(elements, (i + 1) * part); ++at)
        backward ? gradient(run, at) : window(run, at);
    });
  }

  void window(const Pool2dRun& run, std::int64_t at) const {
    const DataType type = problem().type;
    const std::int64_t size = size_of(type);
    const reference::Pool2dPlace place =
        reference::pool2d_place(shape_, at, shape_.rows.outputs, shape_.columns.outputs);
    std::byte* const y = host(run.y) + at * size;
    if (!has_indices(problem()))
      return store_element(type, reference::pool2d_average(shape_, type, host(run.x), place).value, y);
    const reference::Pool2dMaximum maximum = reference::pool2d_maximum(shape_, type, host(run.x), place);
    std::memcpy(y, host(run.x) + maximum.at * size, static_cast<std::size_t>(size));
    std::memcpy(host(run.indices) + at * 4, &maximum.index, sizeof maximum.index);
  }

  void gradient(const Pool2dRun& run, std::int64_t at) const {
    const DataType type = problem().type;
    const reference::Pool2dPlace place = reference::pool2d_place(shape_, at, shape_.rows.extent, shape_.columns.extent);
    const double value = reference::pool2d_gradient(shape_, type, host(run.y), host(run.indices), place).value;
    store_element(type, value, host(run.x) + at * size_of(type));
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  Pool2dShape shape_;
};

class Pool2dReference final : public Pool2dSolver {
 public:
  std::string_view id() const override { return "pool2d/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const Pool2dProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 800;  // every element is looked up by itself
    ErrorBound bound = pool2d_bound(problem);
    if (problem.type != DataType::f64) bound.chain = bound.constant = 0;  // far below the rounding of fp32
    return Offer{
        .cost = {byte_cost(*device) * least_bytes(problem) + scalar * window_elements(problem)},
        .bound = bound,
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }
};

}  // namespace

const Pool2dSolver& pool2d_reference() {
  static const Pool2dReference solver;
  return solver;
}

}  // namespace omniconv::operations
