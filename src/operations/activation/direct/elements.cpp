// Elements side by side in a vector.
#include "operations/activation/direct/elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/activation/direct/elements.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include <cstring>
#include <type_traits>

#include "vector/relu.h"
#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body(from, dy, to) for each vector's elements, of so many bytes; those of the last one that are not there are
// 0.
template <class D, typename Body>
HWY_INLINE void for_vectors(D d, const ActivationPiece& piece, std::int64_t size, const Body& body) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::byte* const dy = piece.dy == nullptr ? piece.from : piece.dy;
  std::int64_t e = 0;
  for (; e + lanes <= piece.elements; e += lanes) body(piece.from + e * size, dy + e * size, piece.to + e * size);
  if (e == piece.elements) return;
  const auto bytes = static_cast<std::size_t>((piece.elements - e) * size);
  alignas(64) std::byte last[3][hn::MaxLanes(d) * 8]{};
  std::memcpy(last[0], piece.from + e * size, bytes);
  std::memcpy(last[1], dy + e * size, bytes);
  body(last[0], last[1], last[2]);
  std::memcpy(piece.to + e * size, last[2], bytes);
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
  for_vectors(d, piece, size_of(type), [&](const std::byte* from, const std::byte* dy, std::byte* to) HWY_ATTR {
    const auto given = load_stored<type>(d, from);
    if (piece.dy == nullptr)
      return store_stored<type>(d, is_sigmoid ? sigmoid(d, given) : hyperbolic_tangent(d, given), to);
    // 1 - y * y as (1 - y) * (1 + y), whose error is small on targets without FMA, too.
    const auto slope = hn::Mul(hn::Sub(one, given), is_sigmoid ? given : hn::Add(one, given));
    store_stored<type>(d, hn::Mul(load_stored<type>(d, dy), slope), to);
  });
}

template <DataType type>
HWY_INLINE void activate_type(const ActivationProblem& problem, const ActivationPiece& piece) {
  problem.function == Activation::sigmoid ? compute<type, true>(piece) : compute<type, false>(piece);
}

void activate_any(const ActivationProblem& problem, const ActivationPiece& piece) {
  switch (problem.type) {
    case DataType::f64: return activate_type<DataType::f64>(problem, piece);
    case DataType::f16: return activate_type<DataType::f16>(problem, piece);
    case DataType::bf16: return activate_type<DataType::bf16>(problem, piece);
    default: return activate_type<DataType::f32>(problem, piece);
  }
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(activate_any);

void activate(const ActivationProblem& problem, const ActivationPiece& piece) {
  if (problem.function == Activation::relu)
    return pass_positive(problem.type, piece.from, problem.backward ? piece.dy : piece.from, piece.to, piece.elements);
  HWY_DYNAMIC_DISPATCH(activate_any)(problem, piece);
}

}  // namespace omniconv::kernels
#endif
