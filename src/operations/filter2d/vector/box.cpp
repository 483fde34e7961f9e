#include "operations/filter2d/vector/box.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "vector/stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/filter2d/vector/box.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// For loops over registers: their indices must be constants, or the compiler keeps the registers in memory.
#undef OMNICONV_UNROLL
#define OMNICONV_UNROLL _Pragma("GCC unroll 8")

// Sums that are finished at once: they and what they become stay in the first-level cache.
constexpr std::int64_t chunk_elements = 1024;
// Windows of so many pixels are added up one by one: the running sum costs as much.
constexpr std::int64_t short_window = 6;

// Stored elements in the lanes of their column sums.
template <typename Stored, class D>
HWY_INLINE auto promoted(D d, const Stored* from) {
  const hn::Rebind<Stored, D> stored;
  if constexpr (std::is_signed_v<Stored>) {
    const hn::RebindToSigned<D> wide;
    return hn::BitCast(d, hn::PromoteTo(wide, hn::LoadU(stored, from)));
  } else if constexpr (sizeof(Stored) == sizeof(hn::TFromD<D>)) {
    return hn::LoadU(d, from);
  } else {
    return hn::PromoteTo(d, hn::LoadU(stored, from));
  }
}

// A row of a borrowed image may begin anywhere.
template <typename Stored>
Stored element(const std::byte* row, std::int64_t e) {
  Stored value;
  std::memcpy(&value, row + e * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

template <typename Stored, bool leaves, typename Column>
void slide(const std::byte* entering, const std::byte* leaving, std::int64_t n, Column* columns) {
  std::int64_t e = 0;
  if constexpr (sizeof(Column) < 8) {
    const auto* const in = reinterpret_cast<const Stored*>(entering);
    const auto* const out = reinterpret_cast<const Stored*>(leaving);
    const hn::ScalableTag<Column> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; e + lanes <= n; e += lanes) {
      auto sum = hn::Add(hn::LoadU(d, columns + e), promoted<Stored>(d, in + e));
      if constexpr (leaves) sum = hn::Sub(sum, promoted<Stored>(d, out + e));
      hn::StoreU(sum, d, columns + e);
    }
  }
  for (; e < n; ++e) {
    Column sum = static_cast<Column>(columns[e] + static_cast<Column>(element<Stored>(entering, e)));
    if constexpr (leaves) sum = static_cast<Column>(sum - static_cast<Column>(element<Stored>(leaving, e)));
    columns[e] = sum;
  }
}

template <typename Stored, typename Column>
void slide_rows(const std::byte* entering, const std::byte* leaving, std::int64_t n, Column* columns) {
  if (leaving != nullptr)
    slide<Stored, true>(entering, leaving, n, columns);
  else
    slide<Stored, false>(entering, leaving, n, columns);
}

void SlideU16(DataType, const std::byte* entering, const std::byte* leaving, std::int64_t n, std::uint16_t* columns) {
  slide_rows<std::uint8_t>(entering, leaving, n, columns);
}
void SlideU32(DataType type, const std::byte* entering, const std::byte* leaving, std::int64_t n,
              std::uint32_t* columns) {
  if (type == DataType::u8) return slide_rows<std::uint8_t>(entering, leaving, n, columns);
  if (type == DataType::u16) return slide_rows<std::uint16_t>(entering, leaving, n, columns);
  slide_rows<std::int16_t>(entering, leaving, n, columns);
}
void SlideU64(DataType type, const std::byte* entering, const std::byte* leaving, std::int64_t n,
              std::uint64_t* columns) {
  if (type == DataType::u8) return slide_rows<std::uint8_t>(entering, leaving, n, columns);
  if (type == DataType::u16) return slide_rows<std::uint16_t>(entering, leaving, n, columns);
  if (type == DataType::s16) return slide_rows<std::int16_t>(entering, leaving, n, columns);
  slide_rows<std::int32_t>(entering, leaving, n, columns);
}

// A vector whose lane i is lane from[i] of another.
template <class D>
struct Permutation {
  using Lane = hn::TFromD<D>;
#if HWY_TARGET <= HWY_AVX3
  explicit Permutation(const Lane* from) : lanes(hn::LoadU(D(), from)) {}
  template <class V>
  HWY_INLINE V operator()(V v) const {
    if constexpr (sizeof(Lane) == 2)
      return V{_mm512_permutexvar_epi16(lanes.raw, v.raw)};  // Highway has none for 16 bits
    else if constexpr (sizeof(Lane) == 4)
      return V{_mm512_permutexvar_epi32(lanes.raw, v.raw)};
    else
      return V{_mm512_permutexvar_epi64(lanes.raw, v.raw)};
  }
  hn::Vec<D> lanes;
#else
  explicit Permutation(const Lane* from)
      : lanes(hn::SetTableIndices(D(), reinterpret_cast<const std::make_signed_t<Lane>*>(from))) {}
  template <class V>
  HWY_INLINE V operator()(V v) const {
    return hn::TableLookupLanes(v, lanes);
  }
  decltype(hn::SetTableIndices(D(), static_cast<const std::make_signed_t<Lane>*>(nullptr))) lanes;
#endif
};

// Lane i is lane i - distance of another vector, or 0 where there is none.
template <class D>
struct Shift {
  Permutation<D> permutation;
  hn::Mask<D> there;
  template <class V>
  HWY_INLINE V operator()(V v) const {
    return hn::IfThenElseZero(there, permutation(v));
  }
};

template <class D>
HWY_INLINE Shift<D> shift_by(D d, std::int64_t distance) {
  using Lane = hn::TFromD<D>;
  HWY_ALIGN Lane from[hn::MaxLanes(d)];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < lanes; ++i) from[i] = static_cast<Lane>(std::max<std::int64_t>(i - distance, 0));
  return {Permutation<D>(from), hn::Not(hn::FirstN(d, static_cast<std::size_t>(distance)))};
}

