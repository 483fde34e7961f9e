// Which classes were taken for which, as a table of numbers in colours.
#pragma once

#include <string>
#include <vector>

#include "canvas.h"
#include "omniconv/training.h"

namespace omniconv::cli::plot {

void draw_confusion(Canvas& canvas, const Box& box, const std::vector<std::string>& classes, const Evaluation& result);

}  // namespace omniconv::cli::plot
