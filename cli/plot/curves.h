// Numbers by epoch, as lines above axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "canvas.h"

namespace omniconv::cli::plot {

struct Curve {
  std::string name;
  Colour colour;
  bool is_dashed = false;
  std::vector<std::pair<double, double>> points;  // an epoch, and what it had; one is a level across them all
  bool is_level = false;
};

struct Axes {
  std::string title, across, up;  // what they count, with units
  double epochs = 1, least = 0, most = 1;
  std::string unit = {};  // behind each number of the axis that goes up
};

// A step of 1, 2 or 5 times a power of ten, so that `parts` of them at most reach over the length.
double step_of(double length, int parts);

void draw_curves(Canvas& canvas, const Box& box, const Axes& axes, const std::vector<Curve>& curves);

}  // namespace omniconv::cli::plot
