#include "vector/matrix/gemm_tiles.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/matrix/gemm_tiles.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/matrix/step-inl.h"
#include "vector/partial-inl.h"
#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Steps of b that are fetched ahead of their use.
constexpr std::int64_t steps_ahead = 32;

template <typename Element>
struct GemmTile {
  template <int rows, int V>
  static HWY_NOINLINE void run(const GemmPanels<Element>& p) {
    using Real = typename SumOf<Element>::Type;
    const hn::ScalableTag<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> sums[rows][V];
    zero_sums(d, sums);
    // The rows that the sums go to are fetched one after the other: at once they would keep panels from being fetched.
    const Element *a = p.a, *b = p.b, *ahead = p.ahead;
    std::int64_t left = p.steps;
    const std::int64_t between = (p.steps + rows - 1) / rows;
    for (const Real* row = p.sums; left > 0; row += p.ld) {
      hwy::Prefetch(row);
      hwy::Prefetch(row + lanes);
      hwy::Prefetch(row + p.columns - 1);
      const std::int64_t steps = std::min(left, between);
      for (std::int64_t t = 0; t < steps; ++t, a += rows, b += V * lanes) {
        OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
          hwy::Prefetch(b + (steps_ahead * V + v) * lanes);
        }
        if (ahead != nullptr) {
          hwy::Prefetch(ahead);
          ahead += p.ahead_step;
        }
        add_step<rows, V, true>(d, a, b, sums);
      }
      left -= steps;
    }
    store_sums<rows, V>(d, sums, p.sums, p.ld, p.columns, p.add);
  }
};

// Of rows in place: neighbours, whose steps are apart and are fetched ahead, or apart, whose steps are neighbours.
template <typename Real>
struct GemmTileInPlace {
  template <int rows, int V>
  static HWY_NOINLINE void run(const GemmPanels<Real>& p) {
    if (p.a_row == 1)
      steps<rows, V, true>(p);
    else
      steps<rows, V, false>(p);
  }

 private:
  // Of one row after the other, at step t, the next 16 steps that nobody has asked for.
  template <int rows>
  static HWY_INLINE void fetch_row(const GemmPanels<Real>& p, std::int64_t t) {
    constexpr std::int64_t together = 16, ahead = 256, of_line = 64 / sizeof(Real);
    const std::int64_t row = t % together;
    if (row >= rows) return;
    const Real* const from = p.a + row * p.a_row + (t - row) + ahead;
    OMNICONV_UNROLL for (std::int64_t i = 0; i < together; i += of_line) {
      hwy::Prefetch(from + i);
    }
  }

  template <int rows, int V, bool are_neighbours>
  static HWY_INLINE void steps(const GemmPanels<Real>& p) {
    const hn::ScalableTag<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> sums[rows][V];
    zero_sums(d, sums);
    const Real *a = p.a, *b = p.b;
    for (std::int64_t t = 0; t < p.steps; ++t, a += p.a_step, b += V * lanes) {
      if (are_neighbours) {
        hwy::Prefetch(a + steps_ahead * p.a_step);
        hwy::Prefetch(a + steps_ahead * p.a_step + rows - 1);
      } else {
        fetch_row<rows>(p, t);
      }
      add_step<rows, V, true>(d, a, b, sums, are_neighbours ? 1 : p.a_row);
    }
    store_sums<rows, V>(d, sums, p.sums, p.ld, p.columns, p.add);
  }
};

// A column alone, which would leave a vector's other lanes empty: lanes are steps, or rows. Its sums are of 16 chains,
// step t in chain t % 16, which are added in halves, whatever lanes are and wherever rows lie.
constexpr int chains = 16;

// Of `count` rows from one on, whose chains lie so far apart.
template <typename Real>
void add_chains(const GemmPanels<Real>& p, std::int64_t row, std::int64_t count, Real* of_chain, std::int64_t apart) {
  for (int half = chains / 2; half > 0; half /= 2)
    for (std::int64_t i = 0; i < half * apart; ++i) of_chain[i] += of_chain[i + half * apart];
  for (std::int64_t i = 0; i < count; ++i) {
    Real& to = p.sums[(row + i) * p.ld];
    to = p.add ? to + of_chain[i] : of_chain[i];
  }
}

