// Losses on the CPU.
#include <algorithm>

#include "core/checked.h"
#include "operations/loss/direct/rows.h"
#include "operations/loss/host_plan.h"
#include "operations/loss/loss.h"

namespace omniconv::operations {
namespace {

bool is_short(const LossProblem& problem) {
  return problem.loss == Loss::softmax && problem.c <= kernels::loss_short;
}

// Along a block, over the blocks, and four steps that add up the sums; along a short row.
double chain_of(const LossProblem& problem) {
  const std::int64_t length = problem.c, block = std::min(length, kernels::loss_block);
  if (is_short(problem)) return static_cast<double>(length);
  return static_cast<double>(divide_up(block, kernels::loss_sums) + divide_up(length, kernels::loss_block) + 4);
}

class DirectCpu final : public LossSolver {
 public:
  std::string_view id() const override { return "loss/direct/cpu.1"; }
  Answer offer(const LossProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    const double element = problem.loss == Loss::mse ? 3
                           : problem.backward        ? 45
                                                     : 25,
                 row = is_short(problem) ? 20 : 60;
    return Offer{
        .cost = {std::max(byte_cost(*device) * least_bytes(problem),
                          element * static_cast<double>(elements_of(problem)) + row * static_cast<double>(problem.n))},
        .bound = loss_bound(problem, chain_of(problem), 0),
        .plan = [=] { return loss_on_host(problem, device, kernels::compute_loss); },
    };
  }
};

}  // namespace

const LossSolver& loss_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
