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
#include "vector/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::operations::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace kn = kernels::HWY_NAMESPACE;

// Reads rows of all lanes' tiles. Lanes that are not there hold what the first does.
template <typename Real>
class LineReader {
  using D = hn::ScalableTag<Real>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t lanes = hn::MaxLanes(D());
  struct Range {
    std::int64_t first, last;
    Range meet(const Range& other) const { return {std::max(first, other.first), std::min(last, other.last)}; }
    Range join(const Range& other) const { return {std::min(first, other.first), std::max(last, other.last)}; }
    bool has(std::int64_t from, std::int64_t to) const { return first <= from && to <= last; }
  };

 public:
  // Rows and columns of the tile.
  LineReader(const FftSource<Real>& source, std::int64_t side) : source_(source) {
    for (std::int64_t i = 0; i < lanes; ++i) {
      const auto lane = static_cast<std::size_t>(i < source.count && !source.adjacent ? i : 0);
      const std::int64_t row = source.row[lane], column = source.column[lane];
      from_[i] = source.from[lane] + row * source.row_pitch + column * source.pixel_pitch;
      rows_[i] = {std::max<std::int64_t>(-row, 0), std::min({source.h - row, source.rows, side})};
      columns_[i] = {std::max<std::int64_t>(-column, 0), std::min({source.w - column, source.columns, side})};
      any_rows = i == 0 ? rows_[i] : any_rows.join(rows_[i]);
      all_rows_ = i == 0 ? rows_[i] : all_rows_.meet(rows_[i]);
      any_columns_ = i == 0 ? columns_[i] : any_columns_.join(columns_[i]);
      all_columns_ = i == 0 ? columns_[i] : all_columns_.meet(columns_[i]);
    }
  }

  Range any_rows;  // beyond which all are zero
  std::int64_t width() const { return any_columns_.last; }

  // Row i, of which columns [0, width) are wanted: column j to line[j * 2 vectors].
  HWY_INLINE void read(std::int64_t i, std::int64_t width, Real* line) const {
    const D d;
    if (source_.adjacent) return read_adjacent(i, width, line);
    const bool in_all = all_rows_.has(i, i + 1) && source_.pixel_pitch == 1;
    const Range there = any_rows.has(i, i + 1) ? any_columns_ : Range{0, 0};
    for (std::int64_t j = 0; j < width; j += lanes) {
      V columns[lanes];
      if (in_all && all_columns_.has(j, j + lanes)) {
        OMNICONV_UNROLL for (std::int64_t lane = 0; lane < lanes; ++lane) {
          columns[lane] = hn::LoadU(d, from_[lane] + i * source_.row_pitch + j);
        }
        kn::transpose(d, columns);
      } else if (j + lanes > there.first && j < there.last) {
        for (std::int64_t lane = 0; lane < lanes; ++lane) columns[lane] = read_part(lane, i, j);
        kn::transpose(d, columns);
      } else {
        for (std::int64_t lane = 0; lane < lanes; ++lane) columns[lane] = hn::Zero(d);
      }
      OMNICONV_UNROLL for (std::int64_t at = 0; at < lanes; ++at) {
        hn::Store(columns[at], d, line + (j + at) * 2 * lanes);
      }
    }
  }

 private:
  HWY_INLINE void read_adjacent(std::int64_t i, std::int64_t width, Real* line) const {
    const D d;
    const Range there = rows_[0].has(i, i + 1) ? columns_[0] : Range{0, 0};
    const Real* const from = from_[0] + i * source_.row_pitch;
    for (std::int64_t j = 0; j < width; ++j) {
      V value = hn::Zero(d);
      if (there.has(j, j + 1))
        value = source_.count >= lanes ? hn::LoadU(d, from + j * source_.pixel_pitch)
                                       : kn::load_first(d, from + j * source_.pixel_pitch, source_.count);
      hn::Store(value, d, line + j * 2 * lanes);
    }
  }
  // Columns [j, j + lanes) of a lane's row, zero where they are not there.
  V read_part(std::int64_t lane, std::int64_t i, std::int64_t j) const {
    const D d;
    if (!rows_[lane].has(i, i + 1)) return hn::Zero(d);
    const Real* const from = from_[lane] + i * source_.row_pitch + j * source_.pixel_pitch;
    const std::int64_t first = std::clamp<std::int64_t>(columns_[lane].first - j, 0, lanes),
                       last = std::clamp<std::int64_t>(columns_[lane].last - j, first, lanes);
    if (source_.pixel_pitch == 1) return kn::load_between(d, from, first, last);
    HWY_ALIGN Real apart[lanes] = {};
    for (std::int64_t at = first; at < last; ++at) apart[at] = from[at * source_.pixel_pitch];
    return hn::Load(d, apart);
  }

