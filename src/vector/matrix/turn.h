// Matrices, turned.
#pragma once

#include <cstdint>

#include "vector/matrix/bfloat_pair.h"

namespace omniconv::kernels {

// to[j * pitch + i] = from[i * ld + j] (+ to[j * pitch + i] as it was), for i < lines, j < columns.
template <typename Real>
struct Turned {
  const Real* from;
  std::int64_t ld, lines, columns;
  Real* to;
  std::int64_t pitch;
  bool add;
};
void turn(const Turned<float>& turned);
void turn(const Turned<double>& turned);
// Whose bits are moved, and never added.
inline void turn(const Turned<BfloatPair>& t) {
  turn(Turned<float>{.from = reinterpret_cast<const float*>(t.from),
                     .ld = t.ld,
                     .lines = t.lines,
                     .columns = t.columns,
                     .to = reinterpret_cast<float*>(t.to),
                     .pitch = t.pitch,
                     .add = false});
}

}  // namespace omniconv::kernels
