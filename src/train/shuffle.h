// Orders by chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/philox.h"

namespace omniconv::training {

// Of so many numbers, in the order that the generator gives them (Fisher and Yates).
inline void shuffle(std::vector<std::int32_t>& order, PhiloxStream stream) {
  for (std::size_t i = order.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(static_cast<std::uint64_t>(stream.word(i)) * i >> 32);
    std::swap(order[i - 1], order[other]);
  }
}

}  // namespace omniconv::training
