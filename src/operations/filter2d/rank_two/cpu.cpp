#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cost.h"
#include "operations/filter2d/cpu_plan.h"
#include "operations/filter2d/direct/direct.h"
#include "operations/filter2d/rank_two/rank_two.h"

namespace omniconv::operations {
namespace {

// In units of epsilon * sum |x * w|.
double units(const ErrorBound& bound) {
  return bound.amplification * (bound.chain / 2 + bound.constant);
}

}  // namespace

ErrorBound rank_two_bound(const Filter2dTask& task, double amplification) {
  return {.amplification = amplification,
          .chain = static_cast<double>(2 * task.weights.r + task.weights.s),
          .constant = 2 + largest_difference};
}

double largest_amplification(const Filter2dTask& task) {
  return units(direct_bound(task)) / units(rank_two_bound(task, 1));
}

namespace {

// Before the weights are factored.
std::string plain_refusal(const Filter2dTask& task) {
  if (const std::string reason = alpha_refusal(task); !reason.empty()) return reason;
  if (task.second) return pair_refusal;
  if (is_bit_exact(task.problem)) return "an integer image has promised bits, which two products do not give";
  if (task.weights.form == WeightForm::rank_one) return "the weights are one product of a column and a row";
  const std::int64_t r = task.weights.r, s = task.weights.s;
  if (r * s <= 2 * (r + s))
    return fmt::format("two products take {} multiply-adds, and one chain over the taps takes {}", 2 * (r + s), r * s);
  return {};
}

std::string bound_refusal(const Filter2dTask& task, const ErrorBound& bound) {
  if (units(bound) <= units(direct_bound(task))) return {};
  return fmt::format(
      "the two products cancel, up to {:.3g} times a weight: their bound would be {:.4g} units, and that of one chain "
      "over the taps is {:.4g}",
      bound.amplification, units(bound), units(direct_bound(task)));
}

class RankTwoCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/rank_two/cpu.1"; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    if (std::string reason = plain_refusal(task); !reason.empty()) return reason;
    const auto found = two_products(task.weights, largest_amplification(task));
    if (!found) return "the weights are no sum of two products of a column and a row";
    const ErrorBound bound = rank_two_bound(task, found->amplification);
    if (std::string reason = bound_refusal(task, bound); !reason.empty()) return reason;
    // Along a row a load serves both products, whose sums are written and read again.
    constexpr double second_sum = 12;
    const auto r = static_cast<double>(task.weights.r), s = static_cast<double>(task.weights.s);
    return cpu_offer(task, device, found->factors,
                     cpu_pixel_operations(task) + cpu_chain_operations(task) * (second_sum + 3.3 * r + 3.5 * s), bound);
  }
};

}  // namespace

const Filter2dSolver& rank_two_cpu() {
  static const RankTwoCpu solver;
  return solver;
}

}  // namespace omniconv::operations