// Lane i is the last lane of another vector that lies a multiple of `step` elements before it in the row.
template <class D>
HWY_INLINE Permutation<D> carried_by(D d, std::int64_t step) {
  using Lane = hn::TFromD<D>;
  HWY_ALIGN Lane from[hn::MaxLanes(d)];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < lanes; ++i) from[i] = static_cast<Lane>(lanes - step + i % step);
  return Permutation<D>(from);
}

template <class D, class V>
HWY_INLINE void store_sums(D d, V sums, float* to) {
  using Sum = hn::TFromD<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (sizeof(Sum) == 4) {
    const hn::RebindToFloat<D> real;
    hn::StoreU(hn::ConvertTo(real, hn::BitCast(hn::RebindToSigned<D>(), sums)), real, to);
  } else {
    HWY_ALIGN Sum stored[hn::MaxLanes(d)];
    hn::Store(sums, d, stored);
    for (std::int64_t i = 0; i < lanes; ++i)
      to[i] = static_cast<float>(static_cast<std::make_signed_t<Sum>>(stored[i]));
  }
}
#if HWY_TARGET != HWY_SCALAR
template <class V>
HWY_INLINE void store_sums(hn::ScalableTag<std::uint16_t> d, V sums, float* to) {
  const hn::ScalableTag<float> real;
  const hn::RebindToSigned<decltype(real)> wide;
  const hn::Half<decltype(d)> half;
  hn::StoreU(hn::ConvertTo(real, hn::PromoteTo(wide, hn::LowerHalf(half, sums))), real, to);
  hn::StoreU(hn::ConvertTo(real, hn::PromoteTo(wide, hn::UpperHalf(half, sums))), real, to + hn::Lanes(real));
}
#endif

