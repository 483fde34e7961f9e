#include "canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "omniconv/error.h"

namespace omniconv::cli::plot {
namespace {

constexpr double pi = 3.14159265358979323846;

void require(cairo_status_t status) {
  if (status != CAIRO_STATUS_SUCCESS)
    throw environment_error(fmt::format("the plot cannot be drawn: cairo: {}", cairo_status_to_string(status)));
}

}  // namespace

Canvas::Canvas(int width, int height)
    : surface_(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height)), cairo_(cairo_create(surface_)) {
  fill({0, 0, static_cast<double>(width), static_cast<double>(height)}, white);
}

Canvas::~Canvas() {
  cairo_destroy(cairo_);
  cairo_surface_destroy(surface_);
}

void Canvas::select(const Colour& colour) {
  cairo_set_source_rgb(cairo_, colour.red, colour.green, colour.blue);
}

void Canvas::select(const Style& style) {
  select(style.colour);
  cairo_select_font_face(cairo_, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         style.is_bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cairo_, style.size);
}

void Canvas::fill(const Box& box, const Colour& colour) {
  select(colour);
  cairo_rectangle(cairo_, box.left, box.top, box.width, box.height);
  cairo_fill(cairo_);
}

void Canvas::outline(const Box& box, const Colour& colour, double width) {
  select(colour);
  cairo_set_line_width(cairo_, width);
  cairo_rectangle(cairo_, box.left, box.top, box.width, box.height);
  cairo_stroke(cairo_);
}

void Canvas::line(const Points& points, const Colour& colour, double width, bool is_dashed) {
  constexpr double dashes[] = {8, 6};
  select(colour);
  cairo_set_line_width(cairo_, width);
  cairo_set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);
  cairo_set_dash(cairo_, dashes, is_dashed ? static_cast<int>(std::size(dashes)) : 0, 0);
  cairo_new_path(cairo_);  // a text leaves a point behind
  for (const auto& [x, y] : points) cairo_line_to(cairo_, x, y);
  cairo_stroke(cairo_);
  cairo_set_dash(cairo_, nullptr, 0, 0);
}

void Canvas::disk(double x, double y, double radius, const Colour& colour) {
  select(colour);
  cairo_new_path(cairo_);
  cairo_arc(cairo_, x, y, radius, 0, 2 * pi);
  cairo_fill(cairo_);
}

double Canvas::width_of(const std::string& words, const Style& style) {
  select(style);
  cairo_text_extents_t extents;
  cairo_text_extents(cairo_, words.c_str(), &extents);
  return extents.x_advance;
}

void Canvas::text(double x, double y, At at, const std::string& words, const Style& style) {
  const double width = width_of(words, style), before = at == At::left ? 0 : at == At::right ? width : width / 2;
  // Of digits, whatever the letters are: words of one line stand alike.
  cairo_text_extents_t digit;
  cairo_text_extents(cairo_, "0", &digit);
  cairo_save(cairo_);
  cairo_translate(cairo_, x, y);
  if (style.is_upright) cairo_rotate(cairo_, -pi / 2);
  cairo_move_to(cairo_, -before, -digit.y_bearing - digit.height / 2);
  cairo_show_text(cairo_, words.c_str());
  cairo_restore(cairo_);
}

std::string Canvas::png() {
  require(cairo_status(cairo_));
  std::string bytes;
  const cairo_write_func_t append = [](void* to, const unsigned char* from, unsigned int size) {
    static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(from), size);
    return CAIRO_STATUS_SUCCESS;
  };
  require(cairo_surface_write_to_png_stream(surface_, append, &bytes));
  return bytes;
}

}  // namespace omniconv::cli::plot
