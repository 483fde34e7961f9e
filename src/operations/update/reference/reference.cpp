// The reference as a solver.
#include <cmath>

#include "core/convert.h"
#include "operations/update/host_plan.h"
#include "operations/update/reference/element.h"
#include "operations/update/update.h"

namespace omniconv::operations {
namespace {

double scaled_gradient(const UpdateProblem& problem, const UpdatePiece& piece, std::int64_t i) {
  return load_element(problem.type, piece.g + i * size_of(problem.type)) * piece.factor;
}

void copy(const UpdateProblem& problem, const UpdatePiece& piece) {
  const std::int64_t from = size_of(state_type(problem)), to = size_of(problem.type);
  for (std::int64_t i = 0; i < piece.elements; ++i)
    store_element(problem.type, load_element(state_type(problem), piece.w + i * from), piece.copy + i * to);
}

// In the type of w, whose range a product may leave.
bool is_finite(const UpdateProblem& problem, double g) {
  return std::isfinite(problem.type == DataType::f64 ? g : static_cast<double>(static_cast<float>(g)));
}

bool update(const UpdateProblem& problem, const UpdatePiece& piece, std::span<const double> numbers) {
  const reference::UpdateNumbers rounded = reference::update_numbers(problem, numbers);
  const DataType type = state_type(problem);
  bool all_finite = true;
  for (std::int64_t i = 0; i < piece.elements; ++i) {
    const double g = scaled_gradient(problem, piece, i);
    if (problem.guarded && !is_finite(problem, g)) {
      all_finite = false;
      continue;
    }
    const std::int64_t at = i * size_of(type);
    const reference::UpdateState before{.w = load_element(type, piece.w + at),
                                        .m = load_element(type, piece.m + at),
                                        .v = piece.v == nullptr ? 0 : load_element(type, piece.v + at)};
    const reference::UpdateState after = reference::updated(problem.rule, rounded, g, before);
    store_element(type, after.w, piece.w + at);
    store_element(type, after.m, piece.m + at);
    if (piece.v != nullptr) store_element(type, after.v, piece.v + at);
  }
  if (piece.copy != nullptr) copy(problem, piece);
  return all_finite;
}

class UpdateReference final : public UpdateSolver {
 public:
  std::string_view id() const override { return "update/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const UpdateProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 1600;  // every element is looked up by itself
    return Offer{
        .cost = {byte_cost(*device) * least_bytes(problem) + scalar * static_cast<double>(problem.n)},
        .bound = update_bound(problem),
        .plan =
            [=] {
              return update_on_host(problem, device, {update, copy});
            },
    };
  }
};

}  // namespace

const UpdateSolver& update_reference() {
  static const UpdateReference solver;
  return solver;
}

}  // namespace omniconv::operations
