// Elements side by side in a vector.
#include "operations/activation/direct/elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/activation/direct/elements.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <type_traits>

#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body(first element, how many of them) for each vector.
template <class D, typename Body>
HWY_INLINE void for_vectors(D d, std::int64_t elements, const Body& body) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t e = 0; e < elements; e += lanes) body(e, std::min(lanes, elements - e));
}

// relu chooses bits: what passes is as it was, NaN too.
template <typename Bits>
HWY_INLINE void choose(const ActivationPiece& piece, Bits infinity) {
  const hn::ScalableTag<Bits> d;
  const auto load = [&](const std::byte* from, std::int64_t count) HWY_ATTR {
    if (count == static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, reinterpret_cast<const Bits*>(from));
    HWY_ALIGN Bits some[hn::MaxLanes(d)]{};
    std::memcpy(some, from, static_cast<std::size_t>(count) * sizeof(Bits));
    return hn::Load(d, some);
  };
  const auto all_but_sign = hn::Set(d, static_cast<Bits>(hwy::LimitsMax<Bits>()));
  for_vectors(d, piece.elements, [&](std::int64_t e, std::int64_t count) HWY_ATTR {
    const std::int64_t at = e * static_cast<std::int64_t>(sizeof(Bits));
    const auto bits = load(piece.from + at, count), magnitude = hn::And(bits, all_but_sign);
    const auto is_zero = hn::Eq(magnitude, hn::Zero(d)), is_nan = hn::Gt(magnitude, hn::Set(d, infinity));
    const auto falls = hn::AndNot(is_nan, hn::Or(hn::Lt(bits, hn::Zero(d)), is_zero));
    const auto passed = piece.dy == nullptr ? bits : load(piece.dy + at, count);
    const auto result = hn::IfThenZeroElse(falls, passed);
    if (count == static_cast<std::int64_t>(hn::Lanes(d))) {
      hn::StoreU(result, d, reinterpret_cast<Bits*>(piece.to + at));
      return;
    }
    HWY_ALIGN Bits some[hn::MaxLanes(d)];
    hn::Store(result, d, some);
    std::memcpy(piece.to + at, some, static_cast<std::size_t>(count) * sizeof(Bits));
  });
}

// e = exp(-|x|) is at most 1, so that nothing overflows: 1 / (1 + e), or e / (1 + e) of negative x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const auto one = hn::Set(d, 1), e = hn::Exp(d, hn::Neg(hn::Abs(x)));
  const auto value = hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  return hn::IfThenElse(hn::IsNaN(x), x, value);
}
// From 20 on it is 1, in double precision, too.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V hyperbolic_tangent(D d, V x) {
  const auto most = hn::Set(d, 20);
  const auto value = hn::Tanh(d, hn::Max(hn::Neg(most), hn::Min(x, most)));
  return hn::IfThenElse(hn::IsNaN(x), x, value);
}

template <DataType type, bool is_sigmoid>
HWY_INLINE void compute(const ActivationPiece& piece) {
  const hn::ScalableTag<std::conditional_t<type == DataType::f64, double, float>> d;
  const auto one = hn::Set(d, 1);
  for_vectors(d, piece.elements, [&](std::int64_t e, std::int64_t count) HWY_ATTR {
    const std::int64_t at = e * size_of(type);
    const auto given = load_stored<type>(d, piece.from + at, count);
    if (piece.dy == nullptr) {
      const auto y = is_sigmoid ? sigmoid(d, given) : hyperbolic_tangent(d, given);
      store_stored<type>(d, y, piece.to + at, count);
    } else {
      const auto dy = load_stored<type>(d, piece.dy + at, count);
      // 1 - y * y as (1 - y) * (1 + y), whose error is small on targets without FMA, too.
      const auto slope =
          is_sigmoid ? hn::Mul(given, hn::Sub(one, given)) : hn::Mul(hn::Sub(one, given), hn::Add(one, given));
      store_stored<type>(d, hn::Mul(dy, slope), piece.to + at, count);
    }
  });
}

template <DataType type, typename Bits>
HWY_INLINE void activate_type(const ActivationProblem& problem, const ActivationPiece& piece, Bits infinity) {
  switch (problem.function) {
    case Activation::relu: return choose<Bits>(piece, infinity);
    case Activation::sigmoid: return compute<type, true>(piece);
    case Activation::tanh: return compute<type, false>(piece);
  }
}

void activate_any(const ActivationProblem& problem, const ActivationPiece& piece) {
  switch (problem.type) {
    case DataType::f64: return activate_type<DataType::f64, std::int64_t>(problem, piece, 0x7FF0000000000000);
    case DataType::f16: return activate_type<DataType::f16, std::int16_t>(problem, piece, 0x7C00);
    case DataType::bf16: return activate_type<DataType::bf16, std::int16_t>(problem, piece, 0x7F80);
    default: return activate_type<DataType::f32, std::int32_t>(problem, piece, 0x7F800000);
  }
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(activate_any);

void activate(const ActivationProblem& problem, const ActivationPiece& piece) {
  HWY_DYNAMIC_DISPATCH(activate_any)(problem, piece);
}

}  // namespace omniconv::kernels
#endif
