// The solvers of conv2d, and what they share.
#pragma once

#include <span>

#include "omniconv/conv2d.h"
#include "solvers/matrix_solver.h"

namespace omniconv::solvers {

class Conv2dPlanBody : public std::enable_shared_from_this<Conv2dPlanBody> {
 public:
  virtual ~Conv2dPlanBody() = default;
  virtual std::int64_t workspace_bytes() const = 0;
  virtual double compile_seconds() const { return 0; }
  // `run` has been validated.
  virtual Event run(devices::Queue& queue, const Conv2dRun& run) const = 0;

  // Set before the first run.
  Conv2dProblem problem;
  std::string solver_id;
  std::shared_ptr<devices::Device> device;
};

// Of the definition: n * k * P * Q * c / groups * r * s, whatever the pass.
double multiply_adds(const Conv2dProblem& problem);
// Terms of the longest sum of the pass: c / groups * r * s forward, k / groups * r * s of the data, n * P * Q of the
// filter.
double longest_sum(const Conv2dProblem& problem);

using Conv2dSolver = MatrixSolver<Conv2dProblem, Conv2dPlanBody>;

// The candidates, in order; the reference closes the list.
std::span<const Conv2dSolver* const> conv2d_solvers();

// The solver's plan, with its problem, id and device set.
std::shared_ptr<const Conv2dPlanBody> make_plan(const Conv2dSolver& solver, const Conv2dProblem& problem,
                                                const std::shared_ptr<devices::Device>& device,
                                                std::int64_t workspace_limit);

const Conv2dSolver& conv2d_im2col_gemm_cpu();
const Conv2dSolver& conv2d_im2col_gemm_gpu();
const Conv2dSolver& conv2d_direct_cpu();
const Conv2dSolver& conv2d_direct_gpu();
const Conv2dSolver& conv2d_reference();

}  // namespace omniconv::solvers
