// Which pixel of y meets which filter and pixel of dx in conv2d/few_channels, against the definition: the kernels' own
// text, without a device.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "omniconv/problem.h"
#include "operations/conv2d/few_channels/data_geometry.h"

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

#define LAUNCH_LOCAL(type, name) type* const name = launch_memory
#define AWAIT_PRODUCTS(but)
#define MAXIMA 3

// Extents of a problem of a form, whose filters are a group's; and how it is run. Of y or of w all numbers have more
// bits than a part of fp16. Arrays begin so many elements behind an address that is a multiple of 16 bytes.
struct Extents {
  std::int64_t n = 1, h = 1, w = 1, groups = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  std::int64_t unit_rows = 8;
  int groups_of_work = 1;
  bool are_parts = true, w_has_more = true;
  std::int64_t begin = 0;
  float odd_y = 0, odd_w = 0;  // in the middle, and of y so many further, where they are not 0
  std::int64_t odd_at = 0;
  float looked_at = -1;
  float scale_y = 1;
  std::int64_t zero_images = 0;  // of y, the first ones
};

Conv2dProblem problem_of(const few_channels::DataForm& form, const Extents& e, bool nhwc, bool flip) {
  Conv2dProblem problem;
  problem.pass = Pass::backward_data;
  problem.n = e.n, problem.c = form.channels * e.groups, problem.h = e.h, problem.w = e.w;
  problem.k = form.filters * e.groups;
  problem.r = form.taps_h, problem.s = form.taps_w, problem.groups = e.groups;
  problem.stride_h = form.stride_h, problem.stride_w = form.stride_w;
  problem.dilation_h = form.dilation_h, problem.dilation_w = form.dilation_w;
  problem.pad_top = e.pad_top, problem.pad_left = e.pad_left;
  problem.pad_bottom = e.pad_bottom, problem.pad_right = e.pad_right;
  problem.layout = nhwc ? Layout::nhwc : Layout::nchw, problem.flip = flip;
  return problem;
}

// Integers, of at most 3 or of 13 bits; NaN before and behind them.
struct Array {
  Array(std::int64_t elements, unsigned seed, int most, std::int64_t first) : begin(64 + first), count(elements) {
    std::mt19937 random(seed);
    all.assign(static_cast<std::size_t>(begin + elements + 64), std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t i = 0; i < elements; ++i)
      at(i) = static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(2 * most + 1)) - most);
  }
  float& at(std::int64_t i) { return all[static_cast<std::size_t>(begin + i)]; }
  double at(std::int64_t i) const { return static_cast<double>(all[static_cast<std::size_t>(begin + i)]); }
  std::vector<float> all;
  long begin, count;
};
struct Memory {
  Memory(const Conv2dShape& g, const Extents& e)
      : x(g.n * g.c * g.h * g.w, 4, 3, e.begin),
        w(g.k * g.c_group * g.r * g.s, 2, e.are_parts && e.w_has_more ? 4095 : 3, e.begin),
        y(g.n * g.k * g.p * g.q, 1, e.are_parts && !e.w_has_more ? 4095 : 3, e.begin) {
    for (std::int64_t i = 0; i < y.count; ++i) y.at(i) *= e.scale_y;
    for (std::int64_t i = 0; i < e.zero_images * (y.count / g.n); ++i) y.at(i) = 0;
    if (e.odd_y != 0) y.at(y.count / 2 + e.odd_at) = e.odd_y;
    if (e.odd_w != 0) w.at(w.count / 2) = e.odd_w;
  }
  Array x, w, y;
};

