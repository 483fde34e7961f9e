#include "operations/add/host_plan.h"

#include <algorithm>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

class Plan final : public AddPlanBody {
 public:
  Plan(const AddProblem& problem, const DevicePointer& device, AddOfPiece* add)
      : AddPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)), add_(add) {}

  void append(devices::Sequence& sequence, const AddArrays& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const AddArrays& run) const {
    constexpr std::int64_t most = 1 << 14, fewest = 1 << 11;  // elements, some microseconds
    const std::int64_t elements = elements_of_result(problem()),
                       piece = std::clamp(divide_up(elements, cpu_.threads()), fewest, most);
    cpu_.parallel_for(divide_up(elements, piece), [&](std::int64_t i, int) {
      add_(problem(),
           {host(run.result), host(run.base), host(run.other), i * piece, std::min(piece, elements - i * piece)});
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  AddOfPiece* add_;
};

}  // namespace

std::shared_ptr<AddPlanBody> add_on_host(const AddProblem& problem, const DevicePointer& device, AddOfPiece* add) {
  return std::make_shared<Plan>(problem, device, add);
}

}  // namespace omniconv::operations
