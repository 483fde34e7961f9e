// Convolution by Fourier transforms of tiles on the CPU: which tile, and which plan.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/fft/cost.h"
#include "operations/conv2d/fft/plans.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice;

class FftCpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/fft/cpu.1"; }
  std::span<const Tunable> tunables() const override { return fft_tunables(); }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override;
};

Offer offer_of(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request,
               std::int64_t side, std::int64_t limit) {
  const bool prepared = !request.prepared.empty();
  const FftBlocking cut(problem, side, dynamic_cast<const CpuDevice&>(*device).threads(), limit, prepared);
  std::map<std::size_t, PreparedFormat> formats;
  if (prepared) formats[1] = cut.format(problem);
  return {.cost = {fft_cost(problem, cut, byte_cost(*device))},
          .bound = fft_bound(problem, cut.shape),
          .workspace_bytes = cut.workspace_bytes(),
          .prepared = formats,
          .tuning = {{"tile", side}},
          .plan = [=]() -> std::shared_ptr<const PlanBody> {
            if (cut.shape.is_depthwise()) return fft_depthwise_plan(problem, device, cut);
            return cut.shape.of_filter ? fft_filter_plan(problem, device, cut)
                                       : fft_products_plan(problem, device, cut);
          }};
}

// The cheapest tile that keeps the limits. A workspace limit changes the tile, and so the results, only where the
// cheapest one cannot keep it.
std::optional<Offer> cheapest(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) {
  std::optional<Offer> best;
  double least = 0;
  const auto keeps = [&](const Offer& offer) {
    const std::int64_t limit = request.max_workspace_bytes;
    return offer.bound.amplification <= request.max_error && (limit < 0 || offer.workspace_bytes <= limit);
  };
  for (const std::int64_t side : fft_sides) {
    if (std::max(problem.r, problem.s) > side || !fft_sizes_are_safe(problem, side)) continue;
    const Offer offer = offer_of(problem, device, request, side, request.max_workspace_bytes);
    const double cost = offer_of(problem, device, request, side, -1).cost.multiply_adds;
    // Where none keeps them the smallest tile is offered, which comes nearest.
    const bool is_better = !best || (keeps(offer) && (!keeps(*best) || cost < least));
    if (!is_better) continue;
    best = offer, least = cost;
  }
  return best;
}

Answer FftCpu::offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const {
  if (dynamic_cast<const CpuDevice*>(device.get()) == nullptr) return "this variant runs on the CPU";
  if (size_of(problem.type) < 4) return "serves f32, tf32 and f64: transforms of stored halves would round them";
  if (const char* const refusal = fft_refusal(problem); *refusal != '\0') return refusal;
  if (request.relative_error) return "its errors follow the largest input of a tile, not an element's own terms";
  if (!request.prepared.empty() && request.prepared != std::vector<std::string>{"w"})
    return "has a prepared form of w alone";
  if (!request.prepared.empty() && problem.pass == Pass::backward_filter) return "reads no w on the way to the filter";
  if (const auto side = Tuning::parse(request.tuning).find("tile")) {
    if (std::max(problem.r, problem.s) > *side)
      return fmt::format("tiles of {} x {} do not hold filters of {} x {}", *side, *side, problem.r, problem.s);
    if (!fft_sizes_are_safe(problem, *side)) return "the spectra would pass 2^58 numbers";
    return offer_of(problem, device, request, *side, request.max_workspace_bytes);
  }
  if (const auto best = cheapest(problem, device, request)) return *best;
  return "the spectra would pass 2^58 numbers";
}

}  // namespace

const Conv2dSolver& conv2d_fft_cpu() {
  static const FftCpu solver;
  return solver;
}

}  // namespace omniconv::operations
