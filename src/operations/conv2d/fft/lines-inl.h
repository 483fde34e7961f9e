// Rows of tiles between planes and vectors, whose lanes are tiles or channels. For inclusion by each target of
// transforms.cpp, after Highway.
#if defined(OMNICONV_FFT_LINES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_FFT_LINES_INL_H
#undef OMNICONV_FFT_LINES_INL_H
#else
#define OMNICONV_FFT_LINES_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "operations/conv2d/fft/transforms.h"
#include "vector/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::operations::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace kn = kernels::HWY_NAMESPACE;

// Vector i's lane j becomes vector j's lane i. Each round takes a bit of the lane for a bit of the vector.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose([[maybe_unused]] D d, [[maybe_unused]] V* vectors) {
#if HWY_TARGET != HWY_SCALAR
  constexpr std::size_t lanes = hn::MaxLanes(D());
  V other[lanes];
  for (std::size_t round = lanes; round > 1; round /= 2) {
    for (std::size_t i = 0; i < lanes / 2; ++i) {
      other[i] = hn::ConcatEven(d, vectors[2 * i + 1], vectors[2 * i]);
      other[i + lanes / 2] = hn::ConcatOdd(d, vectors[2 * i + 1], vectors[2 * i]);
    }
    for (std::size_t i = 0; i < lanes; ++i) vectors[i] = other[i];
  }
#endif
}

struct RowRange {
  std::int64_t first, last;
};

// Of those rows of the tiles that lie in a plane.
template <typename Real>
RowRange rows_there(const FftSource<Real>& source, std::int64_t side) {
  RowRange there{side, 0};
  const std::int64_t places = source.adjacent ? 1 : source.count;
  for (std::int64_t lane = 0; lane < places; ++lane) {
    const std::int64_t row = source.row[static_cast<std::size_t>(lane)];
    there.first = std::min(there.first, std::max<std::int64_t>(-row, 0));
    there.last = std::max(there.last, std::min({source.h - row, source.rows, side}));
  }
  return there;
}

// One lane's row of a tile: elements [first, last) of `from`, which may lie outside where they are not there.
template <typename Real>
struct LaneRow {
  const Real* from;
  std::int64_t first, last;
};
template <typename Real>
HWY_INLINE LaneRow<Real> lane_row(const FftSource<Real>& source, std::size_t lane, std::int64_t side, std::int64_t i) {
  const std::int64_t row = source.row[lane] + i, column = source.column[lane];
  if (row < 0 || row >= source.h || i >= source.rows) return {source.from[lane], 0, 0};
  return {source.from[lane] + row * source.row_pitch + column * source.pixel_pitch, std::max<std::int64_t>(-column, 0),
          std::min({source.columns, source.w - column, side})};
}

// Row i of all lanes' tiles: column j to line[j * 2 vectors].
template <typename Real>
HWY_INLINE void load_line(const FftSource<Real>& source, std::int64_t side, std::int64_t i, Real* line) {
  const hn::ScalableTag<Real> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t lanes = hn::MaxLanes(d);
  if (source.adjacent) {
    const LaneRow<Real> row = lane_row(source, 0, side, i);
    for (std::int64_t j = 0; j < side; ++j)
      hn::Store(j >= row.first && j < row.last ? kn::load_first(d, row.from + j * source.pixel_pitch, source.count)
                                               : hn::Zero(d),
                d, line + j * 2 * lanes);
    return;
  }
  LaneRow<Real> rows[lanes];
  std::int64_t first = side, last = 0;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    rows[lane] = lane < source.count ? lane_row(source, static_cast<std::size_t>(lane), side, i)
                                     : LaneRow<Real>{source.from[0], 0, 0};
    if (rows[lane].first >= rows[lane].last) continue;
    first = std::min(first, rows[lane].first), last = std::max(last, rows[lane].last);
  }
  for (std::int64_t j = 0; j < side; j += lanes) {
    V columns[lanes];
    for (std::int64_t lane = 0; lane < lanes; ++lane) columns[lane] = hn::Zero(d);
    if (j + lanes > first && j < last) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const LaneRow<Real>& row = rows[lane];
        const std::int64_t begin = std::clamp<std::int64_t>(row.first - j, 0, lanes),
                           end = std::clamp<std::int64_t>(row.last - j, begin, lanes);
        if (source.pixel_pitch == 1) {
          if (begin == 0 && end == lanes)
            columns[lane] = hn::LoadU(d, row.from + j);
          else if (begin < end)
            columns[lane] = kn::load_between(d, row.from + j, begin, end);
        } else if (begin < end) {
          HWY_ALIGN Real apart[lanes] = {};
          for (std::int64_t at = begin; at < end; ++at) apart[at] = row.from[(j + at) * source.pixel_pitch];
          columns[lane] = hn::Load(d, apart);
        }
      }
      transpose(d, columns);
    }
    for (std::int64_t at = 0; at < lanes; ++at) hn::Store(columns[at], d, line + (j + at) * 2 * lanes);
  }
}