std::vector<float> by_definition(const Conv2dShape& g, const Memory& memory, bool accumulates) {
  std::vector<double> x(static_cast<std::size_t>(memory.x.count));
  if (accumulates)
    for (std::int64_t i = 0; i < memory.x.count; ++i) x[static_cast<std::size_t>(i)] = memory.x.at(i);
  for (std::int64_t n = 0; n < g.n; ++n)
    for (std::int64_t k = 0; k < g.k; ++k)
      for (std::int64_t p = 0; p < g.p; ++p)
        for (std::int64_t q = 0; q < g.q; ++q) {
          const double y = memory.y.at(g.y_at(n, k, p, q));
          for (std::int64_t c = 0; c < g.c_group; ++c)
            for (std::int64_t r = 0; r < g.r; ++r)
              for (std::int64_t s = 0; s < g.s; ++s) {
                const std::int64_t h = g.row_of(p, r), w = g.column_of(q, s);
                if (h < 0 || h >= g.h || w < 0 || w >= g.w) continue;
                x[static_cast<std::size_t>(g.x_at(n, k / g.k_group * g.c_group + c, h, w))] +=
                    y * memory.w.at(g.w_at(k, c, r, s));
              }
        }
  return std::vector<float>(x.begin(), x.end());
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wtype-limits"

// All taps at once, two blocks.
#define FORM                                                                                                    \
  {                                                                                                             \
    .channels = 3, .filters = 64, .taps_h = 3, .taps_w = 3, .columns = 32, .rows = 3, .blocks = 2, .width = 64, \
    .aligned = 8                                                                                                \
  }
#define NHWC 0
#define FLIP 0
#define PRODUCTS 3
#define ACCUMULATE 0
namespace aligned_rows {
#include "few_channels_data-inl.h"
}
// The same of odd rows, which are read one by one.
#define FORM \
  { .channels = 3, .filters = 20, .taps_h = 3, .taps_w = 3, .columns = 16, .rows = 3, .blocks = 2, .width = 16 }
#define NHWC 0
#define FLIP 1
#define PRODUCTS 3
#define ACCUMULATE 1
namespace odd_rows {
#include "few_channels_data-inl.h"
}
// Strides, and slices of which the last is shorter.
#define FORM                                                                                                        \
  {                                                                                                                 \
    .channels = 3, .filters = 36, .taps_h = 7, .taps_w = 7, .stride_h = 2, .stride_w = 2, .columns = 32, .rows = 4, \
    .blocks = 1, .width = 32                                                                                        \
  }
#define NHWC 1
#define FLIP 0
#define PRODUCTS 3
#define ACCUMULATE 0
namespace with_strides {
#include "few_channels_data-inl.h"
}
// Several bodies, of filters that are no multiple of anything.
#define FORM                                                                                                   \
  {                                                                                                            \
    .channels = 1, .filters = 69, .taps_h = 5, .taps_w = 4, .columns = 8, .rows = 2, .blocks = 1, .width = 16, \
    .aligned = 2                                                                                               \
  }
#define NHWC 0
#define FLIP 1
#define PRODUCTS 3
#define ACCUMULATE 0
namespace several_bodies {
#include "few_channels_data-inl.h"
}
// Strides with a factor in common with dilations, and without.
#define FORM                                                                                              \
  {                                                                                                       \
    .channels = 2, .filters = 7, .taps_h = 4, .taps_w = 5, .stride_h = 2, .stride_w = 3, .dilation_h = 4, \
    .dilation_w = 2, .columns = 64, .rows = 4, .blocks = 2, .width = 16                                   \
  }
#define NHWC 1
#define FLIP 0
#define PRODUCTS 3
#define ACCUMULATE 1
namespace dilated {
#include "few_channels_data-inl.h"
}
// Strides beyond the filter: pixels that no tap meets.
#define FORM                                                                                                      \
  {                                                                                                               \
    .channels = 4, .filters = 8, .taps_h = 1, .taps_w = 2, .stride_h = 2, .stride_w = 4, .columns = 8, .rows = 1, \
    .blocks = 1, .width = 128                                                                                     \
  }
#define NHWC 1
#define FLIP 0
#define PRODUCTS 3
#define ACCUMULATE 0
namespace far_strides {
#include "few_channels_data-inl.h"
}
// All columns of y in one strip: cells beside them, and those that no tap meets.
#define FORM                                                                                                      \
  {                                                                                                               \
    .channels = 3, .filters = 10, .taps_h = 16, .taps_w = 16, .columns = 16, .rows = 1, .blocks = 1, .width = 64, \
    .all_columns = 70                                                                                             \
  }
#define NHWC 0
#define FLIP 0
#define PRODUCTS 3
#define ACCUMULATE 0
namespace many_taps {
#include "few_channels_data-inl.h"
}
#define FORM                                                                                                    \
  {                                                                                                             \
    .channels = 1, .filters = 32, .taps_h = 5, .taps_w = 5, .columns = 32, .rows = 5, .blocks = 2, .width = 32, \
    .aligned = 2, .all_columns = 30                                                                             \
  }
#define NHWC 0
#define FLIP 0
#define PRODUCTS 3
#define ACCUMULATE 0
namespace whole_rows {
#include "few_channels_data-inl.h"
}
#define FORM                                                                                                      \
  {                                                                                                               \
    .channels = 2, .filters = 9, .taps_h = 3, .taps_w = 3, .stride_h = 3, .stride_w = 3, .columns = 8, .rows = 2, \
    .blocks = 1, .width = 16, .all_columns = 17                                                                   \
  }
#define NHWC 1
#define FLIP 1
#define PRODUCTS 3
#define ACCUMULATE 1
namespace whole_and_more {
#include "few_channels_data-inl.h"
}
// Steps that bring nothing to the rows of a unit, between those that do.
#define FORM                                                                                                       \
  {                                                                                                                \
    .channels = 1, .filters = 4, .taps_h = 3, .taps_w = 1, .dilation_h = 20, .columns = 8, .rows = 1, .blocks = 1, \
    .width = 16                                                                                                    \
  }
#define NHWC 1
#define FLIP 0
#define PRODUCTS 3
#define ACCUMULATE 0
namespace far_rows {
#include "few_channels_data-inl.h"
}
#define FORM \
  { .channels = 2, .filters = 12, .taps_h = 3, .taps_w = 5, .columns = 16, .rows = 3, .blocks = 1, .width = 16 }
#define NHWC 1
#define FLIP 0
#define PRODUCTS 1
#define ACCUMULATE 0
namespace one_product {
#include "few_channels_data-inl.h"
}
#pragma GCC diagnostic pop

TEST(FewChannelsData, GathersWhatTheDefinitionAdds) {
  aligned_rows::check({.n = 2, .h = 13, .w = 72, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1});
  aligned_rows::check({.n = 1,
                       .h = 9,
                       .w = 128,
                       .pad_top = 1,
                       .pad_left = 1,
                       .pad_bottom = 1,
                       .pad_right = 1,
                       .unit_rows = 3,
                       .groups_of_work = 2,
                       .w_has_more = false,
                       .begin = 1});
  odd_rows::check({.n = 2, .h = 18, .w = 37, .pad_top = 2, .pad_right = 2, .unit_rows = 20});
  odd_rows::check({.h = 3, .w = 19, .w_has_more = false, .begin = 3});
  with_strides::check({.n = 2, .h = 21, .w = 71, .pad_top = 3, .pad_left = 3, .pad_bottom = 3, .pad_right = 3});
  with_strides::check(
      {.n = 1, .h = 30, .w = 70, .pad_top = 4, .pad_left = 5, .unit_rows = 5, .w_has_more = false, .begin = 2});
  several_bodies::check({.n = 2, .h = 19, .w = 25, .pad_top = 2, .unit_rows = 9});
  dilated::check({.n = 1, .h = 31, .w = 50, .pad_top = 3, .pad_left = 7, .pad_bottom = 1, .unit_rows = 3});
  far_rows::check({.n = 1, .h = 60, .w = 20, .unit_rows = 3});
  far_strides::check({.n = 2, .h = 8, .w = 550, .pad_top = 1, .pad_left = 2, .pad_right = 3});
  whole_rows::check({.n = 3, .h = 28, .w = 28, .pad_top = 2, .pad_left = 2, .pad_bottom = 2, .pad_right = 2});
  whole_and_more::check({.n = 2, .h = 32, .w = 50, .w_has_more = false, .begin = 1});
  many_taps::check({.n = 1, .h = 22, .w = 70, .pad_top = 1, .unit_rows = 3, .groups_of_work = 3});
}

TEST(FewChannelsData, GroupsOfChannels) {
  odd_rows::check({.n = 2, .h = 11, .w = 19, .groups = 3, .pad_top = 1, .pad_left = 2, .groups_of_work = 2});
  with_strides::check({.n = 1, .h = 11, .w = 71, .groups = 2, .pad_top = 1, .pad_left = 1});
}

TEST(FewChannelsData, OneProductOfSmallNumbers) {
  one_product::check({.n = 2, .h = 14, .w = 20, .pad_top = 1, .pad_left = 2, .are_parts = false});
}

// Where samples of y missed its largest numbers, or met zeros alone, units change their scale on their way.
TEST(FewChannelsData, MeetsLargerNumbersThanWereLookedAt) {
  for (const float looked_at : {0.0f, 0x1p-100f, 0.25f}) {
    odd_rows::check({.n = 1,
                     .h = 40,
                     .w = 21,
                     .pad_top = 1,
                     .unit_rows = 40,
                     .odd_y = 1000,
                     .odd_at = 575,
                     .looked_at = looked_at});
    with_strides::check({.n = 1, .h = 17, .w = 71, .unit_rows = 9, .odd_y = 500, .looked_at = looked_at});
    several_bodies::check({.n = 2, .h = 9, .w = 25, .unit_rows = 9, .looked_at = looked_at, .zero_images = 1});
    one_product::check(
        {.n = 2, .h = 14, .w = 20, .pad_left = 2, .are_parts = false, .odd_y = 640, .looked_at = looked_at});
  }
}

// Whose factors are powers of two beyond fp32's, too.
TEST(FewChannelsData, AnyScale) {
  for (const float scale : {0x1p-149f, 0x1p-120f, 0x1p100f}) {
    whole_rows::check(
        {.n = 1, .h = 28, .w = 28, .pad_top = 2, .pad_left = 2, .pad_bottom = 2, .pad_right = 2, .scale_y = scale});
    with_strides::check({.n = 1, .h = 17, .w = 71, .unit_rows = 9, .looked_at = 0, .scale_y = scale});
  }
}

// By the definition, where a number is infinite or none, whether samples met it or not.
TEST(FewChannelsData, ComputesPlainlyWhatHasNoScale) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [odd, looked_at] : {std::pair(infinity, -1.0f), std::pair(-infinity, 3.0f), std::pair(none, 0.0f)}) {
    odd_rows::check(
        {.n = 2, .h = 40, .w = 21, .pad_top = 1, .unit_rows = 40, .odd_y = odd, .odd_at = 575, .looked_at = looked_at});
    with_strides::check({.n = 1, .h = 19, .w = 71, .groups = 2, .pad_left = 1, .odd_y = -odd, .looked_at = looked_at});
    dilated::check({.n = 1, .h = 31, .w = 60, .pad_top = 3, .unit_rows = 4, .odd_w = odd, .looked_at = looked_at});
  }
}

