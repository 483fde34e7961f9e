// Norms on the CPU: pieces over the device's threads, whose sums one of them adds up.
#include <algorithm>
#include <array>

#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/host_operand.h"
#include "operations/norm/direct/elements.h"
#include "operations/norm/norm.h"

namespace omniconv::operations {
namespace {

class Plan final : public NormPlanBody {
 public:
  Plan(const NormProblem& problem, const DevicePointer& device)
      : NormPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)) {}

  void append(devices::Sequence& sequence, const NormArrays& run) const override {
    const std::array<Scalar, 2> scalars = {run.most, run.scale};
    sequence.call(devices::HostTask(
                      [self = shared_from_this(), this, run](std::span<const double> values) { execute(run, values); }),
                  scalars);
  }

 private:
  void execute(const NormArrays& run, std::span<const double> scalars) const {
    const NormProblem& p = problem();
    cpu_.parallel_for(pieces_of(p), [&](std::int64_t piece, int) {
      const std::int64_t first = piece * elements_of_norm_piece;
      kernels::sum_squares(p.type, host(run.g) + first * size_of(p.type), std::min(elements_of_norm_piece, p.n - first),
                           host(run.workspace) + piece * size_of(sum_type(p)));
    });
    p.type == DataType::f64 ? finish<double>(run, scalars) : finish<float>(run, scalars);
  }

  template <typename Real>
  void finish(const NormArrays& run, std::span<const double> scalars) const {
    const NormProblem& p = problem();
    Real sum{};
    kernels::sum_pieces(p.type, host(run.workspace), pieces_of(p), reinterpret_cast<std::byte*>(&sum));
    if (p.accumulate) sum = static_cast<Real>(load_element(sum_type(p), host(run.sum))) + sum;
    store_element(sum_type(p), static_cast<double>(sum), host(run.sum));
    const Real factor = norm_factor(sum, static_cast<Real>(scalars[0]), static_cast<Real>(scalars[1]));
    store_element(sum_type(p), static_cast<double>(factor), host(run.factor));
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
};

class DirectCpu final : public NormSolver {
 public:
  std::string_view id() const override { return "norm/direct/cpu.1"; }
  Answer offer(const NormProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    if (std::string reason = long_norm_refusal(problem); !reason.empty()) return reason;
    return Offer{
        .cost = {std::max(byte_cost(*device) * least_bytes(problem), 3 * static_cast<double>(problem.n))},
        .bound = norm_bound(problem, norm_chain(problem)),
        .workspace_bytes = pieces_of(problem) * size_of(sum_type(problem)),
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }
};

}  // namespace

const NormSolver& norm_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
