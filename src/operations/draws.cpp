#include "operations/draws.h"

namespace omniconv::operations {

double Draws::work() {
  return static_cast<double>(std::int64_t{1} << (one_in(50) ? 25 : 16 + below(9)));
}

std::int64_t Draws::extent() {
  switch (below(8)) {
    case 0: return one_in(2) ? 1 + below(4) : 1 + below(64);
    case 1:
    case 2: return one_of({5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 53, 61, 67, 97, 101, 127, 131});
    case 3:
    case 4: return (std::int64_t{2} << below(7)) + below(3) - 1;
    case 5: return one_of({6, 7, 14, 28, 56, 112});
    case 6: return 5 + below(60);
    default: return one_in(3) ? 250 + below(1200) : 64 + below(200);
  }
}

std::int64_t Draws::batch() {
  if (one_in(2)) return 1;
  return one_in(6) ? one_of({16, 17, 31, 32, 33, 64, 65}) : one_of({2, 3, 4, 5, 7, 8, 9});
}

std::int64_t Draws::channels() {
  if (one_in(16)) return 96 + below(170);
  if (one_in(5)) return 65 + below(8);
  return one_of({1, 2, 3, 4, 7, 8, 16, 17, 31, 32, 33, 64});
}

Draws::Pair Draws::window() {
  const std::int64_t taps = one_of({2, 3, 3, 4, 5, 7});
  switch (below(8)) {
    case 0: return {1, 1};
    case 1: return {1, taps};
    case 2: return {taps, 1};
    case 3: return {1 + below(7), 1 + below(7)};
    case 4: return one_in(3) ? Pair{1 + below(16), 1 + below(16)} : Pair{taps, taps};
    default: return {taps, taps};
  }
}

Draws::Pair Draws::stride() {
  if (one_in(2)) return {1, 1};
  const auto one = [this] { return one_in(10) ? std::int64_t{9} : 1 + below(3); };
  const std::int64_t rows = one();
  return {rows, one_in(3) ? one() : rows};
}

Draws::Pair Draws::dilation() {
  if (!one_in(4)) return {1, 1};
  const std::int64_t rows = 1 + below(3);
  return {rows, one_in(3) ? 1 + below(3) : rows};
}

Draws::Padding Draws::padding(std::int64_t reach) {
  switch (below(3)) {
    case 0: return {0, 0};
    case 1: return {(reach - 1) / 2, (reach - 1) / 2};
    default: break;
  }
  const std::int64_t before = below(reach);
  return {before, below(reach)};
}

}  // namespace omniconv::operations
