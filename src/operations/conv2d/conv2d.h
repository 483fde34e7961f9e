// conv2d, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include "omniconv/conv2d.h"
#include "operations/solver.h"

namespace omniconv::operations {

// The task is the problem itself.
class Conv2dPlanBody : public PlanBody {
 public:
  explicit Conv2dPlanBody(const Conv2dProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays of `run` have been checked.
  virtual void append(devices::Sequence& sequence, const Conv2dRun& run) const = 0;
  const Conv2dProblem& problem() const { return problem_; }

 private:
  Conv2dProblem problem_;
};

using Conv2dSolver = SolverOf<Conv2dProblem>;

// Of the definition: n * k * P * Q * c / groups * r * s, whatever the pass.
double multiply_adds(const Conv2dProblem& problem);
// Terms of the longest sum of the pass: c / groups * r * s forward, k / groups * r * s of the data, n * P * Q of the
// filter.
double longest_sum(const Conv2dProblem& problem);
// Of x, w and y, each once.
double least_bytes(const Conv2dProblem& problem);
// The bound of chains so long, of the problem's sums.
inline ErrorBound conv2d_bound(const Conv2dProblem& problem, double chain, double constant = 2) {
  return {.chain = chain, .constant = constant, .f64 = problem.type == DataType::f64};
}

// As problems write it.
inline const char* word_of(Layout layout) {
  return layout == Layout::nchw ? "nchw" : "nhwc";
}

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> conv2d_solvers();

const Conv2dSolver& conv2d_im2col_gemm_cpu();
const Conv2dSolver& conv2d_im2col_gemm_gpu();
const Conv2dSolver& conv2d_dense_cpu();
const Conv2dSolver& conv2d_dense_gpu();
const Conv2dSolver& conv2d_implicit_gemm_gpu();
const Conv2dSolver& conv2d_few_pixels_gpu();
const Conv2dSolver& conv2d_mma_gemm_gpu();
const Conv2dSolver& conv2d_split_gemm_gpu();
const Conv2dSolver& conv2d_few_channels_gpu();
const Conv2dSolver& conv2d_few_channels_filter_gpu();
const Conv2dSolver& conv2d_few_channels_warps_gpu();
const Conv2dSolver& conv2d_depthwise_cpu();
const Conv2dSolver& conv2d_depthwise_gpu();
const Conv2dSolver& conv2d_blocked_cpu();
const Conv2dSolver& conv2d_blocked_tiles_cpu();
const Conv2dSolver& conv2d_shifted_panels_cpu();
const Conv2dSolver& conv2d_shifted_tiles_cpu();
const Conv2dSolver& conv2d_winograd_cpu();
const Conv2dSolver& conv2d_winograd_gpu();
const Conv2dSolver& conv2d_fft_cpu();
const Conv2dSolver& conv2d_fft_gpu();
const Conv2dSolver& conv2d_direct_cpu();
const Conv2dSolver& conv2d_direct_gpu();
const Conv2dSolver& conv2d_rungs_gpu();
const Conv2dSolver& conv2d_reference();

}  // namespace omniconv::operations
