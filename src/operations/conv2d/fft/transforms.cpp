#include "operations/conv2d/fft/transforms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/conv2d/fft/transforms.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "operations/conv2d/fft/lines-inl.h"
#include "operations/conv2d/fft/twiddles.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::operations::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct Complex {
  V re, im;
};
template <class V>
HWY_INLINE Complex<V> operator+(Complex<V> a, Complex<V> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class V>
HWY_INLINE Complex<V> operator-(Complex<V> a, Complex<V> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
// a + i * b and a - i * b.
template <class V>
HWY_INLINE Complex<V> plus_i(Complex<V> a, Complex<V> b) {
  return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
}
template <class V>
HWY_INLINE Complex<V> minus_i(Complex<V> a, Complex<V> b) {
  return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
}
template <class V>
HWY_INLINE Complex<V> operator*(Complex<V> a, Complex<V> b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)), hn::MulAdd(a.im, b.re, hn::Mul(a.re, b.im))};
}
template <class V>
HWY_INLINE Complex<V> times_conjugate(Complex<V> a, Complex<V> b) {
  return {hn::MulAdd(a.im, b.im, hn::Mul(a.re, b.re)), hn::MulSub(a.im, b.re, hn::Mul(a.re, b.im))};
}

template <class D, typename Real = hn::TFromD<D>>
HWY_INLINE Complex<hn::Vec<D>> load(D d, const Real* from) {
  return {hn::Load(d, from), hn::Load(d, from + hn::Lanes(d))};
}
template <class D, typename Real = hn::TFromD<D>>
HWY_INLINE void store(D d, Complex<hn::Vec<D>> value, Real* to) {
  hn::Store(value.re, d, to);
  hn::Store(value.im, d, to + hn::Lanes(d));
}

// Complex transforms of `side` points, two vectors each.
template <std::int64_t side, typename Real>
struct Line {
  using D = hn::ScalableTag<Real>;
  using C = Complex<hn::Vec<D>>;
  static constexpr std::int64_t point = 2 * static_cast<std::int64_t>(hn::MaxLanes(D()));

  // exp(-2 pi i * exponent / side)
  static HWY_INLINE C root(std::int64_t exponent) {
    const FftTwiddles<side, Real>& of_side = fft_twiddles<side, Real>;
    const auto at = static_cast<std::size_t>(exponent);
    return {hn::Set(D(), of_side.re[at]), hn::Set(D(), of_side.im[at])};
  }

  // Four of n points become one of each of the transforms of n / 4. Of a first step the later quarters may be zero.
  template <std::int64_t n, int quarters, bool turns>
  static HWY_INLINE void split(Real* at, std::int64_t j) {
    const D d;
    constexpr std::int64_t quarter = n / 4 * point, step = side / n;
    C sum = load(d, at), difference = sum, others = sum, turned = sum;
    if constexpr (quarters > 1) others = turned = load(d, at + quarter);
    if constexpr (quarters > 2) {
      const C a = sum, b = others, c = load(d, at + 2 * quarter), e = load(d, at + 3 * quarter);
      sum = a + c, difference = a - c, others = b + e, turned = b - e;
    }
    C to[4] = {sum, sum, sum, sum};
    if constexpr (quarters > 1) {
      to[0] = sum + others, to[2] = sum - others;
      to[1] = minus_i(difference, turned), to[3] = plus_i(difference, turned);
    }
    if constexpr (turns) {
      to[1] = to[1] * root(j * step);
      to[2] = to[2] * root(2 * j * step);
      to[3] = to[3] * root(3 * j * step);
    }
    for (std::int64_t part = 0; part < 4; ++part) store(d, to[part], at + part * quarter);
  }

