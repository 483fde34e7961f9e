// Which rows meet which patches in the filter's gradient of conv2d/few_channels, against the definition: the kernels'
// own text, without a device.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "omniconv/problem.h"
#include "operations/conv2d/few_channels/filter_geometry.h"

#include "kernel_by_processor.h"

namespace omniconv::operations {
namespace {

using namespace by_processor;

// Local memory of a launch, not where a swizzle begins; and what the work items of a group give the matrix units.
constexpr uint launch_address = 128;
alignas(1024) uchar launch_memory[1 << 18];
uint local_address(const void* at) {
  return static_cast<uint>(static_cast<const uchar*>(at) - launch_memory) + launch_address;
}
uint given[512][4][8];

ulong tile_of(uint address, int line) {
  EXPECT_EQ(line, 32);
  EXPECT_EQ(address % 256, 0U);
  return static_cast<ulong>(address >> 4) | ulong{1} << 16 | ulong{256 >> 4} << 32 | ulong{3} << 62;
}
void begin_products() {}
void commit_products() {}
void publish_to_units() {}
void commit_copies() {}
void meet_worker(int) {
  meet_warpgroup();
}

#define LAUNCH_LOCAL(type, name) type* const name = launch_memory
#define AWAIT_PRODUCTS(but)
#define AWAIT_COPIES(but)
#define MAXIMA 3

// Extents of a problem of a form, and how it is launched.
struct Extents {
  std::int64_t n = 1, h = 1, w = 1, rows = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int parts = 1, launched = 1;
  std::int64_t ahead = 0;      // numbers before each array
  int of_x = 4095, of_y = 3;   // the largest that are drawn
  float odd_x = 0, odd_y = 0;  // in the middle, where they are not 0
};

Conv2dProblem problem_of(const few_channels::FilterForm& form, const Extents& e, std::int64_t groups, bool nhwc,
                         bool flip) {
  Conv2dProblem problem;
  problem.pass = Pass::backward_filter;
  problem.n = e.n, problem.h = e.h, problem.w = e.w, problem.groups = groups;
  problem.c = (form.rows_of_x ? e.rows : form.channels) * groups;
  problem.k = (form.rows_of_x ? form.channels : e.rows) * groups;
  problem.r = form.taps_h, problem.s = form.taps_w;
  problem.stride_h = form.stride_h, problem.stride_w = form.stride_w;
  problem.dilation_h = form.dilation_h, problem.dilation_w = form.dilation_w;
  problem.pad_top = e.pad_top, problem.pad_left = e.pad_left;
  problem.pad_bottom = e.pad_bottom, problem.pad_right = e.pad_right;
  problem.layout = nhwc ? Layout::nhwc : Layout::nchw, problem.flip = flip;
  return problem;
}

// Integers; what stands around the arrays is no number, so that no sum that met it is one.
struct Arrays {
  Arrays(const Conv2dShape& g, const Extents& e)
      : ahead(e.ahead), of_x(g.n * g.c * g.h * g.w), of_y(g.n * g.k * g.p * g.q) {
    x = randoms(of_x, 1, e.of_x), y = randoms(of_y, 2, e.of_y), w = randoms(g.k * g.c_group * g.r * g.s, 3, 3);
    if (e.odd_x != 0) x[static_cast<std::size_t>(ahead + of_x / 2)] = e.odd_x;
    if (e.odd_y != 0) y[static_cast<std::size_t>(ahead + of_y / 2)] = e.odd_y;
  }
  std::vector<float> randoms(std::int64_t count, unsigned seed, int most) const {
    std::mt19937 random(seed);
    std::vector<float> values(static_cast<std::size_t>(count + ahead + 16), std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t i = 0; i < count; ++i)
      values[static_cast<std::size_t>(ahead + i)] =
          static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(2 * most + 1)) - most);
    return values;
  }
  double at(const std::vector<float>& of, std::int64_t i) const {
    return static_cast<double>(of[static_cast<std::size_t>(ahead + i)]);
  }
  std::int64_t ahead, of_x, of_y;
  std::vector<float> x, y, w;
};

