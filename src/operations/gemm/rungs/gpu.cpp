// Matrix products as the classic study makes them, on OpenCL and CUDA devices.
#include "operations/gemm/gemm.h"
#include "operations/gemm/gpu_text.h"
#include "operations/rungs/products.h"

namespace omniconv::operations {
namespace {

class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& task, devices::Device& device, const RungTile& tile)
      : GemmPlanBody(task), products_(device, tile, task.problem.transpose_a, task.problem.transpose_b) {}
  double compile_seconds() const override { return products_.compile_seconds(); }

  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    const GemmProblem& p = task().problem;
    products_.append(sequence,
                     {.transpose_a = p.transpose_a,
                      .transpose_b = p.transpose_b,
                      .m = p.m,
                      .n = p.n,
                      .k = p.k,
                      .lda = task().lda,
                      .ldb = task().ldb,
                      .ldc = task().ldc,
                      .batch = p.batch,
                      .batch_a = task().batch_a,
                      .batch_b = task().batch_b,
                      .batch_c = task().batch_c},
                     arrays.a, arrays.b, arrays.c, arrays.alpha);
  }

 private:
  RungProducts products_;
};

class RungsGpu final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/rungs/gpu.1"; }
  SolverRole role() const override { return SolverRole::study; }
  Answer offer(const GemmTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = gemm_gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = rung_type_refusal(task.problem.type); !reason.empty()) return reason;
    if (task.bias != BiasAlong::none || task.relu || task.accumulate) return "the study's products have no ends";
    const RungTile tile = rung_tile_of(request);
    if (std::string reason = rung_refusal(*device, tile, rung_product_bytes(tile)); !reason.empty()) return reason;
    return Offer{
        .cost = rung_cost(*device, least_bytes(task), rung_product_cost(tile) * multiply_adds(task.problem)),
        .bound = gemm_bound(task, static_cast<double>(task.problem.k)),
        .tuning = tile.tuning(),
        .plan = [=] { return std::make_shared<Plan>(task, *device, tile); },
    };
  }
  std::span<const Tunable> tunables() const override { return rung_tunables(); }
};

}  // namespace

const GemmSolver& gemm_rungs_gpu() {
  static const RungsGpu solver;
  return solver;
}

}  // namespace omniconv::operations
