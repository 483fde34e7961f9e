// The kernels of conv2d/few_channels, their own text, run by the processor: a work item is a thread. Included in a
// namespace for each form of the text: FORM, NHWC, FLIP, PRODUCTS and ENDING (1: bias, what y held, and no negative
// numbers) stand before it. Products are what the matrix units would do, element by element.
constexpr few_channels::Form form = [] {
  few_channels::Form of = FORM;
  of.nhwc = NHWC != 0;
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
#define BLOCKS OF_FORM(blocks)
#define WIDTH OF_FORM(width)
#define SIDE OF_FORM(side)
#define WORKERS OF_FORM(workers)
#define LOOKERS OF_FORM(items())
#define BODY OF_FORM(body())
#define AHEAD OF_FORM(is_ahead())
#define BUFFERS OF_FORM(buffers)
#define STAGED_BYTES OF_FORM(staged_bytes())
#define BOXED 0
#define FOLD OF_FORM(fold())
#define RECORDS OF_FORM(records())
#define SIXTEENS OF_FORM(sixteens())
#define PATCH_H OF_FORM(patch_h())
#define PATCH_W OF_FORM(patch_w())
#define PLANE_W OF_FORM(plane_w())
#define BIAS (ENDING * 2)
#define ACCUMULATE ENDING
#define RELU ENDING
#define TYPE TYPE_f32
#define OUTPUT TYPE_f32
#define PART TYPE_f16
#define SCALED 1
#define SAMPLED 0
#define TILES 0  // all of the text

#include "text/gemm_elements.kernel"

#include "text/plain_sums.kernel"

#include "text/scales.kernel"

#include "text/parts.kernel"

#include "few_channels_units-inl.h"

#include "operations/conv2d/few_channels/few_channels_patch.kernel"

#include "operations/conv2d/few_channels/few_channels_stores.kernel"

#include "operations/conv2d/few_channels/few_channels.kernel"

// Both launches of a run, of so many groups of work items for each set of filters.
inline void run(const Conv2dShape& g, int groups_of_set, Memory& memory) {
  const few_channels::Task host = few_channels::task_of(g, form);
  task_t task;
  static_assert(sizeof task == sizeof host);
  std::memcpy(&task, &host, sizeof task);
  ASSERT_LE(static_cast<std::size_t>(form.local_bytes()), sizeof launch_memory);
  std::fill(std::begin(launch_memory), std::end(launch_memory), uchar{0xff});  // NaN
  std::vector<uint> workspace(2 * MAXIMA + 6);
  const auto *x = reinterpret_cast<const element_t*>(memory.x.data()),
             *w = reinterpret_cast<const element_t*>(memory.w.data()),
             *bias = reinterpret_cast<const element_t*>(memory.bias.data());
  auto* y = reinterpret_cast<output_t*>(memory.y.data());  // before its elements
  launch(2 * MAXIMA, 256, [&] {
    find_largest(x, 0, static_cast<long>(memory.x.size()), 1, w, 0, static_cast<long>(memory.w.size()), 1,
                 workspace.data(), 0, 2 * MAXIMA);
  });
  launch(task.sets * groups_of_set, static_cast<int>(form.items()),
         [&] { few_channels(task, x, 0, w, 0, y, memory.y_at, bias, 0, workspace.data(), 0); });
  // What lies behind what the launch asks for is as it was.
  for (std::size_t i = static_cast<std::size_t>(form.local_bytes()); i < sizeof launch_memory; ++i)
    ASSERT_EQ(launch_memory[i], 0xff) << i;
}

// One run against the definition, to the bit.
inline void check(const Extents& extents, int groups_of_set = 1) {
  const Conv2dProblem problem = problem_of(form, extents, NHWC != 0, FLIP != 0);
  SCOPED_TRACE(to_text(problem));
  const Conv2dShape g(problem);
  Memory memory(g, extents);
  const std::vector<float> expected = by_definition(g, memory, ENDING != 0);
  const std::vector<float> before = memory.y;
  run(g, groups_of_set, memory);
  for (std::size_t i = 0; i < static_cast<std::size_t>(memory.y_at); ++i) {
    ASSERT_EQ(memory.y[i], before[i]) << "before y: " << i;
    ASSERT_EQ(memory.of_y(expected.size() + i), before[static_cast<std::size_t>(memory.y_at) + expected.size() + i])
        << "behind y: " << i;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]))
      ASSERT_TRUE(std::isnan(memory.of_y(i))) << i << ": " << memory.of_y(i);
    else
      ASSERT_EQ(memory.of_y(i), expected[i]) << i;
  }
}

#undef FORM
#undef OF_FORM
#undef CHANNELS
#undef TAPS_H
#undef TAPS_W
#undef STRIDE_H
#undef STRIDE_W
#undef DILATION_H
#undef DILATION_W
#undef FOLD
#undef RECORDS
#undef SIXTEENS
#undef PATCH_H
#undef PATCH_W
#undef PLANE_W
#undef BIAS
#undef ACCUMULATE
#undef RELU
#undef TYPE
#undef OUTPUT
#undef PART
#undef SCALED
#undef SAMPLED
#undef TILES
#undef WORDS
#undef WIDENED
#undef COLUMNS
#undef HELD
#undef BLOCKS
#undef WIDTH
#undef SIDE
#undef WORKERS
#undef LOOKERS
#undef BODY
#undef AHEAD
#undef BUFFERS
#undef STAGED_BYTES
#undef BOXED
#undef BLOCK_PIXELS
#undef ROW_PIXELS
#undef TURNED_LINE
#undef RUN_EIGHTS
#undef EIGHTS
#undef NHWC
#undef FLIP
#undef PRODUCTS
#undef ENDING
