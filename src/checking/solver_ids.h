// The solvers of every operation by their ids, for whoever names one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace omniconv::checking {

// In the order of the registries.
std::vector<std::string_view> solver_ids();

// "conv2d", of "conv2d/direct/cpu.1".
std::string_view operation_of_id(std::string_view solver_id);

// Throws where no solver of any operation has this id, with the nearest that there are.
void require_any_solver(std::string_view id);
// The same of what ids begin with: "conv2d/direct".
void require_any_solver_like(std::string_view pattern);

}  // namespace omniconv::checking
