#include "confusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace omniconv::cli::plot {
namespace {

constexpr double top_margin = 44, header = 30, right_margin = 104, gap = 12;

// From white to a dark blue: lightness alone says how much.
Colour shade(double share) {
  constexpr Colour dark{0.03, 0.19, 0.42};
  // One image among many is seen, too.
  const double t = share > 0 ? 0.06 + 0.94 * std::clamp(share, 0.0, 1.0) : 0;
  return {1 + t * (dark.red - 1), 1 + t * (dark.green - 1), 1 + t * (dark.blue - 1)};
}

// A class's number, and its name where that is another one; cut off where it is long.
std::string label(const std::vector<std::string>& classes, std::size_t c) {
  constexpr std::size_t most = 15;
  const std::string& name = classes[c];
  if (name == std::to_string(c)) return name;
  return fmt::format("{} {}", name.size() > most ? name.substr(0, most - 1) + "…" : name, c);
}

struct Grid {
  double left, top, cell;
  std::size_t classes;

  double side() const { return cell * static_cast<double>(classes); }
  Box box(std::size_t of, std::size_t as) const {
    return {left + cell * static_cast<double>(as), top + cell * static_cast<double>(of), cell, cell};
  }
};

void draw_row(Canvas& canvas, const Grid& grid, std::size_t of, const std::int64_t* counts) {
  std::int64_t all = 0;
  for (std::size_t as = 0; as < grid.classes; ++as) all += counts[as];
  const double size = std::min(19.0, grid.cell * 0.34);
  for (std::size_t as = 0; as < grid.classes; ++as) {
    const Box box = grid.box(of, as);
    const double share = all > 0 ? static_cast<double>(counts[as]) / static_cast<double>(all) : 0;
    canvas.fill(box, shade(share));
    if (counts[as] > 0)
      canvas.text(box.left + box.width / 2, box.top + box.height / 2, At::middle, std::to_string(counts[as]),
                  {.size = size, .colour = share > 0.45 ? white : black, .is_bold = of == as});
  }
  if (all > 0)
    canvas.text(grid.left + grid.side() + gap, grid.box(of, 0).top + grid.cell / 2, At::left,
                fmt::format("{:.1f} %", 100 * static_cast<double>(counts[of]) / static_cast<double>(all)),
                {.size = size, .colour = grey});
}

}  // namespace

void draw_confusion(Canvas& canvas, const Box& box, const std::vector<std::string>& classes, const Evaluation& result) {
  const Style words{.size = 18, .is_bold = true};
  const double names = std::clamp(0.4 * box.height / static_cast<double>(classes.size() + 4), 6.0, 18.0);
  double widest = 0;
  for (std::size_t c = 0; c < classes.size(); ++c)
    widest = std::max(widest, canvas.width_of(label(classes, c), {.size = names}));
  const double margin = widest + 2 * gap + words.size;  // of the names, and of what they are
  const double side = std::min(box.width - margin - right_margin, box.height - top_margin - header - margin - gap);
  const Grid grid{.left = box.left + margin,
                  .top = box.top + top_margin + header,
                  .cell = side / static_cast<double>(classes.size()),
                  .classes = classes.size()};
  canvas.text(grid.left, box.top + top_margin / 2, At::left, "Images of the test, by their class and the one found",
              {.size = 21, .is_bold = true});
  canvas.text(grid.left + side + gap, grid.top - 16, At::left, "right", {.size = 18});
  for (std::size_t c = 0; c < classes.size(); ++c) {
    draw_row(canvas, grid, c, result.confusion.data() + c * classes.size());
    const double middle = grid.cell * (static_cast<double>(c) + 0.5);
    canvas.text(grid.left - gap, grid.top + middle, At::right, label(classes, c), {.size = names});
    canvas.text(grid.left + middle, grid.top + side + gap, At::right, label(classes, c),
                {.size = names, .is_upright = true});
  }
  for (std::size_t c = 1; c < classes.size(); ++c) {
    const double at = grid.cell * static_cast<double>(c);
    canvas.line({{grid.left + at, grid.top}, {grid.left + at, grid.top + side}}, pale, 1);
    canvas.line({{grid.left, grid.top + at}, {grid.left + side, grid.top + at}}, pale, 1);
  }
  canvas.outline({grid.left, grid.top, side, side}, grey, 1.5);
  canvas.text(grid.left - margin + words.size / 2, grid.top + side / 2, At::middle, "class",
              {.size = words.size, .is_bold = true, .is_upright = true});
  canvas.text(grid.left + side / 2, grid.top + side + margin, At::middle, "found as", words);
}

}  // namespace omniconv::cli::plot
