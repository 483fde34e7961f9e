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

template <DataType type, Rule rule>
HWY_INLINE void update_piece(const UpdatePiece& piece, std::span<const double> numbers) {
  using Real = RealOf<type>;
  constexpr DataType state = stored_as<Real>;
  const hn::ScalableTag<Real> d;
  const Step<decltype(d), rule> step(d, numbers, piece.factor);
  for_vectors(d, piece.elements, [&](std::int64_t first, std::int64_t count) HWY_ATTR {
    auto w = load<state>(d, piece.w, first, count), m = load<state>(d, piece.m, first, count), v = m;
    if constexpr (rule == Rule::adam) v = load<state>(d, piece.v, first, count);
    step(d, step.scaled(load<type>(d, piece.g, first, count)), w, m, v);
    store<state>(d, w, piece.w, first, count);
    store<state>(d, m, piece.m, first, count);
    if constexpr (rule == Rule::adam) store<state>(d, v, piece.v, first, count);
    if constexpr (type != state) store<type>(d, w, piece.copy, first, count);
  });
}

template <DataType type>
HWY_INLINE void update_type(Rule rule, const UpdatePiece& piece, std::span<const double> numbers) {
  switch (rule) {
    case Rule::sgd: return update_piece<type, Rule::sgd>(piece, numbers);
    case Rule::nesterov: return update_piece<type, Rule::nesterov>(piece, numbers);
    case Rule::adam: return update_piece<type, Rule::adam>(piece, numbers);
  }
}

void update_any(const UpdateProblem& problem, const UpdatePiece& piece, std::span<const double> numbers) {
  switch (problem.type) {
    case DataType::f64: return update_type<DataType::f64>(problem.rule, piece, numbers);
    case DataType::f16: return update_type<DataType::f16>(problem.rule, piece, numbers);
    case DataType::bf16: return update_type<DataType::bf16>(problem.rule, piece, numbers);
    default: return update_type<DataType::f32>(problem.rule, piece, numbers);
  }
}

template <DataType type>
HWY_INLINE bool is_finite_type(const UpdatePiece& piece) {
  const hn::ScalableTag<RealOf<type>> d;
  const auto factor = hn::Set(d, static_cast<RealOf<type>>(piece.factor));
  auto all = hn::Zero(d);  // times 0 what is finite is 0, and else NaN
  for_vectors(d, piece.elements, [&](std::int64_t first, std::int64_t count) HWY_ATTR {
    all = hn::Add(all, hn::Mul(hn::Zero(d), hn::Mul(load<type>(d, piece.g, first, count), factor)));
  });
  return hn::AllTrue(d, hn::Eq(all, hn::Zero(d)));
}

bool is_finite_any(const UpdateProblem& problem, const UpdatePiece& piece) {
  switch (problem.type) {
    case DataType::f64: return is_finite_type<DataType::f64>(piece);
    case DataType::f16: return is_finite_type<DataType::f16>(piece);
    case DataType::bf16: return is_finite_type<DataType::bf16>(piece);
    default: return is_finite_type<DataType::f32>(piece);
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
HWY_EXPORT(is_finite_any);
HWY_EXPORT(copy_any);

void update(const UpdateProblem& problem, const UpdatePiece& piece, std::span<const double> numbers) {
  HWY_DYNAMIC_DISPATCH(update_any)(problem, piece, numbers);
}

bool is_finite_gradient(const UpdateProblem& problem, const UpdatePiece& piece) {
  return HWY_DYNAMIC_DISPATCH(is_finite_any)(problem, piece);
}

void copy_parameters(const UpdateProblem& problem, const UpdatePiece& piece) {
  HWY_DYNAMIC_DISPATCH(copy_any)(problem, piece);
}

}  // namespace omniconv::kernels
#endif