// Of R rows from one on, whose steps lie side by side. Meanwhile the rows behind them are fetched: a chunk of a row is
// too short for the processor to see them come.
template <int R, typename Real>
void multiply_rows_along_steps(const GemmPanels<Real>& p, std::int64_t row) {
  const hn::ScalableTag<Real> d;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  constexpr int V = chains / static_cast<int>(lanes);
  const Real *a = p.a + row * p.a_row, *b = p.b;
  hn::Vec<decltype(d)> sums[R][V];
  zero_sums(d, sums);
  std::int64_t left = p.steps;
  for (; left >= chains; left -= chains, a += chains, b += chains) {
    OMNICONV_UNROLL for (int r = 0; r < R; ++r) {
      hwy::Prefetch(a + (r + R) * p.a_row);
      OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
        sums[r][v] = hn::MulAdd(hn::LoadU(d, a + r * p.a_row + v * lanes), hn::LoadU(d, b + v * lanes), sums[r][v]);
      }
    }
  }
  HWY_ALIGN Real of_chain[chains];
  for (int r = 0; r < R; ++r, a += p.a_row) {
    for (int v = 0; v < V; ++v) {
      const std::int64_t count = std::clamp<std::int64_t>(left - v * lanes, 0, lanes);
      const auto more =
          hn::MulAdd(load_first(d, a + v * lanes, count), load_first(d, b + v * lanes, count), sums[r][v]);
      hn::Store(hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(count)), more, sums[r][v]), d,
                of_chain + v * lanes);
    }
    add_chains(p, row + r, 1, of_chain, 1);
  }
}
template <typename Real>
void multiply_along_steps(const GemmPanels<Real>& p) {
  constexpr int at_once = 4;
  std::int64_t row = 0;
  for (; row + at_once <= p.rows; row += at_once) multiply_rows_along_steps<at_once>(p, row);
  for (; row < p.rows; ++row) multiply_rows_along_steps<1>(p, row);
}

// Of rows that lie side by side.
template <typename Real>
void multiply_along_rows(const GemmPanels<Real>& p, std::int64_t step) {
  const hn::ScalableTag<Real> d;
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  for (std::int64_t row = 0; row < p.rows; row += lanes) {
    const std::int64_t count = std::min(lanes, p.rows - row);
    const Real *a = p.a + row, *b = p.b;
    hn::Vec<decltype(d)> sums[chains][1];
    zero_sums(d, sums);
    std::int64_t left = p.steps;
    for (; left >= chains; left -= chains, b += chains) {
      OMNICONV_UNROLL for (int i = 0; i < chains; ++i, a += step) {
        sums[i][0] = hn::MulAdd(load_first(d, a, count), hn::Set(d, b[i]), sums[i][0]);
      }
    }
    HWY_ALIGN Real of_chain[chains * lanes];
    OMNICONV_UNROLL for (int i = 0; i < chains; ++i) hn::Store(sums[i][0], d, of_chain + i * lanes);
    for (int i = 0; i < left; ++i, a += step) {
      Real* const sum = of_chain + i * lanes;
      hn::Store(hn::MulAdd(load_first(d, a, count), hn::Set(d, b[i]), hn::Load(d, sum)), d, sum);
    }
    add_chains(p, row, count, of_chain, lanes);
  }
}

template <DataType type, DataType output, typename Real>
void finish_rows(const GemmFinish& f, const Real* sums, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                 std::byte* c, std::int64_t ldc) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr DataType kept = sizeof(Real) == 4 ? DataType::f32 : DataType::f64;
  const auto zero = hn::Zero(d);
  for (std::int64_t i = 0; i < rows; ++i) {
    const Real row_bias =
        f.row_bias == nullptr ? Real{0} : static_cast<Real>(load_element(type, f.row_bias + i * size_of(type)));
    for (std::int64_t j = 0; j < columns; j += lanes) {
      const std::int64_t count = std::min(lanes, columns - j);
      std::byte* const to = c + (i * ldc + j) * size_of(output);
      auto value = load_stored<kept>(d, reinterpret_cast<const std::byte*>(sums + i * ld + j), count);
      if (f.row_bias != nullptr) value = hn::Add(value, hn::Set(d, row_bias));
      if (f.column_bias != nullptr)
        value = hn::Add(value, load_stored<type>(d, f.column_bias + j * size_of(type), count));
      if (f.accumulate) value = hn::Add(value, load_stored<output>(d, to, count));
      if (f.relu) value = hn::IfThenElse(hn::Lt(value, zero), zero, value);  // NaN stays
      store_stored<output>(d, value, to, count);
    }
  }
}

