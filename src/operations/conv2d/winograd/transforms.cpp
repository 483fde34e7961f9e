#include "operations/conv2d/winograd/transforms.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/conv2d/winograd/transforms.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "operations/conv2d/winograd/transforms-inl.h"
#include "vector/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::operations::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace kn = kernels::HWY_NAMESPACE;

// Vectors of every `step`th element.
template <int step, class D, class V = hn::Vec<D>, typename Real = hn::TFromD<D>>
HWY_INLINE void load_apart(D d, const Real* from, V (&to)[step]) {
  if constexpr (step == 2)
    hn::LoadInterleaved2(d, from, to[0], to[1]);
  else
    hn::LoadInterleaved4(d, from, to[0], to[1], to[2], to[3]);
}
template <int step, class D, class V = hn::Vec<D>, typename Real = hn::TFromD<D>>
HWY_INLINE void store_together(D d, const V (&from)[step], Real* to) {
  if constexpr (step == 2)
    hn::StoreInterleaved2(from[0], from[1], d, to);
  else
    hn::StoreInterleaved4(from[0], from[1], from[2], from[3], d, to);
}

// The transform down the columns needs no tile's place along the row: it is done to vectors of neighbouring columns.
// Of its rows the columns of all tiles that are `outputs` apart are then vectors. A tile's later columns are the next
// tile's earlier ones: each row is kept once for every `outputs` of a tile's columns, moved by as many.
template <int outputs, int taps, typename Real>
struct InputOfPlanes {
  static void run(const SourcePlanes<Real>& planes, const TileRun* runs, std::int64_t count, Real* to,
                  std::int64_t pitch) {
    constexpr auto& m = winograd_matrices<outputs, taps>;
    constexpr std::size_t points = m.points, copies = (points + outputs - 1) / outputs;
    const hn::ScalableTag<Real> d;
    using V = hn::Vec<decltype(d)>;
    constexpr std::int64_t most = hn::MaxLanes(d);
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    HWY_ALIGN Real lines[points][copies][(outputs + 1) * most + 16];
    const std::int64_t filled = runs[count - 1].lane + runs[count - 1].count;
    if (filled < lanes) std::memset(lines, 0, sizeof(lines));
    for (std::int64_t i = 0; i < count; ++i) {
      const TileRun& run = runs[i];
      const std::int64_t row = run.row - planes.top, column = run.column - planes.left;
      const std::int64_t width = outputs * (run.count - 1) + static_cast<std::int64_t>(points);
      const Real* const image = planes.from + run.image * planes.image_pitch;
      for (std::int64_t j = 0; j < width; j += lanes) {
        const std::int64_t first = std::clamp<std::int64_t>(-column - j, 0, lanes),
                           last = std::clamp<std::int64_t>(planes.w - column - j, first, lanes);
        V in[points], out[points];
        OMNICONV_UNROLL for (std::size_t e = 0; e < points; ++e) {
          const std::int64_t h = row + static_cast<std::int64_t>(e);
          in[e] = hn::Zero(d);
          if (h >= 0 && h < planes.h) {
            const Real* const from = image + h * planes.w + column + j;
            hwy::Prefetch(from + planes.ahead);
            in[e] = kn::load_between(d, from, first, last);
          }
        }
        analyse(d, m.input, in, out);
        for (std::size_t copy = 0; copy < copies; ++copy) {
          const std::int64_t moved = outputs * static_cast<std::int64_t>(copy), at = outputs * run.lane + j - moved;
          OMNICONV_UNROLL for (std::size_t e = 0; e < points; ++e) {
            if (j >= moved)
              hn::StoreU(out[e], d, lines[e][copy] + at);
            else
              kn::store_between(d, out[e], lines[e][copy] + at, std::min(moved - j, lanes), lanes);
          }
        }
      }
    }
    for (std::size_t e = 0; e < points; ++e) {
      V apart[copies][outputs], in[points], out[points];
      OMNICONV_UNROLL for (std::size_t copy = 0; copy < copies; ++copy) {
        load_apart<outputs>(d, lines[e][copy], apart[copy]);
      }
      OMNICONV_UNROLL for (std::size_t f = 0; f < points; ++f) {
        in[f] = apart[f / outputs][f % outputs];
      }
      analyse(d, m.input, in, out);
      OMNICONV_UNROLL for (std::size_t f = 0; f < points; ++f) {
        hn::Store(out[f], d, to + static_cast<std::int64_t>(e * points + f) * pitch);
      }
    }
  }
};

