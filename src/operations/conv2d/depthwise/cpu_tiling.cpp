#include "operations/conv2d/depthwise/cpu_tiling.h"

#include <algorithm>
#include <map>

#include "core/checked.h"
#include "operations/conv2d/depthwise/cpu_planes.h"

namespace omniconv::operations {
namespace {

// Of a tile's copies: the second cache holds them beside what passes through.
constexpr std::int64_t tile_bytes = std::int64_t{128} << 10;
constexpr std::int64_t most_columns = 1024, most_pixels = 64;  // of a tile's row, of vectors of channels
constexpr std::int64_t rows_at_once = 4;                       // of sums in registers

std::int64_t even_part(std::int64_t extent, std::int64_t most, std::int64_t piece) {
  const std::int64_t parts = divide_up(extent, most);
  return std::min(extent, round_up(divide_up(extent, parts), piece));
}

}  // namespace

DepthwiseTiles::DepthwiseTiles(const Conv2dProblem& problem, std::int64_t workspace_bytes, int threads)
    : nhwc(problem.layout == Layout::nhwc) {
  const Conv2dShape g(problem);
  const std::int64_t size = problem.type == DataType::f64 ? 8 : 4;
  lanes = kernels::depthwise_lanes(problem.type == DataType::f64 ? DataType::f64 : DataType::f32);
  // One tap is not dilated, whatever the problem says.
  const std::int64_t dilation_h = g.r == 1 ? 1 : g.dilation_h, dilation_w = g.s == 1 ? 1 : g.dilation_w;
  if (problem.pass == Pass::backward_data) {
    down = DepthwiseAxis::to_data(g.r, g.stride_h, dilation_h, g.pad_top, g.flip, g.h);
    along = DepthwiseAxis::to_data(g.s, g.stride_w, dilation_w, g.pad_left, g.flip, g.w);
  } else {
    down = DepthwiseAxis::forward(g.r, g.stride_h, dilation_h, g.pad_top, g.flip, g.p);
    along = DepthwiseAxis::forward(g.s, g.stride_w, dilation_w, g.pad_left, g.flip, g.q);
  }
  weight_elements = round_up(g.r * g.s * (nhwc || problem.pass == Pass::backward_filter ? lanes : 1), 16);
  const std::int64_t all_rows = down.last - down.first, all_columns = along.last - along.first,
                     piece = nhwc ? 1 : lanes;
  std::int64_t most_rows = all_rows, most_of_row = nhwc ? most_pixels : most_columns;
  const std::int64_t limit = workspace_bytes < 0 ? tile_bytes : std::min(workspace_bytes / threads, tile_bytes);
  for (;;) {
    set_tile(even_part(all_rows, most_rows, std::min(all_rows, rows_at_once * down.stagger)),
             even_part(all_columns, most_of_row, piece));
    if (thread_elements() * size <= limit) break;
    const std::int64_t least_rows = std::min(all_rows, rows_at_once * down.stagger);
    if (rows > least_rows)
      most_rows = std::max(least_rows, rows / 2);
    else if (workspace_bytes >= 0 && columns > piece)
      most_of_row = columns / 2;
    else
      break;
  }
  find_offsets(g.s);
}

void DepthwiseTiles::set_tile(std::int64_t the_rows, std::int64_t the_columns) {
  rows = the_rows, columns = the_columns;
  in_rows = down.reach(rows);
  if (nhwc) {
    vectors = columns;
    in_phases = 1;
    in_columns = along.reach(columns);
    in_phase = in_row = in_columns * lanes;
    out_phase = lanes;
    out_row = columns * along.spread * lanes;
    line_elements = 0;
  } else {
    vectors = divide_up(columns, lanes);
    in_phases = along.unit;
    const std::int64_t of_phase = vectors * lanes + (along.high - along.low) / along.unit;
    in_columns = of_phase * in_phases;
    in_phase = round_up(of_phase, lanes);
    in_row = in_phase * in_phases;
    out_phase = vectors * lanes;
    out_row = out_phase * along.spread;
    line_elements = std::max(in_phases, along.spread) == 1 ? 0 : std::max(in_row, out_row) + lanes;
  }
  in_elements = round_up(checked_multiply(in_rows, in_row, "a tile's input") + lanes, 16);
  out_elements = round_up(checked_multiply(rows * down.spread, out_row, "a tile's sums") + lanes, 16);
  line_elements = round_up(line_elements, 16);
}

std::int64_t DepthwiseTiles::tiles_down() const {
  return divide_up(down.last - down.first, rows);
}
std::int64_t DepthwiseTiles::tiles_along() const {
  return divide_up(along.last - along.first, columns);
}

void DepthwiseTiles::find_offsets(std::int64_t s) {
  for (const std::vector<DepthwiseTaps>& rows_of_taps : down.classes)
    for (const std::vector<DepthwiseTaps>& columns_of_taps : along.classes) {
      // Pieces of a row of offsets, by their number of taps: {offset, weights}.
      struct Piece {
        std::int64_t offset;
        std::vector<std::int64_t> weights;
      };
      std::map<std::int64_t, std::vector<Piece>> pieces;
      for (const DepthwiseTaps& of_rows : rows_of_taps) {
        const auto count = static_cast<std::int64_t>(of_rows.taps.size());
        const std::int64_t parts = divide_up(count, kernels::most_taps);
        for (std::int64_t part = 0; part < parts; ++part) {
          const std::int64_t first = part * count / parts, last = (part + 1) * count / parts;
          for (const DepthwiseTaps& of_columns : columns_of_taps)
            for (std::size_t i = 0; i < of_columns.taps.size(); ++i) {
              const std::int64_t column = of_columns.begin + static_cast<std::int64_t>(i) * along.step - along.low;
              const std::int64_t in_line = nhwc ? column * lanes : column % in_phases * in_phase + column / in_phases;
              Piece piece{(of_rows.begin + first * down.step - down.low) * in_row + in_line, {}};
              for (std::int64_t t = first; t < last; ++t)
                piece.weights.push_back(of_rows.taps[static_cast<std::size_t>(t)] * s + of_columns.taps[i]);
              pieces[last - first].push_back(piece);
            }
        }
      }
      std::vector<DepthwiseOffsets> of_phase;
      for (const auto& [taps, all] : pieces) {
        DepthwiseOffsets some{taps, static_cast<std::int64_t>(weights.size()), {}};
        for (const Piece& piece : all) {
          some.offsets.push_back(piece.offset);
          weights.insert(weights.end(), piece.weights.begin(), piece.weights.end());
        }
        of_phase.push_back(some);
      }
      offsets.push_back(of_phase);
    }
}

}  // namespace omniconv::operations
