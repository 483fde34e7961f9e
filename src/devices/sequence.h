// Work in order, before it is submitted: plans append to it, a queue runs it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "devices/host_task.h"
#include "omniconv/context.h"

namespace omniconv::devices {

class Buffer;
class Program;

// Arguments are sent as they are: Buffer as a pointer, the rest by value, several numbers as one struct of them, and a
// Scalar as the float that it holds when the work is submitted or replayed.
using KernelArgument = std::variant<const Buffer*, std::int32_t, std::int64_t, float, Scalar, std::span<const float>,
                                    std::span<const std::int32_t>>;

// Work items in all and per group; global is a multiple of local.
struct Grid {
  std::array<std::int64_t, 2> global{1, 1};
  std::array<std::int64_t, 2> local{1, 1};
};

// Keeps buffers and programs alive as long as it lasts. Made, filled and cleared by one thread at a time; while a queue
// runs it, it does not change.
class Sequence {
 public:
  struct Argument {
    std::variant<std::shared_ptr<const Buffer>, Scalar, std::size_t> value;  // the last: where its bytes begin
    std::size_t bytes = 0;
  };
  struct Launch {
    std::shared_ptr<Program> program;
    const char* kernel;  // a literal
    Grid grid;
    std::size_t first_argument, arguments;
  };
  using Step = std::variant<Launch, HostTask>;

  // GPU kinds only. `kernel` must outlive the sequence: a literal.
  void launch(const std::shared_ptr<Program>& program, const char* kernel, const Grid& grid,
              std::span<const KernelArgument> arguments);
  // The CPU only.
  void call(HostTask task) { steps_.emplace_back(std::move(task)); }

  const std::deque<Step>& steps() const { return steps_; }
  std::span<const Argument> arguments_of(const Launch& launch) const {
    return std::span(arguments_).subspan(launch.first_argument, launch.arguments);
  }
  const std::byte* bytes_of(const Argument& argument) const {
    return bytes_.data() + std::get<std::size_t>(argument.value);
  }
  bool is_empty() const { return steps_.empty(); }
  void clear();

 private:
  std::deque<Step> steps_;
  std::vector<Argument> arguments_;
  std::vector<std::byte> bytes_;  // of arguments that are numbers, each at a multiple of 8
};

}  // namespace omniconv::devices
