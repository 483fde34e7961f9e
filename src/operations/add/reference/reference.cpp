// The reference as a solver.
#include "operations/add/add.h"
#include "operations/add/host_plan.h"
#include "operations/add/reference/element.h"

namespace omniconv::operations {
namespace {

void add(const AddProblem& problem, const AddPiece& piece) {
  const AddShape shape(problem);
  const std::int64_t size = size_of(problem.type);
  for (std::int64_t element = piece.first; element < piece.first + piece.elements; ++element) {
    const std::int64_t other = shape.other_element(element);
    reference::added(problem, piece.base + element * size,
                     other == AddShape::none ? nullptr : piece.other + other * size, piece.result + element * size);
  }
}

class AddReference final : public AddSolver {
 public:
  std::string_view id() const override { return "add/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const AddProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 800;  // every element is looked up by itself
    return Offer{
        .cost = {byte_cost(*device) * least_bytes(problem) + scalar * static_cast<double>(elements_of_result(problem))},
        .bound = add_bound(problem),
        .plan = [=] { return add_on_host(problem, device, add); },
    };
  }
};

}  // namespace

const AddSolver& add_reference() {
  static const AddReference solver;
  return solver;
}

}  // namespace omniconv::operations
