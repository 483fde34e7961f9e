// The reference as a solver: sums in double precision, term by term.
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/bias_add/bias_add.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

class Plan final : public BiasAddPlanBody {
 public:
  Plan(const BiasAddProblem& problem, const DevicePointer& device)
      : BiasAddPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)) {}

  void append(devices::Sequence& sequence, const BiasAddRun& run, const Operand&) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const BiasAddRun& run) const {
    const BiasAddProblem& p = problem();
    const ChannelPlanes planes(p);
    const std::int64_t size = size_of(p.type);
    cpu_.parallel_for(p.c, [&](std::int64_t c, int) {
      std::byte* const own = host(run.b) + c * size;
      double sum = 0;
      for (std::int64_t plane = 0; plane < planes.planes; ++plane)
        for (std::int64_t k = 0; k < planes.inner; ++k) {
          const std::int64_t at = ((plane * p.c + c) * planes.inner + k) * size;
          if (p.backward) {
            sum += gradient(run, at);
          } else {
            const double value = load_element(p.type, host(run.x) + at) + load_element(p.type, own);
            store_element(p.type, p.relu && value <= 0 ? 0 : value, host(run.y) + at);
          }
        }
      if (p.backward) store_element(p.type, sum, own);
    });
  }

  // dx of the element, which is stored where there is a relu: NaN passes.
  double gradient(const BiasAddRun& run, std::int64_t at) const {
    const BiasAddProblem& p = problem();
    if (!p.relu) return load_element(p.type, host(run.y) + at);
    const double dx = load_element(p.type, host(run.output) + at) <= 0 ? 0 : load_element(p.type, host(run.y) + at);
    store_element(p.type, dx, host(run.x) + at);
    return dx;
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
};

class BiasAddReference final : public BiasAddSolver {
 public:
  std::string_view id() const override { return "bias_add/double/cpu.1"; }
  SolverRole role() const override { return SolverRole::reference; }
  Answer offer(const BiasAddProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    constexpr double scalar = 800;  // every element is looked up by itself
    return Offer{
        .cost = {byte_cost(*device) * least_bytes(problem) + scalar * static_cast<double>(elements_of(problem))},
        .bound = bias_add_bound(problem, problem.type == DataType::f64 ? ChannelPlanes(problem).positions() : 0),
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }
};

}  // namespace

const BiasAddSolver& bias_add_reference() {
  static const BiasAddReference solver;
  return solver;
}

}  // namespace omniconv::operations
