// Which record of a patch meets which filter in conv2d/few_channels, against the definition: the kernels' own text,
// without a device.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "omniconv/problem.h"
#include "operations/conv2d/few_channels/geometry.h"

#include "kernel_by_processor.h"

namespace omniconv::operations {
namespace {

using namespace by_processor;

// Local memory of a launch, not where a swizzle begins; and what the work items of a group give the matrix units.
constexpr uint launch_address = 128;
alignas(1024) uchar launch_memory[1 << 17];
uint local_address(const void* at) {
  return static_cast<uint>(static_cast<const uchar*>(at) - launch_memory) + launch_address;
}
uint given[256][4][8];

ulong tile_of(uint address, int line) {
  EXPECT_EQ(line, 32);
  EXPECT_EQ(address % 256, 0U);
  return static_cast<ulong>(address >> 4) | ulong{1} << 16 | ulong{256 >> 4} << 32 | ulong{3} << 62;
}
void begin_products() {}
void commit_products() {}
void publish_to_units() {}
void fetch_line(const void*) {}
void meet() {
  meet_warpgroup();
}

#define LAUNCH_LOCAL(type, name) type* const name = launch_memory
#define AWAIT_PRODUCTS(but)
#define MAXIMA 3

// Extents of a problem of a form. Of x or of w all numbers have more bits than a part of fp16.
struct Extents {
  std::int64_t n = 1, h = 1, w = 1, k = 1, groups = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  bool are_parts = true;
  std::int64_t y_at = 0;       // the first of y, from an aligned place on
  float odd_x = 0, odd_w = 0;  // in the middle, where they are not 0
};

Conv2dProblem problem_of(const few_channels::Form& form, const Extents& e, bool nhwc, bool flip) {
  Conv2dProblem problem;
  problem.n = e.n, problem.c = form.channels * e.groups, problem.h = e.h, problem.w = e.w, problem.k = e.k;
  problem.stride_h = form.stride_h, problem.stride_w = form.stride_w / form.side;
  problem.r = form.taps_h, problem.s = form.taps_w - (form.side - 1) * problem.stride_w, problem.groups = e.groups;
  problem.dilation_h = form.dilation_h, problem.dilation_w = form.dilation_w;
  problem.pad_top = e.pad_top, problem.pad_left = e.pad_left;
  problem.pad_bottom = e.pad_bottom, problem.pad_right = e.pad_right;
  problem.layout = nhwc ? Layout::nhwc : Layout::nchw, problem.flip = flip;
  return problem;
}

// Integers, of at most 3 or of 13 bits.
struct Memory {
  Memory(const Conv2dShape& g, const Extents& e)
      : x(randoms(g.n * g.c * g.h * g.w, 1, e.are_parts && g.k % 2 == 0 ? 4095 : 3)),
        w(randoms(g.k * g.c_group * g.r * g.s, 2, e.are_parts && g.k % 2 == 1 ? 4095 : 3)),
        bias(randoms(g.k, 3, 3)),
        y_at(e.y_at),
        y(randoms(e.y_at + g.n * g.k * g.p * g.q + e.y_at, 4, 3)) {
    if (e.odd_x != 0) x[x.size() / 2] = e.odd_x;
    if (e.odd_w != 0) w[w.size() / 2] = e.odd_w;
  }
  static std::vector<float> randoms(std::int64_t count, unsigned seed, int most) {
    std::mt19937 random(seed);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& each : values)
      each = static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(2 * most + 1)) - most);
    return values;
  }
  float of_y(std::size_t i) const { return y[static_cast<std::size_t>(y_at) + i]; }
  std::vector<float> x, w, bias;
  std::int64_t y_at;  // so many numbers stand before y, and behind it
  std::vector<float> y;
};

