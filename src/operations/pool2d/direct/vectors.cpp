// What the kinds of rows share: how long vectors are, and copies past the caches.
#include "operations/pool2d/direct/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/pool2d/direct/vectors.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "operations/pool2d/direct/windows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void pool_stream_vectors(std::byte* to, const std::byte* from, std::int64_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::int64_t lanes = lanes_of(d);
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % hn::Lanes(d));
  std::int64_t i = misaligned == 0 ? 0 : std::min(lanes - misaligned, bytes);
  std::memcpy(to, from, static_cast<std::size_t>(i));
  for (; i + lanes <= bytes; i += lanes)
    hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from + i)), d,
               reinterpret_cast<std::uint8_t*>(to + i));
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}

std::int64_t pooled_lanes(DataType type) {
  return type == DataType::f64 ? lanes_of(hn::ScalableTag<double>()) : lanes_of(hn::ScalableTag<float>());
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(pooled_lanes);
HWY_EXPORT(pool_stream_vectors);

std::int64_t pool_lanes(DataType type) {
  return HWY_DYNAMIC_DISPATCH(pooled_lanes)(type);
}
void pool_stream(std::byte* to, const std::byte* from, std::int64_t bytes) {
  HWY_DYNAMIC_DISPATCH(pool_stream_vectors)(to, from, bytes);
}
void pool_stream_done() {
  hwy::FlushStream();
}

}  // namespace omniconv::kernels
#endif
