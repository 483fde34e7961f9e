// The reference as a solver: the sum in double precision, term by term, and the factor of what is stored of it.
#include "core/convert.h"
#include "operations/host_operand.h"
#include "operations/norm/norm.h"

namespace omniconv::operations {
namespace {

class Plan final : public NormPlanBody {
 public:
  Plan(const NormProblem& problem, const DevicePointer& device) : NormPlanBody(problem), device_(device) {}

  void append(devices::Sequence& sequence, const NormArrays& run) const override {
    const std::array<Scalar, 2> scalars = {run.most, run.scale};
    sequence.call(devices::HostTask(
                      [self = shared_from_this(), this, run](std::span<const double> values) { execute(run, values); }),
                  scalars);
  }

 private:
  void execute(const NormArrays& run, std::span<const double> scalars) const {
    const NormProblem& p = problem();
    const DataType type = sum_type(p);
    double sum = p.accumulate ? load_element(type, host(run.sum)) : 0;
    for (std::int64_t i = 0; i < p.n; ++i) {
      const double g = load_element(p.type, host(run.g) + i * size_of(p.type));
      sum += g * g;
    }
    store_element(type, sum, host(run.sum));
    const double stored = load_element(type, host(run.sum));
    const double factor =
        type == DataType::f64
            ? norm_factor(stored, scalars[0], scalars[1])
            : norm_factor(static_cast<float>(stored), static_cast<float>(scalars[0]), static_cast<float>(scalars[1]));
    store_element(type, factor, host(run.factor));
  }

  DevicePointer device_;
};

class NormReference final : public NormSolver {
 public:
  std::string_view id() const override { return "norm/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const NormProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 800;  // every element is looked up by itself
    return Offer{
        .cost = {byte_cost(*device) * least_bytes(problem) + scalar * static_cast<double>(problem.n)},
        .bound = norm_bound(problem, problem.type == DataType::f64 ? problem.n : 0),
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }
};

}  // namespace

const NormSolver& norm_reference() {
  static const NormReference solver;
  return solver;
}

}  // namespace omniconv::operations
