// Updates on the CPU.
#include <algorithm>

#include "operations/update/direct/elements.h"
#include "operations/update/host_plan.h"
#include "operations/update/update.h"

namespace omniconv::operations {
namespace {

class DirectCpu final : public UpdateSolver {
 public:
  std::string_view id() const override { return "update/direct/cpu.1"; }
  Answer offer(const UpdateProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    const double element = problem.rule == UpdateProblem::Rule::adam ? 30 : 8;
    return Offer{
        .cost = {std::max(byte_cost(*device) * least_bytes(problem), element * static_cast<double>(problem.n))},
        .bound = update_bound(problem),
        .plan =
            [=] {
              return update_on_host(problem, device, {kernels::update, kernels::copy_parameters});
            },
    };
  }
};

}  // namespace

const UpdateSolver& update_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
