#include "curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace omniconv::cli::plot {
namespace {

constexpr double left_margin = 96, bottom_margin = 66, top_margin = 44, legend_height = 34;

// As many decimals as the step has.
std::string number(double value, double step) {
  const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  return fmt::format("{:.{}f}", value + 0.0, decimals);
}

class Plane {
 public:
  Plane(const Box& box, const Axes& axes) : axes_(axes) {
    area_ = {box.left + left_margin, box.top + top_margin + legend_height, box.width - left_margin - 24,
             box.height - top_margin - legend_height - bottom_margin};
  }
  const Box& area() const { return area_; }
  // The first epoch lies beside the axis, not on it.
  double x(double epoch) const {
    return area_.left + area_.width * (axes_.epochs > 1 ? 0.02 + 0.96 * (epoch - 1) / (axes_.epochs - 1) : 0.5);
  }
  double y(double value) const {
    return area_.bottom() - area_.height * (value - axes_.least) / (axes_.most - axes_.least);
  }

 private:
  const Axes& axes_;
  Box area_;
};

void draw_axes(Canvas& canvas, const Plane& plane, const Axes& axes) {
  const Box& area = plane.area();
  const Style numbers{.size = 17, .colour = grey}, words{.size = 18};
  const double up = step_of(axes.most - axes.least, 6);
  for (int i = 0; axes.least + i * up <= axes.most + up * 1e-6; ++i) {
    const double value = axes.least + i * up, y = plane.y(value);
    canvas.line({{area.left, y}, {area.right(), y}}, pale, 1);
    canvas.text(area.left - 12, y, At::right, number(value, up) + axes.unit, numbers);
  }
  const double across = std::max(1.0, step_of(axes.epochs, 10));
  for (int i = 0; i * across <= axes.epochs; ++i) {
    const double epoch = std::max(1.0, i * across), x = plane.x(epoch);
    if (i == 1 && across <= 1) continue;  // the first one, again
    canvas.line({{x, area.bottom()}, {x, area.bottom() + 6}}, grey, 1.5);
    canvas.text(x, area.bottom() + 20, At::middle, fmt::format("{:.0f}", epoch), numbers);
  }
  canvas.line({{area.left, area.top}, {area.left, area.bottom()}, {area.right(), area.bottom()}}, grey, 1.5);
  canvas.text(area.left + area.width / 2, area.bottom() + 48, At::middle, axes.across, words);
  canvas.text(area.left - 80, area.top + area.height / 2, At::middle, axes.up,
              {.size = words.size, .is_upright = true});
}

void draw_legend(Canvas& canvas, const Box& area, const std::vector<Curve>& curves) {
  constexpr double sample = 44, gap = 10;
  const Style words{.size = 18};
  double x = area.left;
  for (const Curve& curve : curves) {
    const double y = area.top - legend_height / 2 - 2;
    canvas.line({{x, y}, {x + sample, y}}, curve.colour, 3, curve.is_dashed);
    canvas.text(x + sample + gap, y, At::left, curve.name, words);
    x += sample + gap + canvas.width_of(curve.name, words) + 32;
  }
}

}  // namespace

double step_of(double length, int parts) {
  const double least = length / parts, power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1, 2, 5})
    if (power * times >= least * (1 - 1e-9)) return power * times;
  return 10 * power;
}

void draw_curves(Canvas& canvas, const Box& box, const Axes& axes, const std::vector<Curve>& curves) {
  const Plane plane(box, axes);
  const Box& area = plane.area();
  canvas.text(area.left, box.top + top_margin / 2, At::left, axes.title, {.size = 21, .is_bold = true});
  draw_axes(canvas, plane, axes);
  draw_legend(canvas, area, curves);
  for (const Curve& curve : curves) {
    Canvas::Points points;
    if (curve.is_level) {
      const double y = plane.y(curve.points.front().second);
      canvas.line({{area.left, y}, {area.right(), y}}, curve.colour, 2);
      continue;
    }
    for (const auto& [epoch, value] : curve.points) points.emplace_back(plane.x(epoch), plane.y(value));
    canvas.line(points, curve.colour, 3, curve.is_dashed);
    if (points.size() <= 40)
      for (const auto& [x, y] : points) canvas.disk(x, y, 4.5, curve.colour);
  }
}

}  // namespace omniconv::cli::plot
