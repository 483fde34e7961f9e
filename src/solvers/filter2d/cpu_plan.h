// The plan that the CPU's solvers share: tiles of the output over the arena's threads.
#pragma once

#include "kernels/cpu/tile_filter.h"
#include "solvers/solver.h"

namespace omniconv::solvers {

// chains: over the taps; rows_first: along rows, then down columns; byte_dots: chains of integers
// (kernels/cpu/dot_rows.h).
enum class CpuMethod { chains, rows_first, byte_dots };

std::int64_t cpu_workspace_bytes(const Filter2dTask& task, const devices::Device& device, CpuMethod method);
std::unique_ptr<Filter2dPlanBody> make_cpu_plan(const Filter2dTask& task,
                                                const std::shared_ptr<devices::Device>& device, CpuMethod method);

// Rows first, by these factors in place of the weights.
std::int64_t cpu_workspace_bytes(const Filter2dTask& task, const devices::Device& device,
                                 const kernels::Products& products);
std::unique_ptr<Filter2dPlanBody> make_cpu_plan(const Filter2dTask& task,
                                                const std::shared_ptr<devices::Device>& device,
                                                const kernels::Products& products);

}  // namespace omniconv::solvers
