// What the solvers that sum up the filter's gradient share: launches that look at both operands, make parts of sums and
// add them.
#pragma once

#include <string>
#include <vector>

#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/few_channels/filter_geometry.h"
#include "operations/split/products.h"

namespace omniconv::operations::few_channels {

// A kernel that makes parts of sums of so many rows by columns a set, by groups of work items.
struct FilterLaunch {
  const char* kernel = nullptr;
  FilterTask task = {};
  split_gemm::Tile tile = {};
  std::string text = {};  // behind parts.kernel
  std::vector<devices::Definition> constants = {};
  std::int64_t rows = 0, columns = 0;
  std::int64_t groups = 0, items = 0, local_bytes = 0;
};

std::int64_t filter_sums_of(const FilterTask& task, std::int64_t rows, std::int64_t columns);
split_gemm::Workspace filter_workspace_of(DataType type, std::int64_t sums);
// Of x and of y.
split_gemm::Sampling filter_sampling_of(const Conv2dProblem& problem);
// Why no such solver serves the problem; empty if one may.
std::string filter_task_refusal_of(const Conv2dProblem& problem);
// The problem's constants of few_channels_sums.kernel.
std::vector<devices::Definition> filter_constants_of(const Conv2dProblem& problem, bool rows_of_x, bool channels_last);

class FilterPlan final : public Conv2dPlanBody, split_gemm::ProductLaunches {
 public:
  FilterPlan(const Conv2dProblem& problem, devices::Device& device, const FilterLaunch& launch);
  double compile_seconds() const override { return ProductLaunches::compile_seconds(); }
  void append(devices::Sequence& sequence, const Conv2dRun& run) const override;

 private:
  FilterLaunch launch_;
  split_gemm::Sampling sampling_;
};

}  // namespace omniconv::operations::few_channels
