#include "ops/operand_check.h"

#include <fmt/format.h>

#include "core/checked.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

constexpr std::int64_t workspace_alignment = 64;  // what solvers take its parts to be aligned to

void check_array(const Array& array, const devices::Device& device, devices::Access needed) {
  const Buffer& buffer = array.operand.buffer;
  if (!buffer) throw bad_input(fmt::format("the buffer of {} is missing", array.name));
  const std::int64_t offset = array.operand.offset_bytes, size = size_of(array.type), bytes = part_of(array).bytes;
  if (offset < 0 || offset % size != 0)
    throw bad_input(
        fmt::format("{} begins at byte {} of its buffer: must be a multiple of its elements' {} bytes, from 0 on",
                    array.name, offset, size));
  const std::int64_t held = buffer.bytes();
  if (offset > held || bytes > held - offset)
    throw bad_input(fmt::format("the buffer of {} has {} bytes: {} elements of {} bytes from byte {} need {}",
                                array.name, held, array.elements, size, offset,
                                checked_add(offset, bytes, array.name)));
  check_device(array.name, buffer, device);
  check_alignment(array.name, buffer, size);
  check_access(array.name, buffer, needed);
}

bool overlap(const NamedPart& a, const NamedPart& b) {
  return a.buffer && b.buffer &&
         devices::overlap({*a.buffer.impl(), a.offset_bytes, a.bytes}, {*b.buffer.impl(), b.offset_bytes, b.bytes});
}

}  // namespace

devices::Queue& present(Queue& queue) {
  if (!queue.impl()) throw bad_input("the queue of the run is empty; make one with Context::make_queue");
  return *queue.impl();
}

void check_alignment(const char* name, const Buffer& buffer, std::int64_t element_bytes) {
  const std::uintptr_t address = buffer.impl()->place().address;
  if (address % static_cast<std::uintptr_t>(element_bytes) != 0)
    throw bad_input(
        fmt::format("the buffer of {} is misaligned: it begins at address {:#x}, which must be a multiple of the "
                    "elements' {} bytes",
                    name, address, element_bytes));
}

void check_device(const char* name, const Buffer& buffer, const devices::Device& device) {
  if (device.kind() != devices::DeviceKind::cpu || buffer.bytes() == 0 || buffer.impl()->host()) return;
  const std::shared_ptr<devices::Device> owner = buffer.impl()->device();
  throw bad_input(fmt::format("{} is memory of {}, and the plan is of the device cpu: take a buffer of its context",
                              name, owner ? owner->info().id : "another device"));
}

void check_access(const char* name, const Buffer& buffer, devices::Access needed) {
  const devices::Access given = buffer.impl()->access();
  if ((!needed.write || given.write) && (!needed.read || given.read)) return;
  throw bad_input(fmt::format("{} is {}, and its cl_mem was made {}: make it CL_MEM_READ_WRITE", name,
                              given.write ? "read" : "written",
                              given.write ? "CL_MEM_WRITE_ONLY" : "CL_MEM_READ_ONLY"));
}

NamedPart part_of(const Array& array) {
  return {array.name, array.operand.buffer, array.operand.offset_bytes,
          checked_multiply(array.elements, size_of(array.type), array.name)};
}

void check_arrays(std::initializer_list<Array> inputs, const Array& output, bool reads_output,
                  const devices::Device& device) {
  for (const Array& input : inputs) check_array(input, device, {.write = false});
  check_array(output, device, {.read = reads_output});
  for (const Array& input : inputs)
    if (overlap(part_of(input), part_of(output)))
      throw bad_input(fmt::format("{} and {} overlap in memory: {} is written while {} is read; keep them apart",
                                  output.name, input.name, output.name, input.name));
}

void check_workspace(const Buffer& workspace, std::int64_t bytes, const std::string& solver,
                     const devices::Device& device, std::initializer_list<NamedPart> others) {
  if (bytes == 0) return;
  const std::int64_t held = workspace ? workspace.bytes() : 0;
  if (held < bytes) throw bad_input(fmt::format("the workspace has {} bytes: {} needs {}", held, solver, bytes));
  check_device("the workspace", workspace, device);
  if (const std::uintptr_t address = workspace.impl()->place().address; address % workspace_alignment != 0)
    throw bad_input(
        fmt::format("the workspace is misaligned: it begins at address {:#x}, which must be a multiple of {}", address,
                    workspace_alignment));
  check_access("the workspace", workspace, {});
  const NamedPart own{"the workspace", workspace, 0, bytes};
  for (const NamedPart& other : others)
    if (overlap(own, other))
      throw bad_input(fmt::format("the workspace and {} overlap in memory: it must be memory of its own", other.name));
}

}  // namespace omniconv
