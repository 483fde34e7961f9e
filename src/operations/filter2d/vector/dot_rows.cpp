#include "operations/filter2d/vector/dot_rows.h"

#include <hwy/base.h>

#include <cmath>

#include "core/checked.h"
#include "omniconv/error.h"
#include "operations/filter2d/weights.h"

namespace omniconv::kernels {

ByteWeights byte_weights(const std::vector<double>& weights, std::int64_t r, std::int64_t s) {
  ByteWeights bytes;
  bytes.r = r;
  bytes.groups = divide_up(s, dot_taps);
  bytes.unit = common_unit(weights);
  const auto groups = static_cast<std::size_t>(checked_multiply(r, bytes.groups, "the weights' groups"));
  bytes.low.resize(groups);
  bytes.high.resize(groups);
  bool any_high = false;
  for (std::int64_t i = 0; i < r; ++i)
    for (std::int64_t k = 0; k < s; ++k) {
      const double value = weights[static_cast<std::size_t>(i * s + k)] / bytes.unit;
      if (std::fabs(value) > 32639) {
        bytes.low.clear();
        bytes.high.clear();
        return bytes;
      }
      // 256 * high + low, both signed bytes.
      const auto integer = static_cast<std::int32_t>(value), high = (integer + 128) >> 8, low = integer - high * 256;
      const auto group = static_cast<std::size_t>(i * bytes.groups + k / dot_taps);
      const int shift = static_cast<int>(k % dot_taps) * 8;
      bytes.low[group] |= static_cast<std::int32_t>(static_cast<std::uint32_t>(low & 255) << shift);
      bytes.high[group] |= static_cast<std::int32_t>(static_cast<std::uint32_t>(high & 255) << shift);
      any_high |= high != 0;
    }
  if (!any_high) bytes.high.clear();
  return bytes;
}

}  // namespace omniconv::kernels

#if HWY_ARCH_X86_64
#include <immintrin.h>

// What Highway 1.0 lacks: bytes permuted across a vector, and dot products of bytes.
HWY_PUSH_ATTRIBUTES("avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi,avx512vnni")

namespace omniconv::kernels {
namespace {

// For loops over registers: their indices must be constants, or the compiler keeps the registers in memory.
#define OMNICONV_UNROLL _Pragma("GCC unroll 8")

constexpr int vectors = 4, lanes = 16;  // of sums in a row of 64 results
constexpr std::int64_t block = vectors * lanes;

// Sums of `rows` output rows, of low and, with two parts, of high weights.
template <int rows, int parts>
using Sums = __m512i[parts][rows][vectors];

// One input row into the sums of output rows first .. last.
template <int first, int last, int rows, int parts>
HWY_INLINE void add_row(const Chain<std::uint8_t>& a, std::int64_t row, const std::uint8_t* input, __m512i taps,
                        Sums<rows, parts>& sums) {
  const std::int32_t* const weights[2] = {a.weights + row * a.s, (parts > 1 ? a.high : a.weights) + row * a.s};
  for (std::int64_t g = 0; g < a.s; ++g, input += dot_taps * a.step) {
    __m512i w[parts][rows];
    OMNICONV_UNROLL for (int part = 0; part < parts; ++part) {
      OMNICONV_UNROLL for (int j = first; j <= last; ++j) {
        w[part][j] = _mm512_set1_epi32(weights[part][g - j * a.s]);
      }
    }
    OMNICONV_UNROLL for (int v = 0; v < vectors; ++v) {
      const __m512i x = _mm512_permutexvar_epi8(taps, _mm512_loadu_si512(input + v * lanes));
      OMNICONV_UNROLL for (int part = 0; part < parts; ++part) {
        OMNICONV_UNROLL for (int j = first; j <= last; ++j) {
          sums[part][j][v] = _mm512_dpbusd_epi32(sums[part][j][v], x, w[part][j]);
        }
      }
    }
  }
}

// Input row i into the sums of output rows first .. last.
template <int first, int last, int rows, int parts>
HWY_INLINE void add_input_row(const Chain<std::uint8_t>& a, std::int64_t e, std::int64_t i, __m512i taps,
                              Sums<rows, parts>& sums) {
  if constexpr (first <= last) add_row<first, last, rows, parts>(a, i, a.inputs[i] + a.offset + e, taps, sums);
}

// All taps for `block` results of each of `rows` output rows: input row i serves output rows j with 0 <= i - j < r.
// Without a branch, as in rows.cpp; a.r is at least rows - 1.
template <int rows, int parts>
HWY_INLINE void add_rows(const Chain<std::uint8_t>& a, std::int64_t e, __m512i taps, Sums<rows, parts>& sums) {
  OMNICONV_UNROLL for (int part = 0; part < parts; ++part) {
    OMNICONV_UNROLL for (int j = 0; j < rows; ++j) {
      OMNICONV_UNROLL for (int v = 0; v < vectors; ++v) {
        sums[part][j][v] = _mm512_setzero_si512();
      }
    }
  }
  if constexpr (rows > 1) add_input_row<0, 0>(a, e, 0, taps, sums);
  if constexpr (rows > 2) add_input_row<0, 1>(a, e, 1, taps, sums);
  if constexpr (rows > 3) add_input_row<0, 2>(a, e, 2, taps, sums);
  if (a.r == rows - 1) add_input_row<1, rows - 1>(a, e, a.r, taps, sums);
  for (std::int64_t i = rows - 1; i < a.r; ++i) add_input_row<0, rows - 1>(a, e, i, taps, sums);
  if (a.r >= rows) add_input_row<1, rows - 1>(a, e, a.r, taps, sums);
  if constexpr (rows > 2) add_input_row<2, rows - 1>(a, e, a.r + 1, taps, sums);
  if constexpr (rows > 3) add_input_row<3, rows - 1>(a, e, a.r + 2, taps, sums);
}

// convert(fma(scale, sum, bias)) of the exact sums.
template <bool plain, int parts>
HWY_INLINE __m512i finish(const __m512i (&low)[vectors], const __m512i (&high)[vectors], __m512 scale, __m512 bias) {
  const __m512 highest = _mm512_set1_ps(255.0f);
  __m512i value[vectors];
  OMNICONV_UNROLL for (int v = 0; v < vectors; ++v) {
    value[v] = parts == 1 ? low[v] : _mm512_add_epi32(low[v], _mm512_slli_epi32(high[v], 8));
    if constexpr (!plain)  // what is below 0 or converts to the most negative integer is stored as 0
      value[v] = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(value[v]), bias), highest));
  }
  const __m512i first = _mm512_packs_epi32(value[0], value[1]), second = _mm512_packs_epi32(value[2], value[3]);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second));
}

