// Activations on the CPU.
#include <algorithm>

#include "operations/activation/activation.h"
#include "operations/activation/direct/elements.h"
#include "operations/activation/host_plan.h"

namespace omniconv::operations {
namespace {

class DirectCpu final : public ActivationSolver {
 public:
  std::string_view id() const override { return "activation/direct/cpu.1"; }
  Answer offer(const ActivationProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    const double element = problem.function == Activation::relu || problem.backward ? 2 : 20;
    return Offer{
        .cost = {std::max(byte_cost(*device) * least_bytes(problem),
                          element * static_cast<double>(elements_of(problem)))},
        .bound = activation_bound(problem),
        .plan = [=] { return activation_on_host(problem, device, kernels::activate); },
    };
  }
};

}  // namespace

const ActivationSolver& activation_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
