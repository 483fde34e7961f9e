#include "operations/dropout/host_plan.h"

#include <algorithm>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

class Plan final : public DropoutPlanBody {
 public:
  Plan(const DropoutProblem& problem, const DevicePointer& device, DropoutOfPiece* drop)
      : DropoutPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)), drop_(drop) {}

  void append(devices::Sequence& sequence, const Operand& x, const Operand& y, const DropoutNumbers& numbers,
              const Scalar& step) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, x, y, numbers](std::span<const double> scalars) {
                    execute(x, y, numbers, dropout_step(scalars[0]));
                  }),
                  std::span(&step, 1));
  }

 private:
  void execute(const Operand& x, const Operand& y, const DropoutNumbers& numbers, std::uint32_t step) const {
    const std::int64_t n = problem().n, size = size_of(problem().type);
    cpu_.parallel_for(divide_up(n, dropout_piece), [&](std::int64_t i, int) {
      const std::int64_t first = i * dropout_piece;
      drop_(problem(), numbers, step,
            {host(x) + first * size, host(y) + first * size, first, std::min(dropout_piece, n - first)});
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  DropoutOfPiece* drop_;
};

}  // namespace

std::shared_ptr<DropoutPlanBody> dropout_on_host(const DropoutProblem& problem, const DevicePointer& device,
                                                 DropoutOfPiece* drop) {
  return std::make_shared<Plan>(problem, device, drop);
}

}  // namespace omniconv::operations
