// The reference as a solver.
#include <algorithm>
#include <cstring>

#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/activation/activation.h"
#include "operations/activation/reference/element.h"
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
    const std::int64_t elements = elements_of(problem()), part = 1 << 12;
    cpu_.parallel_for((elements + part - 1) / part, [&](std::int64_t i, int) {
      for (std::int64_t at = i * part; at < std::min(elements, (i + 1) * part); ++at) make(run, at);
    });
  }
  void make(const ActivationRun& run, std::int64_t at) const {
    const DataType type = problem().type;
    const auto element = [&](const Operand& array) { return host(array) + at * size_of(type); };
    const auto number = [&](const Operand& array) { return load_element(type, element(array)); };
    if (problem().function == Activation::relu) {  // whose results keep their bits
      const bool falls = number(problem().backward ? run.y : run.x) <= 0;
      std::byte* const to = element(problem().backward ? run.x : run.y);
      if (falls) return store_element(type, 0.0, to);
      std::memcpy(to, element(problem().backward ? run.dy : run.x), static_cast<std::size_t>(size_of(type)));
      return;
    }
    if (problem().backward)
      store_element(type, reference::activation_gradient(problem().function, number(run.y), number(run.dy)),
                    element(run.x));
    else
      store_element(type, reference::activated(problem().function, number(run.x)), element(run.y));
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
};

class ActivationReference final : public ActivationSolver {
 public:
  std::string_view id() const override { return "activation/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const ActivationProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 800;  // every element is looked up by itself
    return Offer{
        .cost = {byte_cost(*device) * least_bytes(problem) + scalar * static_cast<double>(elements_of(problem))},
        .bound = activation_bound(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }
};

}  // namespace

const ActivationSolver& activation_reference() {
  static const ActivationReference solver;
  return solver;
}

}  // namespace omniconv::operations
