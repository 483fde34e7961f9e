// The reference as a solver: every sum in double precision.
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/gemm/gemm.h"
#include "operations/gemm/reference/element.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& product, const DevicePointer& device)
      : GemmPlanBody(product), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)) {}
  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, arrays](std::span<const double> scalars) {
                    execute(arrays, scalars[0]);
                  }),
                  std::span(&arrays.alpha, 1));
  }

 private:
  void execute(const GemmArrays& arrays, double alpha) const {
    const GemmTask& task = this->task();
    const GemmProblem& problem = task.problem;
    const std::int64_t size = size_of(problem.type), size_c = size_of(task.output);
    const std::byte *const a = host(arrays.a), *const b = host(arrays.b), *const bias = host(arrays.bias);
    std::byte* const c = host(arrays.c);
    cpu_.parallel_for(problem.batch * problem.m, [&](std::int64_t row, int) {
      const std::int64_t batch = row / problem.m, i = row % problem.m;
      for (std::int64_t j = 0; j < problem.n; ++j) {
        double value = alpha * reference::gemm_element(problem, a + batch * task.batch_a * size, task.lda,
                                                       b + batch * task.batch_b * size, task.ldb, i, j)
                                   .value;
        std::byte* const to = c + (batch * task.batch_c + i * task.ldc + j) * size_c;
        if (task.bias != BiasAlong::none)
          value += load_element(problem.type, bias + (task.bias == BiasAlong::rows ? i : j) * size);
        if (task.accumulate) value += load_element(task.output, to);
        store_element(task.output, task.relu && value < 0 ? 0.0 : value, to);
      }
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
};

class GemmReference final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const GemmTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (task.images || task.prepared_a || task.prepared_b) return "reads stored matrices alone";
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 800;  // every element is looked up by itself
    return Offer{
        .cost = {scalar * multiply_adds(task.problem)},
        // Sums in f64; what is left is far below the rounding of fp32, and of f64 a chain.
        .bound = gemm_bound(task, task.problem.type == DataType::f64 ? static_cast<double>(task.problem.k) : 0),
        .plan = [=] { return std::make_shared<Plan>(task, device); },
    };
  }
};

}  // namespace

const GemmSolver& gemm_reference() {
  static const GemmReference solver;
  return solver;
}

}  // namespace omniconv::operations
