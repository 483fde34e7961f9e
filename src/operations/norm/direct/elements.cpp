// Elements side by side in a vector: each place of a vector is one of the chains.
#include "operations/norm/direct/elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/norm/direct/elements.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "operations/norm/norm.h"
#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using operations::norm_chains;

template <DataType type>
using RealOf = std::conditional_t<type == DataType::f64, double, float>;

// Halves to halves; what is left of the chains is of no use.
template <typename Real>
HWY_INLINE void add_up(Real* chains, std::byte* sum) {
  for (std::int64_t half = norm_chains / 2; half > 0; half /= 2)
    for (std::int64_t j = 0; j < half; ++j) chains[j] += chains[j + half];
  std::memcpy(sum, chains, sizeof(Real));
}

template <DataType type>
HWY_INLINE void sum_squares_of(const std::byte* g, std::int64_t elements, std::byte* sum) {
  using Real = RealOf<type>;
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN Real chains[norm_chains] = {};
  for (std::int64_t round = 0; round < elements; round += norm_chains)
    for (std::int64_t j = 0; j < std::min(norm_chains, elements - round); j += lanes) {
      const std::int64_t at = round + j;
      const auto x = load_stored<type>(d, g + at * size_of(type), elements - at);  // 0 behind the last
      hn::Store(hn::Add(hn::Load(d, chains + j), hn::Mul(x, x)), d, chains + j);
    }
  add_up(chains, sum);
}

void sum_squares_any(DataType type, const std::byte* g, std::int64_t elements, std::byte* sum) {
  switch (type) {
    case DataType::f64: return sum_squares_of<DataType::f64>(g, elements, sum);
    case DataType::f16: return sum_squares_of<DataType::f16>(g, elements, sum);
    case DataType::bf16: return sum_squares_of<DataType::bf16>(g, elements, sum);
    default: return sum_squares_of<DataType::f32>(g, elements, sum);
  }
}

template <typename Real>
HWY_INLINE void sum_pieces_of(const std::byte* sums, std::int64_t pieces, std::byte* sum) {
  const auto* const from = reinterpret_cast<const Real*>(sums);
  HWY_ALIGN Real chains[norm_chains] = {};
  for (std::int64_t round = 0; round < pieces; round += norm_chains)
    for (std::int64_t j = 0; j < std::min(norm_chains, pieces - round); ++j) chains[j] += from[round + j];
  add_up(chains, sum);
}

void sum_pieces_any(DataType type, const std::byte* sums, std::int64_t pieces, std::byte* sum) {
  if (type == DataType::f64) return sum_pieces_of<double>(sums, pieces, sum);
  sum_pieces_of<float>(sums, pieces, sum);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(sum_squares_any);
HWY_EXPORT(sum_pieces_any);

void sum_squares(DataType type, const std::byte* g, std::int64_t elements, std::byte* sum) {
  HWY_DYNAMIC_DISPATCH(sum_squares_any)(type, g, elements, sum);
}

void sum_pieces(DataType type, const std::byte* sums, std::int64_t pieces, std::byte* sum) {
  HWY_DYNAMIC_DISPATCH(sum_pieces_any)(type, sums, pieces, sum);
}

}  // namespace omniconv::kernels
#endif
