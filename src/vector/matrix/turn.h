// Matrices, turned.
#pragma once

#include <cstdint>

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

}  // namespace omniconv::kernels
