// Work in order, before it is submitted: plans append to it, a queue runs it as one submission.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "devices/buffer.h"
#include "devices/host_task.h"
#include "devices/tensor_map.h"
#include "omniconv/context.h"

namespace omniconv::devices {

class Program;

// Arguments are sent as they are: Buffer as a pointer, the rest by value, several numbers or the bytes of a struct
// (aligned to 16 at most) as one argument, and a Scalar as the float that it holds when the work is submitted or
// replayed. Tensor maps are copied, and encoded by the device.
using KernelArgument = std::variant<const Buffer*, std::int32_t, std::int64_t, float, Scalar, std::span<const float>,
                                    std::span<const std::int32_t>, std::span<const std::byte>, const TensorMap*>;

// A number of each dimension; those that are not given are 1.
struct Dimensions {
  std::int64_t x = 1, y = 1, z = 1;
  constexpr std::int64_t operator[](std::size_t d) const { return d == 0 ? x : d == 1 ? y : z; }
};

// Work items in all and per group; global is a multiple of local.
struct Grid {
  Dimensions global, local;
};

struct LaunchOptions {
  Dimensions cluster = {};  // groups that share their local memory; refused where a device cannot
  bool overlaps = false;    // may begin before the step before has ended, where the device can: its text waits
  bool meets = false;  // all groups are on the device at once, and may wait for each other; refused where it cannot
  std::int64_t local_memory_bytes = 0;  // of a group, besides what its text declares; refused where a device cannot
};

// Keeps buffers and programs alive as long as it lasts. Made, filled and cleared by one thread at a time; while a queue
// runs it, it does not change. Appending allocates nothing where it has held as much before.
class Sequence {
 public:
  static constexpr std::size_t most_arguments = 64, most_tensor_maps = 8;  // of a launch

  // Where the bytes of an argument begin, and which tensor map it is.
  struct Bytes {
    std::size_t begin = 0;
  };
  struct Map {
    std::size_t index = 0;
  };
  struct Argument {
    std::variant<std::shared_ptr<const Buffer>, Scalar, Bytes, Map> value;
    std::size_t bytes = 0;
  };
  struct Launch {
    std::shared_ptr<const Program> program;
    const char* kernel;  // a literal
    Grid grid;
    LaunchOptions options;
    std::size_t first_argument, arguments;
    bool is_empty() const { return grid.global.x == 0 || grid.global.y == 0 || grid.global.z == 0; }
  };
  struct Copy {
    std::shared_ptr<const Buffer> to, from;
    std::int64_t to_offset_bytes, from_offset_bytes, bytes;
  };
  struct Fill {
    std::shared_ptr<const Buffer> buffer;
    std::int64_t offset_bytes, bytes;
    std::uint8_t value;
  };
  struct Native {
    NativeCall call;
    bool is_constant;
  };
  struct Call {
    HostTask task;
    std::size_t first_scalar, scalars;
  };
  using Step = std::variant<Launch, Call, Copy, Fill, Native>;

  // GPU kinds only. `kernel` must outlive the sequence: a literal.
  void launch(const std::shared_ptr<const Program>& program, const char* kernel, const Grid& grid,
              std::span<const KernelArgument> arguments, const LaunchOptions& options = {});
  // The CPU only.
  void call(HostTask task, std::span<const Scalar> scalars = {});
  // Both of the device; ranges of one size that do not overlap.
  void copy(const MemoryRange& to, const MemoryRange& from);
  // Sets every byte.
  void fill(const MemoryRange& range, std::uint8_t value);
  // GPU kinds only. On CUDA its context is current during the call. It must not use the queue that runs it, and not
  // wait for it. A constant one submits the same work each time: a recording may keep that work, and not call again.
  void call_native(NativeCall call, bool is_constant = false);

  std::span<const Step> steps() const { return steps_; }
  std::span<const Argument> arguments_of(const Launch& launch) const {
    return std::span(arguments_).subspan(launch.first_argument, launch.arguments);
  }
  const std::byte* bytes_of(Bytes bytes) const { return bytes_.data() + bytes.begin; }
  const TensorMap& map_of(Map map) const { return maps_[map.index].map; }
  // A launch or a call has an argument that is a changing scalar.
  bool changes() const { return changes_; }
  // Of all calls.
  std::span<const Scalar> scalars() const { return scalars_; }
  bool is_empty() const { return steps_.empty(); }
  void clear();
  // Room for so much, so that as much is appended without an allocation.
  void reserve(std::size_t steps, std::size_t arguments, std::size_t bytes);

 private:
  struct HeldMap {
    TensorMap map;
    std::shared_ptr<const Buffer> buffer;
  };

  Argument held(const char* kernel, const KernelArgument& argument);
  Argument held_bytes(const void* data, std::size_t bytes);

  std::vector<Step> steps_;
  std::vector<Argument> arguments_;
  std::vector<std::byte> bytes_;  // of arguments that are numbers or structs, each at a multiple of 16
  std::vector<HeldMap> maps_;
  std::vector<Scalar> scalars_;
  bool changes_ = false;
};

// Of queues of GPUs, where a sequence has a host function.
inline constexpr const char* foreign_host_task =
    "work of the device cpu was submitted to a queue of another device; make one of its context";

// For errors: "columns", or "columns and 2 more steps".
std::string describe(const Sequence& sequence);

}  // namespace omniconv::devices