// Where sums go: as fp32 (rounded to nearest even) into a chunk that is finished when it is full.
struct Chunk {
  const Finish& finish;
  std::byte* to;
  std::int64_t n, size;       // of the row; of a stored element
  const std::byte* upcoming;  // the row that enters next, of elements of `upcoming_size` bytes, or null
  std::int64_t upcoming_size;
  bool stream;
  float* sums;
  std::byte* staged;  // a chunk of results, where they go past the caches

  // Memory is busy while sums are made: the next row comes near meanwhile.
  void prefetch(std::int64_t e) const {
    if (upcoming != nullptr) hwy::Prefetch(upcoming + e * upcoming_size);
  }
  template <class D, class V>
  HWY_INLINE void put(D d, V sum, std::int64_t, std::int64_t e) const {
    store_sums(d, sum, sums + e);
  }
  void done(std::int64_t first) const {
    const std::int64_t count = std::min(chunk_elements, n - first);
    std::byte* const target = to + first * size;
    kernels::finish(finish, sums, count, stream ? staged : target);
    if (stream) stream_copy(target, staged, count * size);
  }
};

// Where narrow sums go that a multiplication finishes.
struct ByteChunk {
  const ByteQuotient& quotient;
  std::byte* to;
  std::int64_t n;
  const std::byte* upcoming;
  std::byte* staged;  // the row's last chunk, of which not all may be written

  bool whole(std::int64_t first) const { return first + chunk_elements <= n; }
  void prefetch(std::int64_t e) const {
    if (upcoming != nullptr) hwy::Prefetch(upcoming + e);
  }
  template <class D, class V>
  HWY_INLINE void put(D d, V sum, std::int64_t first, std::int64_t e) const {
    const hn::RebindToSigned<D> wide;
    const hn::Rebind<std::uint8_t, D> stored;
    const auto product = hn::MulHigh(hn::Add(sum, hn::Set(d, quotient.add)), hn::Set(d, quotient.multiplier));
    const auto value = hn::ShiftRightSame(product, quotient.shift);
    std::byte* const at = whole(first) ? to + first + e : staged + e;
    hn::StoreU(hn::DemoteTo(stored, hn::BitCast(wide, value)), stored, reinterpret_cast<std::uint8_t*>(at));
  }
  void done(std::int64_t first) const {
    if (!whole(first)) std::memcpy(to + first, staged, static_cast<std::size_t>(n - first));
  }
};

template <class D, typename Column, class Sink>
void add_one_by_one(D d, const BoxRow<Column>& a, const Sink& chunk) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t first = 0; first < a.n; first += chunk_elements) {
    const std::int64_t count = std::min(chunk_elements, a.n - first);
    for (std::int64_t e = 0; e < count; e += lanes) {
      const Column* from = a.columns + first + e;
      chunk.prefetch(first + e);
      auto sum = promoted<Column>(d, from);
      for (std::int64_t k = 1; k < a.s; ++k) sum = hn::Add(sum, promoted<Column>(d, from += a.step));
      chunk.put(d, sum, first, e);
    }
    chunk.done(first);
  }
}

// The sums of the `step` windows before the first: of s * step elements from columns - step on, by channel.
template <typename Sum, typename Column>
void sums_before_first(const BoxRow<Column>& a, Sum* sums) {
  constexpr std::int64_t at_once = 16, most_parts = at_once * 32;
  const std::int64_t elements = a.s * a.step, parts = at_once * a.step;
  const Column* const from = a.columns - a.step;
  std::fill_n(sums, a.step, Sum{0});
  std::int64_t e = 0;
  if (parts <= most_parts && elements >= parts) {
    Sum part[most_parts] = {};
    for (; e + parts <= elements; e += parts)
      for (std::int64_t i = 0; i < parts; ++i) part[i] = static_cast<Sum>(part[i] + from[e + i]);
    for (std::int64_t i = 0; i < parts; i += a.step)
      for (std::int64_t ch = 0; ch < a.step; ++ch) sums[ch] = static_cast<Sum>(sums[ch] + part[i + ch]);
  }
  for (; e < elements; e += a.step)
    for (std::int64_t ch = 0; ch < a.step; ++ch) sums[ch] = static_cast<Sum>(sums[ch] + from[e + ch]);
}