// Of every form: each pixel of dx is of one unit, and what the definition multiplies for it is of the cell that taps
// bring it to, and is made by that unit.
TEST(FewChannelsData, UnitsMeetWhatTheDefinitionMultiplies) {
  for (const std::int64_t taps : {1, 2, 3, 7, 16})
    for (const std::int64_t stride : {1, 2, 3, 4, 7, 16})
      for (const std::int64_t dilation : {1, 2, 5})
        for (const std::int64_t pad : {0, 1, 3, 20})
          for (const std::int64_t extent : {1, 29, 64, 130})
            for (const std::int64_t width : {16, 32, 128}) {
              const std::int64_t reach = (taps - 1) * dilation + 1;
              if (extent + 2 * pad < reach) continue;
              Conv2dProblem problem;
              problem.n = 2, problem.c = 3, problem.h = problem.w = extent, problem.k = 4, problem.r = problem.s = taps;
              problem.stride_h = problem.stride_w = stride, problem.dilation_h = problem.dilation_w = dilation;
              problem.pad_top = problem.pad_left = problem.pad_bottom = problem.pad_right = pad;
              const Conv2dShape g(problem);
              const few_channels::DataForm form = few_channels::data_form_of(g, 8, taps, 1, width);
              if (form.strip() == 0) continue;
              SCOPED_TRACE(fmt::format("{} by {}", to_text(problem), width));
              const few_channels::DataTask task = few_channels::data_task_of(g, form, 5);
              EXPECT_EQ(form.pitch() % 8, 4);
              EXPECT_EQ((task.first_column % form.aligned + form.aligned) % form.aligned, 0);
              EXPECT_TRUE(form.is_whole() ? task.strips == 1 : form.strip() % form.aligned == 0);
              std::int64_t most_met = 0;
              for (std::int64_t x = 0; x < extent; ++x) {
                const std::int64_t cell = (x + pad) / stride, inside = (x + pad) % stride;
                EXPECT_GE(cell, task.first_row);
                EXPECT_LT(cell, task.end_row);
                const std::int64_t of_strips = cell - task.first_column - form.left();
                ASSERT_GE(of_strips, 0);
                ASSERT_LT(of_strips / form.strip(), task.strips);
                const std::int64_t strip = of_strips / form.strip(), begin = task.first_column + strip * form.strip();
                std::int64_t met = 0;
                for (std::int64_t tap = 0; tap < taps; ++tap)
                  for (std::int64_t p = 0; p < g.q; ++p) {
                    const bool is_met = g.column_of(p, tap) == x;
                    EXPECT_EQ(is_met, p == cell - tap * dilation / stride && tap * dilation % stride == inside);
                    if (!is_met) continue;
                    ++met;
                    EXPECT_GE(p, begin);
                    EXPECT_LT(p, begin + width);
                    EXPECT_GE(p, cell - form.reach_h());
                  }
                most_met = std::max(most_met, met);
              }
              EXPECT_LE(most_met * most_met + most_met, form.additions());
              EXPECT_LE(form.additions(), taps * taps + taps);
            }
}

}  // namespace
}  // namespace omniconv::operations
