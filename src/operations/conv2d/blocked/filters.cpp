#include "operations/conv2d/blocked/filters.h"

#include <algorithm>
#include <type_traits>

#include "vector/matrix/gemm_panels.h"

namespace omniconv::operations {
namespace {

// Of channels whose taps lie side by side, so that the terms of a pair are apart: by way of f32. `at` is where a
// panel's row has a tap of one of the source's channels.
template <typename At>
void pack_pairs(const BlockedCut& cut, const BlockedTaps& taps, DataType type, std::int64_t rows, std::int64_t channels,
                const At& at, kernels::BfloatPair* to) {
  constexpr std::int64_t most = 1024;
  alignas(64) float reals[2 * most];
  const auto count = static_cast<std::int64_t>(taps.taps.size());
  const std::int64_t all_taps = cut.shape.r * cut.shape.s, ld = cut.forward ? all_taps * cut.shape.c_group : all_taps,
                     together = count == all_taps ? std::min(most / rows, count) : 1;
  for (std::int64_t c = 0; c < channels; c += cut.terms)
    for (std::int64_t i = 0; i < count; i += together) {
      const std::int64_t some = std::min(together, count - i), tap = taps.taps[static_cast<std::size_t>(i)];
      const bool has_second = c + 1 < channels, is_next = cut.forward && some == all_taps;
      float* const second = reals + some * rows;
      kernels::pack_panel({at(c, tap), type, ld, true}, rows, rows, has_second && is_next ? 2 * some : some, reals);
      if (!has_second)
        std::fill_n(second, some * rows, 0.0F);
      else if (!is_next)
        kernels::pack_panel({at(c + 1, tap), type, ld, true}, rows, rows, some, second);
      kernels::make_pairs(reals, second, some * rows, to + (c / cut.terms * count + i) * rows);
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
          cut, taps, type, rows, channels,
          [&](std::int64_t c, std::int64_t tap) {
            return cut.forward ? at(line, source + c, tap) : at(source + c, line, tap);
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
