// Vectors of elements and of indices, and how they are pooled. For inclusion by each target of a file of vector code,
// after Highway.
#if defined(OMNICONV_POOL_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_POOL_VECTORS_INL_H
#undef OMNICONV_POOL_VECTORS_INL_H
#else
#define OMNICONV_POOL_VECTORS_INL_H
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/checked.h"
#include "operations/pool2d/direct/planes.h"
#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <DataType type>
using Real = std::conditional_t<type == DataType::f64, double, float>;

template <class D>
HWY_INLINE std::int64_t lanes_of(D d) {
  return static_cast<std::int64_t>(hn::Lanes(d));
}
template <DataType type>
constexpr std::int64_t bytes_of = type == DataType::f64                             ? 8
                                  : type == DataType::f16 || type == DataType::bf16 ? 2
                                                                                    : 4;

// Indices are s32 in memory, and as wide as the elements in lines.
template <typename T>
using Integer = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
template <class D>
using IndexTag = hn::RebindToSigned<D>;
template <class D>
using IndexVec = hn::Vec<IndexTag<D>>;
template <class D>
HWY_INLINE IndexVec<D> every_index(D, std::int64_t index) {
  const IndexTag<D> d;
  return hn::Set(d, static_cast<hn::TFromD<IndexTag<D>>>(index));
}

template <DataType type, class D>
HWY_INLINE hn::Vec<D> load_vector(D d, const std::byte* from) {
  if constexpr (type != DataType::s32) {
    return load_stored<type>(d, from);
  } else {
    const hn::Rebind<std::int32_t, D> stored;
    const auto indices = hn::LoadU(stored, reinterpret_cast<const std::int32_t*>(from));
    if constexpr (sizeof(hn::TFromD<D>) == 4)
      return hn::BitCast(d, indices);
    else
      return hn::BitCast(d, hn::PromoteTo(IndexTag<D>(), indices));
  }
}
template <DataType type, class D>
HWY_INLINE void store_vector(D d, hn::Vec<D> value, std::byte* to) {
  if constexpr (type != DataType::s32) {
    store_stored<type>(d, value, to);
  } else {
    const hn::Rebind<std::uint32_t, D> stored;
    const auto indices = hn::BitCast(hn::RebindToUnsigned<D>(), value);
    if constexpr (sizeof(hn::TFromD<D>) == 4)
      hn::StoreU(indices, stored, reinterpret_cast<std::uint32_t*>(to));
    else
      hn::StoreU(hn::TruncateTo(stored, indices), stored, reinterpret_cast<std::uint32_t*>(to));
  }
}

// One element: bits are kept where none are to be changed.
template <DataType type, typename T>
HWY_INLINE T load_one(const std::byte* from) {
  T value;
  if constexpr (type == DataType::s32) {
    std::int32_t index;
    std::memcpy(&index, from, sizeof index);
    value = std::bit_cast<T>(static_cast<Integer<T>>(index));
  } else if constexpr (bytes_of<type> == sizeof(T)) {
    std::memcpy(&value, from, sizeof value);
  } else {
    value = static_cast<T>(load_element(type, from));
  }
  return value;
}
template <DataType type, typename T>
HWY_INLINE void store_one(T value, std::byte* to) {
  if constexpr (type == DataType::s32) {
    const auto index = static_cast<std::int32_t>(std::bit_cast<Integer<T>>(value));
    std::memcpy(to, &index, sizeof index);
  } else if constexpr (bytes_of<type> == sizeof(T)) {
    std::memcpy(to, &value, sizeof value);
  } else {
    store_element(type, value, to);
  }
}

// What will be read soon is asked for.
constexpr std::int64_t ahead_bytes = 4096;

// One more element of each window.
template <bool is_maximum, class D>
HWY_INLINE void take(D, hn::Vec<D> x, IndexVec<D> candidate, hn::Vec<D>& value, IndexVec<D>& winner) {
  if constexpr (is_maximum) {
    // Comparisons with NaN are false: a NaN is not at most the best so far, and a best that is NaN does not equal
    // itself.
    const auto wins = hn::AndNot(hn::Le(x, value), hn::Eq(value, value));
    value = hn::IfThenElse(wins, x, value);
    winner = hn::IfThenElse(hn::RebindMask(IndexTag<D>(), wins), candidate, winner);
  } else {
    value = hn::Add(value, x);
  }
}

// Calls body<type, is_maximum>() for those of the planes.
template <typename Body>
HWY_INLINE void for_type_and_pooling(const PoolPlanes& g, const Body& body) {
  const auto for_type = [&]<DataType type>() {
    g.pooling == Pooling::maximum ? body.template operator()<type, true>() : body.template operator()<type, false>();
  };
  switch (g.type) {
    case DataType::f16: return for_type.template operator()<DataType::f16>();
    case DataType::bf16: return for_type.template operator()<DataType::bf16>();
    case DataType::f64: return for_type.template operator()<DataType::f64>();
    default: return for_type.template operator()<DataType::f32>();
  }
}

// Divides by a whole number, as exactly as a division for all that is needed of gradients: whole quotients are exact,
// others rounded once. A processor divides a vector in the time of some sixteen multiply-adds.
template <class D>
class Divider {
 public:
  HWY_INLINE Divider(D d, std::int64_t divisor)
      : divisor_(hn::Set(d, static_cast<hn::TFromD<D>>(divisor))),
        reciprocal_(hn::Set(d, hn::TFromD<D>{1} / static_cast<hn::TFromD<D>>(divisor))) {}
  HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> value) const {
#if HWY_NATIVE_FMA
    const auto about = hn::Mul(value, reciprocal_);
    const auto nearer = hn::MulAdd(hn::NegMulAdd(about, divisor_, value), reciprocal_, about);
    return hn::IfThenElse(hn::IsFinite(about), nearer, about);
#else
    return hn::Div(value, divisor_);
#endif
  }

 private:
  hn::Vec<D> divisor_, reciprocal_;
};

// The windows that hold element `at` of an axis, and then those of the next, after the last those of the first.
struct Windows {
  HWY_INLINE Windows(const PoolAxis& the_axis, std::int64_t element)
      : axis(the_axis), at(element), range(the_axis.windows_of(element)) {}
  HWY_INLINE void next() {
    if (++at == axis.extent) {
      at = 0;
      range = axis.windows_of(0);
      return;
    }
    if (axis.begin(range.first) + axis.taps <= at) ++range.first;
    if (range.end < axis.outputs && axis.begin(range.end) <= at) ++range.end;
  }
  PoolAxis axis;
  std::int64_t at;
  PoolRange range;
};

// What is read of an array while units are made, about: it is asked for before.
class Soon {
 public:
  // Of an array of so many bytes, read as all units are made. `ahead`: how much earlier than evenly it is read.
  Soon(const void* array, std::int64_t bytes, const PoolPlanes& g, std::int64_t ahead)
      : array_(static_cast<const std::byte*>(array)), bytes_of_unit_(bytes / g.units()), ahead_(ahead) {}
  // Of part `part` of so many of a unit.
  HWY_INLINE void fetch(std::int64_t unit, std::int64_t part, std::int64_t bytes_of_part) const {
    const std::byte* const from = array_ + unit * bytes_of_unit_ + part * bytes_of_part + ahead_;
    for (std::int64_t i = 0; i < bytes_of_part; i += 64) hwy::Prefetch(from + i);
  }
  std::int64_t bytes_of_unit() const { return bytes_of_unit_; }

 private:
  const std::byte* array_;
  std::int64_t bytes_of_unit_, ahead_;
};

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
