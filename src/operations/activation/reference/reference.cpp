// The reference as a solver.
#include "core/convert.h"
#include "operations/activation/activation.h"
#include "operations/activation/host_plan.h"
#include "operations/activation/reference/element.h"

namespace omniconv::operations {
namespace {

void activate(const ActivationProblem& problem, const ActivationPiece& piece) {
  const DataType type = problem.type;
  for (std::int64_t at = 0; at < piece.elements * size_of(type); at += size_of(type)) {
    const std::byte *const from = piece.from + at, *const dy = problem.backward ? piece.dy + at : nullptr;
    if (problem.function == Activation::relu)
      reference::choose(type, from, problem.backward ? dy : from, piece.to + at);
    else if (problem.backward)
      store_element(type,
                    reference::activation_gradient(problem.function, load_element(type, from), load_element(type, dy)),
                    piece.to + at);
    else
      store_element(type, reference::activated(problem.function, load_element(type, from)), piece.to + at);
  }
}

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
        .plan = [=] { return activation_on_host(problem, device, activate); },
    };
  }
};

}  // namespace

const ActivationSolver& activation_reference() {
  static const ActivationReference solver;
  return solver;
}

}  // namespace omniconv::operations
