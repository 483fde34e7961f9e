#include "operations/conv2d/depthwise/cpu_planes.h"

#include <algorithm>
#include <array>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/conv2d/depthwise/cpu_planes.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/registers-inl.h"
#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// For loops over registers: their indices must be constants, or the compiler keeps the registers in memory.
#undef OMNICONV_UNROLL
#define OMNICONV_UNROLL _Pragma("GCC unroll 16")

// Input is fetched so far ahead of its use: a plane is over before hardware that follows its rows is at speed.
constexpr std::int64_t ahead_bytes = 2048;

template <DataType type, class D>
HWY_INLINE hn::Vec<D> load_some(D d, const std::byte* from, std::int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (type == DataType::f32 || type == DataType::f64)
    return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d,
                          reinterpret_cast<const hn::TFromD<D>*>(from));
#endif
  return load_stored<type>(d, from, count);
}

template <DataType type, class D>
HWY_INLINE void store_some(D d, hn::Vec<D> value, std::byte* to, std::int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (type == DataType::f32 || type == DataType::f64)
    return hn::BlendedStore(value, hn::FirstN(d, static_cast<std::size_t>(count)), d,
                            reinterpret_cast<hn::TFromD<D>*>(to));
#endif
  store_stored<type>(d, value, to, count);
}

template <class D, typename Real = hn::TFromD<D>>
HWY_INLINE void zeros(D d, Real* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) hn::StoreU(hn::Zero(d), d, to + i);
}

// The columns of the window that the plane has.
template <typename Real>
std::pair<std::int64_t, std::int64_t> columns_inside(const PlaneWindow<Real>& w) {
  const std::int64_t first = std::clamp<std::int64_t>(-w.first_column, 0, w.window_columns);
  return {first, std::clamp(w.columns - w.first_column, first, w.window_columns)};
}

// A row of neighbours: each store may overwrite what a vector before it put past its end.
template <DataType type, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void fill_row(D d, const PlaneWindow<Real>& w, const std::byte* from, Real* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto [first, last] = columns_inside(w);
  zeros(d, to, first);
  from += (w.first_column + first) * size_of(type);
  std::int64_t i = first;
  for (; i + lanes <= last; i += lanes, from += lanes * size_of(type)) {
    hwy::Prefetch(from + ahead_bytes);
    hn::StoreU(load_stored<type>(d, from), d, to + i);
  }
  if (i < last) {
    hwy::Prefetch(from + ahead_bytes);
    hn::StoreU(load_some<type>(d, from, last - i), d, to + i);
    i += lanes;
  }
  zeros(d, to + i, w.window_columns - i);
}

template <class D, typename Real = hn::TFromD<D>>
HWY_INLINE void take_apart(D d, const PlaneWindow<Real>& w, const Real* line, Real* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t length = (w.window_columns + w.phases - 1) / w.phases;
  if (w.phases == 2) {
    for (std::int64_t i = 0; i < length; i += lanes) {
      hn::Vec<D> even, odd;
      hn::LoadInterleaved2(d, line + 2 * i, even, odd);
      hn::StoreU(even, d, to + i);
      hn::StoreU(odd, d, to + w.copy_phase + i);
    }
    return;
  }
  for (std::int64_t f = 0; f < w.phases; ++f)
    for (std::int64_t i = 0; i < length; ++i) to[f * w.copy_phase + i] = line[i * w.phases + f];
}

template <DataType type, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void fill_pixels(D d, const PlaneWindow<Real>& w, const std::byte* from, Real* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto [first, last] = columns_inside(w);
  zeros(d, to, first * lanes);
  for (std::int64_t i = first; i < last; ++i) {
    const std::byte* const pixel = from + (w.first_column + i) * w.column_pitch * size_of(type);
    if (w.offsets != nullptr) {
      hn::StoreU(hn::Zero(d), d, to + i * lanes);
      for (std::int64_t lane = 0; lane < w.channels; ++lane)
        to[i * lanes + lane] = static_cast<Real>(load_element(type, pixel + w.offsets[lane] * size_of(type)));
    } else if (w.channels == lanes) {
      hn::StoreU(load_stored<type>(d, pixel), d, to + i * lanes);
    } else {
      hn::StoreU(load_some<type>(d, pixel, w.channels), d, to + i * lanes);
    }
  }
  zeros(d, to + last * lanes, (w.window_columns - last) * lanes);
}