template <typename Real>
void multiply(const GemmPanels<Real>& p) {
  const hn::ScalableTag<Real> d;
  if (p.is_column) {
    if (p.a_step == 1)
      multiply_along_steps(p);
    else
      multiply_along_rows(p, p.a_step == 0 ? p.rows : p.a_step);
    return;
  }
  if (p.a_step == 0) return tile_of<GemmTile<Real>>(d, p.rows, p.columns)(p);
  tile_of<GemmTileInPlace<Real>>(d, p.rows, p.columns)(p);
}

void MultiplyF32(const GemmPanels<float>& panels) {
  multiply(panels);
}
void MultiplyPairs(const GemmPanels<BfloatPair>& panels) {
  const hn::ScalableTag<float> d;
  tile_of<GemmTile<BfloatPair>>(d, panels.rows, panels.columns)(panels);
}
bool HasPairs() {
#if HWY_TARGET <= HWY_AVX3 && HWY_COMPILER_GCC
  return __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}
void MultiplyF64(const GemmPanels<double>& panels) {
  multiply(panels);
}

void FinishF32(const GemmFinish& f, const float* sums, std::int64_t ld, std::int64_t rows, std::int64_t columns,
               std::byte* c, std::int64_t ldc) {
  const bool in_f32 = f.output == DataType::f32 || f.output == DataType::tf32;
  switch (f.type) {
    case DataType::f16:
      if (in_f32) return finish_rows<DataType::f16, DataType::f32>(f, sums, ld, rows, columns, c, ldc);
      return finish_rows<DataType::f16, DataType::f16>(f, sums, ld, rows, columns, c, ldc);
    case DataType::bf16:
      if (in_f32) return finish_rows<DataType::bf16, DataType::f32>(f, sums, ld, rows, columns, c, ldc);
      return finish_rows<DataType::bf16, DataType::bf16>(f, sums, ld, rows, columns, c, ldc);
    default: return finish_rows<DataType::f32, DataType::f32>(f, sums, ld, rows, columns, c, ldc);
  }
}

void FinishF64(const GemmFinish& f, const double* sums, std::int64_t ld, std::int64_t rows, std::int64_t columns,
               std::byte* c, std::int64_t ldc) {
  if (f.output == DataType::f64) return finish_rows<DataType::f64, DataType::f64>(f, sums, ld, rows, columns, c, ldc);
  finish_rows<DataType::f64, DataType::f32>(f, sums, ld, rows, columns, c, ldc);
}

template <typename Real>
RegisterTile tile_for(std::int64_t rows) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<Real>()));
  if (rows <= few_rows) return {few_rows, few_rows_vectors * lanes, lanes};
  return {most_rows, vectors * lanes, lanes};
}
RegisterTile TileF32(std::int64_t rows) {
  return tile_for<float>(rows);
}
RegisterTile TileF64(std::int64_t rows) {
  return tile_for<double>(rows);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(MultiplyF32);
HWY_EXPORT(MultiplyF64);
HWY_EXPORT(MultiplyPairs);
HWY_EXPORT(HasPairs);
HWY_EXPORT(FinishF32);
HWY_EXPORT(FinishF64);
HWY_EXPORT(TileF32);
HWY_EXPORT(TileF64);

RegisterTile register_tile(DataType sums, std::int64_t rows) {
  return sums == DataType::f64 ? HWY_DYNAMIC_DISPATCH(TileF64)(rows) : HWY_DYNAMIC_DISPATCH(TileF32)(rows);
}
void multiply_panels(const GemmPanels<float>& panels) {
  HWY_DYNAMIC_DISPATCH(MultiplyF32)(panels);
}
void multiply_panels(const GemmPanels<BfloatPair>& panels) {
  HWY_DYNAMIC_DISPATCH(MultiplyPairs)(panels);
}
bool has_pair_products() {
  return HWY_DYNAMIC_DISPATCH(HasPairs)();
}
void multiply_panels(const GemmPanels<double>& panels) {
  HWY_DYNAMIC_DISPATCH(MultiplyF64)(panels);
}
void finish_tile(const GemmFinish& finish, const float* sums, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                 std::byte* c, std::int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(FinishF32)(finish, sums, ld, rows, columns, c, ldc);
}
void finish_tile(const GemmFinish& finish, const double* sums, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                 std::byte* c, std::int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(FinishF64)(finish, sums, ld, rows, columns, c, ldc);
}

}  // namespace omniconv::kernels
#endif
