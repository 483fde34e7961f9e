#include "vector/stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/stream.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void StreamCopy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t misaligned =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % static_cast<std::uintptr_t>(lanes));
  std::int64_t i = misaligned == 0 ? 0 : std::min(lanes - misaligned, bytes);
  std::memcpy(to, from, static_cast<std::size_t>(i));
  for (; i + lanes <= bytes; i += lanes)
    hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from + i)), d,
               reinterpret_cast<std::uint8_t*>(to + i));
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(StreamCopy);

void stream_copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  HWY_DYNAMIC_DISPATCH(StreamCopy)(to, from, bytes);
}
void stream_fence() {
  hwy::FlushStream();
}

}  // namespace omniconv::kernels
#endif
