#include "vector/matrix/gemm_panels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/matrix/gemm_panels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/stored-inl.h"
#include "vector/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows that a prefetch is ahead, where every step lies on a page of its own and no hardware follows.
constexpr std::int64_t steps_ahead = 12;
// The same along a stored row.
constexpr std::int64_t ahead_bytes = 256;

// Steps are stored rows: each is copied in whole vectors, the last of which ends with the row and may overlap the one
// before it.
template <DataType type, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void copy_steps(D d, const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps,
                           Real* HWY_RESTRICT to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t size = size_of(type), step_bytes = lines.ld * size;
  const std::byte* from = lines.from;
  for (std::int64_t t = 0; t < steps; ++t, from += step_bytes, to += width) {
    if (t + steps_ahead < steps) {
      const std::byte* const ahead = from + steps_ahead * step_bytes;
      hwy::Prefetch(ahead);
      hwy::Prefetch(ahead + count * size - 1);
    }
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(load_stored<type>(d, from + i * size), d, to + i);
    if (i < count) hn::StoreU(load_stored<type>(d, from + (count - lanes) * size), d, to + count - lanes);
  }
}

template <DataType type, typename Real>
void pack_steps(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, Real* to) {
  const hn::ScalableTag<Real> d;
  const hn::CappedTag<Real, 8> eight;
  const hn::CappedTag<Real, 4> four;
  const hn::CappedTag<Real, 1> one;
  const auto fits = [count](auto tag) { return count >= static_cast<std::int64_t>(hn::Lanes(tag)); };
  if (fits(d)) return copy_steps<type>(d, lines, count, width, steps, to);
  if (fits(eight)) return copy_steps<type>(eight, lines, count, width, steps, to);
  if (fits(four)) return copy_steps<type>(four, lines, count, width, steps, to);
  copy_steps<type>(one, lines, count, width, steps, to);
}

// Steps that are turned for all lines before the next: a cache line of each, and a part of the panel that stays near.
constexpr std::int64_t turned_steps = 16;

// Lines that are stored rows.
struct StoredLines {
  const std::byte* from;
  std::int64_t bytes;  // from a line to the next
};

// Elements may be pairs of halves, which lie anywhere.
template <DataType type, typename Real>
HWY_INLINE void transpose_one(const StoredLines& lines, std::int64_t line, std::int64_t first, std::int64_t last,
                              std::int64_t width, Real* HWY_RESTRICT to) {
  constexpr bool is_real = type == DataType::f32 || type == DataType::f64;
  const hn::CappedTag<Real, 1> one;
  const std::byte* const from = lines.from + line * lines.bytes;
  for (std::int64_t t = first; t < last; ++t) {
    const std::byte* const element = from + t * size_of(type);
    Real& at = to[t * width + line];
    if constexpr (is_real)
      std::memcpy(&at, element, sizeof at);
    else
      hn::StoreU(load_stored<type>(one, element), one, &at);
  }
}

#if HWY_TARGET != HWY_SCALAR
// `steps` of four lines, in squares of 16 bytes a side.
template <DataType type, typename Real>
HWY_INLINE void transpose_four(const StoredLines& lines, std::int64_t line, std::int64_t first, std::int64_t steps,
                               std::int64_t width, Real* HWY_RESTRICT to) {
  const hn::Full128<Real> d;
  constexpr std::int64_t side = 16 / sizeof(Real);
  const std::int64_t size = size_of(type), line_bytes = lines.bytes;
  const std::byte* from = lines.from + line * line_bytes + first * size;
  Real* at = to + first * width + line;
  for (int i = 0; i < 4; ++i) hwy::Prefetch(from + i * line_bytes + ahead_bytes);
  for (std::int64_t t = 0; t < steps; t += side, from += side * size, at += side * width)
    OMNICONV_UNROLL for (std::int64_t i = 0; i < 4; i += side) {
      hn::Vec<decltype(d)> square[side];
      OMNICONV_UNROLL for (std::int64_t j = 0; j < side; ++j) {
        square[j] = load_stored<type>(d, from + (i + j) * line_bytes);
      }
      transpose(d, square);
      OMNICONV_UNROLL for (std::int64_t j = 0; j < side; ++j) {
        hn::StoreU(square[j], d, at + j * width + i);
      }
    }
}
#endif

