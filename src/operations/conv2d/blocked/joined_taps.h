// The taps of a row as channels, where an image has few: for the processor's matrix unit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "operations/conv2d/blocked/blocking.h"
#include "vector/matrix/bfloat_pair.h"

namespace omniconv::operations {

// Where few channels would leave an instruction's depth empty, those under every tap of a row are channels of a problem
// of one tap along the row, whose source is as wide as its output: channel s * c + i is channel i under tap s.
class JoinedTaps {
 public:
  static bool serves(const Conv2dProblem& problem);
  static Conv2dProblem joined(const Conv2dProblem& problem);

  // The cut, which must outlive it, is of the joined problem where it serves.
  JoinedTaps(const Conv2dProblem& problem, const BlockedCut& cut) : serves_(serves(problem)), cut_(cut), g_(problem) {}
  bool serves() const { return serves_; }

  // As pack_blocked_filters does, of the joined problem's only pair of classes: a depth from an element on.
  void pack(const std::byte* w, std::int64_t group, std::int64_t panel, std::int64_t first,
            kernels::BfloatPair* to) const;
  // What a row of outputs from a column on reads of a row of x, whose first channel of the group begins at `row`: a
  // depth of channels of the joined problem from an element on. `lines` has room for a pair of each, as wide as the
  // copy.
  void copy(const std::byte* row, std::int64_t first, std::int64_t column, float* lines, kernels::BfloatPair* to) const;

 private:
  bool serves_;
  const BlockedCut& cut_;
  Conv2dShape g_;
};

}  // namespace omniconv::operations