template <class D, class V = hn::Vec<D>, typename Real = hn::TFromD<D>>
HWY_INLINE void finish_and_store(D d, const FftTarget<Real>& target, V value, V bias, Real* to, std::int64_t count) {
  const bool whole = count >= static_cast<std::int64_t>(hn::Lanes(d));
  value = hn::Add(value, bias);
  if (target.accumulate) value = hn::Add(value, whole ? hn::LoadU(d, to) : kn::load_first(d, to, count));
  if (target.relu) value = hn::IfThenElse(hn::Lt(value, hn::Zero(d)), hn::Zero(d), value);  // NaN stays
  if (whole)
    hn::StoreU(value, d, to);
  else
    kn::store_first(d, value, to, count);
}

// Row i of all lanes' results, if they have it, times `scale`.
template <typename Real>
HWY_INLINE void store_line(const FftTarget<Real>& target, std::int64_t side, std::int64_t i, Real scale,
                           const Real* line) {
  const hn::ScalableTag<Real> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t lanes = hn::MaxLanes(d);
  const auto column = [&](std::int64_t j) {
    return hn::Mul(hn::Load(d, line + (target.left + j) % side * 2 * lanes), hn::Set(d, scale));
  };
  if (target.adjacent) {
    if (i >= target.rows[0]) return;
    const V bias = hn::Load(d, target.bias.data());
    for (std::int64_t j = 0; j < target.columns[0]; ++j)
      finish_and_store(d, target, column(j), bias, target.to[0] + i * target.row_pitch + j * target.pixel_pitch,
                       target.count);
    return;
  }
  const std::int64_t widest = *std::max_element(target.columns.begin(), target.columns.begin() + target.count);
  for (std::int64_t j = 0; j < widest; j += lanes) {
    V columns[lanes];
    for (std::int64_t at = 0; at < lanes; ++at) columns[at] = column(j + at);
    transpose(d, columns);
    for (std::int64_t lane = 0; lane < target.count; ++lane) {
      const auto l = static_cast<std::size_t>(lane);
      const std::int64_t count = std::min(target.columns[l] - j, lanes);
      if (i >= target.rows[l] || count <= 0) continue;
      Real* const to = target.to[l] + i * target.row_pitch + j * target.pixel_pitch;
      const V bias = hn::Set(d, target.bias[l]);
      if (target.pixel_pitch == 1) {
        finish_and_store(d, target, columns[lane], bias, to, count);
        continue;
      }
      HWY_ALIGN Real apart[lanes];
      for (std::int64_t at = 0; at < count; ++at) apart[at] = to[at * target.pixel_pitch];
      finish_and_store(d, target, columns[lane], bias, apart, count);
      for (std::int64_t at = 0; at < count; ++at) to[at * target.pixel_pitch] = apart[at];
    }
  }
}

}  // namespace omniconv::operations::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
