// Batches on the CPU: some images at a time, over the device's threads.
#include <algorithm>

#include "core/checked.h"
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/batch/batch.h"
#include "operations/batch/direct/rows.h"
#include "operations/batch/draw.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t of_piece = 1 << 13;  // elements, some microseconds

// Of the table in the type of y, where that is another one than the table's.
std::int64_t table_bytes(const BatchProblem& problem) {
  return problem.type == DataType::f32 ? 0 : 256 * problem.c * size_of(problem.type);
}

class Plan final : public BatchPlanBody {
 public:
  Plan(const BatchProblem& problem, const DevicePointer& device)
      : BatchPlanBody(problem), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)) {}

  void append(devices::Sequence& sequence, const BatchArrays& run, std::span<const Scalar> scalars,
              const Operand& workspace) const override {
    Operand table = run.table;
    if (table_bytes(problem()) > 0) {
      table = workspace;
      sequence.call(devices::HostTask([self = shared_from_this(), this, from = run.table, to = workspace] {
        for (std::int64_t i = 0; i < 256 * problem().c; ++i)
          store_element(problem().type, load_element(DataType::f32, host(from) + i * size_of(DataType::f32)),
                        host(to) + i * size_of(problem().type));
      }));
    }
    BatchArrays arrays = run;
    arrays.table = table;
    sequence.call(devices::HostTask([self = shared_from_this(), this, arrays](std::span<const double> values) {
                    execute(arrays, BatchNumbers(values));
                  }),
                  scalars);
  }

 private:
  void execute(const BatchArrays& run, const BatchNumbers& numbers) const {
    const BatchProblem& p = problem();
    const std::int64_t elements = elements_of_image(p), at_once = std::max<std::int64_t>(of_piece / elements, 1);
    cpu_.parallel_for(divide_up(p.n, at_once), [&](std::int64_t piece, int) {
      for (std::int64_t i = piece * at_once; i < std::min((piece + 1) * at_once, p.n); ++i) make(run, numbers, i);
    });
  }

  void make(const BatchArrays& run, const BatchNumbers& numbers, std::int64_t i) const {
    const BatchProblem& p = problem();
    const auto [place, number] = image_of(p, host(run.order), numbers, i);
    const std::int64_t elements = elements_of_image(p);
    kernels::make_image(p, place < 0 ? nullptr : host(run.images) + place * elements, draw_of(p, numbers, number),
                        host(run.table), host(run.y) + i * elements * size_of(p.type));
    const std::int32_t label = place < 0 ? -1 : std::to_integer<std::int32_t>(host(run.labels)[place]);
    std::memcpy(host(run.classes) + i * std::int64_t{sizeof label}, &label, sizeof label);
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
};

class DirectCpu final : public BatchSolver {
 public:
  std::string_view id() const override { return "batch/direct/cpu.1"; }
  Answer offer(const BatchProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    const std::int64_t workspace = table_bytes(problem);
    if (request.max_workspace_bytes >= 0 && workspace > request.max_workspace_bytes)
      return fmt::format("needs a workspace of {} bytes for the table in {}, and {} is the limit", workspace,
                         name(problem.type), request.max_workspace_bytes);
    constexpr double element = 80;  // two loads and a store, one by one, while a core could make so many multiply-adds
    return Offer{
        .cost = {std::max(byte_cost(*device) * least_bytes(problem),
                          element * static_cast<double>(problem.n) * static_cast<double>(elements_of_image(problem)))},
        .bound = {.exact = true},
        .workspace_bytes = workspace,
        .plan = [=] { return std::make_shared<Plan>(problem, device); },
    };
  }
};

}  // namespace

const BatchSolver& batch_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
