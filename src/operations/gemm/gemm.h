// gemm as a building block: the problem, and what only other solvers ask for.
//
//   c[i, j] = relu(alpha * (sum over t of a[i, t] * b[t, j]) + bias + c[i, j] as it was), for each matrix of the batch
//
// with a and b stored transposed where the problem says so, and row-major. Sums are fp32 (f64 of f64), whatever is
// stored.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "omniconv/gemm.h"
#include "operations/solver.h"

namespace omniconv::operations {

// Of c: one for each row, or one for each column.
enum class BiasAlong : std::uint8_t { none, rows, columns };

// Columns that are pixels of images: b is read out of images, of the sums' type, and c are images. Column j is pixel
// i = j % pixels of image j / pixels.
struct ImageColumns {
  std::int64_t pixels = 1;
  // b[t, j] lies at image * image_b + i / run * run_pitch + i % run + steps[t].
  std::int64_t image_b = 0, run = 1, run_pitch = 0;
  std::vector<std::int64_t> steps;
  std::int64_t image_c = 0;  // c[i, j] lies at image * image_c + i * ldc + pixel
};

struct GemmTask {
  GemmProblem problem;
  DataType output = DataType::f32;  // of c: the problem's type, or f32, that sums may be stored as they are
  // Elements from one stored row to the next, at least a row's own.
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  // Elements from one matrix of the batch to the next; 0 of a and b: all use the same. Matrices of c do not overlap.
  std::int64_t batch_a = 0, batch_b = 0, batch_c = 0;
  BiasAlong bias = BiasAlong::none;  // m or n elements of the problem's type, the same for all matrices
  bool accumulate = false;           // c is added to
  bool relu = false;
  bool prepared_a = false, prepared_b = false;  // runs give it in the solver's own form
  bool may_pair = true;                         // bf16 by the processor's products of pairs, where it has them
  bool may_set_last_apart = true;               // the last column's sums may have another order than the others'
  bool is_whole =
      true;  // else one of several products, whose sums have one order, however many rows and columns it has
  std::shared_ptr<const ImageColumns> images;  // else b and c are stored matrices; `packed` alone reads images
};

// The packed problem, nothing else asked.
GemmTask task_for(const GemmProblem& problem);

// Where a run reads and writes. They do not overlap, and are as large as the task says.
struct GemmArrays {
  Operand a, b, c, bias;
  Operand workspace;  // at a multiple of 64 bytes
  Scalar alpha = 1;   // where c is not added to
};

class GemmPlanBody : public PlanBody {
 public:
  explicit GemmPlanBody(const GemmTask& task) : task_(task) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  virtual void append(devices::Sequence& sequence, const GemmArrays& arrays) const = 0;
  // a where `of_a`, else b.
  virtual void append_prepare(devices::Sequence&, bool of_a, const Operand& from, const Operand& to) const;
  void append_prepare(devices::Sequence& sequence, std::size_t array, const Operand& from,
                      const Operand& to) const final;
  const GemmTask& task() const { return task_; }

 private:
  GemmTask task_;
};

using GemmSolver = SolverOf<GemmTask>;

// Of a request for gemm itself.
inline bool prepares(const SolverOptions& request, std::string_view array) {
  return std::find(request.prepared.begin(), request.prepared.end(), array) != request.prepared.end();
}

inline ErrorBound gemm_bound(const GemmTask& task, double chain) {
  return {.chain = chain, .f64 = task.problem.type == DataType::f64};
}

// Multiply-adds of all matrices.
inline double multiply_adds(const GemmProblem& problem) {
  return static_cast<double>(problem.batch) * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
         static_cast<double>(problem.k);
}

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> gemm_solvers();

// For solvers that multiply inside, but by no rung of the study, and promise that they use fused multiply-adds alone:
// of offers that do, the one of least cost, within a limit of its workspace's bytes (negative: none) or as near to it
// as can be: never none, since the reference (on the CPU) and `plain` (elsewhere) serve all tasks that store matrices.
Offer best_gemm(const GemmTask& task, const DevicePointer& device, std::int64_t workspace_limit);
// With a tuning: that of such a solver whose names it has, or why it has none.
Answer tuned_gemm(const GemmTask& task, const DevicePointer& device, std::int64_t workspace_limit,
                  const Tuning& tuning);
std::shared_ptr<const GemmPlanBody> plan_of(const Offer& gemm);

// One of each folder.
const GemmSolver& gemm_packed_cpu();
const GemmSolver& gemm_vector_cpu();
const GemmSolver& gemm_split_gpu();
const GemmSolver& gemm_planes_gpu();
const GemmSolver& gemm_mma_gpu();
const GemmSolver& gemm_tiled_gpu();
const GemmSolver& gemm_short_gpu();
const GemmSolver& gemm_plain_gpu();
const GemmSolver& gemm_rungs_gpu();
const GemmSolver& gemm_reference();

}  // namespace omniconv::operations
