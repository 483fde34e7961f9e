// The reference as a solver: the formulas in double precision, a channel after the other.
#include <cmath>

#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/batch_norm/batch_norm.h"
#include "operations/batch_norm/reference/channel.h"

namespace omniconv::operations {
namespace {

using Pass = BatchNormProblem::Pass;

class Plan final : public BatchNormPlanBody {
 public:
  Plan(const BatchNormProblem& problem, const DevicePointer& device)
      : BatchNormPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)) {}

  void append(devices::Sequence& sequence, const BatchNormArrays& run, std::span<const Scalar> scalars) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run](std::span<const double> values) {
                    cpu_.parallel_for(problem().c, [&](std::int64_t c, int) {
                      if (problem().pass == Pass::backward)
                        differentiate(run, c);
                      else
                        normalise(run, c, values[0], problem().pass == Pass::forward ? values[1] : 0);
                    });
                  }),
                  scalars);
  }

 private:
  double number(const NormArray& array, std::int64_t c) const {
    const DataType type = channel_type(problem());
    return load_element(type, host(array) + c * size_of(type));
  }
  void put(double value, const NormArray& array, std::int64_t c) const {
    const DataType type = channel_type(problem());
    store_element(type, value, host(array) + c * size_of(type));
  }
  double element(const NormArray& array, std::int64_t place) const {
    return load_element(problem().type, host(array) + place * size_of(problem().type));
  }
  void put_element(double value, const NormArray& array, std::int64_t place) const {
    store_element(problem().type, value, host(array) + place * size_of(problem().type));
  }
  template <typename With>
  void for_each_place(std::int64_t c, const With& with) const {
    const NormPlanes planes(problem());
    for (std::int64_t plane = 0; plane < planes.planes; ++plane)
      for (std::int64_t k = 0; k < planes.inner; ++k) with((plane * problem().c + c) * planes.inner + k);
  }

  void normalise(const BatchNormArrays& run, std::int64_t c, double epsilon, double momentum) const {
    const BatchNormProblem& p = problem();
    double mean = 0, variance = 0;
    if (p.pass == Pass::inference) {
      mean = number(run.running_mean, c), variance = number(run.running_var, c);
    } else {
      const reference::ChannelMoments moments = reference::channel_moments(p, host(run.x), c);
      const auto count = static_cast<double>(NormPlanes(p).positions());
      mean = moments.mean, variance = moments.variance;
      put((1 - momentum) * number(run.running_mean, c) + momentum * mean, run.running_mean, c);
      put((1 - momentum) * number(run.running_var, c) + momentum * variance * count / (count - 1), run.running_var, c);
      put(mean, run.mean, c);
      put(1 / std::sqrt(variance + epsilon), run.invstd, c);
    }
    const double scale = number(run.gamma, c) / std::sqrt(variance + epsilon), beta = number(run.beta, c);
    for_each_place(c, [&](std::int64_t place) {
      const double y = (element(run.x, place) - mean) * scale + beta;
      put_element(p.relu && y < 0 ? 0 : y, run.result, place);
    });
  }

  void differentiate(const BatchNormArrays& run, std::int64_t c) const {
    const BatchNormProblem& p = problem();
    const reference::ChannelNumbers numbers{.mean = number(run.mean, c),
                                            .invstd = number(run.invstd, c),
                                            .gamma = number(run.gamma, c),
                                            .beta = number(run.beta, c)};
    const reference::ChannelSums sums = reference::channel_sums(p, host(run.x), host(run.dy), c, numbers);
    const auto count = static_cast<double>(NormPlanes(p).positions());
    const double dbeta = sums.g, dgamma = sums.product * numbers.invstd;
    for_each_place(c, [&](std::int64_t place) {
      const double x = element(run.x, place), xhat = (x - numbers.mean) * numbers.invstd;
      const double g = reference::passed_gradient(p, x, element(run.dy, place), numbers);
      put_element(numbers.gamma * numbers.invstd * (g - (dbeta + xhat * dgamma) / count), run.result, place);
    });
    put(dbeta, run.dbeta, c);
    put(dgamma, run.dgamma, c);
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
};

class BatchNormReference final : public BatchNormSolver {
 public:
  std::string_view id() const override { return "batch_norm/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const BatchNormProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    const double scalar = problem.pass == Pass::inference ? 800 : 2400;  // every element is looked up by itself
    return Offer{
        .cost = {byte_cost(*device) * moved_bytes(problem) + scalar * static_cast<double>(elements_of(problem))},
        .bound = batch_norm_bound(problem, problem.type == DataType::f64 ? NormPlanes(problem).positions() : 0),
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }
};

}  // namespace

const BatchNormSolver& batch_norm_reference() {
  static const BatchNormReference solver;
  return solver;
}

}  // namespace omniconv::operations
