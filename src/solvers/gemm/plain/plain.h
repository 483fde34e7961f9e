// How `plain` spreads a product over work items.
#pragma once

#include <memory>

#include "solvers/gemm/gemm.h"

namespace omniconv::solvers {

struct PlainShape {
  std::int64_t group;             // work items
  std::int64_t items_n, columns;  // work items along a row, and columns of each
  std::int64_t tile_m, tile_n;    // of a group
};
PlainShape plain_shape_for(const GemmProblem& problem, bool is_gpu);

// A plan that does as it is told; its task and device are not set yet.
std::unique_ptr<GemmPlanBody> plan_of_shape(const GemmTask& task, devices::Device& device, const PlainShape& shape);

}  // namespace omniconv::solvers
