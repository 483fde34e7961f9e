// What filter plans know beside their problem.
#pragma once

#include "omniconv/filter2d.h"
#include "operations/filter2d/weights.h"

namespace omniconv::choice {

// The problem with its weights; lives as long as the plan, or a copy of it.
const Filter2dTask& task_of(const Filter2dPlan& plan);

}  // namespace omniconv::choice
