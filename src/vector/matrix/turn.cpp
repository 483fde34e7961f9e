#include "vector/matrix/turn.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/matrix/turn.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Real>
HWY_INLINE void turn_element(const Turned<Real>& t, std::int64_t i, std::int64_t j) {
  Real& to = t.to[j * t.pitch + i];
  const Real from = t.from[i * t.ld + j];
  to = t.add ? to + from : from;
}

#if HWY_TARGET != HWY_SCALAR
// Lines [i, i + 4) of columns [j, j + 4).
HWY_INLINE void turn_square(const Turned<float>& t, std::int64_t i, std::int64_t j) {
  const hn::Full128<float> d;
  hn::Vec<decltype(d)> square[4];
  OMNICONV_UNROLL for (int line = 0; line < 4; ++line) {
    square[line] = hn::LoadU(d, t.from + (i + line) * t.ld + j);
  }
  transpose(d, square);
  OMNICONV_UNROLL for (int column = 0; column < 4; ++column) {
    float* const to = t.to + (j + column) * t.pitch + i;
    if (t.add) square[column] = hn::Add(hn::LoadU(d, to), square[column]);
    hn::StoreU(square[column], d, to);
  }
}
#endif

// In squares of 4 x 4: of f32 alone. Those at the ends may cover some of the squares before them, unless they add.
template <typename Real>
void turn_all(const Turned<Real>& t) {
  std::int64_t lines = 0, columns = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(Real) == sizeof(float)) {
    const auto covered = [&t](std::int64_t count) { return t.add || count < 4 ? count / 4 * 4 : count; };
    lines = covered(t.lines), columns = covered(t.columns);
    // Few rows of `to` at a time: they may be whole pages apart, and share the sets of a cache.
    for (std::int64_t j = 0; j < columns; j += 4)
      for (std::int64_t i = 0; i < lines; i += 4) turn_square(t, std::min(i, lines - 4), std::min(j, columns - 4));
  }
#endif
  for (std::int64_t i = 0; i < t.lines; ++i)
    for (std::int64_t j = i < lines ? columns : 0; j < t.columns; ++j) turn_element(t, i, j);
}

void TurnF32(const Turned<float>& turned) {
  turn_all(turned);
}
void TurnF64(const Turned<double>& turned) {
  turn_all(turned);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(TurnF32);
HWY_EXPORT(TurnF64);

void turn(const Turned<float>& turned) {
  HWY_DYNAMIC_DISPATCH(TurnF32)(turned);
}
void turn(const Turned<double>& turned) {
  HWY_DYNAMIC_DISPATCH(TurnF64)(turned);
}

}  // namespace omniconv::kernels
#endif
