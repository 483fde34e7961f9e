// The candidates, one line each, closed by the reference.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "omniconv/error.h"
#include "operations/gemm/gemm.h"
#include "operations/gemm/problem.h"

namespace omniconv::operations {

std::span<const Solver* const> gemm_solvers() {
  static const std::array<const Solver*, 10> solvers = {
      &gemm_packed_cpu(),  //
      &gemm_vector_cpu(),  //
      &gemm_split_gpu(),   //
      &gemm_planes_gpu(),  //
      &gemm_mma_gpu(),     //
      &gemm_tiled_gpu(),   //
      &gemm_short_gpu(),   //
      &gemm_plain_gpu(),   //
      &gemm_rungs_gpu(),   //
      &gemm_reference(),   //
  };
  return solvers;
}

Offer best_gemm(const GemmTask& task, const DevicePointer& device, std::int64_t workspace_limit) {
  const SolverOptions request{.max_workspace_bytes = workspace_limit};
  std::optional<Offer> best;
  for (const Solver* const solver : gemm_solvers()) {
    if (solver->role() == SolverRole::study) continue;
    Answer answer = static_cast<const GemmSolver*>(solver)->offer(task, device, request);
    if (const Offer* const offer = answer.offer(); offer != nullptr && offer->uses_only_fma)
      if (!best || offer->cost.multiply_adds < best->cost.multiply_adds) best = *offer;
  }
  if (!best) throw bad_input(fmt::format("no gemm serves {} on {}", print(task.problem), device->info().id));
  return *std::move(best);
}

Answer tuned_gemm(const GemmTask& task, const DevicePointer& device, std::int64_t workspace_limit,
                  const Tuning& tuning) {
  const SolverOptions request{.max_workspace_bytes = workspace_limit, .tuning = tuning.to_text()};
  for (const Solver* const solver : gemm_solvers())
    if (solver->role() != SolverRole::study && domain_refusal(tuning, solver->tunables()).empty()) {
      Answer answer = static_cast<const GemmSolver*>(solver)->offer(task, device, request);
      if (answer.offer() == nullptr || answer.offer()->uses_only_fma) return answer;
    }
  return "no product is tuned so";
}

std::shared_ptr<const GemmPlanBody> plan_of(const Offer& gemm) {
  return std::static_pointer_cast<const GemmPlanBody>(gemm.plan());
}

GemmTask task_for(const GemmProblem& problem) {
  validate(problem);
  GemmTask task;
  task.problem = problem;
  task.output = problem.type;
  task.lda = problem.transpose_a ? problem.m : problem.k;
  task.ldb = problem.transpose_b ? problem.k : problem.n;
  task.ldc = problem.n;
  task.batch_a = problem.m * problem.k;
  task.batch_b = problem.k * problem.n;
  task.batch_c = problem.m * problem.n;
  return task;
}

}  // namespace omniconv::operations
