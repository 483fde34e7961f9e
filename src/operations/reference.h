// What references of sums give.
#pragma once

namespace omniconv::reference {

// One sum, and the sum of the magnitudes of its terms, in which error bounds are stated.
struct DoubleSum {
  double value = 0, magnitude = 0;
};

}  // namespace omniconv::reference
