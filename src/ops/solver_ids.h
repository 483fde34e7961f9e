// The solvers of every operation by their ids, for whoever names one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "omniconv/problem.h"

namespace omniconv {

// In the order of the registries: filter2d, conv2d, gemm.
std::vector<std::string_view> solver_ids();

// "conv2d", of an id or of a problem.
std::string_view operation_of(std::string_view solver_id);
std::string_view operation_of(const Problem& problem);

// Whether it is one of those that close a registry: scalar, for checks, hundreds of times slower than the others.
bool is_reference(std::string_view solver_id);

// Throws where no solver of any operation has this id, with the nearest that there are.
void require_any_solver(std::string_view id);
// The same of what ids begin with: "conv2d/direct".
void require_any_solver_like(std::string_view pattern);

}  // namespace omniconv
