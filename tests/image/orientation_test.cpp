// A kernel does to the picture that is seen what its user meant, however the pixels are stored.
#include <gtest/gtest.h>

#include <vector>

#include "image/kernel_text.h"

namespace omniconv::image {
namespace {

struct Picture {
  std::int64_t h, w;
  std::vector<double> pixels;
  double at(std::int64_t y, std::int64_t x) const { return pixels[static_cast<std::size_t>(y * w + x)]; }
};

// What is seen of stored pixels, from the table of the Exif standard (2.32, tag 0x0112): which stored corner is at the
// seen top left, and which way the stored axes run.
Picture seen(const Picture& stored, int orientation) {
  const bool transposed = orientation >= 5;
  Picture picture{transposed ? stored.w : stored.h, transposed ? stored.h : stored.w, {}};
  for (std::int64_t y = 0; y < picture.h; ++y)
    for (std::int64_t x = 0; x < picture.w; ++x) {
      const std::int64_t last_row = stored.h - 1, last_column = stored.w - 1;
      switch (orientation) {
        case 1: picture.pixels.push_back(stored.at(y, x)); break;
        case 2: picture.pixels.push_back(stored.at(y, last_column - x)); break;
        case 3: picture.pixels.push_back(stored.at(last_row - y, last_column - x)); break;
        case 4: picture.pixels.push_back(stored.at(last_row - y, x)); break;
        case 5: picture.pixels.push_back(stored.at(x, y)); break;
        case 6: picture.pixels.push_back(stored.at(last_row - x, y)); break;
        case 7: picture.pixels.push_back(stored.at(last_row - x, last_column - y)); break;
        default: picture.pixels.push_back(stored.at(x, last_column - y)); break;
      }
    }
  return picture;
}

// Zeros outside; small integers, so that sums are exact.
Picture filtered(const Picture& x, const Kernel& kernel) {
  Picture y{x.h, x.w, {}};
  const std::int64_t down = kernel.anchor_y.value_or(kernel.r / 2), right = kernel.anchor_x.value_or(kernel.s / 2);
  for (std::int64_t p = 0; p < x.h; ++p)
    for (std::int64_t q = 0; q < x.w; ++q) {
      double sum = 0;
      for (std::int64_t r = 0; r < kernel.r; ++r)
        for (std::int64_t s = 0; s < kernel.s; ++s) {
          const std::int64_t i = p + r - down, j = q + s - right;
          if (i >= 0 && i < x.h && j >= 0 && j < x.w)
            sum += x.at(i, j) * kernel.weights[static_cast<std::size_t>(r * kernel.s + s)];
        }
      y.pixels.push_back(sum);
    }
  return y;
}

TEST(Orientation, FilteringStoredPixelsFiltersTheSeenPicture) {
  Picture stored{5, 7, {}};
  for (int i = 0; i < 35; ++i) stored.pixels.push_back((i * i * 7 + 3 * i) % 23);
  Kernel wide{.r = 2, .s = 3, .weights = {1, 2, 4, 8, 16, 32}}, anchored = wide;
  anchored.anchor_y = 0, anchored.anchor_x = 2;
  const Kernel tall{.r = 3, .s = 2, .weights = wide.weights}, even{.r = 2, .s = 2, .weights = {1, 2, 4, 8}};
  for (const Kernel& kernel : {wide, anchored, tall, even})
    for (int orientation = 1; orientation <= 8; ++orientation) {
      const Picture expected = filtered(seen(stored, orientation), kernel);
      const Picture found = seen(filtered(stored, turned_to_stored(kernel, orientation)), orientation);
      EXPECT_EQ(found.pixels, expected.pixels) << orientation;
    }
}

// Of a pair each kernel is turned by itself.
TEST(Orientation, PairsKeepTheirOrder) {
  const Kernel pair{.r = 2,
                    .s = 3,
                    .weights = {1, 2, 4, 8, 16, 32},
                    .anchor_y = 0,
                    .anchor_x = 2,
                    .second_weights = {3, 1, 4, 1, 5, 9}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Kernel turned = turned_to_stored(pair, orientation);
    Kernel x = pair, y = pair;
    y.weights = pair.second_weights;
    EXPECT_EQ(turned.weights, turned_to_stored(x, orientation).weights) << orientation;
    EXPECT_EQ(turned.second_weights, turned_to_stored(y, orientation).weights) << orientation;
    EXPECT_EQ(turned.anchor_y, turned_to_stored(x, orientation).anchor_y) << orientation;
  }
}

}  // namespace
}  // namespace omniconv::image
