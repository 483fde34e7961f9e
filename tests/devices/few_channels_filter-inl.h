// The kernels of conv2d/few_channels that make the filter's gradient, their own text, run by the processor: a work item
// is a thread. Included in a namespace for each form of the text: FORM, GROUPS, NHWC, FLIP, PRODUCTS, ACCUMULATE and
// SAMPLED stand before it.
constexpr few_channels::FilterForm form = [] {
  few_channels::FilterForm of = FORM;
  of.pixel = NHWC ? of.channels * GROUPS : 1, of.mirrored = (FLIP != 0) != of.rows_of_x;
  return of;
}();
#define OF_FORM(value) static_cast<int>(form.value)
#define CHANNELS OF_FORM(channels)
#define TAPS_H OF_FORM(taps_h)
#define TAPS_W OF_FORM(taps_w)
#define STRIDE_H OF_FORM(stride_h)
#define STRIDE_W OF_FORM(stride_w)
#define DILATION_H OF_FORM(dilation_h)
#define DILATION_W OF_FORM(dilation_w)
#define COLUMNS OF_FORM(columns)
#define HELD OF_FORM(held)
#define STAGES OF_FORM(stages)
#define WORKERS OF_FORM(workers)
#define PIXEL OF_FORM(pixel)
#define MIRRORED OF_FORM(mirrored)
#define ROWS_OF_X OF_FORM(rows_of_x)
#define WORKER_BYTES OF_FORM(worker_bytes())
#define SIXTEENS 4
#define ROW_COUNT static_cast<int>(few_channels::filter_rows)
#define SET_COLUMNS OF_FORM(set_columns())
#define GROUP_ITEMS (128 * WORKERS)
#define CHANNELS_LAST NHWC
#define BIAS 0
#define RELU 0
#define TYPE TYPE_f32
#define OUTPUT TYPE_f32
#define PART TYPE_f16
#define SCALED 1
#define TILES 0

#include "text/gemm_elements.kernel"

#include "text/plain_sums.kernel"

#include "text/scales.kernel"

#include "text/parts.kernel"

#include "few_channels_units-inl.h"

template <int BYTES>
inline void copy_into(uchar* to, const element_t* from, int is_there) {
  EXPECT_EQ(local_address(to) % BYTES, 0U);
  if (is_there) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(from) % BYTES, 0U);
    std::memcpy(to, from, BYTES);
  } else {
    std::memset(to, 0, BYTES);
  }
}

#undef TILES
#define TILES 2  // all of the text
#include "operations/conv2d/few_channels/few_channels_sums.kernel"

#include "operations/conv2d/few_channels/few_channels_filter.kernel"

// All launches of a run, by so many groups of work items, of a sum in so many parts.
inline void run(const Conv2dShape& g, int groups, int parts, Arrays& arrays) {
  const few_channels::FilterTask host = few_channels::filter_task_of(g, form, parts);
  task_t task;
  static_assert(sizeof task == sizeof host);
  std::memcpy(&task, &host, sizeof task);
  ASSERT_LE(static_cast<std::size_t>(form.local_bytes()), sizeof launch_memory);
  std::fill(std::begin(launch_memory), std::end(launch_memory), uchar{0xff});  // NaN
  constexpr long largest_at = 2 * MAXIMA, parts_at = largest_at + 6;
  const auto sums = static_cast<std::size_t>(task.parts * task.sets * few_channels::filter_rows * form.set_columns());
  std::vector<uint> workspace(parts_at + sums + 8, 0xffffffff);
  const auto *x = reinterpret_cast<const element_t*>(arrays.x.data()),
             *y = reinterpret_cast<const element_t*>(arrays.y.data());
  auto* w = reinterpret_cast<output_t*>(arrays.w.data());
  launch(2 * MAXIMA, 256, [&] {
    find_largest(x, arrays.ahead, arrays.of_x, SAMPLED & 1 ? 7 : 1, y, arrays.ahead, arrays.of_y, SAMPLED & 2 ? 7 : 1,
                 workspace.data(), 0, largest_at);
  });
  for (int mends = 0; mends <= (SAMPLED ? 1 : 0); ++mends)
    launch(groups, 128 * WORKERS, [&] {
      few_channels_filter(task, x, arrays.ahead, y, arrays.ahead, w, arrays.ahead, workspace.data(), 0, largest_at,
                          parts_at, mends);
    });
  launch(task.sets * few_channels::filter_rows * SET_COLUMNS / 32, 256,
         [&] { add_parts(task, w, arrays.ahead, workspace.data(), largest_at, parts_at); });
  for (std::size_t i = parts_at + sums; i < workspace.size(); ++i) ASSERT_EQ(workspace[i], 0xffffffff) << i;
  for (std::size_t i = static_cast<std::size_t>(form.local_bytes()); i < sizeof launch_memory; ++i)
    ASSERT_EQ(launch_memory[i], 0xff) << i;
}

// One run against the definition, to the bit.
inline void check(const Extents& extents) {
  const Conv2dProblem problem = problem_of(form, extents, GROUPS, NHWC != 0, FLIP != 0);
  SCOPED_TRACE(to_text(problem));
  const Conv2dShape g(problem);
  ASSERT_EQ(few_channels::filter_form_of(g, form.rows_of_x, form.columns, form.held, form.stages, form.workers), form);
  Arrays arrays(g, extents);
  const std::vector<float> expected = by_definition(g, arrays, ACCUMULATE != 0);
  run(g, extents.launched, extents.parts, arrays);
  for (std::size_t i = 0; i < arrays.w.size(); ++i) {
    const std::size_t at = i - static_cast<std::size_t>(arrays.ahead);
    if (at >= expected.size() || std::isnan(expected[at]))  // around w, and where it is none
      ASSERT_TRUE(std::isnan(arrays.w[i])) << at << ": " << arrays.w[i];
    else
      ASSERT_EQ(arrays.w[i], expected[at]) << at;
  }
}

#undef FORM
#undef GROUPS
#undef OF_FORM
#undef CHANNELS
#undef TAPS_H
#undef TAPS_W
#undef STRIDE_H
#undef STRIDE_W
#undef DILATION_H
#undef DILATION_W
#undef COLUMNS
#undef HELD
#undef STAGES
#undef WORKERS
#undef AHEAD
#undef PIXEL
#undef MIRRORED
#undef ROWS_OF_X
#undef WORKER_BYTES
#undef SIXTEENS
#undef BIAS
#undef RELU
#undef TYPE
#undef OUTPUT
#undef PART
#undef SCALED
#undef TILES
#undef WORDS
#undef WIDENED
#undef FILTER_BYTES
#undef SET_COLUMNS
#undef STEP_BYTES
#undef STAGE_BYTES
#undef ALL_COLUMNS
#undef ROW_COUNT
#undef GROUP_ITEMS
#undef CHANNELS_LAST
#undef SLICES
#undef NHWC
#undef FLIP
#undef PRODUCTS
#undef ACCUMULATE
#undef SAMPLED