// Lines are stored rows: the panel is their transpose.
template <DataType type, typename Real>
void pack_lines(const StoredLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, Real* to) {
  std::int64_t t = 0;
#if HWY_TARGET != HWY_SCALAR
  if (count >= 4 && steps >= 4) {
    const auto transpose = [&](std::int64_t first, std::int64_t some) HWY_ATTR {
      for (std::int64_t line = 0; line + 4 <= count; line += 4)
        transpose_four<type>(lines, line, first, some, width, to);
      if (count % 4 != 0) transpose_four<type>(lines, count - 4, first, some, width, to);  // again some of those before
    };
    for (; t + turned_steps <= steps; t += turned_steps) transpose(t, turned_steps);
    if (const std::int64_t rest = steps - t; rest > 0) {
      if (rest >= 4) transpose(t, rest / 4 * 4);
      if (rest % 4 != 0) transpose(steps - 4, 4);
    }
    return;
  }
#endif
  for (std::int64_t line = 0; line < count; ++line) transpose_one<type>(lines, line, t, steps, width, to);
}

template <DataType type, typename Real>
void pack(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, Real* to) {
  if (count < width) std::fill_n(to, width * steps, Real{0});
  if (lines.steps_adjacent)
    pack_lines<type>({lines.from, lines.ld * size_of(type)}, count, width, steps, to);
  else
    pack_steps<type>(lines, count, width, steps, to);
}

void PackF32(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, float* to) {
  switch (lines.type) {
    case DataType::f16: return pack<DataType::f16>(lines, count, width, steps, to);
    case DataType::bf16: return pack<DataType::bf16>(lines, count, width, steps, to);
    default: return pack<DataType::f32>(lines, count, width, steps, to);  // and tf32
  }
}

void PackF64(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, double* to) {
  pack<DataType::f64>(lines, count, width, steps, to);
}

// Pairs of steps that are stored rows: of every line both elements, the first in the low half.
template <class D>
HWY_INLINE void copy_pairs(D d, const std::byte* first, const std::byte* second, std::int64_t count, float* to) {
  const hn::RebindToUnsigned<D> bits;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t size = size_of(DataType::bf16);
  const auto copy = [&](std::int64_t i) HWY_ATTR {
    const auto low = hn::ShiftRight<16>(hn::BitCast(bits, load_stored<DataType::bf16>(d, first + i * size)));
    const auto high =
        second == nullptr ? hn::Zero(bits) : hn::BitCast(bits, load_stored<DataType::bf16>(d, second + i * size));
    hn::StoreU(hn::BitCast(d, hn::Or(low, high)), d, to + i);
  };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) copy(i);
  if (i < count) copy(count - lanes);
}

template <class D>
HWY_INLINE void copy_pairs_of_steps(D d, const GemmLines& lines, std::int64_t count, std::int64_t width,
                                    std::int64_t steps, float* to) {
  const std::int64_t size = size_of(DataType::bf16), step_bytes = lines.ld * size;
  const std::byte* from = lines.from;
  for (std::int64_t t = 0; t < steps; t += pair_terms, from += pair_terms * step_bytes, to += width) {
    for (std::int64_t i = 0; i < pair_terms && t + steps_ahead + i < steps; ++i) {
      const std::byte* const ahead = from + (steps_ahead + i) * step_bytes;
      hwy::Prefetch(ahead);
      hwy::Prefetch(ahead + count * size - 1);
    }
    copy_pairs(d, from, t + 1 < steps ? from + step_bytes : nullptr, count, to);
  }
}

