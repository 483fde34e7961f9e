// Elements side by side in a vector.
#include "operations/update/direct/elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/update/direct/elements.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <type_traits>

#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Rule = UpdateProblem::Rule;

template <DataType type>
using RealOf = std::conditional_t<type == DataType::f64, double, float>;
template <typename Real>
constexpr DataType stored_as = sizeof(Real) == 8 ? DataType::f64 : DataType::f32;

// a * b + c, rounded once, on every target.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V fused(D d, V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  HWY_ALIGN hn::TFromD<D> as[hn::MaxLanes(d)], bs[hn::MaxLanes(d)], cs[hn::MaxLanes(d)];
  hn::Store(a, d, as), hn::Store(b, d, bs), hn::Store(c, d, cs);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) cs[i] = std::fma(as[i], bs[i], cs[i]);
  return hn::Load(d, cs);
#endif
}

// The numbers of a run in every lane. Of adam the root of correction2 is taken out of the divisor:
//   rate / correction1 * m / (sqrt(v) / root + epsilon) = (rate / correction1 * root) * m / (sqrt(v) + epsilon * root)
template <class D, Rule rule>
class Step {
 public:
  using V = hn::Vec<D>;
  using Real = hn::TFromD<D>;

  Step(D d, std::span<const double> numbers, double factor)
      : factor_(hn::Set(d, static_cast<Real>(factor))),
        l1_(of(d, numbers[1])),
        l2_(of(d, numbers[2])),
        most_(of(d, numbers[3])),
        least_(hn::Neg(most_)) {
    auto rate = static_cast<Real>(numbers[0]);
    if constexpr (rule == Rule::adam) {
      const Real root = std::sqrt(static_cast<Real>(numbers[9]));
      rate = rate / static_cast<Real>(numbers[8]) * root;
      gain1_ = of(d, numbers[4]), beta2_ = of(d, numbers[5]), gain2_ = of(d, numbers[6]);
      epsilon_ = hn::Set(d, static_cast<Real>(numbers[7]) * root);
    } else {
      momentum_ = of(d, numbers[4]);
    }
    minus_rate_ = hn::Set(d, -rate);
  }

  HWY_INLINE V scaled(V g) const { return hn::Mul(g, factor_); }

  // README.md has the lines and their roundings.
  HWY_INLINE void operator()(D d, V g, V& w, V& m, V& v) const {
    const V zero = hn::Zero(d);
    g = hn::IfThenElse(hn::Gt(g, most_), most_, hn::IfThenElse(hn::Lt(g, least_), least_, g));
    g = fused(d, l2_, w, g);
    g = hn::Add(g, hn::IfThenElse(hn::Gt(w, zero), l1_, hn::IfThenElseZero(hn::Lt(w, zero), hn::Neg(l1_))));
    if constexpr (rule == Rule::adam) {
      m = fused(d, hn::Sub(g, m), gain1_, m);
      v = fused(d, hn::Mul(gain2_, g), g, hn::Mul(beta2_, v));
      w = fused(d, minus_rate_, hn::Div(m, hn::Add(hn::Sqrt(v), epsilon_)), w);
    } else {
      m = fused(d, momentum_, m, g);
      w = fused(d, minus_rate_, rule == Rule::sgd ? m : fused(d, momentum_, m, g), w);
    }
  }

 private:
  static HWY_INLINE V of(D d, double number) { return hn::Set(d, static_cast<Real>(number)); }

  V factor_, l1_, l2_, most_, least_, minus_rate_;
  V momentum_, gain1_, beta2_, gain2_, epsilon_;
};

// Calls body(first, count) for each vector's elements; count is 0 of a whole one.
template <class D, typename Body>
HWY_INLINE void for_vectors(D d, std::int64_t elements, const Body& body) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t e = 0;
  for (; e + lanes <= elements; e += lanes) body(e, std::int64_t{0});
  if (e < elements) body(e, elements - e);
}

template <DataType type, class D>
HWY_INLINE hn::Vec<D> load(D d, const std::byte* from, std::int64_t first, std::int64_t count) {
  from += first * size_of(type);
  return count == 0 ? load_stored<type>(d, from) : load_stored<type>(d, from, count);
}
template <DataType type, class D>
HWY_INLINE void store(D d, hn::Vec<D> value, std::byte* to, std::int64_t first, std::int64_t count) {
  to += first * size_of(type);
  if (count == 0)
    store_stored<type>(d, value, to);
  else
    store_stored<type>(d, value, to, count);
}