std::vector<float> by_definition(const Conv2dShape& g, const Arrays& arrays, bool accumulates) {
  std::vector<float> all(static_cast<std::size_t>(g.k * g.c_group * g.r * g.s));
  for (std::int64_t k = 0; k < g.k; ++k)
    for (std::int64_t c = 0; c < g.c_group; ++c)
      for (std::int64_t r = 0; r < g.r; ++r)
        for (std::int64_t s = 0; s < g.s; ++s) {
          const std::int64_t to = g.w_at(k, c, r, s);
          double sum = accumulates ? arrays.at(arrays.w, to) : 0;
          for (std::int64_t n = 0; n < g.n; ++n)
            for (std::int64_t p = 0; p < g.p; ++p)
              for (std::int64_t q = 0; q < g.q; ++q) {
                const std::int64_t h = g.row_of(p, r), w = g.column_of(q, s);
                const bool inside = h >= 0 && h < g.h && w >= 0 && w < g.w;
                const double x = inside ? arrays.at(arrays.x, g.x_at(n, k / g.k_group * g.c_group + c, h, w)) : 0;
                sum += x * arrays.at(arrays.y, g.y_at(n, k, p, q));
              }
          all[static_cast<std::size_t>(to)] = static_cast<float>(sum);
        }
  return all;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

#define FORM \
  { .channels = 3, .taps_h = 3, .taps_w = 3, .columns = 32, .held = 1, .stages = 2, .workers = 4 }
#define GROUPS 1
#define NHWC 0
#define FLIP 0
#define PRODUCTS 3
#define ACCUMULATE 0
#define SAMPLED 0
namespace three_channels {
#include "few_channels_filter-inl.h"
}
#define FORM \
  { .channels = 3, .taps_h = 5, .taps_w = 7, .stride_h = 2, .stride_w = 3, .columns = 56, .held = 1, .stages = 1 }
#define GROUPS 2
#define NHWC 1
#define FLIP 1
#define PRODUCTS 3
#define ACCUMULATE 1
#define SAMPLED 0
namespace with_strides {
#include "few_channels_filter-inl.h"
}
#define FORM \
  { .channels = 2, .taps_h = 3, .taps_w = 5, .dilation_h = 2, .dilation_w = 3, .columns = 16, .held = 2, .stages = 2 }
#define GROUPS 1
#define NHWC 1
#define FLIP 0
#define PRODUCTS 3
#define ACCUMULATE 0
#define SAMPLED 3
namespace two_channels {
#include "few_channels_filter-inl.h"
}
#define FORM \
  { .channels = 1, .taps_h = 1, .taps_w = 40, .stride_w = 11, .columns = 24, .held = 1, .stages = 2, .workers = 3 }
#define GROUPS 3
#define NHWC 0
#define FLIP 1
#define PRODUCTS 3
#define ACCUMULATE 1
#define SAMPLED 0
namespace long_taps {
#include "few_channels_filter-inl.h"
}
#define FORM \
  { .channels = 2, .taps_h = 3, .taps_w = 2, .columns = 8, .held = 2, .stages = 1, .rows_of_x = true }
#define GROUPS 2
#define NHWC 0
#define FLIP 0
#define PRODUCTS 3
#define ACCUMULATE 0
#define SAMPLED 2
namespace few_filters {
#include "few_channels_filter-inl.h"
}
#define FORM                                                                                                          \
  {                                                                                                                   \
    .channels = 3, .taps_h = 2, .taps_w = 4, .dilation_h = 3, .dilation_w = 2, .columns = 24, .held = 1, .stages = 2, \
    .rows_of_x = true                                                                                                 \
  }
#define GROUPS 1
#define NHWC 1
#define FLIP 1
#define PRODUCTS 3
#define ACCUMULATE 0
#define SAMPLED 0
namespace dilated_filters {
#include "few_channels_filter-inl.h"
}
#define FORM \
  { .channels = 4, .taps_h = 2, .taps_w = 2, .columns = 8, .held = 3, .stages = 2 }
#define GROUPS 1
#define NHWC 0
#define FLIP 0
#define PRODUCTS 1
#define ACCUMULATE 0
#define SAMPLED 0
namespace one_product {
#include "few_channels_filter-inl.h"
}
#pragma GCC diagnostic pop

TEST(FewChannelsFilter, MultipliesWhatTheDefinitionMultiplies) {
  // Rows of y at multiples of 16 bytes, and not; more rows than 64, fewer, odd; images of less than a step.
  three_channels::check({.n = 2, .h = 18, .w = 14, .rows = 64, .parts = 3, .launched = 2});
  three_channels::check(
      {.n = 2, .h = 17, .w = 15, .rows = 65, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1, .parts = 4});
  three_channels::check({.n = 3, .h = 6, .w = 7, .rows = 10, .pad_left = 2, .parts = 2, .ahead = 3});
  three_channels::check({.n = 1, .h = 3, .w = 3, .rows = 1, .parts = 5, .launched = 3});
  three_channels::check(
      {.n = 1, .h = 4, .w = 130, .rows = 7, .pad_top = 2, .pad_right = 3, .parts = 2, .of_x = 3, .of_y = 4095});
  with_strides::check({.n = 2, .h = 30, .w = 40, .rows = 12, .pad_top = 3, .pad_left = 2, .pad_right = 4, .parts = 2});
  with_strides::check({.n = 2, .h = 11, .w = 29, .rows = 7, .pad_top = 1, .pad_left = 6, .parts = 3, .ahead = 1});
  two_channels::check({.n = 2, .h = 16, .w = 30, .rows = 20, .pad_top = 2, .pad_left = 5, .pad_bottom = 1, .parts = 3});
  two_channels::check({.n = 2, .h = 9, .w = 13, .rows = 5, .pad_top = 4, .pad_right = 6, .parts = 2, .ahead = 2});
  long_taps::check({.n = 2, .h = 3, .w = 300, .rows = 9, .pad_left = 20, .pad_right = 5, .parts = 2, .launched = 2});
  one_product::check({.n = 2, .h = 10, .w = 12, .rows = 33, .pad_top = 1, .parts = 2, .of_x = 3});
}

// Rows of x, patches of y: of few filters.
TEST(FewChannelsFilter, RowsOfX) {
  few_filters::check({.n = 2, .h = 15, .w = 16, .rows = 64, .pad_top = 1, .pad_left = 1, .pad_right = 2, .parts = 3});
  few_filters::check({.n = 2, .h = 12, .w = 13, .rows = 33, .pad_top = 5, .pad_bottom = 3, .parts = 2, .ahead = 1});
  dilated_filters::check({.n = 2, .h = 14, .w = 21, .rows = 10, .pad_top = 2, .pad_left = 3, .parts = 2});
  dilated_filters::check({.n = 1, .h = 9, .w = 11, .rows = 65, .parts = 2, .launched = 2});
  dilated_filters::check({.n = 1, .h = 9, .w = 11, .rows = 3, .pad_top = 6, .pad_left = 8});
}

// A number in the middle is larger than those that samples show.
TEST(FewChannelsFilter, MakesAgainWhatSamplesDidNotShow) {
  two_channels::check({.n = 4, .h = 16, .w = 30, .rows = 20, .pad_left = 5, .parts = 3, .of_x = 3, .odd_x = 8191});
  two_channels::check({.n = 4, .h = 16, .w = 30, .rows = 20, .pad_left = 5, .parts = 3, .of_x = 3, .odd_y = -8191});
  few_filters::check({.n = 4, .h = 16, .w = 16, .rows = 20, .parts = 2, .of_x = 3, .odd_y = 8191});
}

// By the definition, where a number is infinite or none: also where padding's zeros meet it, and where samples did not
// show it.
TEST(FewChannelsFilter, ComputesPlainlyWhatHasNoScale) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const float odd : {infinity, -infinity, none}) {
    three_channels::check({.n = 2, .h = 5, .w = 6, .rows = 6, .pad_top = 1, .pad_left = 1, .parts = 2, .odd_y = odd});
    with_strides::check({.n = 2, .h = 12, .w = 14, .rows = 6, .pad_left = 2, .odd_x = odd, .odd_y = -odd});
    two_channels::check({.n = 4, .h = 16, .w = 30, .rows = 4, .pad_left = 5, .parts = 2, .odd_x = odd});
    few_filters::check({.n = 4, .h = 16, .w = 16, .rows = 5, .parts = 2, .launched = 2, .odd_y = odd});
  }
}

}  // namespace
}  // namespace omniconv::operations
