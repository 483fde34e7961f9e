// Arrays as a plan takes them, for whoever runs any plan.
#pragma once

#include <cstdint>
#include <vector>

#include "omniconv/plan.h"

namespace omniconv::checking {

// Those that the plan takes in a form of its own, prepared in buffers that `allocate(bytes)` makes.
template <typename Allocate>
void prepare(const Plan& plan, Queue& queue, std::vector<NamedOperand>& arrays, const Allocate& allocate) {
  for (NamedOperand& array : arrays)
    if (const auto& format = plan.format(array.name)) {
      const Buffer prepared = allocate(format->bytes);
      plan.prepare(queue, array.name, array.operand, prepared).wait();
      array.operand = {prepared, 0, format};
    }
}

}  // namespace omniconv::checking
