#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "image/formats/npy/npy.h"
#include "image/kernel_text.h"
#include "targets.h"

namespace omniconv::fuzz {
namespace {

std::string in_lines(const Kernel& kernel, char separator) {
  std::string text;
  for (std::size_t i = 0; i < kernel.weights.size(); ++i)
    text +=
        fmt::format("{}{}", kernel.weights[i], (i + 1) % static_cast<std::size_t>(kernel.s) == 0 ? '\n' : separator);
  return text;
}

std::string in_imagemagick_form(const Kernel& kernel) {
  std::string text = fmt::format("{}x{}", kernel.s, kernel.r);
  if (kernel.anchor_x) text += fmt::format("+{}+{}", *kernel.anchor_x, *kernel.anchor_y);
  return text + ": " + in_lines(kernel, ',');
}

std::string as_array(const Kernel& kernel) {
  const std::int64_t shape[] = {kernel.r, kernel.s};
  std::string text = image::npy_header_text(DataType::f64, shape);
  return text.append(reinterpret_cast<const char*>(kernel.weights.data()), kernel.weights.size() * sizeof(double));
}

// To the bit: -0 is not 0.
bool same_weights(const Kernel& a, const Kernel& b) {
  return a.r == b.r && a.s == b.s && a.weights.size() == b.weights.size() &&
         std::memcmp(a.weights.data(), b.weights.data(), a.weights.size() * sizeof(double)) == 0;
}

void check(const Kernel& kernel) {
  const auto is_side = [](std::int64_t extent) { return extent >= 1 && extent <= largest_kernel_side; };
  require(is_side(kernel.r) && is_side(kernel.s), "a kernel has 1 to 4096 rows and columns");
  require(std::ssize(kernel.weights) == kernel.r * kernel.s, "a kernel has a weight for each tap");
  bool all_zero = true;
  for (const double weight : kernel.weights) {
    require(std::isfinite(weight), "weights are finite");
    all_zero = all_zero && weight == 0;
  }
  require(!all_zero, "not all weights are zero");
  require(kernel.anchor_x.has_value() == kernel.anchor_y.has_value(),
          "an anchor has both coordinates, or there is none");
  if (kernel.anchor_x)
    require(
        *kernel.anchor_x >= 0 && *kernel.anchor_x < kernel.s && *kernel.anchor_y >= 0 && *kernel.anchor_y < kernel.r,
        "the anchor lies in the kernel");
}

void check_round_trip(const Kernel& kernel) {
  for (const std::string& text : {in_lines(kernel, ' '), in_lines(kernel, ','), as_array(kernel)})
    require(same_weights(image::parse_kernel_file(text, "written"), kernel), "a kernel reads as it was written");
  const std::string literal = in_imagemagick_form(kernel);
  for (const Kernel& again : {image::parse_kernel_file(literal, "written"), image::parse_kernel(literal)}) {
    require(same_weights(again, kernel), "a kernel reads as it was written in ImageMagick's form");
    require(again.anchor_x == kernel.anchor_x && again.anchor_y == kernel.anchor_y, "its anchor is kept");
  }
}

// What --kernel takes, but for the names of files, which would be read.
bool names_a_file(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '@';
}

// Named kernels of four digits a side are legitimate, and take seconds under the sanitizers.
bool has_large_number(std::string_view text) {
  int digits = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 3) return true;
  }
  return false;
}

}  // namespace

void kernel_file(std::string_view content) {
  Kernel kernel;
  if (!refused([&] { kernel = image::parse_kernel_file(content, "file"); })) {
    check(kernel);
    check_round_trip(kernel);
    for (int orientation = 1; orientation <= 8; ++orientation) check(turned_to_stored(kernel, orientation));
    // Weights that are far apart in size may leave nothing but zeros: infinities and NaN must not come of it.
    if (!refused([&] { normalize(kernel); }))
      for (const double weight : kernel.weights) require(std::isfinite(weight), "normalized weights are finite");
  }

  if (names_a_file(content) || has_large_number(content)) return;
  if (refused([&] { kernel = image::parse_kernel(content); })) return;
  check(kernel);
  if (kernel.weights.size() <= 4096) check_round_trip(kernel);
}

}  // namespace omniconv::fuzz
