// Activations on the CPU: pieces of the arrays, shared out to threads.
#include <algorithm>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/activation/activation.h"
#include "operations/activation/direct/elements.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

class Plan final : public ActivationPlanBody {
 public:
  Plan(const ActivationProblem& problem, const DevicePointer& device)
      : ActivationPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)) {}

  void append(devices::Sequence& sequence, const ActivationRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const ActivationRun& run) const {
    const ActivationProblem& p = problem();
    constexpr std::int64_t piece_bytes = 1 << 16;  // some microseconds
    const std::int64_t size = size_of(p.type), piece = piece_bytes / size, elements = elements_of(p);
    const Operand &from = p.backward ? run.y : run.x, &to = p.backward ? run.x : run.y;
    cpu_.parallel_for(divide_up(elements, piece), [&](std::int64_t i, int) {
      const std::int64_t first = i * piece;
      const auto at = [&](const Operand& array) { return array.buffer ? host(array) + first * size : nullptr; };
      kernels::activate(p, {at(from), at(run.dy), at(to), std::min(piece, elements - first)});
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
};

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
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }
};

}  // namespace

const ActivationSolver& activation_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
