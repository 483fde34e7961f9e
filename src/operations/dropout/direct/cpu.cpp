// Dropout on the CPU.
#include <algorithm>

#include "operations/dropout/direct/elements.h"
#include "operations/dropout/dropout.h"
#include "operations/dropout/host_plan.h"

namespace omniconv::operations {
namespace {

class DirectCpu final : public DropoutSolver {
 public:
  std::string_view id() const override { return "dropout/direct/cpu.1"; }
  Answer offer(const DropoutProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    constexpr double element = 40;  // a quarter of ten rounds
    return Offer{
        .cost = {std::max(byte_cost(*device) * least_bytes(problem), element * static_cast<double>(problem.n))},
        .bound = dropout_bound(problem),
        .plan = [=] { return dropout_on_host(problem, device, kernels::drop); },
    };
  }
};

}  // namespace

const DropoutSolver& dropout_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
