#include "operations/activation/host_plan.h"

#include <algorithm>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

class Plan final : public ActivationPlanBody {
 public:
  Plan(const ActivationProblem& problem, const DevicePointer& device, ActivatePiece* activate)
      : ActivationPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<devices::CpuDevice&>(*device)),
        activate_(activate) {}

  void append(devices::Sequence& sequence, const ActivationRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const ActivationRun& run) const {
    const ActivationProblem& p = problem();
    constexpr std::int64_t piece_bytes = 1 << 16;  // some microseconds
    const std::int64_t size = size_of(p.type), piece = piece_bytes / size, elements = elements_of(p);
    const Operand &from = p.backward ? run.y : run.x, &to = p.backward ? run.x : run.y;
    cpu_.parallel_for(divide_up(elements, piece), [&](std::int64_t i, int) {
      const std::int64_t first = i * piece;
      const auto at = [&](const Operand& array) { return array.buffer ? host(array) + first * size : nullptr; };
      activate_(p, {at(from), at(run.dy), at(to), std::min(piece, elements - first)});
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  ActivatePiece* activate_;
};

}  // namespace

std::shared_ptr<ActivationPlanBody> activation_on_host(const ActivationProblem& problem, const DevicePointer& device,
                                                       ActivatePiece* activate) {
  return std::make_shared<Plan>(problem, device, activate);
}

}  // namespace omniconv::operations
