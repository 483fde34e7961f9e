// The plan that the CPU's direct, separable and premultiplied solvers share: tiles of the output over the arena's
// threads.
#pragma once

#include "solvers/solver.h"

namespace omniconv::solvers {

std::int64_t cpu_workspace_bytes(const Filter2dTask& task, const devices::Device& device, bool rows_first);
std::unique_ptr<Filter2dPlanBody> make_cpu_plan(const Filter2dTask& task,
                                                const std::shared_ptr<devices::Device>& device, bool rows_first);

}  // namespace omniconv::solvers
