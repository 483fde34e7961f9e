// gemm as a building block: the problem, and what only other solvers ask for.
//
//   c[i, j] = relu(sum over t of a[i, t] * b[t, j] + bias + c[i, j] as it was), for each matrix of the batch
//
// with a and b stored transposed where the problem says so, and row-major. Sums are fp32 (f64 of f64), whatever is
// stored.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "omniconv/gemm.h"
#include "solvers/matrix_solver.h"

namespace omniconv::solvers {

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
  std::shared_ptr<const ImageColumns> images;  // else b and c are stored matrices; `packed` alone reads images
};

// The packed problem, nothing else asked.
GemmTask task_for(const GemmProblem& problem);

// Where a run reads and writes. They do not overlap, and are as large as the task says.
struct GemmArrays {
  Operand a, b, c, bias;
  Operand workspace;  // at a multiple of 64 bytes
};

class GemmPlanBody : public std::enable_shared_from_this<GemmPlanBody> {
 public:
  virtual ~GemmPlanBody() = default;
  virtual std::int64_t workspace_bytes() const = 0;
  virtual double compile_seconds() const { return 0; }
  virtual Event run(devices::Queue& queue, const GemmArrays& arrays) const = 0;

  // Set before the first run.
  GemmTask task;
  std::string solver_id;
  std::shared_ptr<devices::Device> device;
};

using GemmSolver = MatrixSolver<GemmTask, GemmPlanBody>;

// The candidates, in order; the reference closes the list.
std::span<const GemmSolver* const> gemm_solvers();

// The applicable one of least cost: never none, since the reference (on the CPU) and `tiled` (elsewhere) serve all
// tasks.
const GemmSolver& best_gemm(const GemmTask& task, const devices::Device& device);

// The solver's plan, with its task, id and device set.
std::shared_ptr<const GemmPlanBody> make_plan(const GemmSolver& solver, const GemmTask& task,
                                              const std::shared_ptr<devices::Device>& device,
                                              std::int64_t workspace_limit);

// One of each folder.
const GemmSolver& gemm_packed_cpu();
const GemmSolver& gemm_tiled_gpu();
const GemmSolver& gemm_plain_gpu();
const GemmSolver& gemm_reference();

}  // namespace omniconv::solvers
