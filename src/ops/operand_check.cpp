#include "ops/operand_check.h"

#include <fmt/format.h>

#include "core/checked.h"

namespace omniconv {
namespace {

std::int64_t bytes_of(const Array& array) {
  return checked_multiply(array.elements, size_of(array.type), array.name);
}

void check_array(const Array& array) {
  if (!array.operand.buffer) throw bad_input(fmt::format("the buffer of {} is missing", array.name));
  const std::int64_t offset = array.operand.offset_bytes, size = size_of(array.type), bytes = bytes_of(array);
  if (offset < 0 || offset % size != 0)
    throw bad_input(
        fmt::format("{} begins at byte {} of its buffer: must be a multiple of its elements' {} bytes, from 0 on",
                    array.name, offset, size));
  const std::int64_t held = array.operand.buffer.bytes();
  if (offset > held || bytes > held - offset)
    throw bad_input(fmt::format("the buffer of {} has {} bytes: {} elements of {} bytes from byte {} need {}",
                                array.name, held, array.elements, size, offset,
                                checked_add(offset, bytes, array.name)));
}

bool overlap(const Array& a, const Array& b) {
  return a.operand.buffer.impl() == b.operand.buffer.impl() &&
         a.operand.offset_bytes < b.operand.offset_bytes + bytes_of(b) &&
         b.operand.offset_bytes < a.operand.offset_bytes + bytes_of(a);
}

}  // namespace

void check_arrays(std::initializer_list<Array> inputs, const Array& output) {
  for (const Array& input : inputs) check_array(input);
  check_array(output);
  for (const Array& input : inputs)
    if (overlap(input, output))
      throw bad_input(fmt::format("{} and {} overlap in one buffer: {} is written while {} is read; keep them apart",
                                  output.name, input.name, output.name, input.name));
}

void check_workspace(const Buffer& workspace, std::int64_t bytes, const std::string& solver,
                     std::initializer_list<Array> arrays) {
  if (bytes == 0) return;
  const std::int64_t held = workspace ? workspace.bytes() : 0;
  if (held < bytes) throw bad_input(fmt::format("the workspace has {} bytes: {} needs {}", held, solver, bytes));
  for (const Array& array : arrays)
    if (array.operand.buffer.impl() == workspace.impl())
      throw bad_input(fmt::format("the workspace is the buffer of {}: it must be one of its own", array.name));
}

}  // namespace omniconv
