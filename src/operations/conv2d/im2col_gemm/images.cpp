#include "operations/conv2d/im2col_gemm/images.h"

namespace omniconv::operations {

bool reads_x_itself(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  const bool inside = g.pad_top == 0 && g.pad_left == 0 && (g.p - 1) * g.stride_h + (g.r - 1) * g.dilation_h < g.h &&
                      g.q - 1 + (g.s - 1) * g.dilation_w < g.w;
  const bool as_sums = problem.type != DataType::f16 && problem.type != DataType::bf16;
  return inside && as_sums && g.stride_w == 1;
}

GemmTask product_over_images(const Conv2dProblem& problem, const ColumnPart& part, bool padded, bool all_groups) {
  const Conv2dShape g(problem);
  const PaddedImages copy(g, part.rows);
  const std::int64_t channel = padded ? copy.channel() : g.h * g.w, row = padded ? copy.along.extent() : g.w;
  const std::int64_t taps = g.c_group * g.r * g.s;

  ImageColumns columns;
  columns.pixels = part.rows * g.q;
  columns.image_b = g.c * channel;
  columns.run = g.q;
  columns.run_pitch = padded ? row : g.stride_h * row;
  if (columns.run == columns.run_pitch) columns.run = columns.pixels;
  columns.image_c = g.k * g.p * g.q;
  columns.steps.reserve(static_cast<std::size_t>(taps));
  for (std::int64_t c = 0; c < g.c_group; ++c)
    for (std::int64_t r = 0; r < g.r; ++r)
      for (std::int64_t s = 0; s < g.s; ++s) {
        const std::int64_t down = padded ? copy.down.position(r) : g.row_of(0, r),
                           along = padded ? copy.along.position(s) : g.column_of(0, s);
        columns.steps.push_back(c * channel + down * row + along);
      }

  GemmTask task;
  GemmProblem& product = task.problem;
  product.type = problem.type;
  product.m = g.k_group, product.n = part.images * columns.pixels, product.k = taps;
  product.batch = all_groups ? g.groups : 1;
  task.output = problem.type;
  task.lda = taps, task.ldb = product.n, task.ldc = g.p * g.q;
  task.batch_a = g.k_group * taps, task.batch_b = g.c_group * channel, task.batch_c = g.k_group * g.p * g.q;
  task.bias = problem.bias ? BiasAlong::rows : BiasAlong::none;
  task.accumulate = problem.accumulate;
  task.relu = problem.relu;
  task.images = std::make_shared<const ImageColumns>(std::move(columns));
  return task;
}

}  // namespace omniconv::operations