// Running sums w[e] = w[e - step] + columns[e + (s - 1) * step] - columns[e - step], for steps shorter than a vector: a
// prefix sum within the vector, by `shifts` shifts of 1, 2, 4 ... steps, and what the vector before it carries over.
template <int shifts, class D, typename Column, class Sink>
void run_within(D d, const BoxRow<Column>& a, const Sink& chunk) {
  using Sum = hn::TFromD<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN Sum before[hn::MaxLanes(d)] = {};
  sums_before_first(a, before + lanes - a.step);
  auto running = hn::Load(d, before);
  const auto carried = carried_by(d, a.step);
  const auto shift0 = shift_by(d, a.step), shift1 = shift_by(d, shifts > 1 ? 2 * a.step : 0),
             shift2 = shift_by(d, shifts > 2 ? 4 * a.step : 0), shift3 = shift_by(d, shifts > 3 ? 8 * a.step : 0),
             shift4 = shift_by(d, shifts > 4 ? 16 * a.step : 0);
  const Column* const leaving = a.columns - a.step;
  const Column* const entering = a.columns + (a.s - 1) * a.step;
  for (std::int64_t first = 0; first < a.n; first += chunk_elements) {
    const std::int64_t count = std::min(chunk_elements, a.n - first);
    for (std::int64_t e = 0; e < count; e += lanes) {
      auto sum = hn::Sub(promoted<Column>(d, entering + first + e), promoted<Column>(d, leaving + first + e));
      sum = hn::Add(sum, shift0(sum));
      if constexpr (shifts > 1) sum = hn::Add(sum, shift1(sum));
      if constexpr (shifts > 2) sum = hn::Add(sum, shift2(sum));
      if constexpr (shifts > 3) sum = hn::Add(sum, shift3(sum));
      if constexpr (shifts > 4) sum = hn::Add(sum, shift4(sum));
      running = hn::Add(sum, carried(running));
      chunk.prefetch(first + e);
      chunk.put(d, running, first, e);
    }
    chunk.done(first);
  }
}

// The same for steps of a vector and more: w[e - step] is in memory, one sum for each channel.
template <typename Sum, typename Column>
void run_by_channel(const BoxRow<Column>& a, const Chunk& chunk) {
  using Signed = std::make_signed_t<std::conditional_t<sizeof(Sum) == 2, std::uint32_t, Sum>>;
  auto* const running = reinterpret_cast<Sum*>(a.scratch);
  sums_before_first(a, running);
  const Column* const leaving = a.columns - a.step;
  const Column* const entering = a.columns + (a.s - 1) * a.step;
  std::int64_t channel = 0;
  for (std::int64_t first = 0; first < a.n; first += chunk_elements) {
    const std::int64_t count = std::min(chunk_elements, a.n - first);
    for (std::int64_t e = 0; e < count;) {
      const std::int64_t length = std::min(a.step - channel, count - e);
      Sum* const sums = running + channel;
      for (std::int64_t i = 0; i < length; ++i) {
        sums[i] = static_cast<Sum>(sums[i] + entering[first + e + i] - leaving[first + e + i]);
        chunk.sums[e + i] = static_cast<float>(static_cast<Signed>(sums[i]));
      }
      e += length;
      channel = (channel + length) % a.step;
    }
    chunk.done(first);
  }
}

// For steps shorter than a vector.
template <class D, typename Column, class Sink>
void run(D d, const BoxRow<Column>& a, const Sink& chunk) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (a.step * 2 >= lanes) return run_within<1>(d, a, chunk);
  if (a.step * 4 >= lanes) return run_within<2>(d, a, chunk);
  if (a.step * 8 >= lanes) return run_within<3>(d, a, chunk);
  if (a.step * 16 >= lanes) return run_within<4>(d, a, chunk);
  run_within<5>(d, a, chunk);
}

