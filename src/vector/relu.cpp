// Elements side by side in a vector.
#include "vector/relu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/relu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Bits>
HWY_INLINE void pass(const std::byte* given, const std::byte* passed, std::byte* to, std::int64_t elements,
                     Bits infinity) {
  const hn::ScalableTag<Bits> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t size = sizeof(Bits);
  const auto all_but_sign = hn::Set(d, static_cast<Bits>(hwy::LimitsMax<Bits>()));
  const auto load = [&](const std::byte* from) HWY_ATTR { return hn::LoadU(d, reinterpret_cast<const Bits*>(from)); };
  const auto choose = [&](const std::byte* by, const std::byte* from, std::byte* chosen) HWY_ATTR {
    const auto bits = load(by), magnitude = hn::And(bits, all_but_sign);
    const auto is_zero = hn::Eq(magnitude, hn::Zero(d)), is_nan = hn::Gt(magnitude, hn::Set(d, infinity));
    const auto falls = hn::AndNot(is_nan, hn::Or(hn::Lt(bits, hn::Zero(d)), is_zero));
    hn::StoreU(hn::IfThenZeroElse(falls, load(from)), d, reinterpret_cast<Bits*>(chosen));
  };
  std::int64_t e = 0;
  for (; e + lanes <= elements; e += lanes) choose(given + e * size, passed + e * size, to + e * size);
  if (e == elements) return;
  const auto bytes = static_cast<std::size_t>((elements - e) * size);
  alignas(64) std::byte last[2][hn::MaxLanes(d) * sizeof(Bits)]{};
  std::memcpy(last[0], given + e * size, bytes);
  std::memcpy(last[1], passed + e * size, bytes);
  choose(last[0], last[1], last[1]);
  std::memcpy(to + e * size, last[1], bytes);
}

void pass_any(DataType type, const std::byte* given, const std::byte* passed, std::byte* to, std::int64_t elements) {
  switch (type) {
    case DataType::f64: return pass<std::int64_t>(given, passed, to, elements, 0x7FF0000000000000);
    case DataType::f16: return pass<std::int16_t>(given, passed, to, elements, 0x7C00);
    case DataType::bf16: return pass<std::int16_t>(given, passed, to, elements, 0x7F80);
    default: return pass<std::int32_t>(given, passed, to, elements, 0x7F800000);
  }
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(pass_any);

void pass_positive(DataType type, const std::byte* given, const std::byte* passed, std::byte* to,
                   std::int64_t elements) {
  HWY_DYNAMIC_DISPATCH(pass_any)(type, given, passed, to, elements);
}

}  // namespace omniconv::kernels
#endif
