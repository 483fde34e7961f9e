// Elements side by side in a vector.
#include "operations/add/direct/elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/add/direct/elements.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <type_traits>

#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <DataType type, bool relu>
HWY_INLINE void add_as(const std::byte* base, const std::byte* other, std::byte* to, std::int64_t elements) {
  const hn::ScalableTag<std::conditional_t<type == DataType::f64, double, float>> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
  const auto add_at = [&](std::int64_t e, auto added) HWY_ATTR {
    const auto sum = hn::Add(load_stored<type>(d, base + e * size, elements - e), added);
    const auto passed = relu ? hn::IfThenElseZero(hn::Or(hn::Gt(sum, hn::Zero(d)), hn::IsNaN(sum)), sum) : sum;
    store_stored<type>(d, passed, to + e * size, elements - e);
  };
  if (other == nullptr) {
    const auto nothing = hn::Neg(hn::Zero(d));  // -0 changes no number
    for (std::int64_t e = 0; e < elements; e += lanes) add_at(e, nothing);
    return;
  }
  for (std::int64_t e = 0; e < elements; e += lanes) add_at(e, load_stored<type>(d, other + e * size, elements - e));
}

template <bool relu>
HWY_INLINE void add_any_type(DataType type, const std::byte* base, const std::byte* other, std::byte* to,
                             std::int64_t elements) {
  switch (type) {
    case DataType::f64: return add_as<DataType::f64, relu>(base, other, to, elements);
    case DataType::f16: return add_as<DataType::f16, relu>(base, other, to, elements);
    case DataType::bf16: return add_as<DataType::bf16, relu>(base, other, to, elements);
    default: return add_as<DataType::f32, relu>(base, other, to, elements);
  }
}

void add_elements_any(DataType type, bool relu, const std::byte* base, const std::byte* other, std::byte* to,
                      std::int64_t elements) {
  relu ? add_any_type<true>(type, base, other, to, elements) : add_any_type<false>(type, base, other, to, elements);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(add_elements_any);

void add_elements(DataType type, bool relu, const std::byte* base, const std::byte* other, std::byte* to,
                  std::int64_t elements) {
  HWY_DYNAMIC_DISPATCH(add_elements_any)(type, relu, base, other, to, elements);
}

}  // namespace omniconv::kernels
#endif
