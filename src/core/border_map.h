// Where a coordinate outside the image is read: the one place that knows the borders' index arithmetic on the host.
#pragma once

#include <cstdint>

#include "omniconv/types.h"

namespace omniconv {

// The position in [0, extent) that stands for `i`, or -1 where the border is a constant (or `valid`, which never asks).
constexpr std::int64_t border_index(BorderMode mode, std::int64_t i, std::int64_t extent) {
  if (i >= 0 && i < extent) return i;
  const auto modulo = [](std::int64_t a, std::int64_t m) { return ((a % m) + m) % m; };
  switch (mode) {
    case BorderMode::constant:
    case BorderMode::valid: return -1;
    case BorderMode::replicate: return i < 0 ? 0 : extent - 1;
    case BorderMode::wrap: return modulo(i, extent);
    case BorderMode::reflect: {
      const std::int64_t j = modulo(i, 2 * extent);
      return j < extent ? j : 2 * extent - 1 - j;
    }
    case BorderMode::reflect101: {
      if (extent == 1) return 0;
      const std::int64_t j = modulo(i, 2 * extent - 2);
      return j < extent ? j : 2 * extent - 2 - j;
    }
  }
  return -1;
}

}  // namespace omniconv
