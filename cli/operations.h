// A network's operations, and the table of train --operations and predict --operations.
#pragma once

#include "omniconv/training.h"
#include "report.h"

namespace omniconv::cli {

// Its operations in their order, with their solvers.
Json steps_json(const Network& network);

// What each operation of a step takes by itself, again and again, so that its arrays may lie in caches, beside what it
// could not do without, the largest of three: its launches, its bytes, and its arithmetic where multiply-adds do it, at
// the device's measured peaks. `step_seconds`: what a whole step took; 0: not known. It changes the network's
// parameters: for the end. json["steps"] gets what was seen.
void report_operations(Network& network, double step_seconds, bool prints, Json& json);

}  // namespace omniconv::cli