// Both axes of a block of vectors: rows first, so that `in` may be read one row after the other.
template <int outputs, int taps, typename Real>
struct InputOfTile {
  static void run(const SourceTile<Real>& tile, std::int64_t count, Real* to, std::int64_t pitch) {
    constexpr auto& m = winograd_matrices<outputs, taps>;
    constexpr std::size_t points = m.points;
    const hn::ScalableTag<Real> d;
    using V = hn::Vec<decltype(d)>;
    V half[points][points];
    for (std::size_t e = 0; e < points; ++e) {
      const std::int64_t h = tile.row + static_cast<std::int64_t>(e);
      V in[points];
      OMNICONV_UNROLL for (std::size_t f = 0; f < points; ++f) {
        const std::int64_t w = tile.column + static_cast<std::int64_t>(f);
        const bool inside = h >= 0 && h < tile.h && w >= 0 && w < tile.w;
        in[f] = inside ? kn::load_first(d, tile.from + (h * tile.w + w) * tile.channels, count) : hn::Zero(d);
      }
      analyse(d, m.input, in, half[e]);
    }
    OMNICONV_UNROLL for (std::size_t f = 0; f < points; ++f) {
      V in[points], out[points];
      OMNICONV_UNROLL for (std::size_t e = 0; e < points; ++e) {
        in[e] = half[e][f];
      }
      analyse(d, m.input, in, out);
      OMNICONV_UNROLL for (std::size_t e = 0; e < points; ++e) {
        hn::StoreU(out[e], d, to + static_cast<std::int64_t>(e * points + f) * pitch);
      }
    }
  }
};

template <int outputs, int taps, typename Real>
struct Filter {
  static void run(const FilterTaps<Real>& filters, std::int64_t count, Real* to, std::int64_t pitch) {
    constexpr auto& m = winograd_matrices<outputs, taps>;
    constexpr std::size_t points = m.points, width = taps;
    const hn::ScalableTag<Real> d;
    using V = hn::Vec<decltype(d)>;
    V half[width][points];
    OMNICONV_UNROLL for (std::size_t r = 0; r < width; ++r) {
      V in[width];
      OMNICONV_UNROLL for (std::size_t s = 0; s < width; ++s) {
        const std::size_t tap = r * width + s, at = filters.turned ? width * width - 1 - tap : tap;
        in[s] = hn::LoadU(d, filters.taps + static_cast<std::int64_t>(at) * filters.tap_pitch);
      }
      analyse(d, m.filter, in, half[r]);
    }
    OMNICONV_UNROLL for (std::size_t f = 0; f < points; ++f) {
      V in[width], out[points];
      OMNICONV_UNROLL for (std::size_t r = 0; r < width; ++r) {
        in[r] = half[r][f];
      }
      analyse(d, m.filter, in, out);
      OMNICONV_UNROLL for (std::size_t e = 0; e < points; ++e) {
        kn::store_first(d, out[e], to + static_cast<std::int64_t>(e * points + f) * pitch, count);
      }
    }
  }
};

template <class D, class V = hn::Vec<D>, typename Real = hn::TFromD<D>>
HWY_INLINE void finish_and_store(D d, V value, V bias, const OutputFinish<Real>& finish, Real* to, std::int64_t count) {
  const bool whole = count >= static_cast<std::int64_t>(hn::Lanes(d));
  if (finish.bias != nullptr) value = hn::Add(value, bias);
  if (finish.accumulate) value = hn::Add(value, whole ? hn::LoadU(d, to) : kn::load_first(d, to, count));
  if (finish.relu) value = hn::IfThenElse(hn::Lt(value, hn::Zero(d)), hn::Zero(d), value);  // NaN stays
  if (whole)
    hn::StoreU(value, d, to);
  else
    kn::store_first(d, value, to, count);
}

