#include "operations/filter2d/vector/box_filter.h"

#include <algorithm>
#include <cmath>

#include "core/border_map.h"
#include "core/checked.h"
#include "core/convert.h"
#include "operations/filter2d/byte_quotient.h"
#include "vector/stream.h"

namespace omniconv::kernels {
namespace {

// Of the second-level cache, for the rows between the one that enters and the one that leaves.
constexpr std::int64_t kept_bytes = std::int64_t{1} << 20;

double largest_magnitude(DataType type) {
  return std::max(-lowest_value(type), highest_value(type));
}

// The column that stands for one outside the image; -1: the border's constant.
std::int64_t source_column(const Filter2dProblem& problem, std::int64_t column) {
  return border_index(problem.border.mode, column, problem.w);
}

}  // namespace

BoxColumn box_column(const Filter2dTask& task) {
  const double rows = static_cast<double>(task.weights.r), largest = largest_magnitude(task.problem.input);
  if (rows * static_cast<double>(task.weights.s) * largest > 0x7FFFFFFF) return BoxColumn::u64;
  return task.problem.input == DataType::u8 && rows * largest <= 0xFFFF ? BoxColumn::u16 : BoxColumn::u32;
}

std::optional<ByteQuotient> byte_quotient(const Finish& finish, std::int64_t most) {
  // What saturates to bytes reads signed numbers.
  const auto quotient =
      operations::sum_quotient({finish.weight, finish.scale, finish.bias}, most, 16, std::uint64_t{0x7FFF});
  if (!quotient) return {};
  return ByteQuotient{static_cast<std::uint16_t>(quotient->add), static_cast<std::uint16_t>(quotient->multiplier),
                      quotient->shift};
}

// The elements of image rows that a tile adds up, and where their sums lie among the tile's column sums.
template <typename Column>
struct BoxFilter<Column>::Span {
  std::int64_t first = 0, last = 0;    // elements of the image's rows
  std::int64_t at = 0;                 // of the sum of element `first`
  std::int64_t before = 0, after = 0;  // elements outside the image, left of its first and right of its last column
  std::int64_t window = 0;             // of the sum that the first output element reads first
};

template <typename Column>
struct BoxFilter<Column>::Buffers {
  Column* columns;
  Column* scratch;
  std::int64_t* sources;  // of the columns outside, relative to `columns`
  std::byte* constant;    // a row of the border's constant
};

template <typename Column>
BoxFilter<Column>::BoxFilter(const Filter2dTask& task) : task_(task) {
  const Filter2dProblem& problem = task.problem;
  finish_ = {.type = problem.output,
             .scale = task.weights.scale,
             .bias = task.weights.bias,
             .times_weight = true,
             .weight = task.weights.values.front()};
  const double taps = static_cast<double>(problem.r) * static_cast<double>(problem.s);
  narrow_ = problem.input == DataType::u8 && taps * largest_magnitude(problem.input) <= 0xFFFF;

  if (narrow_ && problem.output == DataType::u8)
    quotient_ = byte_quotient(finish_, problem.r * problem.s * static_cast<std::int64_t>(highest_value(problem.input)));

  // Blocks of whole pixels, wide enough that what they share with their neighbours does not weigh.
  reach_ = checked_multiply(problem.s - 1, problem.c, "a kernel row over all channels");
  const std::int64_t width = problem.w * problem.c, elements = Q(problem) * problem.c, size = size_of(problem.input);
  const std::int64_t least = std::max<std::int64_t>(4096, checked_multiply(reach_, 4, "a block of columns"));
  const std::int64_t fitting = std::max(kept_bytes / size / problem.r, least);
  block_elements_ = std::min(round_up(fitting, problem.c), elements);

  const std::int64_t window = checked_multiply(problem.s, problem.c, "a kernel row over all channels");
  const std::int64_t shared = checked_multiply(window, 2, "a block of columns");
  const bool whole = problem.border.mode == BorderMode::wrap;  // the first block's columns outside stand at the end
  const std::int64_t read = whole ? width : std::min(width, checked_add(block_elements_, shared, "a block of columns"));
  column_elements_ =
      round_up(checked_add(checked_add(read, window, "a row of sums"), problem.c + box_slack, "a row of sums"), 64);
  constant_bytes_ = problem.border.mode == BorderMode::constant ? round_up(read * size, 64) : 0;
  outside_bytes_ = round_up(checked_multiply(problem.s, sizeof(std::int64_t), "the columns outside"), 64);
  const std::int64_t sums = checked_add(column_elements_, round_up(box_scratch(problem.c), 64), "the workspace");
  workspace_bytes_ = checked_add(checked_multiply(sums, sizeof(Column), "the workspace"),
                                 checked_add(constant_bytes_, outside_bytes_, "the workspace"), "the workspace");
}

template <typename Column>
Tiling BoxFilter<Column>::tiling(std::int64_t rows, int threads) const {
  const Filter2dProblem& problem = task_.problem;
  // A band adds up r rows before its first: let it be tall, and cut a low one into columns instead.
  const std::int64_t least = std::max<std::int64_t>(16, 4 * problem.r);
  Tiling tiling{rows, Q(problem) * problem.c, std::clamp(rows / (4 * threads) + 1, std::min(least, rows), rows),
                block_elements_};
  const std::int64_t wanted = 2 * threads, bands = divide_up(rows, tiling.band_rows);
  if (bands * tiling.blocks() < wanted) {
    const std::int64_t narrowest = std::max<std::int64_t>(512, reach_);
    const std::int64_t narrower = divide_up(tiling.elements, divide_up(wanted, bands));
    tiling.block_elements = std::min(round_up(std::max(narrower, narrowest), problem.c), block_elements_);
  }
  return tiling;
}

template <typename Column>
typename BoxFilter<Column>::Span BoxFilter<Column>::span_of(const Tile& tile) const {
  const Filter2dProblem& problem = task_.problem;
  const std::int64_t width = problem.w * problem.c;
  const std::int64_t begin = tile.element - task_.weights.anchor_x * problem.c, end = begin + tile.elements + reach_;
  Span span;
  span.first = std::clamp(begin, std::int64_t{0}, width);
  span.last = std::clamp(end, std::int64_t{0}, width);
  span.before = span.first - begin;
  span.after = end - span.last;
  const std::int64_t inside = span.first;
  const auto include = [&](std::int64_t column) {
    const std::int64_t source = source_column(problem, column);
    if (source < 0) return;
    span.first = std::min(span.first, source * problem.c);
    span.last = std::max(span.last, (source + 1) * problem.c);
  };
  for (std::int64_t i = 0; i < span.before / problem.c; ++i) include(-1 - i);
  for (std::int64_t i = 0; i < span.after / problem.c; ++i) include(problem.w + i);
  span.at = problem.c + span.before;
  span.window = span.at + (inside - span.first) - span.before;
  return span;
}

template <typename Column>
typename BoxFilter<Column>::Buffers BoxFilter<Column>::buffers_in(std::byte* workspace) const {
  Buffers buffers;
  buffers.columns = reinterpret_cast<Column*>(workspace);
  buffers.scratch = buffers.columns + column_elements_;
  std::byte* const rest = workspace + (column_elements_ + round_up(box_scratch(task_.problem.c), 64)) *
                                          static_cast<std::int64_t>(sizeof(Column));
  buffers.sources = reinterpret_cast<std::int64_t*>(rest);
  buffers.constant = rest + outside_bytes_;
  return buffers;
}

// The sums of the columns outside the image: those of the columns that stand for them.
template <typename Column>
void BoxFilter<Column>::fill_outside(const Span& span, const Buffers& buffers) const {
  const std::int64_t c = task_.problem.c;
  const std::int64_t* source = buffers.sources;
  const auto fill = [&](std::int64_t first, std::int64_t elements) {
    for (std::int64_t e = first; e < first + elements; e += c, ++source)
      for (std::int64_t ch = 0; ch < c; ++ch) buffers.columns[e + ch] = buffers.columns[*source + ch];
  };
  fill(span.at - span.before, span.before);
  fill(span.at + span.last - span.first, span.after);
}

template <typename Column>
void BoxFilter<Column>::run(const RowWindow& input, const Output& output, const Tile& tile,
                            std::byte* workspace) const {
  const Filter2dProblem& problem = task_.problem;
  const Span span = span_of(tile);
  const Buffers buffers = buffers_in(workspace);
  const std::int64_t size = size_of(problem.input), elements = span.last - span.first;
  std::fill_n(buffers.columns, column_elements_, Column{0});

  const bool constant = problem.border.mode == BorderMode::constant;
  if (constant) {
    for (std::int64_t e = 0; e < elements; ++e)
      store_element(problem.input, task_.weights.border_value, buffers.constant + e * size);
    const auto sum = static_cast<Column>(static_cast<std::int64_t>(task_.weights.border_value) * problem.r);
    std::fill_n(buffers.columns + span.at - span.before, span.before, sum);
    std::fill_n(buffers.columns + span.at + elements, span.after, sum);
  } else {
    std::int64_t* source = buffers.sources;
    const auto sum_at = [&](std::int64_t column) {
      return span.at + source_column(problem, column) * problem.c - span.first;
    };
    for (std::int64_t i = -span.before / problem.c; i < 0; ++i) *source++ = sum_at(i);
    for (std::int64_t i = 0; i < span.after / problem.c; ++i) *source++ = sum_at(problem.w + i);
  }

  const auto row = [&](std::int64_t i) -> const std::byte* {
    const std::byte* const data = row_data(task_, input, i);
    return data == nullptr ? buffers.constant : data + span.first * size;
  };
  const std::int64_t base = output.first + tile.row - task_.weights.anchor_y;  // the input row that enters first
  Column* const sums = buffers.columns + span.at;
  for (std::int64_t i = 0; i < problem.r - 1; ++i) slide_columns(problem.input, row(base + i), nullptr, elements, sums);
  BoxRow<Column> windows{.columns = buffers.columns + span.window,
                         .s = problem.s,
                         .step = problem.c,
                         .n = tile.elements,
                         .narrow = narrow_,
                         .quotient = quotient_ ? &*quotient_ : nullptr,
                         .scratch = buffers.scratch,
                         .upcoming_size = size,
                         .stream = output.stream};
  std::byte* to = output.data + tile.row * output.stride_bytes + tile.element * size_of(problem.output);
  for (std::int64_t i = 0; i < tile.rows; ++i, to += output.stride_bytes) {
    const std::int64_t entering = base + i + problem.r - 1;
    slide_columns(problem.input, row(entering), i == 0 ? nullptr : row(base + i - 1), elements, sums);
    if (!constant) fill_outside(span, buffers);
    windows.upcoming = i + 1 < tile.rows ? row(entering + 1) : nullptr;
    box_row(windows, finish_, to);
  }
  if (output.stream) stream_fence();
}

template class BoxFilter<std::uint16_t>;
template class BoxFilter<std::uint32_t>;
template class BoxFilter<std::uint64_t>;

}  // namespace omniconv::kernels