  // Decimation in frequency: transforms of n points become four of n / 4. What the last ones give goes to `to`.
  template <std::int64_t n, int quarters = 4>
  static HWY_INLINE void analyse(Real* x, Real* to, std::int64_t pitch) {
    const D d;
    if constexpr (n == 2) {
      for (std::int64_t i = 0; i < side; i += 2) {
        const C a = load(d, x + i * point), b = load(d, x + (i + 1) * point);
        store(d, a + b, to + i * pitch);
        store(d, a - b, to + (i + 1) * pitch);
      }
    } else if constexpr (n == 4) {
      for (std::int64_t i = 0; i < side; i += 4) {
        const C a = load(d, x + i * point), b = load(d, x + (i + 1) * point), c = load(d, x + (i + 2) * point),
                e = load(d, x + (i + 3) * point);
        const C sum = a + c, difference = a - c, others = b + e, turned = b - e;
        store(d, sum + others, to + i * pitch);
        store(d, minus_i(difference, turned), to + (i + 1) * pitch);
        store(d, sum - others, to + (i + 2) * pitch);
        store(d, plus_i(difference, turned), to + (i + 3) * pitch);
      }
    } else {
      for (std::int64_t i = 0; i < side; i += n) {
        split<n, quarters, false>(x + i * point, 0);
        for (std::int64_t j = 1; j < n / 4; ++j) split<n, quarters, true>(x + (i + j) * point, j);
      }
      analyse<n / 4>(x, to, pitch);
    }
  }
  // Of points of which only the first `live` are not zero; the others of a quarter are, the other quarters unwritten.
  static void transform(std::int64_t live, Real* x, Real* to, std::int64_t pitch) {
    if (live <= side / 4) return analyse<side, 1>(x, to, pitch);
    if (live <= side / 2) return analyse<side, 2>(x, to, pitch);
    analyse<side, 4>(x, to, pitch);
  }
  // How many of them are read.
  static std::int64_t read_of(std::int64_t live) {
    return live <= side / 4 ? side / 4 : live <= side / 2 ? side / 2 : side;
  }

  template <std::int64_t n, bool turns>
  static HWY_INLINE void merge(Real* at, std::int64_t j) {
    const D d;
    constexpr std::int64_t quarter = n / 4 * point, step = side / n;
    C b = load(d, at + quarter), c = load(d, at + 2 * quarter), e = load(d, at + 3 * quarter);
    if constexpr (turns) {
      b = times_conjugate(b, root(j * step));
      c = times_conjugate(c, root(2 * j * step));
      e = times_conjugate(e, root(3 * j * step));
    }
    const C a = load(d, at), sum = a + c, difference = a - c, others = b + e, turned = b - e;
    store(d, sum + others, at);
    store(d, plus_i(difference, turned), at + quarter);
    store(d, sum - others, at + 2 * quarter);
    store(d, minus_i(difference, turned), at + 3 * quarter);
  }

  // The way back, from `from` to x: its transposed steps in turned order.
  template <std::int64_t n>
  static HWY_INLINE void combine(const Real* from, std::int64_t pitch, Real* x) {
    const D d;
    if constexpr (n == 2) {
      for (std::int64_t i = 0; i < side; i += 2) {
        const C a = load(d, from + i * pitch), b = load(d, from + (i + 1) * pitch);
        store(d, a + b, x + i * point);
        store(d, a - b, x + (i + 1) * point);
      }
    } else if constexpr (n == 4) {
      for (std::int64_t i = 0; i < side; i += 4) {
        const C a = load(d, from + i * pitch), b = load(d, from + (i + 1) * pitch), c = load(d, from + (i + 2) * pitch),
                e = load(d, from + (i + 3) * pitch);
        const C sum = a + c, difference = a - c, others = b + e, turned = b - e;
        store(d, sum + others, x + i * point);
        store(d, plus_i(difference, turned), x + (i + 1) * point);
        store(d, sum - others, x + (i + 2) * point);
        store(d, minus_i(difference, turned), x + (i + 3) * point);
      }
    } else {
      combine<n / 4>(from, pitch, x);
      for (std::int64_t i = 0; i < side; i += n) {
        merge<n, false>(x + i * point, 0);
        for (std::int64_t j = 1; j < n / 4; ++j) merge<n, true>(x + (i + j) * point, j);
      }
    }
  }
};

// Rows are transformed two at a time, as the real and imaginary parts of one complex line; then columns 0 to side / 2.
template <std::int64_t side, typename Real>
struct Tile {
  using D = hn::ScalableTag<Real>;
  using C = Complex<hn::Vec<D>>;
  using OfLine = Line<side, Real>;
  static constexpr std::int64_t point = OfLine::point, columns = side / 2 + 1,
                                column_pitch = (side + 1) * point;  // no power of two, at which lines meet in caches

  static constexpr auto places = [] {
    std::array<std::int64_t, static_cast<std::size_t>(side)> all{};
    for (std::int64_t k = 0; k < side; ++k) all[static_cast<std::size_t>(k)] = fft_place(k, side) * point;
    return all;
  }();
  static HWY_INLINE Real* at_frequency(Real* line, std::int64_t k) {
    return line + places[static_cast<std::size_t>(k % side)];
  }

