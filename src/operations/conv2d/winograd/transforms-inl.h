// The two halves of Winograd's transforms, of matrices whose points come in pairs. For inclusion by each target of a
// file of vector code, after Highway.
#if defined(OMNICONV_WINOGRAD_TRANSFORMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_WINOGRAD_TRANSFORMS_INL_H
#undef OMNICONV_WINOGRAD_TRANSFORMS_INL_H
#else
#define OMNICONV_WINOGRAD_TRANSFORMS_INL_H
#endif

#include "operations/conv2d/winograd/winograd.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::operations::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// For loops whose indices must be constants, so that zeros and ones of the matrices cost nothing.
#undef OMNICONV_UNROLL
#define OMNICONV_UNROLL _Pragma("GCC unroll 8")

// sum + factor * value, where a sum has begun.
template <class D, class V = hn::Vec<D>, typename Real = hn::TFromD<D>>
HWY_INLINE V add_term(D d, double factor, V value, V sum, bool begun) {
  if (!begun) return factor == 1 ? value : hn::Mul(hn::Set(d, static_cast<Real>(factor)), value);
  if (factor == 1) return hn::Add(sum, value);
  if (factor == -1) return hn::Sub(sum, value);
  return hn::MulAdd(hn::Set(d, static_cast<Real>(factor)), value, sum);
}

// The terms of a row whose columns are even, or odd.
template <class D, class V, std::size_t columns>
HWY_INLINE V half_row(D d, const std::array<double, columns>& row, const V (&in)[columns], std::size_t parity) {
  V sum = hn::Zero(d);
  bool begun = false;
  OMNICONV_UNROLL for (std::size_t j = parity; j < columns; j += 2) {
    if (row[j] == 0) continue;
    sum = add_term(d, row[j], in[j], sum, begun);
    begun = true;
  }
  return sum;
}

// out = matrix * in, of a matrix with a row for each point: those of a point and its negative differ in the signs of
// odd columns alone.
template <class D, class V, std::size_t rows, std::size_t columns>
HWY_INLINE void analyse(D d, const std::array<std::array<double, columns>, rows>& matrix, const V (&in)[columns],
                        V (&out)[rows]) {
  out[0] = half_row(d, matrix[0], in, 0);
  OMNICONV_UNROLL for (std::size_t e = 1; e + 1 < rows; e += 2) {
    const V even = half_row(d, matrix[e], in, 0), odd = half_row(d, matrix[e], in, 1);
    out[e] = hn::Add(even, odd);
    out[e + 1] = hn::Sub(even, odd);
  }
  out[rows - 1] = half_row(d, matrix[rows - 1], in, (columns - 1) % 2);
}

// out = matrix * in, of a matrix with a column for each point.
template <class D, class V, std::size_t rows, std::size_t columns>
HWY_INLINE void combine(D d, const std::array<std::array<double, columns>, rows>& matrix, const V (&in)[columns],
                        V (&out)[rows]) {
  V sums[columns / 2], differences[columns / 2];
  OMNICONV_UNROLL for (std::size_t e = 1; e + 1 < columns; e += 2) {
    sums[e / 2] = hn::Add(in[e], in[e + 1]);
    differences[e / 2] = hn::Sub(in[e], in[e + 1]);
  }
  OMNICONV_UNROLL for (std::size_t i = 0; i < rows; ++i) {
    V sum = in[0];
    bool begun = i == 0;
    OMNICONV_UNROLL for (std::size_t e = 1; e + 1 < columns; e += 2) {
      sum = add_term(d, matrix[i][e], i % 2 == 0 ? sums[e / 2] : differences[e / 2], sum, begun);
      begun = true;
    }
    out[i] = i + 1 == rows ? hn::Add(sum, in[columns - 1]) : sum;
  }
}

template <int outputs, int taps, class D, class V = hn::Vec<D>, typename Real = hn::TFromD<D>>
HWY_INLINE void combine_both(D d, const Real* products, std::int64_t pitch, V (&out)[outputs][outputs]) {
  constexpr auto& m = winograd_matrices<outputs, taps>;
  constexpr std::size_t points = m.points;
  V half[points][outputs];
  OMNICONV_UNROLL for (std::size_t e = 0; e < points; ++e) {
    V in[points];
    OMNICONV_UNROLL for (std::size_t f = 0; f < points; ++f) {
      in[f] = hn::LoadU(d, products + static_cast<std::int64_t>(e * points + f) * pitch);
    }
    combine(d, m.output, in, half[e]);
  }
  OMNICONV_UNROLL for (std::size_t j = 0; j < outputs; ++j) {
    V in[points], column[outputs];
    OMNICONV_UNROLL for (std::size_t e = 0; e < points; ++e) {
      in[e] = half[e][j];
    }
    combine(d, m.output, in, column);
    OMNICONV_UNROLL for (std::size_t i = 0; i < outputs; ++i) {
      out[i][j] = column[i];
    }
  }
}

}  // namespace omniconv::operations::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
