// The reference as a solver.
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/batch/batch.h"
#include "operations/batch/reference/element.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

class Plan final : public BatchPlanBody {
 public:
  Plan(const BatchProblem& problem, const DevicePointer& device)
      : BatchPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)) {}

  void append(devices::Sequence& sequence, const BatchArrays& run, std::span<const Scalar> scalars,
              const Operand&) const override {
    sequence.call(devices::HostTask(
                      [self = shared_from_this(), this, run](std::span<const double> values) { execute(run, values); }),
                  scalars);
  }

 private:
  void execute(const BatchArrays& run, std::span<const double> values) const {
    const BatchProblem& p = problem();
    const reference::BatchData data{host(run.images), host(run.labels), host(run.order), host(run.table)};
    const BatchNumbers numbers(values);
    const std::int64_t elements = elements_of_image(p);
    cpu_.parallel_for(p.n, [&](std::int64_t i, int) {
      for (std::int64_t at = i * elements; at < (i + 1) * elements; ++at)
        store_element(p.type, reference::batch_element(p, data, numbers, at), host(run.y) + at * size_of(p.type));
      store_element(DataType::s32, reference::batch_class(p, data, numbers, i),
                    host(run.classes) + i * size_of(DataType::s32));
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
};

class BatchReference final : public BatchSolver {
 public:
  std::string_view id() const override { return "batch/definition/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const BatchProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 3000;  // every element draws for itself
    return Offer{
        .cost = {byte_cost(*device) * least_bytes(problem) +
                 scalar * static_cast<double>(problem.n) * static_cast<double>(elements_of_image(problem))},
        .bound = {.exact = true},
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }
};

}  // namespace

const BatchSolver& batch_reference() {
  static const BatchReference solver;
  return solver;
}

}  // namespace omniconv::operations
