// Where an operand of a run on the CPU lies.
#pragma once

#include <cstddef>

#include "devices/device.h"
#include "omniconv/gemm.h"

namespace omniconv::operations {

// Null where there is none.
inline std::byte* host(const Operand& operand) {
  return operand.buffer ? operand.buffer.impl()->host() + operand.offset_bytes : nullptr;
}

}  // namespace omniconv::operations