void PackPairs(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, BfloatPair* pairs) {
  const std::int64_t whole = steps / pair_terms, all = (steps + 1) / pair_terms;
  auto* const to = reinterpret_cast<float*>(pairs);  // whose bits are moved
  if (count < width) std::fill_n(pairs, width * all, BfloatPair{});
  if (!lines.steps_adjacent) {
    const hn::ScalableTag<float> d;
    const hn::CappedTag<float, 4> four;
    const hn::CappedTag<float, 1> one;
    const auto fits = [count](auto tag) { return count >= static_cast<std::int64_t>(hn::Lanes(tag)); };
    if (fits(d)) return copy_pairs_of_steps(d, lines, count, width, steps, to);
    if (fits(four)) return copy_pairs_of_steps(four, lines, count, width, steps, to);
    return copy_pairs_of_steps(one, lines, count, width, steps, to);
  }
  const std::int64_t line_bytes = lines.ld * size_of(DataType::bf16);
  pack_lines<DataType::f32>({lines.from, line_bytes}, count, width, whole, to);
  for (std::int64_t i = 0; whole < all && i < count; ++i) {
    BfloatPair& last = pairs[whole * width + i];
    last = {};
    std::memcpy(&last.low, lines.from + i * line_bytes + (steps - 1) * size_of(DataType::bf16), sizeof last.low);
  }
}

void MakePairs(const float* first, const float* second, std::int64_t count, BfloatPair* to) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto make = [](auto some, const float* low, const float* high, BfloatPair* at) HWY_ATTR {
    const hn::RebindToFloat<decltype(some)> real;
    const auto pair =
        hn::Or(hn::ShiftRight<16>(hn::BitCast(some, hn::LoadU(real, low))), hn::BitCast(some, hn::LoadU(real, high)));
    hn::StoreU(hn::BitCast(real, pair), real, reinterpret_cast<float*>(at));
  };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) make(d, first + i, second + i, to + i);
  for (; i < count; ++i) make(hn::CappedTag<std::uint32_t, 1>(), first + i, second + i, to + i);
}

// Lanes [begin, end) of a vector of lines are neighbours: where lane 0 would be at offset 0.
struct Run {
  std::int64_t begin, end, offset;
};

// Walks through lines, run by run.
template <typename Real>
class Runs {
 public:
  Runs(const GemmImages<Real>& images, std::int64_t first)
      : images_(images),
        pixel_(first % images.pixels),
        along_(pixel_ % images.run),
        image_(first / images.pixels * images.image_pitch),
        row_(image_ + pixel_ / images.run * images.run_pitch) {}

  // Those of the next `count` lines, which are no more than a vector; returns how many.
  std::int64_t next(std::int64_t count, Run* runs) {
    std::int64_t found = 0;
    for (std::int64_t lane = 0; lane < count;) {
      const std::int64_t length = std::min({count - lane, images_.run - along_, images_.pixels - pixel_});
      runs[found++] = {lane, lane + length, row_ + along_ - lane};
      lane += length, along_ += length, pixel_ += length;
      if (pixel_ == images_.pixels) {
        image_ += images_.image_pitch;
        row_ = image_, pixel_ = along_ = 0;
      } else if (along_ == images_.run) {
        row_ += images_.run_pitch, along_ = 0;
      }
    }
    return found;
  }

 private:
  const GemmImages<Real>& images_;
  std::int64_t pixel_, along_;  // the next line's, of its image and of its run
  std::int64_t image_, row_;    // where these begin
};

