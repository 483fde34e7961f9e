#include "choice/operand_check.h"

#include <fmt/format.h>

#include <vector>

#include "core/checked.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

constexpr std::int64_t workspace_alignment = 64;  // what solvers take its parts to be aligned to

void check_array(const ArraySpec& array, const Operand& operand, const devices::Device& device) {
  const char* const name = array.name.c_str();
  const Buffer& buffer = operand.buffer;
  if (!buffer) throw bad_input(fmt::format("the buffer of {} is missing", name));
  const std::int64_t offset = operand.offset_bytes, size = size_of(array.type), bytes = array.bytes();
  if (offset < 0 || offset % size != 0)
    throw bad_input(
        fmt::format("{} begins at byte {} of its buffer: must be a multiple of its elements' {} bytes, from 0 on", name,
                    offset, size));
  const std::int64_t held = buffer.bytes();
  if (offset > held || bytes > held - offset)
    throw bad_input(fmt::format("the buffer of {} has {} bytes: {} elements of {} bytes from byte {} need {}", name,
                                held, array.elements(), size, offset, checked_add(offset, bytes, name)));
  check_device(name, buffer, device);
  check_alignment(name, buffer, size);
  check_access(name, buffer, {.read = array.role != ArrayRole::out, .write = array.role != ArrayRole::in});
}

NamedPart part_of(const ArraySpec& array, const Operand& operand) {
  return {array.name.c_str(), operand.buffer, operand.offset_bytes, array.bytes()};
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

devices::Sequence& present(Sequence& sequence, const devices::Device& device) {
  if (!sequence) throw bad_input("the sequence is empty, or was moved from; make one with Context::make_sequence");
  if (sequence.device().get() != &device)
    throw bad_input(fmt::format("the sequence is of {}, and the plan of {}: make both with one context",
                                sequence.device()->info().id, device.info().id));
  return *sequence.impl();
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

void check_arrays(std::span<const ArraySpec> specs, std::span<const Operand> operands, const devices::Device& device) {
  for (std::size_t i = 0; i < specs.size(); ++i) check_array(specs[i], operands[i], device);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role == ArrayRole::in) continue;
    for (std::size_t j = 0; j < specs.size(); ++j)
      if (i != j && overlap(part_of(specs[i], operands[i]), part_of(specs[j], operands[j])))
        throw bad_input(fmt::format("{} and {} overlap in memory: {} is written while {} is {}; keep them apart",
                                    specs[i].name, specs[j].name, specs[i].name, specs[j].name,
                                    specs[j].role == ArrayRole::in ? "read" : "written"));
  }
}

void check_workspace(const Buffer& workspace, std::int64_t bytes, const std::string& solver,
                     const devices::Device& device, std::span<const NamedPart> others) {
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

void check_workspace(const Buffer& workspace, std::int64_t bytes, const std::string& solver,
                     const devices::Device& device, std::span<const ArraySpec> specs,
                     std::span<const Operand> operands) {
  if (bytes == 0) return;
  std::vector<NamedPart> others;
  for (std::size_t i = 0; i < specs.size(); ++i) others.push_back(part_of(specs[i], operands[i]));
  check_workspace(workspace, bytes, solver, device, others);
}

}  // namespace omniconv
