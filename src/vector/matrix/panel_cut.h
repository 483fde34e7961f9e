// Lines in panels: panel p holds lines [start(p), start(p + 1)).
#pragma once

#include <algorithm>
#include <cstdint>

namespace omniconv::kernels {

struct PanelCut {
  std::int64_t lines, panels, height, taller;  // the first `taller` panels hold one line more than the others
  std::int64_t alone = 0;                      // 1: the last line is a panel by itself
  std::int64_t start(std::int64_t p) const {
    return p == panels ? lines : std::min(p * height + std::min(p, taller), lines - alone);
  }
  bool is_alone(std::int64_t p) const { return alone == 1 && p == panels - 1; }
  std::int64_t count(std::int64_t p) const { return start(p + 1) - start(p); }
  std::int64_t tallest() const { return height + (taller > 0 ? 1 : 0); }

  // Panels of at most so many lines, as even as can be: rows of a tile cost what they are.
  static PanelCut even(std::int64_t lines, std::int64_t most) {
    const std::int64_t panels = (lines + most - 1) / most;
    return {lines, panels, lines / panels, lines % panels};
  }
  // All full but the last: a vector of columns costs the same, whatever it holds.
  static PanelCut full(std::int64_t lines, std::int64_t most) { return {lines, (lines + most - 1) / most, most, 0}; }
  // The same of all lines but the last, which is alone.
  static PanelCut full_and_one(std::int64_t lines, std::int64_t most) {
    return {lines, full(lines - 1, most).panels + 1, most, 0, 1};
  }
};

// The largest of parts as even as can be, of at most so many.
inline std::int64_t even_part(std::int64_t all, std::int64_t most) {
  return PanelCut::even(all, most).tallest();
}

}  // namespace omniconv::kernels
