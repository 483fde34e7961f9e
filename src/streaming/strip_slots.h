// Strips on a device: several at a time, each in a slot with a queue, buffers and a workspace of its own, so that
// copies in, kernels and copies out of different strips overlap. One queue keeps the order within a strip.
#pragma once

#include <vector>

#include "streaming/strips.h"

namespace omniconv {

// Shrinks the layout until its strips take at most `limit_bytes` of a device's memory; throws bad_input where the least
// takes more.
void fit_to_limit(std::int64_t limit_bytes, StripLayout& layout);
// Shrinks the layout to the device's free memory and to its largest buffer; throws out_of_memory where the least has no
// room. A user's own limits come before, so that an answer to them depends on no machine.
void fit_to_device(const Context& context, StripLayout& layout);

// Whether strips stay where they are: the CPU needs no copies.
bool filters_in_place(const Context& context);

// While at least one strip was being copied in, filtered, copied out.
struct DeviceSeconds {
  double upload = 0, kernels = 0, download = 0;
};

class StripSlots {
 public:
  // Takes the memory. Where the device lacks it the layout shrinks; throws out_of_memory where the least has no room,
  // too, and what else fails as it is.
  StripSlots(const Context& context, const Filter2dPlan& plan, StripLayout& layout);
  ~StripSlots();
  StripSlots(const StripSlots&) = delete;
  StripSlots& operator=(const StripSlots&) = delete;

  // Submits the copy in and the kernels, and with `output` the copy out, and returns. The memory must stay.
  void submit(int slot, const Strip& strip, const std::byte* input, std::byte* output);
  // Submits the copy out, where submit() was not told of it.
  void download(int slot, const Strip& strip, std::byte* output);
  // Waits for what was submitted; throws its first error.
  void wait(int slot);
  // Waits for everything, whatever became of it.
  void drain() noexcept;

  const DeviceSeconds& seconds() const { return seconds_; }
  bool in_place() const { return in_place_; }

 private:
  struct Slot {
    Queue queue;
    Buffer input, output, workspace;
    Event uploaded, filtered, downloaded;
  };
  Slot make_slot() const;
  // Adds what of the event's time was after the one counted before, which it replaces.
  static void count(Event event, Event& before, double& seconds);

  const Context& context_;
  const Filter2dPlan& plan_;
  const StripLayout& layout_;
  const bool in_place_;
  std::vector<Slot> slots_;
  DeviceSeconds seconds_;
  Event last_upload_, last_filter_, last_download_;
};

}  // namespace omniconv
