// What the solvers of gemm and conv2d promise alike: applicable means that the result is right, within the stated
// bound, for every such task.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "devices/device.h"
#include "omniconv/solver_options.h"

namespace omniconv::solvers {

// |error| <= amplification * (chain / 2 + constant) * epsilon * (sum |a * b| + |bias| + |what c held|), per output
// element, before it is rounded to the type that is stored. epsilon is 2^-23; 2^-52 of f64.
struct MatrixBound {
  double amplification = 1;
  double chain = 0;     // L, dependent additions
  double constant = 2;  // the additions of bias and of what the output held
};

// A byte that moves through the device's memory, in multiply-adds at its peak: what costs add up.
inline double byte_cost(const devices::Device& device) {
  return device.info().is_gpu ? 7 : 12;  // an H200: 28.9e12 / 4.2e12; two AVX-512 cores: 170e9 / 14e9
}

template <typename Task, typename Plan>
class MatrixSolver {
 public:
  virtual ~MatrixSolver() = default;
  // With a version, never a class name: "gemm/packed/cpu.1".
  virtual std::string_view id() const = 0;
  // Empty when applicable, else one sentence that says why not.
  virtual std::string refusal(const Task& task, const devices::Device& device) const = 0;
  virtual MatrixBound bound(const Task& task, const devices::Device& device) const = 0;
  virtual bool uses_only_fma() const { return true; }
  virtual bool is_deterministic() const { return true; }
  // Of a run, in multiply-adds at the device's peak; the choice takes the smallest.
  virtual double cost(const Task& task, const devices::Device& device) const = 0;
  // What the plan of an applicable task will say that was made under a limit (negative: none), without making it; more
  // than the limit where no less will do.
  virtual std::int64_t workspace_bytes(const Task& task, const devices::Device& device, std::int64_t limit) const = 0;
  virtual std::unique_ptr<Plan> plan(const Task& task, const std::shared_ptr<devices::Device>& device,
                                     std::int64_t workspace_limit) const = 0;
};

}  // namespace omniconv::solvers
