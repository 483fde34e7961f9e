// What the tests of opacity in files share.
#pragma once

#include <string>
#include <vector>

#include "files.h"
#include "image/kernel_text.h"
#include "image/pipeline.h"

namespace omniconv::image {

// Colours and opacities of all kinds, a quarter of the pixels transparent and a quarter opaque.
inline Image image_with_opacity(std::int64_t h, std::int64_t w, std::int64_t c, unsigned seed) {
  Image image = random_image(h, w, c, DataType::u8, seed);
  image.info.alpha_channel = static_cast<int>(c) - 1;
  for (std::int64_t pixel = 0; pixel < h * w; ++pixel) {
    std::byte& opacity = image.pixels[static_cast<std::size_t>(pixel * c + c - 1)];
    if (pixel % 4 == 0) opacity = std::byte{0};
    if (pixel / 3 % 4 == 1) opacity = std::byte{255};
  }
  return image;
}

// The definition over the whole stored image, with opacity in channel `alpha`.
inline std::vector<std::byte> defined(const Image& image, const FilterReport& report, std::int64_t alpha) {
  const Context cpu({.device = "cpu", .threads = 2});
  Filter2dProblem problem = report.problem;
  problem.alpha_channel = alpha;
  const Filter2dPlan plan(cpu, problem, report.filter, {.solver = "filter2d/definition/cpu.1"});
  std::vector<std::byte> pixels = image.pixels, result(static_cast<std::size_t>(P(problem) * Q(problem) * problem.c));
  Queue queue = cpu.make_queue();
  plan.run(queue, {.input = cpu.borrow(pixels.data(), static_cast<std::int64_t>(pixels.size())),
                   .output = cpu.borrow(result.data(), static_cast<std::int64_t>(result.size()))})
      .wait();
  return result;
}

}  // namespace omniconv::image
