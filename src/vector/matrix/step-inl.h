// A step of a product's tile, whose sums stay in registers. For inclusion by each target of a file of vector code,
// after Highway.
#if defined(OMNICONV_STEP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_STEP_INL_H
#undef OMNICONV_STEP_INL_H
#else
#define OMNICONV_STEP_INL_H
#endif

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "vector/matrix/bfloat_pair.h"
#include "vector/partial-inl.h"
#include "vector/registers-inl.h"

// For loops over registers: their indices must be constants, or the compiler keeps the registers in memory.
#undef OMNICONV_UNROLL
#define OMNICONV_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {

// Sums of a tile are most_rows x vectors registers: 28 of AVX-512's 32, 12 of AVX2's 16. One vector of the rest holds
// an element of a, the others a step of b.
constexpr int vectors = 2;
constexpr int most_rows = HWY_TARGET <= HWY_AVX3 ? 14 : HWY_TARGET == HWY_SCALAR ? 4 : 6;

// Of few rows there are more vectors, since as many sums as that are needed to hide the time that one addition takes.
constexpr int few_rows = 2, few_rows_vectors = HWY_TARGET <= HWY_AVX3 ? 8 : HWY_TARGET == HWY_SCALAR ? 2 : 4;

template <int rows, int V, class D>
HWY_INLINE void zero_sums(D d, hn::Vec<D> (&sums)[rows][V]) {
  OMNICONV_UNROLL for (int i = 0; i < rows; ++i) {
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      sums[i][v] = hn::Zero(d);
    }
  }
}

// sums[i][v] += a[i * a_row] * b[v]. Vectors begin at a multiple of their size, or anywhere.
template <int rows, int V, bool aligned, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void add_step(D d, const Real* HWY_RESTRICT a, const Real* HWY_RESTRICT b, hn::Vec<D> (&sums)[rows][V],
                         std::int64_t a_row = 1) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> column[V];
  OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
    column[v] = in_register(aligned ? hn::Load(d, b + v * lanes) : hn::LoadU(d, b + v * lanes));
  }
  OMNICONV_UNROLL for (int i = 0; i < rows; ++i) {
    const auto element = in_register(hn::Set(d, a[i * a_row]));
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      sums[i][v] = hn::MulAdd(element, column[v], sums[i][v]);
    }
  }
}

// sum + a.high * b.high + a.low * b.low, each addition rounded.
template <class D>
HWY_INLINE hn::Vec<D> add_pairs(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> sum) {
#if HWY_TARGET <= HWY_AVX3 && HWY_COMPILER_GCC
  (void)d;
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));  // Highway has no name for it yet
  return sum;
#else
  const hn::RebindToUnsigned<D> bits;
  const auto high = [&](auto v)
                        HWY_ATTR { return hn::BitCast(d, hn::And(hn::BitCast(bits, v), hn::Set(bits, 0xFFFF0000U))); };
  const auto low = [&](auto v) HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<16>(hn::BitCast(bits, v))); };
  return hn::MulAdd(low(a), low(b), hn::MulAdd(high(a), high(b), sum));
#endif
}

// The same of pairs, where a's rows are neighbours.
template <int rows, int V, bool aligned, class D>
HWY_INLINE void add_step(D d, const BfloatPair* HWY_RESTRICT a, const BfloatPair* HWY_RESTRICT b,
                         hn::Vec<D> (&sums)[rows][V]) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* const steps = reinterpret_cast<const float*>(b);
  hn::Vec<D> column[V];
  OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
    column[v] = in_register(aligned ? hn::Load(d, steps + v * lanes) : hn::LoadU(d, steps + v * lanes));
  }
  OMNICONV_UNROLL for (int i = 0; i < rows; ++i) {
    const auto element = in_register(hn::Set(d, std::bit_cast<float>(a[i])));
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      sums[i][v] = add_pairs(d, element, column[v], sums[i][v]);
    }
  }
}

// (Adds) sums to `columns` elements of rows, of which the last vector may hold some that are not stored.
template <int rows, int V, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void store_sums(D d, const hn::Vec<D> (&sums)[rows][V], Real* to, std::int64_t ld, std::int64_t columns,
                           bool add) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t last = columns - (V - 1) * lanes;
  OMNICONV_UNROLL for (int i = 0; i < rows; ++i) {
    Real* const row = to + i * ld;
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      if (v < V - 1 || last == lanes) {
        const auto before = add ? hn::LoadU(d, row + v * lanes) : hn::Zero(d);
        hn::StoreU(hn::Add(before, sums[i][v]), d, row + v * lanes);
      } else {
        const auto before = add ? load_first(d, row + v * lanes, last) : hn::Zero(d);
        store_first(d, hn::Add(before, sums[i][v]), row + v * lanes, last);
      }
    }
  }
}

// The functions Tile::run<rows, vectors>, at [rows - 1][vectors - 1]: tiles of few rows have up to `of_few_rows`
// vectors.
template <class Tile, int of_few_rows>
class TileTable {
 public:
  using Function = decltype(&Tile::template run<1, 1>);
  static Function at(std::int64_t rows, std::int64_t v) {
    static constexpr auto functions = of_all(std::make_integer_sequence<int, most_rows>());
    return functions[static_cast<std::size_t>(rows - 1)][static_cast<std::size_t>(v - 1)];
  }

 private:
  using OfRows = std::array<Function, of_few_rows>;
  template <int rows, int... v>
  static constexpr OfRows of_rows(std::integer_sequence<int, v...>) {
    return {Tile::template run<rows, v + 1>...};
  }
  template <int... row>
  static constexpr std::array<OfRows, most_rows> of_all(std::integer_sequence<int, row...>) {
    constexpr auto most = [](int rows) { return rows > few_rows ? vectors : of_few_rows; };
    return {of_rows<row + 1>(std::make_integer_sequence<int, most(row + 1)>())...};
  }
};

// That of a tile of so many rows and columns.
template <class Tile, int of_few_rows = few_rows_vectors, class D>
typename TileTable<Tile, of_few_rows>::Function tile_of(D d, std::int64_t rows, std::int64_t columns) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  return TileTable<Tile, of_few_rows>::at(rows, (columns + lanes - 1) / lanes);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