// Lanes behind the last element have a gradient of 0 times the factor: finite where the others are, or not.
template <DataType type, Rule rule, bool guarded>
HWY_INLINE bool update_piece(const UpdatePiece& piece, std::span<const double> numbers) {
  using Real = RealOf<type>;
  constexpr DataType state = stored_as<Real>;
  const hn::ScalableTag<Real> d;
  const Step<decltype(d), rule> step(d, numbers, piece.factor);
  auto all = hn::Zero(d);  // times 0 what is finite is 0, and else NaN
  for_vectors(d, piece.elements, [&](std::int64_t first, std::int64_t count) HWY_ATTR {
    auto w = load<state>(d, piece.w, first, count), m = load<state>(d, piece.m, first, count), v = m;
    if constexpr (rule == Rule::adam) v = load<state>(d, piece.v, first, count);
    const auto g = step.scaled(load<type>(d, piece.g, first, count)), old_w = w, old_m = m, old_v = v;
    step(d, g, w, m, v);
    if constexpr (guarded) {
      const auto is_finite = hn::IsFinite(g);
      w = hn::IfThenElse(is_finite, w, old_w), m = hn::IfThenElse(is_finite, m, old_m);
      v = hn::IfThenElse(is_finite, v, old_v);
      all = hn::Add(all, hn::Mul(hn::Zero(d), g));
    }
    store<state>(d, w, piece.w, first, count);
    store<state>(d, m, piece.m, first, count);
    if constexpr (rule == Rule::adam) store<state>(d, v, piece.v, first, count);
    if constexpr (type != state) store<type>(d, w, piece.copy, first, count);
  });
  return hn::AllTrue(d, hn::Eq(all, hn::Zero(d)));
}

template <DataType type, Rule rule>
HWY_INLINE bool update_rule(bool guarded, const UpdatePiece& piece, std::span<const double> numbers) {
  return guarded ? update_piece<type, rule, true>(piece, numbers) : update_piece<type, rule, false>(piece, numbers);
}

template <DataType type>
HWY_INLINE bool update_type(const UpdateProblem& problem, const UpdatePiece& piece, std::span<const double> numbers) {
  switch (problem.rule) {
    case Rule::nesterov: return update_rule<type, Rule::nesterov>(problem.guarded, piece, numbers);
    case Rule::adam: return update_rule<type, Rule::adam>(problem.guarded, piece, numbers);
    default: return update_rule<type, Rule::sgd>(problem.guarded, piece, numbers);
  }
}

bool update_any(const UpdateProblem& problem, const UpdatePiece& piece, std::span<const double> numbers) {
  switch (problem.type) {
    case DataType::f64: return update_type<DataType::f64>(problem, piece, numbers);
    case DataType::f16: return update_type<DataType::f16>(problem, piece, numbers);
    case DataType::bf16: return update_type<DataType::bf16>(problem, piece, numbers);
    default: return update_type<DataType::f32>(problem, piece, numbers);
  }
}

template <DataType type>
HWY_INLINE void copy_type(const UpdatePiece& piece) {
  const hn::ScalableTag<float> d;
  for_vectors(d, piece.elements, [&](std::int64_t first, std::int64_t count) HWY_ATTR {
    store<type>(d, load<DataType::f32>(d, piece.w, first, count), piece.copy, first, count);
  });
}

void copy_any(const UpdateProblem& problem, const UpdatePiece& piece) {
  if (problem.type == DataType::f16) return copy_type<DataType::f16>(piece);
  if (problem.type == DataType::bf16) return copy_type<DataType::bf16>(piece);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(update_any);
HWY_EXPORT(copy_any);

bool update(const UpdateProblem& problem, const UpdatePiece& piece, std::span<const double> numbers) {
  return HWY_DYNAMIC_DISPATCH(update_any)(problem, piece, numbers);
}

void copy_parameters(const UpdateProblem& problem, const UpdatePiece& piece) {
  HWY_DYNAMIC_DISPATCH(copy_any)(problem, piece);
}

}  // namespace omniconv::kernels
#endif
