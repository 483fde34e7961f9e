#include "kernels/cpu/real_box.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/real_box.cpp"
#define HWY_DISABLED_TARGETS HWY_SSSE3  // no gain over SSE4 here
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Windows of so many pixels are added up one by one: no longer a chain, and one pass.
constexpr std::int64_t short_window = 5;

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

// Sums of 1, 2, 4 ... pixels in turn, each of two of the half; those that the binary digits of s name make a window.
template <typename Real>
void double_up(const RealBoxRow<Real>& a) {
  std::int64_t taken = 0, count = a.n + (a.s - 1) * a.step;  // pixels of the window; elements of the sums
  for (std::int64_t pixels = 1;; pixels *= 2) {
    const std::int64_t distance = pixels * a.step;
    if ((a.s & pixels) != 0) {
      const Real* const part = a.scratch + taken * a.step;
      if (taken == 0)
        for_vectors(a.n, a.sums, [&](auto d, std::int64_t e) HWY_ATTR { return hn::LoadU(d, part + e); });
      else
        add(a.sums, part, a.n);
      taken += pixels;
    }
    if (taken == a.s) return;
    count -= distance;
    add(a.scratch, a.scratch + distance, count);  // forward: what is read has not been written
  }
}

template <typename Real>
void windows(const RealBoxRow<Real>& a) {
  const std::int64_t count = a.n + (a.s - 1) * a.step;
  for_vectors(count, a.scratch, [&](auto d, std::int64_t e) HWY_ATTR {
    const auto upper = hn::LoadU(d, a.upper + e);
    return a.lower == nullptr ? upper : hn::Add(upper, hn::LoadU(d, a.lower + e));
  });
  if (a.s > short_window) return double_up(a);
  for_vectors(a.n, a.sums, [&](auto d, std::int64_t e) HWY_ATTR {
    auto sum = hn::LoadU(d, a.scratch + e);
    for (std::int64_t k = 1; k < a.s; ++k) sum = hn::Add(sum, hn::LoadU(d, a.scratch + e + k * a.step));
    return sum;
  });
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