  // Twice the spectra of the real rows that the line holds together.
  static HWY_INLINE void separate(Real* line, Real* even, Real* odd) {
    const D d;
    for (std::int64_t k = 0; k < columns; ++k) {
      const C z = load(d, at_frequency(line, k)), mirrored = load(d, at_frequency(line, side - k));
      store(d, C{hn::Add(z.re, mirrored.re), hn::Sub(z.im, mirrored.im)}, even + k * column_pitch);
      store(d, C{hn::Add(z.im, mirrored.im), hn::Sub(mirrored.re, z.re)}, odd + k * column_pitch);
    }
  }
  static HWY_INLINE void join(const Real* even, const Real* odd, Real* line) {
    const D d;
    for (std::int64_t k = 0; k < columns; ++k) {
      const C a = load(d, even + k * column_pitch), b = load(d, odd + k * column_pitch);
      if (k == 0 || k == side / 2) {
        store(d, C{a.re, b.re}, at_frequency(line, k));
      } else {
        store(d, plus_i(a, b), at_frequency(line, k));
        store(d, C{hn::Add(a.re, b.im), hn::Sub(b.re, a.im)}, at_frequency(line, side - k));
      }
    }
  }

  static void forward(const FftSource<Real>& source, bool conjugate, Real* to, FftPitches pitches, Real* scratch) {
    const D d;
    Real* const line = scratch + columns * column_pitch;
    const LineReader<Real> reader(source, side);
    const std::int64_t columns_there = reader.width(), width = OfLine::read_of(columns_there);
    const auto [first_row, last_row] = reader.any_rows;
    const std::int64_t height = OfLine::read_of(last_row);
    for (std::int64_t i = 0; i < height; i += 2) {
      Real* const even = scratch + i * point;
      if (i + 1 < first_row || i >= last_row) {
        for (std::int64_t k = 0; k < columns; ++k)
          for (std::int64_t part = 0; part < 4; ++part)
            hn::Store(hn::Zero(d), d, even + k * column_pitch + part * point / 2);
        continue;
      }
      reader.read(i, width, line);
      reader.read(i + 1, width, line + point / 2);
      OfLine::transform(columns_there, line, line, point);
      separate(line, even, even + point);
    }
    for (std::int64_t k = 0; k < columns; ++k) {
      Real* const to_column = to + k * pitches.column;
      OfLine::transform(last_row, scratch + k * column_pitch, to_column, pitches.bin);
      if (!conjugate) continue;
      for (std::int64_t j = 0; j < side; ++j) {
        Real* const im = to_column + j * pitches.bin + point / 2;
        hn::Store(hn::Neg(hn::Load(d, im)), d, im);
      }
    }
  }

  static void inverse(const Real* from, FftPitches pitches, const FftTarget<Real>& target, Real* scratch) {
    constexpr Real scale = Real{1} / static_cast<Real>(4 * side * side);
    Real* const line = scratch + columns * column_pitch;
    for (std::int64_t k = 0; k < columns; ++k)
      OfLine::template combine<side>(from + k * pitches.column, pitches.bin, scratch + k * column_pitch);
    const LineWriter<side, Real> writer(target, scale);
    for (std::int64_t i = 0; i < writer.rows; i += 2) {
      join(scratch + (target.top + i) % side * point, scratch + (target.top + i + 1) % side * point, line);
      OfLine::template combine<side>(line, point, line);
      writer.write(i, line);
      writer.write(i + 1, line + point / 2);
    }
  }

  static FftTransforms<Real> all() {
    return {.side = side,
            .lanes = point / 2,
            .scratch = {column_pitch, point},
            .scratch_elements = columns * column_pitch + side * point,
            .forward = forward,
            .inverse = inverse};
  }
};

template <typename Real>
FftTransforms<Real> of_side(std::int64_t side) {
  if (side == 16) return Tile<16, Real>::all();
  if (side == 32) return Tile<32, Real>::all();
  return side == 64 ? Tile<64, Real>::all() : Tile<128, Real>::all();
}
FftTransforms<float> TransformsF32(std::int64_t side) {
  return of_side<float>(side);
}
FftTransforms<double> TransformsF64(std::int64_t side) {
  return of_side<double>(side);
}

}  // namespace omniconv::operations::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::operations {

HWY_EXPORT(TransformsF32);
HWY_EXPORT(TransformsF64);

FftTransforms<float> fft_transforms_f32(std::int64_t side) {
  return HWY_DYNAMIC_DISPATCH(TransformsF32)(side);
}
FftTransforms<double> fft_transforms_f64(std::int64_t side) {
  return HWY_DYNAMIC_DISPATCH(TransformsF64)(side);
}

}  // namespace omniconv::operations
#endif
