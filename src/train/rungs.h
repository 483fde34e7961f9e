// The rungs of the classic study's ladder, for a network's operations: docs/study.md.
#pragma once

#include <string_view>

#include "omniconv/solver_options.h"
#include "omniconv/training.h"

namespace omniconv::training {

// Throws for what no kernel of the rung is for: a device, or a precision.
void require_rung(const Context& context, const NetworkOptions& options);
// Whether a layer's functions are operations of their own, and not computed with their neighbours.
bool is_unfused(const RungOptions& rungs);
// The rung's solver of the operation and its tuning; empty where it has none, and our own serves.
struct RungSolver {
  std::string solver, tuning;
};
RungSolver solver_on(const RungOptions& rungs, std::string_view operation);

}  // namespace omniconv::training