  const FftSource<Real>& source_;
  const Real* from_[lanes];  // of the tile's first element, which may lie outside
  Range rows_[lanes], columns_[lanes];
  Range all_rows_, any_columns_, all_columns_;
};

// Writes rows of all lanes' results, times `scale`, from lines of `side` columns, which may begin anywhere round.
template <std::int64_t side, typename Real>
class LineWriter {
  using D = hn::ScalableTag<Real>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t lanes = hn::MaxLanes(D());

 public:
  LineWriter(const FftTarget<Real>& target, Real scale)
      : rows(*std::max_element(target.rows.begin(), target.rows.begin() + target.count)),
        target_(target),
        scale_(scale),
        width_(*std::max_element(target.columns.begin(), target.columns.begin() + target.count)) {
    if (target.count < lanes || target.adjacent || target.pixel_pitch != 1) return;
    all_rows_ = *std::min_element(target.rows.begin(), target.rows.begin() + lanes);
    all_columns_ = *std::min_element(target.columns.begin(), target.columns.begin() + lanes);
  }

  const std::int64_t rows;  // of the tallest

  HWY_INLINE void write(std::int64_t i, const Real* line) const {
    const D d;
    if (i >= rows) return;
    if (target_.adjacent) {
      const V bias = hn::Load(d, target_.bias.data());
      Real* const to = target_.to[0] + i * target_.row_pitch;
      for (std::int64_t j = 0; j < width_; ++j)
        finish(column(line, j), bias, to + j * target_.pixel_pitch, target_.count);
      return;
    }
    for (std::int64_t j = 0; j < width_; j += lanes) {
      V columns[lanes];
      OMNICONV_UNROLL for (std::int64_t at = 0; at < lanes; ++at) {
        columns[at] = column(line, j + at);
      }
      kn::transpose(d, columns);
      if (i < all_rows_ && j + lanes <= all_columns_) {
        OMNICONV_UNROLL for (std::int64_t lane = 0; lane < lanes; ++lane) {
          const auto l = static_cast<std::size_t>(lane);
          finish(columns[lane], hn::Set(d, target_.bias[l]), target_.to[l] + i * target_.row_pitch + j, lanes);
        }
        continue;
      }
      for (std::int64_t lane = 0; lane < target_.count; ++lane) write_part(lane, i, j, columns[lane]);
    }
  }

 private:
  HWY_INLINE V column(const Real* line, std::int64_t j) const {
    const D d;
    return hn::Mul(hn::Load(d, line + ((target_.left + j) & (side - 1)) * 2 * lanes), hn::Set(d, scale_));
  }
  HWY_INLINE void write_part(std::int64_t lane, std::int64_t i, std::int64_t j, V value) const {
    const D d;
    const auto l = static_cast<std::size_t>(lane);
    const std::int64_t count = std::min(target_.columns[l] - j, lanes);
    if (i >= target_.rows[l] || count <= 0) return;
    Real* const to = target_.to[l] + i * target_.row_pitch + j * target_.pixel_pitch;
    const V bias = hn::Set(d, target_.bias[l]);
    if (target_.pixel_pitch == 1) return finish(value, bias, to, count);
    HWY_ALIGN Real apart[lanes] = {};
    if (target_.accumulate)
      for (std::int64_t at = 0; at < count; ++at) apart[at] = to[at * target_.pixel_pitch];
    finish(value, bias, apart, count);
    for (std::int64_t at = 0; at < count; ++at) to[at * target_.pixel_pitch] = apart[at];
  }
  HWY_INLINE void finish(V value, V bias, Real* to, std::int64_t count) const {
    const D d;
    const bool whole = count >= lanes;
    value = hn::Add(value, bias);
    if (target_.accumulate) value = hn::Add(value, whole ? hn::LoadU(d, to) : kn::load_first(d, to, count));
    if (target_.relu) value = hn::IfThenElse(hn::Lt(value, hn::Zero(d)), hn::Zero(d), value);  // NaN stays
    if (whole)
      hn::StoreU(value, d, to);
    else
      kn::store_first(d, value, to, count);
  }

  const FftTarget<Real>& target_;
  const Real scale_;
  const std::int64_t width_;
  std::int64_t all_rows_ = 0, all_columns_ = 0;  // that every lane has, whose pixels lie side by side
};

}  // namespace omniconv::operations::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
