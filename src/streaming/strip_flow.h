// Strips on their way: read, filtered and written at the same time, several on the device at once.
#pragma once

#include <memory>
#include <vector>

#include "streaming/strip_slots.h"

namespace omniconv {

namespace devices {
class HostMemory;
}

// Where strips come from and where they go. Each function is called for one strip after the other, in order, and from
// one thread; the threads of different functions are different ones.
class StripEnds {
 public:
  virtual ~StripEnds() = default;
  // The strip's input rows, packed: put into `staging`, or wherever they lie already.
  virtual const std::byte* read(const Strip& strip, std::byte* staging) = 0;
  // Where its output rows shall go, packed: `staging`, unless they have a place.
  virtual std::byte* place(const Strip& strip, std::byte* staging) = 0;
  // After it was filtered, while its input rows are still there.
  virtual void complete(const Strip& strip, const std::byte* input, std::byte* output) = 0;
  virtual void write(const Strip& strip, const std::byte* output) = 0;
};

// Memory of the host that goes round between the stages: a strip being read (or written) beside those on the device.
class StripStaging {
 public:
  // Without memory: ends that have their own.
  explicit StripStaging(const StripLayout& layout);
  // Page-locked where the device has such memory to give, else ordinary.
  StripStaging(const Context& context, const StripLayout& layout);

  // How many inputs, and how many outputs.
  static int count(const StripLayout& layout);
  bool is_page_locked() const { return page_locked_; }
  const std::vector<std::byte*>& inputs() const { return inputs_; }
  const std::vector<std::byte*>& outputs() const { return outputs_; }

 private:
  std::byte* allocate(devices::Device& device, std::int64_t bytes);

  std::vector<std::shared_ptr<devices::HostMemory>> memory_;
  std::vector<std::byte*> inputs_, outputs_;
  bool page_locked_ = false;
};

// What stages took, each; they overlap.
struct FlowSeconds {
  double read = 0, compute = 0, write = 0;  // compute: while at least one strip was with the device
};

// All strips of an image. The first error of any stage stops all of them, and is thrown once nothing is under way.
FlowSeconds run_strips(const StripLayout& layout, StripSlots& slots, const StripStaging& staging, StripEnds& ends);

}  // namespace omniconv
