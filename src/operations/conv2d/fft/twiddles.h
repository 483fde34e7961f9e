// The roots of unity that transforms multiply by.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace omniconv::operations {

template <std::int64_t side, typename Real>
struct FftTwiddles {
  std::array<Real, static_cast<std::size_t>(side)> re, im;  // of exp(-2 pi i j / side)

  // Each is computed in long double from an angle of at most an eighth of the circle, and rounded once.
  FftTwiddles() {
    for (std::int64_t j = 0; j < side; ++j) {
      const std::int64_t quarter = side / 4, eighth = side / 8, within = j % quarter;
      const bool mirrored = within > eighth;
      const long double angle =
          6.283185307179586476925286766559L * static_cast<long double>(mirrored ? quarter - within : within) / side;
      long double c = mirrored ? std::sin(angle) : std::cos(angle), s = mirrored ? std::cos(angle) : std::sin(angle);
      for (std::int64_t turns = j / quarter; turns > 0; --turns) {
        const long double turned = -s;
        s = c, c = turned;
      }
      re[static_cast<std::size_t>(j)] = static_cast<Real>(c);
      im[static_cast<std::size_t>(j)] = static_cast<Real>(-s);
    }
  }
};

template <std::int64_t side, typename Real>
inline const FftTwiddles<side, Real> fft_twiddles{};

}  // namespace omniconv::operations
