// The reference as a solver.
#include "operations/dropout/dropout.h"
#include "operations/dropout/host_plan.h"
#include "operations/dropout/reference/element.h"

namespace omniconv::operations {
namespace {

void drop(const DropoutProblem& problem, const DropoutNumbers& numbers, std::uint32_t step, const DropoutPiece& piece) {
  PhiloxStream words = dropout_words(numbers, step);
  const std::int64_t size = size_of(problem.type);
  for (std::int64_t i = 0; i < piece.elements; ++i)
    reference::dropped(problem.type, numbers, words.word(static_cast<std::uint64_t>(piece.first + i)),
                       piece.x + i * size, piece.y + i * size);
}

class DropoutReference final : public DropoutSolver {
 public:
  std::string_view id() const override { return "dropout/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const DropoutProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 800;  // every element is looked up by itself
    return Offer{
        .cost = {byte_cost(*device) * least_bytes(problem) + scalar * static_cast<double>(problem.n)},
        .bound = dropout_bound(problem),
        .plan = [=] { return dropout_on_host(problem, device, drop); },
    };
  }
};

}  // namespace

const DropoutSolver& dropout_reference() {
  static const DropoutReference solver;
  return solver;
}

}  // namespace omniconv::operations
