#include "operations/loss/host_plan.h"

#include <algorithm>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

class Plan final : public LossPlanBody {
 public:
  Plan(const LossProblem& problem, const DevicePointer& device, ComputeLoss* compute)
      : LossPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)), compute_(compute) {}

  void append(devices::Sequence& sequence, const LossArrays& arrays) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, arrays](std::span<const double> scalars) {
                    execute(arrays, scalars[0]);
                  }),
                  std::span(&arrays.scale, 1));
  }

 private:
  void execute(const LossArrays& arrays, double scale) const {
    const LossProblem& p = problem();
    constexpr std::int64_t piece_bytes = 1 << 16;  // of x: some microseconds
    const std::int64_t of_x = p.c * size_of(p.type), piece = std::max<std::int64_t>(piece_bytes / of_x, 1);
    const std::int64_t of_target = p.loss == Loss::softmax ? size_of(DataType::s32) : of_x,
                       of_y = has_losses(p) ? size_of(loss_type(p)) : 0, of_dx = p.backward ? of_x : 0;
    cpu_.parallel_for(divide_up(p.n, piece), [&](std::int64_t i, int) {
      const std::int64_t first = i * piece;
      compute_(p,
               {host(arrays.x) + first * of_x, host(arrays.target) + first * of_target, host(arrays.y) + first * of_y,
                host(arrays.dx) + first * of_dx, std::min(piece, p.n - first), scale});
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  ComputeLoss* compute_;
};

}  // namespace

std::shared_ptr<LossPlanBody> loss_on_host(const LossProblem& problem, const DevicePointer& device,
                                           ComputeLoss* compute) {
  return std::make_shared<Plan>(problem, device, compute);
}

}  // namespace omniconv::operations