// A vector of lines at all steps, from so many runs (0: `found` of them).
template <int known, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void pack_vector(D d, const GemmImages<Real>& images, const Run* runs, std::int64_t found,
                            std::int64_t width, std::int64_t steps, Real* HWY_RESTRICT to) {
  const std::int64_t count = known > 0 ? known : found;
  const Real* const all = images.from;
  const std::int64_t* const offsets = images.steps;  // here, since stores to `to` might change them elsewhere
#if HWY_TARGET <= HWY_AVX2
  hn::Mask<D> lanes[hn::MaxLanes(d)];
  for (std::int64_t i = 0; i < count; ++i)
    lanes[i] = hn::AndNot(hn::FirstN(d, static_cast<std::size_t>(runs[i].begin)),
                          hn::FirstN(d, static_cast<std::size_t>(runs[i].end)));
  for (std::int64_t t = 0; t < steps; ++t, to += width) {
    const Real* const from = all + offsets[t];
    auto value = hn::MaskedLoad(lanes[0], d, from + runs[0].offset);
    for (std::int64_t i = 1; i < count; ++i) value = hn::Or(value, hn::MaskedLoad(lanes[i], d, from + runs[i].offset));
    hn::StoreU(value, d, to);
  }
#else
  const auto size = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t t = 0; t < steps; ++t, to += width) {
    const Real* const from = all + offsets[t];
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t lane = runs[i].begin; lane < runs[i].end; ++lane) to[lane] = from[runs[i].offset + lane];
    for (std::int64_t lane = runs[count - 1].end; lane < size; ++lane) to[lane] = 0;
  }
#endif
}

template <typename Real>
void pack(const GemmImages<Real>& images, std::int64_t first, std::int64_t count, std::int64_t width,
          std::int64_t steps, Real* to) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Run runs[hn::MaxLanes(d)];
  Runs<Real> walk(images, first);
  for (std::int64_t i = 0; i < width; i += lanes, to += lanes) {
    const std::int64_t found = walk.next(std::min(lanes, count - i), runs);
    switch (found) {
      case 1: pack_vector<1>(d, images, runs, found, width, steps, to); break;
      case 2: pack_vector<2>(d, images, runs, found, width, steps, to); break;
      case 3: pack_vector<3>(d, images, runs, found, width, steps, to); break;
      default: pack_vector<0>(d, images, runs, found, width, steps, to); break;
    }
  }
}

void ImagesF32(const GemmImages<float>& images, std::int64_t first, std::int64_t count, std::int64_t width,
               std::int64_t steps, float* to) {
  pack(images, first, count, width, steps, to);
}
void ImagesF64(const GemmImages<double>& images, std::int64_t first, std::int64_t count, std::int64_t width,
               std::int64_t steps, double* to) {
  pack(images, first, count, width, steps, to);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(PackF32);
HWY_EXPORT(PackF64);
HWY_EXPORT(PackPairs);
HWY_EXPORT(MakePairs);
HWY_EXPORT(ImagesF32);
HWY_EXPORT(ImagesF64);

void pack_panel(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, float* to) {
  HWY_DYNAMIC_DISPATCH(PackF32)(lines, count, width, steps, to);
}
void pack_panel(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, double* to) {
  HWY_DYNAMIC_DISPATCH(PackF64)(lines, count, width, steps, to);
}
void pack_panel(const GemmLines& lines, std::int64_t count, std::int64_t width, std::int64_t steps, BfloatPair* to) {
  HWY_DYNAMIC_DISPATCH(PackPairs)(lines, count, width, steps, to);
}
void make_pairs(const float* first, const float* second, std::int64_t count, BfloatPair* to) {
  HWY_DYNAMIC_DISPATCH(MakePairs)(first, second, count, to);
}
void pack_images(const GemmImages<float>& images, std::int64_t first, std::int64_t count, std::int64_t width,
                 std::int64_t steps, float* to) {
  HWY_DYNAMIC_DISPATCH(ImagesF32)(images, first, count, width, steps, to);
}
void pack_images(const GemmImages<double>& images, std::int64_t first, std::int64_t count, std::int64_t width,
                 std::int64_t steps, double* to) {
  HWY_DYNAMIC_DISPATCH(ImagesF64)(images, first, count, width, steps, to);
}

}  // namespace omniconv::kernels
#endif
