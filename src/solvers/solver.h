// The promise of a solver: applicable means that the result is right, within the stated bound, for every such task.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/weights.h"
#include "devices/device.h"
#include "omniconv/filter2d.h"

namespace omniconv::solvers {

// |error| <= amplification * (chain / 2 + constant) * epsilon * (|scale| * sum |x * w| + |bias|), per output element,
// before the conversion to the output type; for a pair of
// kernels with the square root of the sum of both sums' squares. A bit-exact solver states it all the same, for
// floating images.
struct ErrorBound {
  double amplification = 1;
  double chain = 0;     // L, dependent additions
  double constant = 2;  // the last fused multiply-add, and the rounding of s32 pixels to fp32
};

// The refusal of solvers that treat all channels alike.
inline std::string alpha_refusal(const Filter2dTask& task) {
  if (task.weights.alpha_rule == AlphaRule::none) return {};
  return fmt::format("treats all channels alike, and channel {} holds opacity", task.problem.alpha_channel);
}

// Of the solvers that filter by one kernel.
inline constexpr const char* pair_refusal = "the result is the magnitude of a pair of kernels, and this filters by one";

class Filter2dPlanBody : public std::enable_shared_from_this<Filter2dPlanBody> {
 public:
  virtual ~Filter2dPlanBody() = default;
  virtual std::int64_t workspace_bytes() const = 0;
  // Of runs of at most so many output rows.
  virtual std::int64_t strip_workspace_bytes(std::int64_t) const { return workspace_bytes(); }
  virtual double compile_seconds() const { return 0; }  // of device text, when the plan was made
  // `run` has been validated: buffers present and large enough, strides and row ranges filled in.
  virtual Event run(devices::Queue& queue, const Filter2dRun& run) const = 0;

  Filter2dTask task;
  std::string solver_id;
  std::shared_ptr<devices::Device> device;
};

class Filter2dSolver {
 public:
  virtual ~Filter2dSolver() = default;
  // With a version, never a class name: "filter2d/direct/cpu.1".
  virtual std::string_view id() const = 0;
  // Empty when applicable, else one sentence that says why not.
  virtual std::string refusal(const Filter2dTask& task, const devices::Device& device) const = 0;
  virtual ErrorBound bound(const Filter2dTask& task) const = 0;
  // All that an output element costs, in the time of one of the device's multiply-adds at its peak (docs/choosing.md);
  // filter2d/cost.h has what solvers share. The choice takes the smallest.
  virtual double operations(const Filter2dTask& task, const devices::Device& device) const = 0;
  // What the plan of an applicable task will say, without making it: no device text is compiled.
  virtual std::int64_t workspace_bytes(const Filter2dTask& task, const devices::Device& device) const = 0;
  virtual std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                                 const std::shared_ptr<devices::Device>& device) const = 0;
};

// The candidates, in order; the references close the list (registry.cpp).
std::span<const Filter2dSolver* const> filter2d_solvers();

}  // namespace omniconv::solvers
