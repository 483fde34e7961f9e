#include "vector/matrix/shifted_panels.h"

#include <array>
#include <cstddef>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/matrix/shifted_panels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/matrix/step-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int rows, int V, typename Real>
HWY_NOINLINE void shifted_tile(const ShiftedPanels<Real>& p) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[rows][V];
  OMNICONV_UNROLL for (int i = 0; i < rows; ++i) {
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      sums[i][v] = hn::Zero(d);
    }
  }
  const std::int64_t a_pixel = p.a_pixel;
  for (std::int64_t image = 0; image < p.images; ++image)
    for (std::int64_t line = 0; line < p.lines; ++line) {
      const Real* a = p.a + image * p.a_image + line * p.a_line;
      const Real* b = p.b + image * p.b_image + line * p.b_line;
      for (const Real* const end = b + p.pixels * V * lanes; b != end; a += a_pixel, b += V * lanes)
        add_step<rows, V, true>(d, a, b, sums);
    }
  store_sums<rows, V>(d, sums, p.sums, p.ld, p.columns, p.add);
}

template <typename Real>
using ShiftedTile = void (*)(const ShiftedPanels<Real>&);

// At [v - 1]: tiles of so many rows and v vectors.
template <typename Real, int rows, int... v>
constexpr std::array<ShiftedTile<Real>, vectors> shifted_tiles_of(std::integer_sequence<int, v...>) {
  return {shifted_tile<rows, v + 1, Real>...};
}

// At [rows - 1].
template <typename Real, int... row>
constexpr std::array<std::array<ShiftedTile<Real>, vectors>, most_rows> all_shifted_tiles(
    std::integer_sequence<int, row...>) {
  return {shifted_tiles_of<Real, row + 1>(std::make_integer_sequence<int, vectors>())...};
}

template <typename Real>
void multiply(const ShiftedPanels<Real>& panels) {
  static constexpr auto tiles = all_shifted_tiles<Real>(std::make_integer_sequence<int, most_rows>());
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<Real>()));
  const std::int64_t v = (panels.columns - 1) / lanes;
  tiles[static_cast<std::size_t>(panels.rows - 1)][static_cast<std::size_t>(v)](panels);
}

template <typename Real>
HWY_INLINE void store_element_turned(const TurnedSums<Real>& t, std::int64_t i, std::int64_t j) {
  Real& to = t.to[j * t.pitch + i];
  to = (t.add ? to : Real{0}) + t.sums[i * t.ld + j];
}

#if HWY_TARGET != HWY_SCALAR
// Lines [i, i + 4) of columns [j, j + 4).
HWY_INLINE void store_square_turned(const TurnedSums<float>& t, std::int64_t i, std::int64_t j) {
  const hn::Full128<float> d;
  const hn::RepartitionToWide<decltype(d)> pairs;
  const float* const from = t.sums + i * t.ld + j;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + t.ld), c = hn::LoadU(d, from + 2 * t.ld),
             e = hn::LoadU(d, from + 3 * t.ld);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
             ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b)),
             ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)),
             ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  const std::array<hn::Vec<decltype(pairs)>, 4> turned = {
      hn::InterleaveLower(pairs, ab_low, ce_low), hn::InterleaveUpper(pairs, ab_low, ce_low),
      hn::InterleaveLower(pairs, ab_high, ce_high), hn::InterleaveUpper(pairs, ab_high, ce_high)};
  OMNICONV_UNROLL for (int k = 0; k < 4; ++k) {
    float* const to = t.to + (j + k) * t.pitch + i;
    auto value = hn::BitCast(d, turned[static_cast<std::size_t>(k)]);
    if (t.add) value = hn::Add(hn::LoadU(d, to), value);
    hn::StoreU(value, d, to);
  }
}
#endif

// In squares of 4 x 4: of f32 alone.
template <typename Real>
void turn(const TurnedSums<Real>& t) {
  std::int64_t turned_lines = 0, turned_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(Real) == sizeof(float)) {
    turned_lines = t.lines / 4 * 4, turned_columns = t.columns / 4 * 4;
    // Few rows of `to` at a time: they may be whole pages apart, and share the sets of a cache.
    for (std::int64_t j = 0; j < turned_columns; j += 4)
      for (std::int64_t i = 0; i < turned_lines; i += 4) store_square_turned(t, i, j);
  }
#endif
  for (std::int64_t i = 0; i < t.lines; ++i)
    for (std::int64_t j = i < turned_lines ? turned_columns : 0; j < t.columns; ++j) store_element_turned(t, i, j);
}

void MultiplyShiftedF32(const ShiftedPanels<float>& panels) {
  multiply(panels);
}
void MultiplyShiftedF64(const ShiftedPanels<double>& panels) {
  multiply(panels);
}
void StoreTurnedF32(const TurnedSums<float>& turned) {
  turn(turned);
}
void StoreTurnedF64(const TurnedSums<double>& turned) {
  turn(turned);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(MultiplyShiftedF32);
HWY_EXPORT(MultiplyShiftedF64);
HWY_EXPORT(StoreTurnedF32);
HWY_EXPORT(StoreTurnedF64);

void multiply_shifted(const ShiftedPanels<float>& panels) {
  HWY_DYNAMIC_DISPATCH(MultiplyShiftedF32)(panels);
}
void multiply_shifted(const ShiftedPanels<double>& panels) {
  HWY_DYNAMIC_DISPATCH(MultiplyShiftedF64)(panels);
}
void store_turned(const TurnedSums<float>& turned) {
  HWY_DYNAMIC_DISPATCH(StoreTurnedF32)(turned);
}
void store_turned(const TurnedSums<double>& turned) {
  HWY_DYNAMIC_DISPATCH(StoreTurnedF64)(turned);
}

}  // namespace omniconv::kernels
#endif
