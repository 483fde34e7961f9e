// How `plain` spreads a product over work items.
#pragma once

#include <memory>

#include "operations/gemm/gemm.h"

namespace omniconv::operations {

struct PlainShape {
  std::int64_t group;             // work items
  std::int64_t items_n, columns;  // work items along a row, and columns of each
  std::int64_t tile_m, tile_n;    // of a group
};
PlainShape plain_shape_for(const GemmProblem& problem, bool is_gpu);

// A plan that does as it is told.
std::shared_ptr<const GemmPlanBody> plan_of_shape(const GemmTask& task, devices::Device& device,
                                                  const PlainShape& shape);

}  // namespace omniconv::operations
