#include "choice/operand_check.h"

#include <fmt/format.h>

#include <vector>

#include "core/checked.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

constexpr std::int64_t workspace_alignment = 64;  // what solvers take its parts to be aligned to

// `element` bytes are a multiple of which it begins at; so many bytes of it are needed, which `what` says in words.
template <typename What>
void check_range(const char* name, const Operand& operand, std::int64_t bytes, std::int64_t element, const What& what,
                 devices::Access access, const devices::Device& device) {
  const Buffer& buffer = operand.buffer;
  if (!buffer) throw bad_input(fmt::format("the buffer of {} is missing", name));
  const std::int64_t offset = operand.offset_bytes, held = buffer.bytes();
  if (offset < 0 || offset % element != 0)
    throw bad_input(
        fmt::format("{} begins at byte {} of its buffer: must be a multiple of its elements' {} bytes, from 0 on", name,
                    offset, element));
  if (offset > held || bytes > held - offset)
    throw bad_input(fmt::format("the buffer of {} has {} bytes: {} from byte {} need {}", name, held, what(), offset,
                                checked_add(offset, bytes, name)));
  check_device(name, buffer, device);
  check_alignment(name, buffer, element);
  check_access(name, buffer, access);
}

void check_plain(const ArraySpec& array, const Operand& operand, const devices::Device& device) {
  const std::int64_t size = size_of(array.type);
  check_range(
      array.name.c_str(), operand, array.bytes(), size,
      [&] { return fmt::format("{} elements of {} bytes", array.elements(), size); },
      {.read = array.role != ArrayRole::out, .write = array.role != ArrayRole::in}, device);
}

void check_format(const ArraySpec& array, const Operand& operand, const PreparedFormat* wanted,
                  const std::string& solver) {
  const PreparedFormat* const given = operand.format.get();
  if (given == wanted) return;
  if (given != nullptr && wanted != nullptr && given->text == wanted->text && given->bytes == wanted->bytes) return;
  if (given == nullptr)
    throw bad_input(array.role == ArrayRole::in
                        ? fmt::format("{} is not prepared, and {} takes it as {}: make that by Plan::prepare",
                                      array.name, solver, wanted->text)
                        : fmt::format("{} has no format, and {} writes it as {}: give it Plan::format", array.name,
                                      solver, wanted->text));
  if (wanted == nullptr)
    throw bad_input(
        fmt::format("{} is prepared as {}, and this plan of {} takes it as it is: name it in SolverOptions::prepared",
                    array.name, given->text, solver));
  throw bad_input(fmt::format("{} is prepared as {}, and {} takes it as {}: prepare it by this plan", array.name,
                              given->text, solver, wanted->text));
}

void check_prepared(const char* name, const Operand& operand, const PreparedFormat& format, devices::Access access,
                    const devices::Device& device) {
  check_range(
      name, operand, format.bytes, workspace_alignment, [&] { return format.text; }, access, device);
}

NamedRange range_of(const ArraySpec& array, const Operand& operand) {
  return {array.name.c_str(), operand.buffer, operand.offset_bytes,
          operand.format ? operand.format->bytes : array.bytes()};
}

bool overlap(const NamedRange& a, const NamedRange& b) {
  return a.buffer && b.buffer &&
         devices::overlap({*a.buffer.impl(), a.offset_bytes, a.bytes}, {*b.buffer.impl(), b.offset_bytes, b.bytes});
}

// From their first byte to their last.
bool are_same(const NamedRange& a, const NamedRange& b) {
  const auto begin = [](const NamedRange& range) {
    return range.buffer.impl()->place().address + static_cast<std::uintptr_t>(range.offset_bytes);
  };
  return begin(a) == begin(b) && a.bytes == b.bytes;
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

void check_arrays(std::span<const ArraySpec> specs, std::span<const Operand> operands,
                  std::span<const std::shared_ptr<const PreparedFormat>> formats, const std::string& solver,
                  const devices::Device& device, const MayBeSame& may_be_same) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    check_format(specs[i], operands[i], formats[i].get(), solver);
    if (formats[i])
      check_prepared(specs[i].name.c_str(), operands[i], *formats[i],
                     {.read = specs[i].role != ArrayRole::out, .write = specs[i].role != ArrayRole::in}, device);
    else
      check_plain(specs[i], operands[i], device);
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role == ArrayRole::in) continue;
    for (std::size_t j = 0; j < specs.size(); ++j)
      if (i != j && overlap(range_of(specs[i], operands[i]), range_of(specs[j], operands[j]))) {
        const bool may_be = may_be_same(i, j);
        if (may_be && are_same(range_of(specs[i], operands[i]), range_of(specs[j], operands[j]))) continue;
        throw bad_input(fmt::format("{} and {} overlap in memory: {} is written while {} is {}; keep them apart{}",
                                    specs[i].name, specs[j].name, specs[i].name, specs[j].name,
                                    specs[j].role == ArrayRole::in ? "read" : "written",
                                    may_be ? ", or make them the same" : ""));
      }
  }
}

void check_preparation(const ArraySpec& array, const Operand& from, const Buffer& to, const PreparedFormat& format,
                       const devices::Device& device) {
  if (from.format)
    throw bad_input(
        fmt::format("{} is prepared already, as {}: give it as the problem says it", array.name, from.format->text));
  check_plain(array, from, device);
  check_prepared("the prepared array", {to}, format, {.read = false, .write = true}, device);
  if (overlap(range_of(array, from), {"", to, 0, format.bytes}))
    throw bad_input(fmt::format("{} and what it is prepared into overlap in memory: keep them apart", array.name));
}

namespace {

void check_workspace_alone(const Buffer& workspace, std::int64_t bytes, const std::string& solver,
                           const devices::Device& device) {
  const std::int64_t held = workspace ? workspace.bytes() : 0;
  if (held < bytes) throw bad_input(fmt::format("the workspace has {} bytes: {} needs {}", held, solver, bytes));
  check_device("the workspace", workspace, device);
  if (const std::uintptr_t address = workspace.impl()->place().address; address % workspace_alignment != 0)
    throw bad_input(
        fmt::format("the workspace is misaligned: it begins at address {:#x}, which must be a multiple of {}", address,
                    workspace_alignment));
  check_access("the workspace", workspace, {});
}

void check_apart(const Buffer& workspace, std::int64_t bytes, const NamedRange& other) {
  if (overlap({"the workspace", workspace, 0, bytes}, other))
    throw bad_input(fmt::format("the workspace and {} overlap in memory: it must be memory of its own", other.name));
}

}  // namespace

void check_workspace(const Buffer& workspace, std::int64_t bytes, const std::string& solver,
                     const devices::Device& device, std::span<const NamedRange> others) {
  if (bytes == 0) return;
  check_workspace_alone(workspace, bytes, solver, device);
  for (const NamedRange& other : others) check_apart(workspace, bytes, other);
}

void check_workspace(const Buffer& workspace, std::int64_t bytes, const std::string& solver,
                     const devices::Device& device, std::span<const ArraySpec> specs,
                     std::span<const Operand> operands) {
  if (bytes == 0) return;
  check_workspace_alone(workspace, bytes, solver, device);
  for (std::size_t i = 0; i < specs.size(); ++i) check_apart(workspace, bytes, range_of(specs[i], operands[i]));
}

}  // namespace omniconv
