// The kernels of conv2d/few_channels to the data, their own text, run by the processor: a work item is a thread.
// Included in a namespace for each form of the text: FORM, NHWC, FLIP, PRODUCTS and ACCUMULATE stand before it.
// Products are what the matrix units would do, element by element.
constexpr few_channels::DataForm form = FORM;
#define OF_FORM(value) static_cast<int>(form.value)
#define CHANNELS OF_FORM(channels)
#define FILTERS OF_FORM(filters)
#define TAPS_H OF_FORM(taps_h)
#define TAPS_W OF_FORM(taps_w)
#define STRIDE_H OF_FORM(stride_h)
#define STRIDE_W OF_FORM(stride_w)
#define DILATION_H OF_FORM(dilation_h)
#define DILATION_W OF_FORM(dilation_w)
#define COLUMNS OF_FORM(columns)
#define ROWS OF_FORM(rows)
#define SLICES OF_FORM(slices())
#define CHUNKS OF_FORM(chunks())
#define ALL_CHUNKS OF_FORM(all_chunks())
#define SIXTEENS OF_FORM(sixteens())
#define BODIES OF_FORM(bodies())
#define BLOCKS OF_FORM(blocks)
#define WIDTH OF_FORM(width)
#define HEIGHT OF_FORM(height())
#define MARGIN OF_FORM(margin())
#define CELLS OF_FORM(cells())
#define LEFT OF_FORM(left())
#define PITCH OF_FORM(pitch())
#define RING OF_FORM(ring())
#define BIAS 0
#define RELU 0
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

#define MOST_FILTER_BYTES (form.filter_bytes() + 256)
#include "few_channels_units-inl.h"

#include "operations/conv2d/few_channels/few_channels_data.kernel"

// Both launches of a run, of so many groups of work items for each group of channels, by units of so many rows.
// `looked_at`: of y so large a number is taken for the largest, in place of what the first launch finds.
inline void run(const Conv2dShape& g, const Extents& extents, Memory& memory) {
  const few_channels::DataTask host = few_channels::data_task_of(g, form, extents.unit_rows);
  task_t task;
  static_assert(sizeof task == sizeof host);
  std::memcpy(&task, &host, sizeof task);
  ASSERT_LE(static_cast<std::size_t>(form.local_bytes()), sizeof launch_memory);
  std::fill(std::begin(launch_memory), std::end(launch_memory), uchar{0xff});  // NaN
  std::vector<uint> workspace(2 * MAXIMA + 6);
  const auto *y = reinterpret_cast<const element_t*>(memory.y.all.data()),
             *w = reinterpret_cast<const element_t*>(memory.w.all.data());
  auto* x = reinterpret_cast<output_t*>(memory.x.all.data());
  const long y_at = memory.y.begin, w_at = memory.w.begin, x_at_ = memory.x.begin;
  launch(2 * MAXIMA, 256, [&] {
    find_largest(y, y_at, memory.y.count, 1, w, w_at, memory.w.count, 1, workspace.data(), 0, 2 * MAXIMA);
  });
  if (extents.looked_at >= 0) std::fill_n(workspace.begin(), MAXIMA, std::bit_cast<uint>(extents.looked_at));
  launch(task.groups * extents.groups_of_work, 256,
         [&] { few_channels_data(task, y, y_at, w, w_at, x, x_at_, workspace.data(), 0); });
  // What lies behind what the launch asks for is as it was.
  for (std::size_t i = static_cast<std::size_t>(form.local_bytes()); i < sizeof launch_memory; ++i)
    ASSERT_EQ(launch_memory[i], 0xff) << i;
}

// One run against the definition, to the bit; nothing is written beside dx.
inline void check(const Extents& extents) {
  const Conv2dProblem problem = problem_of(form, extents, NHWC != 0, FLIP != 0);
  SCOPED_TRACE(to_text(problem));
  const Conv2dShape g(problem);
  const few_channels::DataForm of_problem = few_channels::data_form_of(g, 8, 1, 1, form.width);
  ASSERT_EQ(form.aligned, of_problem.aligned) << "the form is not of such a problem";
  ASSERT_EQ(form.margin(), of_problem.margin()) << "the form is not of such a problem";
  Memory memory(g, extents);
  const std::vector<float> expected = by_definition(g, memory, ACCUMULATE != 0);
  run(g, extents, memory);
  for (std::size_t i = 0; i < memory.x.all.size(); ++i) {
    const long inside = static_cast<long>(i) - memory.x.begin;
    if (inside < 0 || inside >= memory.x.count)
      ASSERT_TRUE(std::isnan(memory.x.all[i])) << inside;
    else if (std::isnan(expected[static_cast<std::size_t>(inside)]))
      ASSERT_TRUE(std::isnan(memory.x.all[i])) << inside << ": " << memory.x.all[i];
    else
      ASSERT_EQ(memory.x.all[i], expected[static_cast<std::size_t>(inside)]) << inside;
  }
}

#undef FORM
#undef MOST_FILTER_BYTES
#undef OF_FORM
#undef CHANNELS
#undef FILTERS
#undef TAPS_H
#undef TAPS_W
#undef STRIDE_H
#undef STRIDE_W
#undef DILATION_H
#undef DILATION_W
#undef COLUMNS
#undef ROWS
#undef SLICES
#undef CHUNKS
#undef ALL_CHUNKS
#undef SIXTEENS
#undef BODIES
#undef BLOCKS
#undef WIDTH
#undef HEIGHT
#undef MARGIN
#undef CELLS
#undef LEFT
#undef RING
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
#undef NHWC
#undef FLIP
#undef PRODUCTS
#undef PITCH
#undef ROW_COLUMNS
#undef FILTER_BYTES
#undef ALL_FILTER_BYTES
#undef PRODUCT_BYTES
#undef RING_NUMBERS
#undef REACH_H
#undef FILTER_ITEMS
#undef HAS_FILTER
#undef GATHERED
#undef ITEM
#undef SPAN
#undef LINE
#undef LINE_ITEMS