template <int rows, int parts, bool plain>
void chain_rows_into(const Chain<std::uint8_t>& a, const Finish& how, std::byte* to, std::int64_t stride_bytes) {
  alignas(64) std::uint8_t tap_bytes[64];
  for (int i = 0; i < 64; ++i) tap_bytes[i] = static_cast<std::uint8_t>(i / dot_taps + i % dot_taps * a.step);
  const __m512i taps = _mm512_load_si512(tap_bytes);
  const __m512 scale = _mm512_set1_ps(static_cast<float>(how.scale)),
               bias = _mm512_set1_ps(static_cast<float>(how.bias));
  for (std::int64_t e = 0; e < a.n; e += block) {
    if (a.upcoming.rows != nullptr)
      for (int j = 0; j < rows; ++j)
        _mm_prefetch(reinterpret_cast<const char*>(a.upcoming.rows[j] + a.offset + e), _MM_HINT_T0);
    Sums<rows, parts> sums;
    add_rows<rows, parts>(a, e, taps, sums);
    const __mmask64 whole = ~__mmask64{0}, mask = a.n - e >= block ? whole : whole >> (block - (a.n - e));
    OMNICONV_UNROLL for (int j = 0; j < rows; ++j) {
      const __m512i bytes = finish<plain, parts>(sums[0][j], sums[parts - 1][j], scale, bias);
      _mm512_mask_storeu_epi8(to + j * stride_bytes + e, mask, bytes);
    }
  }
}

template <int rows, int parts>
void chain_rows_of(const Chain<std::uint8_t>& a, const Finish& finish, std::byte* to, std::int64_t stride_bytes) {
  if (finish.scale == 1 && finish.bias == 0) return chain_rows_into<rows, parts, true>(a, finish, to, stride_bytes);
  chain_rows_into<rows, parts, false>(a, finish, to, stride_bytes);
}

}  // namespace

bool has_byte_dots() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
}

void chain_and_finish(const Chain<std::uint8_t>& arguments, const Finish& finish, std::byte* to,
                      std::int64_t stride_bytes) {
  Chain<std::uint8_t> a = arguments;
  const int together = a.high == nullptr ? 4 : 2;  // output rows whose sums fit the registers
  for (int left = arguments.count; left > 0;) {
    const int rows = left >= together && a.r >= together - 1 ? together : 1;
    if (a.high == nullptr)
      rows == 4 ? chain_rows_of<4, 1>(a, finish, to, stride_bytes) : chain_rows_of<1, 1>(a, finish, to, stride_bytes);
    else
      rows == 2 ? chain_rows_of<2, 2>(a, finish, to, stride_bytes) : chain_rows_of<1, 2>(a, finish, to, stride_bytes);
    left -= rows;
    a.inputs += rows;
    if (a.upcoming.rows != nullptr) a.upcoming.rows += rows;
    to += rows * stride_bytes;
  }
}

}  // namespace omniconv::kernels

HWY_POP_ATTRIBUTES

#else

namespace omniconv::kernels {

bool has_byte_dots() {
  return false;
}

void chain_and_finish(const Chain<std::uint8_t>&, const Finish&, std::byte*, std::int64_t) {
  throw Error(ErrorKind::environment, "dot products of bytes were asked for on a processor that has none");
}

}  // namespace omniconv::kernels
#endif
