#include "devices/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "devices/device.h"
#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

constexpr std::size_t alignment = 16;

void check_grid(const char* kernel, const Grid& grid, const Dimensions& cluster) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (grid.local[d] < 1 || grid.global[d] < 0 || grid.global[d] % grid.local[d] != 0)
      throw bad_input(fmt::format("launch of {}: {} work items in dimension {} are no multiple of groups of {}", kernel,
                                  grid.global[d], d, grid.local[d]));
    if (cluster[d] < 1 || grid.global[d] / grid.local[d] % cluster[d] != 0)
      throw bad_input(fmt::format("launch of {}: {} groups in dimension {} are no multiple of clusters of {}", kernel,
                                  grid.global[d] / grid.local[d], d, cluster[d]));
  }
}

}  // namespace

void check_range(std::string_view what, const MemoryRange& range) {
  const std::int64_t all = range.buffer.bytes();
  if (range.offset_bytes < 0 || range.bytes < 0 || range.offset_bytes > all || range.bytes > all - range.offset_bytes)
    throw bad_input(fmt::format("{}: {} bytes at offset {} do not fit in the buffer's {} bytes", what, range.bytes,
                                range.offset_bytes, all));
}

void check_copy(const MemoryRange& to, const MemoryRange& from) {
  check_range("copy to a buffer", to);
  check_range("copy from a buffer", from);
  if (overlap(to, from))
    throw bad_input(
        fmt::format("copy: {} bytes at offset {} of a buffer overlap those at its offset {}; copy them by "
                    "way of another buffer",
                    from.bytes, from.offset_bytes, to.offset_bytes));
}

void Sequence::launch(const std::shared_ptr<const Program>& program, const char* kernel, const Grid& grid,
                      std::span<const KernelArgument> arguments, const LaunchOptions& options) {
  if (!program) throw bad_input(fmt::format("launch of {}: the program is missing", kernel));
  check_grid(kernel, grid, options.cluster);
  if (options.local_memory_bytes < 0)
    throw bad_input(fmt::format("launch of {}: {} bytes of local memory", kernel, options.local_memory_bytes));
  if (arguments.size() > most_arguments)
    throw bad_input(fmt::format("launch of {}: {} arguments: {} are the most; put several in one struct", kernel,
                                arguments.size(), most_arguments));
  const std::size_t first = arguments_.size(), maps = maps_.size();
  try {
    for (const KernelArgument& argument : arguments) arguments_.push_back(held(kernel, argument));
    if (maps_.size() - maps > most_tensor_maps)
      throw bad_input(fmt::format("launch of {}: {} of its arguments are tensor maps: {} are the most", kernel,
                                  maps_.size() - maps, most_tensor_maps));
    steps_.emplace_back(Launch{program, kernel, grid, options, first, arguments.size()});
  } catch (...) {
    arguments_.erase(arguments_.begin() + static_cast<std::ptrdiff_t>(first), arguments_.end());
    maps_.erase(maps_.begin() + static_cast<std::ptrdiff_t>(maps), maps_.end());
    throw;
  }
}

Sequence::Argument Sequence::held(const char* kernel, const KernelArgument& argument) {
  return std::visit(
      [&]<typename Value>(const Value& value) -> Argument {
        if constexpr (std::is_same_v<Value, const Buffer*>) {
          if (!value) throw bad_input(fmt::format("launch of {}: a buffer is missing", kernel));
          return {value->shared_from_this(), sizeof value};
        } else if constexpr (std::is_same_v<Value, const TensorMap*>) {
          if (!value || (!value->buffer && value->rank > 0))
            throw bad_input(fmt::format("launch of {}: a tensor map, or its buffer, is missing", kernel));
          if (value->buffer) check(*value);
          maps_.push_back({*value, value->buffer ? value->buffer->shared_from_this() : nullptr});
          return {Map{maps_.size() - 1}, 0};
        } else if constexpr (std::is_same_v<Value, Scalar>) {
          changes_ |= value.is_changing();
          return {value, sizeof(float)};
        } else if constexpr (requires { value.size_bytes(); }) {
          return held_bytes(value.data(), value.size_bytes());
        } else {
          return held_bytes(&value, sizeof value);
        }
      },
      argument);
}

Sequence::Argument Sequence::held_bytes(const void* data, std::size_t bytes) {
  const std::size_t begin = (bytes_.size() + alignment - 1) / alignment * alignment;
  bytes_.resize(begin + bytes);
  if (bytes > 0) std::memcpy(bytes_.data() + begin, data, bytes);
  return {Bytes{begin}, bytes};
}

void Sequence::call(HostTask task, std::span<const Scalar> scalars) {
  steps_.emplace_back(Call{std::move(task), scalars_.size(), scalars.size()});
  scalars_.insert(scalars_.end(), scalars.begin(), scalars.end());
  for (const Scalar& scalar : scalars) changes_ |= scalar.is_changing();
}

void Sequence::copy(const MemoryRange& to, const MemoryRange& from) {
  if (to.bytes != from.bytes)
    throw bad_input(fmt::format("a copy of {} bytes to a range of {} bytes", from.bytes, to.bytes));
  check_copy(to, from);
  steps_.emplace_back(Copy{to.buffer.shared_from_this(), from.buffer.shared_from_this(), to.offset_bytes,
                           from.offset_bytes, from.bytes});
}

void Sequence::fill(const MemoryRange& range, std::uint8_t value) {
  check_range("fill of a buffer", range);
  steps_.emplace_back(Fill{range.buffer.shared_from_this(), range.offset_bytes, range.bytes, value});
}

void Sequence::call_native(NativeCall call, bool is_constant) {
  steps_.emplace_back(Native{std::move(call), is_constant});
}

void Sequence::clear() {
  steps_.clear();
  arguments_.clear();
  bytes_.clear();
  maps_.clear();
  scalars_.clear();
  changes_ = false;
}

void Sequence::reserve(std::size_t steps, std::size_t arguments, std::size_t bytes) {
  steps_.reserve(steps);
  arguments_.reserve(arguments);
  bytes_.reserve(bytes);
}

std::string describe(const Sequence& sequence) {
  const std::span<const Sequence::Step> steps = sequence.steps();
  const auto first = std::find_if(steps.begin(), steps.end(),
                                  [](const auto& s) { return std::holds_alternative<Sequence::Launch>(s); });
  const std::string name = first == steps.end() ? "a sequence" : std::get<Sequence::Launch>(*first).kernel;
  if (steps.size() < 2) return name;
  return fmt::format("{} and {} more step{}", name, steps.size() - 1, steps.size() == 2 ? "" : "s");
}

}  // namespace omniconv::devices