template <DataType type, typename Real>
void fill(const PlaneWindow<Real>& w) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t row_bytes = w.row_pitch * size_of(type);
  Real* to = w.copy;
  for (std::int64_t i = 0; i < w.window_rows; ++i, to += w.copy_row) {
    const std::int64_t row = w.first_row + i;
    const std::byte* const from = w.stored + row * row_bytes;
    const bool inside = row >= 0 && row < w.rows;
    if (w.channels > 0) {
      if (inside)
        fill_pixels<type>(d, w, from, to);
      else
        zeros(d, to, w.window_columns * lanes);
    } else if (!inside) {
      zeros(d, to, w.copy_row);
    } else if (w.phases == 1) {
      fill_row<type>(d, w, from, to);
    } else {
      fill_row<type>(d, w, from, w.line);
      take_apart(d, w, w.line, to);
    }
  }
}

template <DataType type, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void store_vector(D d, const PlaneFinish<Real>& f, hn::Vec<D> bias, const Real* from, std::byte* to,
                             std::int64_t count) {
  auto value = hn::LoadU(d, from);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (f.bias != nullptr) value = hn::Add(value, bias);
  if (count >= lanes) {
    if (f.accumulate) value = hn::Add(value, load_stored<type>(d, to));
    if (f.relu) value = hn::IfThenElse(hn::Lt(value, hn::Zero(d)), hn::Zero(d), value);  // NaN stays
    return store_stored<type>(d, value, to);
  }
  if (f.accumulate) value = hn::Add(value, load_some<type>(d, to, count));
  if (f.relu) value = hn::IfThenElse(hn::Lt(value, hn::Zero(d)), hn::Zero(d), value);
  store_some<type>(d, value, to, count);
}

// The lines that a window's rows will be stored to.
template <typename Real>
HWY_INLINE void fetch_rows(const PlaneWindow<Real>& w) {
  constexpr std::int64_t line = 64;
  const auto [first, last] = columns_inside(w);
  const std::int64_t size = size_of(w.type);
  for (std::int64_t i = std::max<std::int64_t>(-w.first_row, 0); i < std::min(w.window_rows, w.rows - w.first_row);
       ++i) {
    std::byte* const row = w.stored + ((w.first_row + i) * w.row_pitch + w.first_column * w.column_pitch) * size;
    const std::int64_t step = w.channels > 0 ? w.column_pitch * size : line;
    for (std::int64_t at = first * w.column_pitch * size; at < last * w.column_pitch * size; at += step)
      __builtin_prefetch(row + at, 1);
  }
}

template <class D, typename Real = hn::TFromD<D>>
HWY_INLINE void put_together(D d, const PlaneWindow<Real>& w, const Real* from, Real* line) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t length = (w.window_columns + w.phases - 1) / w.phases;
  if (w.phases == 2) {
    for (std::int64_t i = 0; i < length; i += lanes)
      hn::StoreInterleaved2(hn::LoadU(d, from + i), hn::LoadU(d, from + w.copy_phase + i), d, line + 2 * i);
    return;
  }
  for (std::int64_t f = 0; f < w.phases; ++f)
    for (std::int64_t i = 0; i < length; ++i) line[i * w.phases + f] = from[f * w.copy_phase + i];
}

template <DataType type, typename Real>
void store(const PlaneWindow<Real>& w, const PlaneFinish<Real>& f) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto [first, last] = columns_inside(w);
  const auto bias = f.bias == nullptr ? hn::Zero(d) : w.channels > 0 ? hn::LoadU(d, f.bias) : hn::Set(d, *f.bias);
  for (std::int64_t i = std::max<std::int64_t>(-w.first_row, 0); i < std::min(w.window_rows, w.rows - w.first_row);
       ++i) {
    const Real* from = w.copy + i * w.copy_row;
    std::byte* const to =
        w.stored + ((w.first_row + i) * w.row_pitch + w.first_column * w.column_pitch) * size_of(type);
    if (w.channels > 0) {
      for (std::int64_t j = first; j < last; ++j)
        store_vector<type>(d, f, bias, from + j * lanes, to + j * w.column_pitch * size_of(type), w.channels);
      continue;
    }
    if (w.phases > 1) {
      put_together(d, w, from, w.line);
      from = w.line;
    }
    for (std::int64_t j = first; j < last; j += lanes)
      store_vector<type>(d, f, bias, from + j, to + j * size_of(type), last - j);
  }
}

