// A picture that is drawn on, by cairo. Lengths are in pixels, from the upper left corner.
#pragma once

#include <cairo.h>

#include <string>
#include <utility>
#include <vector>

namespace omniconv::cli::plot {

struct Colour {
  double red = 0, green = 0, blue = 0;
};
// Of Okabe and Ito ("Color Universal Design", 2008), which colour-blind people tell apart.
inline constexpr Colour blue{0, 0.447, 0.698}, vermillion{0.835, 0.369, 0};
inline constexpr Colour black{0.1, 0.1, 0.1}, grey{0.42, 0.42, 0.42}, pale{0.88, 0.88, 0.88}, white{1, 1, 1};

struct Box {
  double left = 0, top = 0, width = 0, height = 0;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

// Which part of a text lies at the point where it is written.
enum class At : unsigned char { left, middle, right };

struct Style {
  double size = 18;
  Colour colour = black;
  bool is_bold = false, is_upright = false;  // upright: it runs from below to above
};

class Canvas {
 public:
  Canvas(int width, int height);
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  void fill(const Box& box, const Colour& colour);
  void outline(const Box& box, const Colour& colour, double width);
  using Points = std::vector<std::pair<double, double>>;
  void line(const Points& points, const Colour& colour, double width, bool is_dashed = false);
  void disk(double x, double y, double radius, const Colour& colour);
  // y is the middle of the letters' height; upright, x is.
  void text(double x, double y, At at, const std::string& words, const Style& style = {});
  double width_of(const std::string& words, const Style& style);
  std::string png();

 private:
  void select(const Style& style);
  void select(const Colour& colour);

  cairo_surface_t* surface_;
  cairo_t* cairo_;
};

}  // namespace omniconv::cli::plot
