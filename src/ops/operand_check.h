// The arrays of a run, before it is submitted.
#pragma once

#include <initializer_list>

#include "omniconv/gemm.h"

namespace omniconv {

// An array as a run names it, and what it must hold.
struct Array {
  const char* name;
  const Operand& operand;
  std::int64_t elements;
  DataType type;
};

// Throws, naming the array, for a missing, misaligned or too small one, and where the output overlaps an input.
void check_arrays(std::initializer_list<Array> inputs, const Array& output);
// Throws where it is smaller than the solver needs, or is one of the arrays' buffers.
void check_workspace(const Buffer& workspace, std::int64_t bytes, const std::string& solver,
                     std::initializer_list<Array> arrays);

}  // namespace omniconv