// Sums of B rows by V vectors, in registers. Each vector of input is loaded once for the rows that meet it.
template <int B, int V, int taps, bool of_lanes, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void add_block(D d, const PlaneSums<Real>& s, const Real* from, Real* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[B][V];
  OMNICONV_UNROLL for (int b = 0; b < B; ++b) {
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      sums[b][v] = s.add ? hn::LoadU(d, to + b * s.to_row + v * s.to_vector) : hn::Zero(d);
    }
  }
  const Real* weights = s.weights;
  for (const std::int64_t offset : s.offsets) {
    hn::Vec<D> weight[taps];
    OMNICONV_UNROLL for (int t = 0; t < taps; ++t) {
      weight[t] = in_register(of_lanes ? hn::LoadU(d, weights + t * lanes) : hn::Set(d, weights[t]));
    }
    weights += of_lanes ? taps * lanes : taps;
    const Real* row = from + offset;
    OMNICONV_UNROLL for (int j = 0; j < taps + B - 1; ++j) {
      OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
        const auto value = in_register(hn::LoadU(d, row + v * s.from_vector));
        OMNICONV_UNROLL for (int b = 0; b < B; ++b) {
          if (j - b >= 0 && j - b < taps) sums[b][v] = hn::MulAdd(weight[j - b], value, sums[b][v]);
        }
      }
      row += s.from_row;
    }
  }
  OMNICONV_UNROLL for (int b = 0; b < B; ++b) {
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      hn::StoreU(sums[b][v], d, to + b * s.to_row + v * s.to_vector);
    }
  }
}

constexpr int vectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

template <int B, int taps, bool of_lanes, typename Real>
HWY_INLINE void add_rows(const PlaneSums<Real>& s, std::int64_t row) {
  const hn::ScalableTag<Real> d;
  const Real* from = s.from + row * s.from_row;
  Real* to = s.to + row * s.to_row;
  std::int64_t j = 0;
  for (; j + vectors <= s.vectors; j += vectors, from += vectors * s.from_vector, to += vectors * s.to_vector)
    add_block<B, vectors, taps, of_lanes>(d, s, from, to);
  for (; j < s.vectors; ++j, from += s.from_vector, to += s.to_vector) add_block<B, 1, taps, of_lanes>(d, s, from, to);
}

template <int taps, bool of_lanes, typename Real>
HWY_NOINLINE void add_all(const PlaneSums<Real>& s) {
  std::int64_t row = 0;
  for (; row + 4 <= s.rows; row += 4) add_rows<4, taps, of_lanes>(s, row);
  for (; row + 2 <= s.rows; row += 2) add_rows<2, taps, of_lanes>(s, row);
  for (; row < s.rows; ++row) add_rows<1, taps, of_lanes>(s, row);
}

template <typename Real>
void add_taps(const PlaneSums<Real>& s) {
  static constexpr auto functions = []<int... t>(std::integer_sequence<int, t...>) {
    return std::array<std::array<void (*)(const PlaneSums<Real>&), 2>, most_taps>{
        {{add_all<t + 1, false, Real>, add_all<t + 1, true, Real>}...}};
  }
  (std::make_integer_sequence<int, most_taps>());
  functions[static_cast<std::size_t>(s.taps - 1)][s.weights_of_lanes ? 1 : 0](s);
}

// B rows of `to` at all vectors. Two sums of a tap take turns, since one would wait for itself.
template <int B, int taps, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void add_product_rows(D d, const PlaneProducts<Real>& p, const Real* from, const Real* to, Real* kept) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[2][taps];
  OMNICONV_UNROLL for (int t = 0; t < taps; ++t) {
    sums[0][t] = hn::LoadU(d, kept + t * lanes);
    sums[1][t] = hn::Zero(d);
  }
  for (std::int64_t v = 0; v < p.vectors; ++v, from += p.from_vector, to += p.to_vector) {
    hn::Vec<D> gradient[B];
    OMNICONV_UNROLL for (int b = 0; b < B; ++b) {
      gradient[b] = in_register(hn::LoadU(d, to + b * p.to_row));
    }
    const Real* row = from;
    // An infinity beside what is there would make NaN of a zero.
    const auto is_there = hn::FirstN(d, static_cast<std::size_t>(v + 1 < p.vectors ? lanes : p.last_lanes));
    OMNICONV_UNROLL for (int j = 0; j < taps + B - 1; ++j) {
      const auto value = in_register(hn::IfThenElseZero(is_there, hn::LoadU(d, row)));
      OMNICONV_UNROLL for (int b = 0; b < B; ++b) {
        if (j - b >= 0 && j - b < taps) sums[b % 2][j - b] = hn::MulAdd(value, gradient[b], sums[b % 2][j - b]);
      }
      row += p.from_row;
    }
  }
  OMNICONV_UNROLL for (int t = 0; t < taps; ++t) {
    hn::StoreU(hn::Add(sums[0][t], sums[1][t]), d, kept + t * lanes);
  }
}