std::vector<float> by_definition(const Conv2dShape& g, const Memory& memory, bool ending) {
  std::vector<float> y(static_cast<std::size_t>(g.n * g.k * g.p * g.q));
  const auto at = [](const std::vector<float>& of, std::int64_t i) {
    return static_cast<double>(of[static_cast<std::size_t>(i)]);
  };
  for (std::int64_t n = 0; n < g.n; ++n)
    for (std::int64_t k = 0; k < g.k; ++k)
      for (std::int64_t p = 0; p < g.p; ++p)
        for (std::int64_t q = 0; q < g.q; ++q) {
          double sum = 0;
          for (std::int64_t c = 0; c < g.c_group; ++c)
            for (std::int64_t r = 0; r < g.r; ++r)
              for (std::int64_t s = 0; s < g.s; ++s) {
                const std::int64_t h = g.row_of(p, r), w = g.column_of(q, s);
                const bool inside = h >= 0 && h < g.h && w >= 0 && w < g.w;
                sum += (inside ? at(memory.x, g.x_at(n, k / g.k_group * g.c_group + c, h, w)) : 0) *
                       at(memory.w, g.w_at(k, c, r, s));
              }
          const std::int64_t to = g.y_at(n, k, p, q);
          if (ending) sum += at(memory.bias, k) + at(memory.y, memory.y_at + to);
          y[static_cast<std::size_t>(to)] = static_cast<float>(ending && sum < 0 ? 0 : sum);
        }
  return y;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

// Of three channels a record is a tap; of one it is four taps, of two two, the last of them perhaps of fewer.
#define FORM \
  { .channels = 3, .taps_h = 3, .taps_w = 3, .columns = 16, .held = 2, .blocks = 2, .width = 64 }
#define NHWC 0
#define FLIP 0
#define PRODUCTS 3
#define ENDING 0
namespace three_channels {
#include "few_channels-inl.h"
}
#define FORM \
  { .channels = 3, .taps_h = 7, .taps_w = 7, .stride_h = 2, .stride_w = 2, .columns = 64, .held = 1, .blocks = 2 }
#define NHWC 1
#define FLIP 1
#define PRODUCTS 3
#define ENDING 1
namespace with_strides {
#include "few_channels-inl.h"
}
#define FORM \
  { .channels = 1, .taps_h = 5, .taps_w = 5, .columns = 8, .held = 3, .blocks = 1, .width = 32 }
#define NHWC 0
#define FLIP 1
#define PRODUCTS 3
#define ENDING 1
namespace one_channel {
#include "few_channels-inl.h"
}
#define FORM                                                                                                 \
  {                                                                                                          \
    .channels = 2, .taps_h = 4, .taps_w = 3, .stride_h = 1, .stride_w = 3, .dilation_h = 2, .dilation_w = 2, \
    .columns = 32, .held = 1, .blocks = 1                                                                    \
  }
#define NHWC 1
#define FLIP 0
#define PRODUCTS 3
#define ENDING 0
namespace two_channels {
#include "few_channels-inl.h"
}
#define FORM                                                                                                  \
  {                                                                                                           \
    .channels = 4, .taps_h = 5, .taps_w = 11, .stride_h = 3, .stride_w = 4, .dilation_h = 1, .dilation_w = 3, \
    .columns = 8, .held = 1, .blocks = 1                                                                      \
  }
#define NHWC 0
#define FLIP 0
#define PRODUCTS 3
#define ENDING 0
namespace four_channels {
#include "few_channels-inl.h"
}
#define FORM \
  { .channels = 1, .taps_h = 1, .taps_w = 1, .stride_h = 2, .stride_w = 5, .columns = 8, .held = 2, .blocks = 1 }
#define NHWC 0
#define FLIP 0
#define PRODUCTS 3
#define ENDING 0
namespace single_tap {
#include "few_channels-inl.h"
}
#define FORM \
  { .channels = 3, .taps_h = 16, .taps_w = 16, .columns = 16, .held = 1, .blocks = 2, .width = 32 }
#define NHWC 0
#define FLIP 0
#define PRODUCTS 3
#define ENDING 0
namespace many_taps {
#include "few_channels-inl.h"
}
#define FORM \
  { .channels = 2, .taps_h = 3, .taps_w = 5, .columns = 16, .held = 1, .blocks = 1 }
#define NHWC 1
#define FLIP 0
#define PRODUCTS 1
#define ENDING 0
namespace one_product {
#include "few_channels-inl.h"
}
// Pixels side by side as columns: two of 16 taps, and four of five taps with a stride.
#define FORM                                                                                                     \
  {                                                                                                              \
    .channels = 3, .taps_h = 5, .taps_w = 17, .stride_w = 2, .columns = 24, .held = 1, .blocks = 1, .width = 32, \
    .side = 2                                                                                                    \
  }
#define NHWC 0
#define FLIP 0
#define PRODUCTS 3
#define ENDING 1
namespace two_sides {
#include "few_channels-inl.h"
}
#define FORM                                                                                                       \
  {                                                                                                                \
    .channels = 1, .taps_h = 3, .taps_w = 11, .stride_h = 2, .stride_w = 8, .columns = 16, .held = 2, .blocks = 2, \
    .side = 4                                                                                                      \
  }
#define NHWC 1
#define FLIP 1
#define PRODUCTS 3
#define ENDING 0
namespace four_sides {
#include "few_channels-inl.h"
}
#pragma GCC diagnostic pop

TEST(FewChannels, MultipliesWhatTheDefinitionMultiplies) {
  three_channels::check(
      {.n = 2, .h = 18, .w = 35, .k = 32, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1});
  three_channels::check({.h = 20, .w = 20, .k = 33, .pad_top = 2, .pad_right = 3}, 2);  // sets of filters, ragged
  three_channels::check({.h = 3, .w = 3, .k = 2});
  with_strides::check(
      {.n = 2, .h = 40, .w = 45, .k = 64, .pad_top = 3, .pad_left = 3, .pad_bottom = 3, .pad_right = 3});
  with_strides::check({.h = 9, .w = 50, .k = 63, .pad_left = 5}, 2);
  one_channel::check({.n = 2, .h = 28, .w = 28, .k = 20, .pad_top = 2, .pad_left = 2, .pad_bottom = 2, .pad_right = 2});
  one_channel::check({.h = 5, .w = 21, .k = 25});
  two_channels::check({.n = 1, .h = 16, .w = 60, .k = 32, .pad_top = 1, .pad_left = 7, .pad_bottom = 3});
  four_channels::check({.n = 1, .h = 31, .w = 101, .k = 7, .pad_top = 2, .pad_left = 4, .pad_right = 9});
  three_channels::check({.n = 2, .h = 6, .w = 82, .k = 31});  // rows of y at a multiple of 16 bytes
  three_channels::check({.n = 2, .h = 6, .w = 82, .k = 18, .y_at = 3});
  three_channels::check({.n = 1, .h = 9, .w = 150, .k = 32, .pad_right = 1, .y_at = 5});  // two tiles, and a ragged one
  many_taps::check({.n = 1, .h = 18, .w = 79, .k = 12, .y_at = 2});
  single_tap::check({.n = 3, .h = 19, .w = 90, .k = 11, .pad_left = 3});
  many_taps::check({.n = 1, .h = 33, .w = 36, .k = 10});
}

// Filters that fill the columns and not, several sets, rows that end within a row of the product.
TEST(FewChannels, PixelsSideBySideAreColumns) {
  two_sides::check({.n = 2, .h = 9, .w = 70, .k = 10, .pad_top = 1, .pad_left = 3, .pad_right = 2});
  two_sides::check({.n = 1, .h = 12, .w = 40, .k = 12, .pad_left = 1}, 2);
  two_sides::check({.n = 1, .h = 8, .w = 35, .k = 15, .groups = 3, .y_at = 3});
  two_sides::check({.n = 2, .h = 8, .w = 31, .k = 26});
  four_sides::check({.n = 2, .h = 19, .w = 150, .k = 8, .pad_top = 1, .pad_left = 2});
  four_sides::check({.n = 1, .h = 12, .w = 33, .k = 11, .groups = 1, .pad_right = 4}, 2);
  four_sides::check({.n = 1, .h = 12, .w = 45, .k = 6, .groups = 2});
}

TEST(FewChannels, GroupsOfChannels) {
  three_channels::check({.n = 2, .h = 17, .w = 18, .k = 9, .groups = 3, .pad_top = 1, .pad_left = 1});
  two_channels::check({.n = 2, .h = 12, .w = 30, .k = 8, .groups = 4, .pad_left = 2}, 3);
  one_channel::check({.n = 1, .h = 12, .w = 13, .k = 8, .groups = 8, .pad_top = 2}, 2);
}

TEST(FewChannels, OneProductOfSmallNumbers) {
  one_product::check({.n = 2, .h = 14, .w = 20, .k = 13, .pad_top = 1, .pad_left = 2, .are_parts = false});
}

// By the definition, where a number is infinite or none: also where padding's zeros meet it.
TEST(FewChannels, ComputesPlainlyWhatHasNoScale) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const float odd : {infinity, -infinity, none}) {
    three_channels::check({.n = 2, .h = 5, .w = 6, .k = 6, .pad_top = 1, .pad_left = 1, .odd_x = odd});
    three_channels::check({.n = 1, .h = 5, .w = 6, .k = 6, .groups = 2, .pad_left = 1, .odd_x = -odd, .odd_w = odd});
    two_channels::check({.n = 2, .h = 12, .w = 14, .k = 6, .groups = 2, .pad_left = 2, .odd_w = odd});
  }
}

// Each form of the patch that strides, dilations and folded taps have room for: its columns do not meet.
TEST(FewChannels, PatchesHoldWhatTapsMeet) {
  for (const std::int64_t channels : {1, 2, 3, 4})
    for (const std::int64_t taps : {1, 2, 3, 4, 5, 7, 11, 16})
      for (const std::int64_t stride : {1, 2, 3, 4, 7, 16})
        for (const std::int64_t dilation : {1, 2, 5}) {
          const few_channels::Form form{
              .channels = channels, .taps_w = taps, .stride_w = stride, .dilation_w = dilation};
          EXPECT_GE(form.records() * form.fold(), taps);
          EXPECT_LT(form.records() * form.fold(), taps + 4);
          EXPECT_GE(form.plane_w() * stride, form.patch_w());
          EXPECT_GE(form.plane_w(), 16);
          const std::int64_t last = 15 * stride + (form.records() - 1) * form.fold() * dilation;
          EXPECT_EQ(last, form.patch_w() - 1);
          EXPECT_TRUE(stride == 1 || form.plane_w() % 8 == 4);
        }
}

}  // namespace
}  // namespace omniconv::operations
