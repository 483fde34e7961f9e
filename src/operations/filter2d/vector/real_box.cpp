#include "operations/filter2d/vector/real_box.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/filter2d/vector/real_box.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// to[e] = make(d, e) for e in [0, n), and up to a vector more.
template <typename Real, class Make>
HWY_INLINE void for_vectors(std::int64_t n, Real* to, const Make& make) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t e = 0; e < n; e += lanes) hn::StoreU(make(d, e), d, to + e);
}

// Multiplied, then added: the same bits on processors that cannot fuse the two.
template <typename Real>
void enter(Real* row, Real weight, Real* total, bool starts, std::int64_t n) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto w = hn::Set(d, weight);
  for (std::int64_t e = 0; e < n; e += lanes) {
    const auto product = hn::Mul(w, hn::LoadU(d, row + e));
    hn::StoreU(product, d, row + e);
    if (total != nullptr) hn::StoreU(starts ? product : hn::Add(hn::LoadU(d, total + e), product), d, total + e);
  }
}

template <typename Real>
void add(Real* row, const Real* next, std::int64_t n) {
  for_vectors(n, row,
              [&](auto d, std::int64_t e) HWY_ATTR { return hn::Add(hn::LoadU(d, row + e), hn::LoadU(d, next + e)); });
}

// to[e] = the sum of the four elements from[e + k * step].
template <typename Real>
void sum_of_four(const Real* from, std::int64_t step, std::int64_t n, Real* to) {
  for_vectors(n, to, [&](auto d, std::int64_t e) HWY_ATTR {
    const auto at = [&](std::int64_t k) HWY_ATTR { return hn::LoadU(d, from + e + k * step); };
    return hn::Add(hn::Add(at(0), at(1)), hn::Add(at(2), at(3)));
  });
}

// to[e] = the sum of all parts' elements e, four vectors at a time: the list of parts is read once for them.
template <typename Real>
void add_parts(const Real* const* parts, int count, std::int64_t n, Real* to) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t e = 0; e < n; e += 4 * lanes) {
    auto sum0 = hn::LoadU(d, parts[0] + e), sum1 = hn::LoadU(d, parts[0] + e + lanes),
         sum2 = hn::LoadU(d, parts[0] + e + 2 * lanes), sum3 = hn::LoadU(d, parts[0] + e + 3 * lanes);
    for (int i = 1; i < count; ++i) {
      const Real* const part = parts[i] + e;
      sum0 = hn::Add(sum0, hn::LoadU(d, part));
      sum1 = hn::Add(sum1, hn::LoadU(d, part + lanes));
      sum2 = hn::Add(sum2, hn::LoadU(d, part + 2 * lanes));
      sum3 = hn::Add(sum3, hn::LoadU(d, part + 3 * lanes));
    }
    hn::StoreU(sum0, d, to + e);
    hn::StoreU(sum1, d, to + e + lanes);
    hn::StoreU(sum2, d, to + e + 2 * lanes);
    hn::StoreU(sum3, d, to + e + 3 * lanes);
  }
}

// Column sums, then sums of 4, 16, 64 ... of them; as many of each as the digits of s to base 4 say make a window.
template <typename Real>
void windows(const RealBoxRow<Real>& a) {
  const std::int64_t most = a.n + (a.s - 1) * a.step, pitch = real_box_pitch(a.n, a.s, a.step);
  for_vectors(most, a.scratch, [&](auto d, std::int64_t e) HWY_ATTR {
    const auto upper = hn::LoadU(d, a.upper + e);
    return a.lower == nullptr ? upper : hn::Add(upper, hn::LoadU(d, a.lower + e));
  });
  const Real* parts[4 * 32];
  int count = 0;
  if (a.s <= real_box_short) {
    for (; count < a.s; ++count) parts[count] = a.scratch + count * a.step;
    return add_parts(parts, count, a.n, a.sums);
  }
  std::int64_t done = 0, pixels = 1;
  for (Real* level = a.scratch;; level += pitch) {
    for (std::int64_t digit = a.s / pixels % 4; digit > 0; --digit, done += pixels)
      parts[count++] = level + done * a.step;
    if (done == a.s) break;
    sum_of_four(level, pixels * a.step, most - (4 * pixels - 1) * a.step, level + pitch);
    pixels *= 4;
  }
  add_parts(parts, count, a.n, a.sums);
}

void EnterF32(float* row, float weight, float* total, bool starts, std::int64_t n) {
  enter(row, weight, total, starts, n);
}
void EnterF64(double* row, double weight, double* total, bool starts, std::int64_t n) {
  enter(row, weight, total, starts, n);
}
void AddF32(float* row, const float* next, std::int64_t n) {
  add(row, next, n);
}
void AddF64(double* row, const double* next, std::int64_t n) {
  add(row, next, n);
}
void WindowsF32(const RealBoxRow<float>& a) {
  windows(a);
}
void WindowsF64(const RealBoxRow<double>& a) {
  windows(a);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(EnterF32);
HWY_EXPORT(EnterF64);
HWY_EXPORT(AddF32);
HWY_EXPORT(AddF64);
HWY_EXPORT(WindowsF32);
HWY_EXPORT(WindowsF64);

void real_box_enter(float* row, float weight, float* total, bool starts, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(EnterF32)(row, weight, total, starts, n);
}
void real_box_enter(double* row, double weight, double* total, bool starts, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(EnterF64)(row, weight, total, starts, n);
}

void real_box_add(float* row, const float* next, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddF32)(row, next, n);
}
void real_box_add(double* row, const double* next, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddF64)(row, next, n);
}

void real_box_windows(const RealBoxRow<float>& arguments) {
  HWY_DYNAMIC_DISPATCH(WindowsF32)(arguments);
}
void real_box_windows(const RealBoxRow<double>& arguments) {
  HWY_DYNAMIC_DISPATCH(WindowsF64)(arguments);
}

}  // namespace omniconv::kernels
#endif
