// filter2d, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "omniconv/filter2d.h"
#include "operations/filter2d/weights.h"
#include "operations/solver.h"

namespace omniconv::operations {

// The refusal of solvers that treat all channels alike.
inline std::string alpha_refusal(const Filter2dTask& task) {
  if (task.weights.alpha_rule == AlphaRule::none) return {};
  return fmt::format("treats all channels alike, and channel {} holds opacity", task.problem.alpha_channel);
}

// Of the solvers that filter by one kernel.
inline constexpr const char* pair_refusal = "the result is the magnitude of a pair of kernels, and this filters by one";

class Filter2dPlanBody : public PlanBody {
 public:
  explicit Filter2dPlanBody(const Filter2dTask& task) : task_(task) {}
  // The whole image.
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // `run` has been validated: buffers present and large enough, strides and row ranges filled in.
  virtual void append(devices::Sequence& sequence, const Filter2dRun& run) const = 0;
  // Of runs of at most so many output rows, where the whole image's takes `whole` bytes.
  virtual std::int64_t strip_workspace_bytes(std::int64_t /*output_rows*/, std::int64_t whole) const { return whole; }
  const Filter2dTask& task() const { return task_; }

 private:
  Filter2dTask task_;
};

using Filter2dSolver = SolverOf<Filter2dTask>;

// Output elements, and bytes of both images.
double output_elements(const Filter2dProblem& problem);
double image_bytes(const Filter2dProblem& problem);

// What a solver says of a task that it serves. `operations`: all that an output element costs, in the time of one of
// the device's multiply-adds at its peak (docs/choosing.md); cost.h has what solvers share. A bound is stated even
// where the solver is bit-exact, for floating images: of sums before the conversion to the output type, in units of
// epsilon * (|scale| * sum |x * w| + |bias|); for a pair of kernels with the square root of the sum of both sums'
// squares.
struct FilterOffer {
  double operations = 0;
  ErrorBound bound = {};
  bool keeps_bits = true;  // of integer images, which are promised
  std::int64_t workspace_bytes = 0;
  Tuning tuning = {};
  std::function<std::shared_ptr<const PlanBody>()> plan = {};
};
Offer offer_of(const Filter2dTask& task, FilterOffer offer);

// The candidates, in order; the references close the list.
std::span<const Solver* const> filter2d_solvers();

}  // namespace omniconv::operations