template <int taps, typename Real>
HWY_NOINLINE void add_all_products(const PlaneProducts<Real>& p) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t row = 0;
  const auto add = [&]<int B>(std::integral_constant<int, B>) HWY_ATTR {
    Real* kept = p.sums;
    for (const std::int64_t offset : p.offsets) {
      add_product_rows<B, taps>(d, p, p.from + row * p.from_row + offset, p.to + row * p.to_row, kept);
      kept += taps * lanes;
    }
    row += B;
  };
  while (row + 4 <= p.rows) add(std::integral_constant<int, 4>());
  while (row < p.rows) add(std::integral_constant<int, 1>());
}

template <typename Real>
void add_products(const PlaneProducts<Real>& p) {
  static constexpr auto functions = []<int... t>(std::integer_sequence<int, t...>) {
    return std::array<void (*)(const PlaneProducts<Real>&), most_taps>{add_all_products<t + 1, Real>...};
  }
  (std::make_integer_sequence<int, most_taps>());
  functions[static_cast<std::size_t>(p.taps - 1)](p);
}

std::int64_t LanesF32() {
  return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
}
std::int64_t LanesF64() {
  return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<double>()));
}

void FillF32(const PlaneWindow<float>& w) {
  switch (w.type) {
    case DataType::f16: return fill<DataType::f16>(w);
    case DataType::bf16: return fill<DataType::bf16>(w);
    default: return fill<DataType::f32>(w);  // and tf32
  }
}
void FillF64(const PlaneWindow<double>& w) {
  fill<DataType::f64>(w);
}
void FetchF32(const PlaneWindow<float>& w) {
  fetch_rows(w);
}
void FetchF64(const PlaneWindow<double>& w) {
  fetch_rows(w);
}
void StoreF32(const PlaneWindow<float>& w, const PlaneFinish<float>& f) {
  switch (w.type) {
    case DataType::f16: return store<DataType::f16>(w, f);
    case DataType::bf16: return store<DataType::bf16>(w, f);
    default: return store<DataType::f32>(w, f);
  }
}
void StoreF64(const PlaneWindow<double>& w, const PlaneFinish<double>& f) {
  store<DataType::f64>(w, f);
}
void TapsF32(const PlaneSums<float>& s) {
  add_taps(s);
}
void TapsF64(const PlaneSums<double>& s) {
  add_taps(s);
}
void ProductsF32(const PlaneProducts<float>& p) {
  add_products(p);
}
void ProductsF64(const PlaneProducts<double>& p) {
  add_products(p);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(LanesF32);
HWY_EXPORT(LanesF64);
HWY_EXPORT(FillF32);
HWY_EXPORT(FillF64);
HWY_EXPORT(FetchF32);
HWY_EXPORT(FetchF64);
HWY_EXPORT(StoreF32);
HWY_EXPORT(StoreF64);
HWY_EXPORT(TapsF32);
HWY_EXPORT(TapsF64);
HWY_EXPORT(ProductsF32);
HWY_EXPORT(ProductsF64);

std::int64_t depthwise_lanes(DataType sums) {
  return sums == DataType::f64 ? HWY_DYNAMIC_DISPATCH(LanesF64)() : HWY_DYNAMIC_DISPATCH(LanesF32)();
}
void fill_window(const PlaneWindow<float>& window) {
  HWY_DYNAMIC_DISPATCH(FillF32)(window);
}
void fill_window(const PlaneWindow<double>& window) {
  HWY_DYNAMIC_DISPATCH(FillF64)(window);
}
void fetch_window(const PlaneWindow<float>& window) {
  HWY_DYNAMIC_DISPATCH(FetchF32)(window);
}
void fetch_window(const PlaneWindow<double>& window) {
  HWY_DYNAMIC_DISPATCH(FetchF64)(window);
}
void store_window(const PlaneWindow<float>& window, const PlaneFinish<float>& finish) {
  HWY_DYNAMIC_DISPATCH(StoreF32)(window, finish);
}
void store_window(const PlaneWindow<double>& window, const PlaneFinish<double>& finish) {
  HWY_DYNAMIC_DISPATCH(StoreF64)(window, finish);
}
void add_plane_taps(const PlaneSums<float>& sums) {
  HWY_DYNAMIC_DISPATCH(TapsF32)(sums);
}
void add_plane_taps(const PlaneSums<double>& sums) {
  HWY_DYNAMIC_DISPATCH(TapsF64)(sums);
}
void add_plane_products(const PlaneProducts<float>& products) {
  HWY_DYNAMIC_DISPATCH(ProductsF32)(products);
}
void add_plane_products(const PlaneProducts<double>& products) {
  HWY_DYNAMIC_DISPATCH(ProductsF64)(products);
}

}  // namespace omniconv::kernels
#endif