template <int outputs, int taps, typename Real>
struct OutputOfPlanes {
  static void run(const Real* products, std::int64_t pitch, const TileRun* runs, std::int64_t count,
                  const OutputFinish<Real>& finish, const TargetPlanes<Real>& planes) {
    const hn::ScalableTag<Real> d;
    using V = hn::Vec<decltype(d)>;
    constexpr std::int64_t most = hn::MaxLanes(d);
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    V out[outputs][outputs];
    combine_both<outputs, taps>(d, products, pitch, out);
    HWY_ALIGN Real lines[outputs][(outputs + 1) * most];  // a vector may be loaded from the last element on
    OMNICONV_UNROLL for (std::size_t i = 0; i < outputs; ++i) {
      store_together<outputs>(d, out[i], lines[i]);
    }
    const V bias = finish.bias != nullptr ? hn::Set(d, *finish.bias) : hn::Zero(d);
    for (std::int64_t i = 0; i < count; ++i) {
      const TileRun& run = runs[i];
      Real* const image = planes.to + run.image * planes.image_pitch;
      const std::int64_t width = std::min(outputs * run.count, planes.w - run.column),
                         rows = std::min<std::int64_t>(outputs, planes.h - run.row);
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t j = 0; j < width; j += lanes)
          finish_and_store(d, hn::LoadU(d, lines[row] + outputs * run.lane + j), bias, finish,
                           image + (run.row + row) * planes.w + run.column + j, width - j);
    }
  }
};

template <int outputs, int taps, typename Real>
struct OutputOfTile {
  static void run(const Real* products, std::int64_t pitch, std::int64_t count, const OutputFinish<Real>& finish,
                  const TargetTile<Real>& tile) {
    const hn::ScalableTag<Real> d;
    using V = hn::Vec<decltype(d)>;
    V out[outputs][outputs];
    combine_both<outputs, taps>(d, products, pitch, out);
    const V bias = finish.bias != nullptr ? kn::load_first(d, finish.bias, count) : hn::Zero(d);
    OMNICONV_UNROLL for (std::int64_t i = 0; i < outputs; ++i) {
      OMNICONV_UNROLL for (std::int64_t j = 0; j < outputs; ++j) {
        if (i < tile.rows && j < tile.columns)
          finish_and_store(d, out[i][j], bias, finish, tile.to + i * tile.row_pitch + j * tile.channels, count);
      }
    }
  }
};

template <int outputs, int taps, typename Real>
WinogradTransforms<Real> all_of() {
  return {
      .lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<Real>())),
      .input_of_planes = InputOfPlanes<outputs, taps, Real>::run,
      .input_of_tile = InputOfTile<outputs, taps, Real>::run,
      .filter = Filter<outputs, taps, Real>::run,
      .output_of_planes = OutputOfPlanes<outputs, taps, Real>::run,
      .output_of_tile = OutputOfTile<outputs, taps, Real>::run,
  };
}

template <typename Real>
WinogradTransforms<Real> of_form(WinogradForm form) {
  if (form.taps == 5) return all_of<2, 5, Real>();
  return form.outputs == 4 ? all_of<4, 3, Real>() : all_of<2, 3, Real>();
}

WinogradTransforms<float> TransformsF32(WinogradForm form) {
  return of_form<float>(form);
}
WinogradTransforms<double> TransformsF64(WinogradForm form) {
  return of_form<double>(form);
}

}  // namespace omniconv::operations::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::operations {

HWY_EXPORT(TransformsF32);
HWY_EXPORT(TransformsF64);

WinogradTransforms<float> winograd_transforms_f32(WinogradForm form) {
  return HWY_DYNAMIC_DISPATCH(TransformsF32)(form);
}
WinogradTransforms<double> winograd_transforms_f64(WinogradForm form) {
  return HWY_DYNAMIC_DISPATCH(TransformsF64)(form);
}

}  // namespace omniconv::operations
#endif
