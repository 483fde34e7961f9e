// The picture of a training: its loss and its accuracy by epoch, and beside them the classes that were found.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "canvas.h"
#include "confusion.h"
#include "curves.h"
#include "plot.h"

namespace omniconv::cli::plot {
namespace {

constexpr int width = 1680, height = 960;
constexpr double title_height = 70, left_part = 760;

Curve curve(const std::vector<EpochReport>& epochs, std::string name, const Colour& colour, double EpochReport::*value,
            double times = 1) {
  Curve made{.name = std::move(name), .colour = colour, .points = {}};
  for (const EpochReport& epoch : epochs)
    if (value == &EpochReport::loss || epoch.validation_images > 0)
      made.points.emplace_back(static_cast<double>(epoch.epoch), times * epoch.*value);
  return made;
}

void widen(const Curve& of, double& least, double& most) {
  for (const auto& [epoch, value] : of.points) least = std::min(least, value), most = std::max(most, value);
}

void draw_losses(Canvas& canvas, const Box& box, const std::vector<EpochReport>& epochs) {
  std::vector<Curve> curves = {curve(epochs, "training", blue, &EpochReport::loss)};
  if (Curve other = curve(epochs, "validation", vermillion, &EpochReport::validation_loss); !other.points.empty())
    curves.push_back(other), curves.back().is_dashed = true;
  double least = 0, most = 0;
  for (const Curve& one : curves) widen(one, least, most);
  const double step = step_of(most > 0 ? most : 1, 5);
  draw_curves(canvas, box,
              {.title = "Loss",
               .across = "epoch",
               .up = "cross entropy (nats)",
               .epochs = static_cast<double>(epochs.back().epoch),
               .least = 0,
               .most = std::max(step, step * std::ceil(most / step - 1e-9))},
              curves);
}

// Of the images kept apart after each epoch, and of the test at the end.
void draw_accuracies(Canvas& canvas, const Box& box, const TrainingPicture& picture, Curve&& validation) {
  const auto last = static_cast<double>(picture.epochs.back().epoch);
  const double test = 100 * picture.test.accuracy();
  validation.is_dashed = true;
  std::vector<Curve> curves = {std::move(validation),
                               {.name = fmt::format("test, at the end: {:.2f} %", test),
                                .colour = black,
                                .points = {{last, test}},
                                .is_level = true}};
  double least = 100, most = 0;
  for (const Curve& one : curves) widen(one, least, most);
  const double step = step_of(100 - std::min(least, 99.0), 5);
  draw_curves(canvas, box,
              {.title = "Accuracy",
               .across = "epoch",
               .up = "images found right",
               .epochs = last,
               .least = std::max(0.0, 100 - step * std::ceil((100 - std::min(least, 99.0)) / step - 1e-9)),
               .most = 100,
               .unit = " %"},
              curves);
}

std::string draw(const TrainingPicture& picture) {
  Canvas canvas(width, height);
  Style title{.size = 27, .is_bold = true};
  title.size *= std::min(1.0, (width - 80) / canvas.width_of(picture.title, title));
  canvas.text(40, 44, At::left, picture.title, title);
  const Box left{16, title_height, left_part, height - title_height - 8};
  Curve validation = curve(picture.epochs, "validation", vermillion, &EpochReport::validation_accuracy, 100);
  if (validation.points.empty()) {
    draw_losses(canvas, left, picture.epochs);
  } else {
    const double half = left.height / 2;
    draw_losses(canvas, {left.left, left.top, left.width, half}, picture.epochs);
    draw_accuracies(canvas, {left.left, left.top + half, left.width, half}, picture, std::move(validation));
  }
  draw_confusion(canvas, {left.right() + 24, title_height, width - left.right() - 32, left.height}, picture.classes,
                 picture.test);
  return canvas.png();
}

}  // namespace
}  // namespace omniconv::cli::plot

extern "C" const omniconv::cli::PlotModule* omniconv_plot_module() {
  static const omniconv::cli::PlotModule module = {OMNICONV_VERSION, &omniconv::cli::plot::draw};
  return &module;
}
