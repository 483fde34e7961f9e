#include "vector/matrix/shifted_panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/matrix/shifted_panels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/matrix/step-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Real>
struct ShiftedTile {
  template <int rows, int V>
  static HWY_NOINLINE void run(const ShiftedPanels<Real>& p) {
    const hn::ScalableTag<Real> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> sums[rows][V];
    zero_sums(d, sums);
    const std::int64_t a_pixel = p.a_pixel;
    for (std::int64_t image = 0; image < p.images; ++image)
      for (std::int64_t line = 0; line < p.lines; ++line) {
        const Real* a = p.a + image * p.a_image + line * p.a_line;
        const Real* b = p.b + image * p.b_image + line * p.b_line;
        for (const Real* const end = b + p.pixels * V * lanes; b != end; a += a_pixel, b += V * lanes)
          add_step<rows, V, true>(d, a, b, sums);
      }
    store_sums<rows, V>(d, sums, p.sums, p.ld, p.columns, p.add);
  }
};

void MultiplyShiftedF32(const ShiftedPanels<float>& panels) {
  tile_of<ShiftedTile<float>, vectors>(hn::ScalableTag<float>(), panels.rows, panels.columns)(panels);
}
void MultiplyShiftedF64(const ShiftedPanels<double>& panels) {
  tile_of<ShiftedTile<double>, vectors>(hn::ScalableTag<double>(), panels.rows, panels.columns)(panels);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(MultiplyShiftedF32);
HWY_EXPORT(MultiplyShiftedF64);

void multiply_shifted(const ShiftedPanels<float>& panels) {
  HWY_DYNAMIC_DISPATCH(MultiplyShiftedF32)(panels);
}
void multiply_shifted(const ShiftedPanels<double>& panels) {
  HWY_DYNAMIC_DISPATCH(MultiplyShiftedF64)(panels);
}

}  // namespace omniconv::kernels
#endif
