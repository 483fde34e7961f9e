#include "operations/conv2d/blocked/filters.h"

#include <algorithm>
#include <type_traits>

#include "core/checked.h"
#include "vector/matrix/gemm_panels.h"
#include "vector/matrix/turn.h"

namespace omniconv::operations {
namespace {

// Of channels whose taps lie side by side, so that the terms of a pair are apart: lines of pairs for each of the
// panel's rows, some at a time, which are turned. `at` is where a row has the first tap of one of the source's
// channels.
template <typename At>
void pack_pairs(const BlockedCut& cut, const BlockedTaps& taps, std::int64_t rows, std::int64_t channels, const At& at,
                kernels::BfloatPair* to) {
  constexpr std::int64_t most = 64, most_rows = 32;
  alignas(64) kernels::BfloatPair lines[most_rows * most];
  const auto count = static_cast<std::int64_t>(taps.taps.size());
  const bool has_all = count == cut.shape.r * cut.shape.s;
  const std::int64_t pairs = divide_up(channels, cut.terms), together = std::max<std::int64_t>(most / count, 1),
                     ld = (cut.forward ? 1 : cut.shape.c_group) * cut.shape.r * cut.shape.s;
  for (std::int64_t pair = 0; pair < pairs; pair += together)
    for (std::int64_t first_tap = 0; first_tap < count; first_tap += most) {
      const std::int64_t some_pairs = std::min(together, pairs - pair), some_taps = std::min(most, count - first_tap),
                         width = some_pairs * some_taps,
                         whole = has_all ? std::min(some_pairs, channels / cut.terms - pair) : 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::byte* const from = at(row, cut.terms * pair);
        kernels::BfloatPair* const line = lines + row * width;
        kernels::pair_lines(from + first_tap * size_of(DataType::bf16), ld, whole, some_taps, line);
        for (std::int64_t i = whole; i < some_pairs; ++i) {
          const bool has_second = cut.terms * (pair + i) + 1 < channels;
          const auto *const low = reinterpret_cast<const std::uint16_t*>(from) + cut.terms * i * ld, *const high =
                                                                                                         low + ld;
          for (std::int64_t t = 0; t < some_taps; ++t) {
            const std::int64_t tap = taps.taps[static_cast<std::size_t>(first_tap + t)];
            line[i * some_taps + t] = {low[tap], has_second ? high[tap] : std::uint16_t{0}};
          }
        }
      }
      kernels::turn(kernels::Turned<float>{.from = reinterpret_cast<const float*>(lines),  // whose bits are moved
                                           .ld = width,
                                           .lines = rows,
                                           .columns = width,
                                           .to = reinterpret_cast<float*>(to + (pair * count + first_tap) * rows),
                                           .pitch = rows,
                                           .add = false});
    }
}

}  // namespace

template <typename Element>
void pack_blocked_filters(const BlockedCut& cut, DataType type, const std::byte* w, std::int64_t group,
                          const BlockedTaps& taps, std::int64_t panel, std::int64_t first, std::int64_t elements,
                          Element* to) {
  const auto count = static_cast<std::int64_t>(taps.taps.size());
  if (count == 0) return;
  const Conv2dShape& g = cut.shape;
  const std::int64_t rows = cut.filters.count(panel), all_taps = g.r * g.s, line = cut.filters.start(panel),
                     source = cut.terms * first, channels = cut.channels_in(first, elements), size = size_of(type);
  to += taps.filters_before + panel * cut.panel_pitch() * count + first * count * rows;
  const auto at = [&](std::int64_t k, std::int64_t c, std::int64_t tap) {
    return w + (g.w_at(group * g.k_group + k, c, tap / g.s, tap % g.s)) * size;
  };
  if (channels < cut.terms * elements) std::fill_n(to, elements * count * rows, Element{});
  const auto pack = [&](std::int64_t k, std::int64_t c, std::int64_t tap, std::int64_t ld, bool steps_adjacent,
                        std::int64_t steps, Element* panel_at) {
    kernels::pack_panel({at(k, c, tap), type, ld, steps_adjacent}, rows, rows, steps, panel_at);
  };
  if constexpr (std::is_same_v<Element, kernels::BfloatPair>) {
    if (!g.nhwc && all_taps > 1)
      return pack_pairs(
          cut, taps, rows, channels,
          [&](std::int64_t row, std::int64_t c) {
            return cut.forward ? at(line + row, source + c, 0) : at(source + c, line + row, 0);
          },
          to);
  }
  if (g.nhwc) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t tap = taps.taps[static_cast<std::size_t>(i)];
      Element* const of_tap = to + i * elements * rows;
      cut.forward ? pack(line, source, tap, all_taps * g.c_group, true, channels, of_tap)
                  : pack(source, line, tap, all_taps * g.c_group, false, channels, of_tap);
    }
  } else if (cut.forward) {
    pack(line, source, 0, all_taps * g.c_group, true, channels * all_taps, to);
  } else if (all_taps == 1) {
    pack(source, line, 0, g.c_group, false, channels, to);
  } else {
    for (std::int64_t c = 0; c < channels; ++c)
      if (count == all_taps)
        pack(source + c, line, 0, all_taps, true, all_taps, to + c * all_taps * rows);
      else
        for (std::int64_t i = 0; i < count; ++i)
          pack(source + c, line, taps.taps[static_cast<std::size_t>(i)], all_taps, true, 1,
               to + (c * count + i) * rows);
  }
}

template void pack_blocked_filters(const BlockedCut&, DataType, const std::byte*, std::int64_t, const BlockedTaps&,
                                   std::int64_t, std::int64_t, std::int64_t, float*);
template void pack_blocked_filters(const BlockedCut&, DataType, const std::byte*, std::int64_t, const BlockedTaps&,
                                   std::int64_t, std::int64_t, std::int64_t, double*);
template void pack_blocked_filters(const BlockedCut&, DataType, const std::byte*, std::int64_t, const BlockedTaps&,
                                   std::int64_t, std::int64_t, std::int64_t, kernels::BfloatPair*);

}  // namespace omniconv::operations
