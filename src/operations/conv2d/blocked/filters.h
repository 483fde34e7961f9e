// Panels of filters, in the order in which tiles take them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "operations/conv2d/blocked/blocking.h"
#include "vector/matrix/bfloat_pair.h"

namespace omniconv::operations {

// The weights that elements [first, first + elements) of the source meet under the taps of a pair of classes, of a
// panel's rows; `to` is where the group's filters begin. Taps of an element follow each other under nchw, else elements
// of a tap. What the source does not have of the last element, or of the last depth, is zero.
template <typename Element>
void pack_blocked_filters(const BlockedCut& cut, DataType type, const std::byte* w, std::int64_t group,
                          const BlockedTaps& taps, std::int64_t panel, std::int64_t first, std::int64_t elements,
                          Element* to);

}  // namespace omniconv::operations