// Sums of 16 bits. False where the processor has no permutation of such lanes, or a pixel fills a vector.
template <class Sink>
bool narrow_row(const BoxRow<std::uint16_t>& a, const Sink& chunk) {
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint16_t> d;
  if (a.s <= short_window) {
    add_one_by_one(d, a, chunk);
    return true;
  }
#if HWY_TARGET <= HWY_AVX3
  if (a.step < static_cast<std::int64_t>(hn::Lanes(d))) {
    run(d, a, chunk);
    return true;
  }
#endif
#endif
  (void)a, (void)chunk;
  return false;
}

template <typename Column>
void row_of(const BoxRow<Column>& a, const Finish& finish, std::byte* to) {
  using Sum = std::conditional_t<sizeof(Column) == 8, Column, std::uint32_t>;
  HWY_ALIGN float sums[chunk_elements + box_slack];
  HWY_ALIGN std::byte staged[chunk_elements * 8];
  const Chunk chunk{finish, to, a.n, size_of(finish.type), a.upcoming, a.upcoming_size, a.stream, sums, staged};
  if constexpr (sizeof(Column) == 2) {
    if (a.quotient != nullptr && narrow_row(a, ByteChunk{*a.quotient, to, a.n, a.upcoming, staged})) return;
    if (a.narrow && narrow_row(a, chunk)) return;
  }
  const hn::ScalableTag<Sum> d;
  if (a.step >= static_cast<std::int64_t>(hn::Lanes(d)) && a.s > short_window) return run_by_channel<Sum>(a, chunk);
#if HWY_TARGET == HWY_SCALAR
  run_by_channel<Sum>(a, chunk);
#else
  if (a.s <= short_window) return add_one_by_one(d, a, chunk);
  run(d, a, chunk);
#endif
}

void BoxRowU16(const BoxRow<std::uint16_t>& a, const Finish& finish, std::byte* to) {
  row_of(a, finish, to);
}
void BoxRowU32(const BoxRow<std::uint32_t>& a, const Finish& finish, std::byte* to) {
  row_of(a, finish, to);
}
void BoxRowU64(const BoxRow<std::uint64_t>& a, const Finish& finish, std::byte* to) {
  row_of(a, finish, to);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(SlideU16);
HWY_EXPORT(SlideU32);
HWY_EXPORT(SlideU64);
HWY_EXPORT(BoxRowU16);
HWY_EXPORT(BoxRowU32);
HWY_EXPORT(BoxRowU64);

void slide_columns(DataType type, const std::byte* entering, const std::byte* leaving, std::int64_t n,
                   std::uint16_t* columns) {
  HWY_DYNAMIC_DISPATCH(SlideU16)(type, entering, leaving, n, columns);
}
void slide_columns(DataType type, const std::byte* entering, const std::byte* leaving, std::int64_t n,
                   std::uint32_t* columns) {
  HWY_DYNAMIC_DISPATCH(SlideU32)(type, entering, leaving, n, columns);
}
void slide_columns(DataType type, const std::byte* entering, const std::byte* leaving, std::int64_t n,
                   std::uint64_t* columns) {
  HWY_DYNAMIC_DISPATCH(SlideU64)(type, entering, leaving, n, columns);
}

void box_row(const BoxRow<std::uint16_t>& arguments, const Finish& finish, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(BoxRowU16)(arguments, finish, to);
}
void box_row(const BoxRow<std::uint32_t>& arguments, const Finish& finish, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(BoxRowU32)(arguments, finish, to);
}
void box_row(const BoxRow<std::uint64_t>& arguments, const Finish& finish, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(BoxRowU64)(arguments, finish, to);
}

}  // namespace omniconv::kernels
#endif
