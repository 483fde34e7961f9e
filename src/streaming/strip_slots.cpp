#include "streaming/strip_slots.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/checked.h"
#include "devices/device.h"
#include "omniconv/error.h"

namespace omniconv {

bool filters_in_place(const Context& context) {
  return context.impl()->kind() == devices::DeviceKind::cpu;
}

void fit_to_limit(std::int64_t limit_bytes, StripLayout& layout) {
  while (layout.device_bytes() > limit_bytes)
    if (!layout.shrink())
      throw bad_input(
          fmt::format("a limit of {} bytes of device memory (--device-memory) is too small: {} take {} bytes",
                      limit_bytes, layout.describe(), layout.device_bytes()));
}

void fit_to_device(const Context& context, StripLayout& layout) {
  const DeviceInfo& info = context.device();
  const std::int64_t free_bytes = context.impl()->free_bytes();
  while (layout.device_bytes() > free_bytes || layout.largest_buffer_bytes() > info.max_buffer_bytes)
    if (!layout.shrink())
      throw out_of_memory(fmt::format(
          "device {} has no room for one strip: {} take {} bytes, and {} of its {} bytes are free, {} at "
          "most in one buffer; end what else uses it, or use the device cpu",
          info.id, layout.describe(), layout.device_bytes(), free_bytes, info.memory_bytes, info.max_buffer_bytes));
}

StripSlots::StripSlots(const Context& context, const Filter2dPlan& plan, StripLayout& layout)
    : context_(context), plan_(plan), layout_(layout), in_place_(filters_in_place(context)) {
  for (;;) {
    try {
      while (static_cast<int>(slots_.size()) < layout.slots()) slots_.push_back(make_slot());
      return;
    } catch (const Error& error) {
      slots_.clear();
      if (error.kind() != ErrorKind::out_of_memory) throw;
      if (in_place_ || !layout.shrink())
        throw out_of_memory(fmt::format("device {} has no room for one strip ({}, {} bytes in all): {}",
                                        context.device().id, layout.describe(), layout.device_bytes(), error.what()));
    }
  }
}

StripSlots::~StripSlots() {
  drain();
}

StripSlots::Slot StripSlots::make_slot() const {
  Slot slot;
  slot.queue = context_.make_queue();
  slot.workspace = context_.allocate(std::max<std::int64_t>(layout_.workspace_bytes(), 1));
  if (in_place_) return slot;
  slot.input = context_.allocate(layout_.input_bytes());
  slot.output = context_.allocate(layout_.output_bytes());
  // Some drivers take the memory at its first use: it shall be refused here, where strips can still be made smaller.
  const std::byte zero{0};
  for (const Buffer* const buffer : {&slot.workspace, &slot.input, &slot.output})
    slot.queue.upload(*buffer, 0, &zero, std::min<std::int64_t>(buffer->bytes(), 1)).wait();
  return slot;
}

void StripSlots::submit(int index, const Strip& strip, const std::byte* input, std::byte* output) {
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  const std::int64_t input_bytes = strip.input_rows() * layout_.input_row_bytes();
  Filter2dRun run{.input = slot.input, .output = slot.output, .workspace = slot.workspace};
  run.input_first = strip.input.first;
  run.input_rows = strip.input_rows();
  run.output_first = strip.output_first;
  run.output_rows = strip.output_rows;
  if (in_place_) {
    run.input = context_.borrow(const_cast<std::byte*>(input), input_bytes);  // which nobody writes
    run.output = context_.borrow(output, strip.output_rows * layout_.output_row_bytes());
    slot.filtered = plan_.run(slot.queue, run);
    return;
  }
  slot.uploaded = slot.queue.upload(slot.input, 0, input, input_bytes);
  slot.filtered = plan_.run(slot.queue, run);
  if (output) download(index, strip, output);
}

void StripSlots::download(int index, const Strip& strip, std::byte* output) {
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  slot.downloaded = slot.queue.download(output, slot.output, 0, strip.output_rows * layout_.output_row_bytes());
}

void StripSlots::wait(int index) {
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  if (in_place_) {
    slot.filtered.wait();
  } else {
    slot.downloaded.wait();  // and thereby for all before it
    count(std::move(slot.uploaded), last_upload_, seconds_.upload);
    count(std::move(slot.downloaded), last_download_, seconds_.download);
  }
  count(std::move(slot.filtered), last_filter_, seconds_.kernels);
}

void StripSlots::count(Event event, Event& before, double& seconds) {
  const double added = event.seconds_after(before);
  seconds += added;
  if (added > 0) before = std::move(event);
}

void StripSlots::drain() noexcept {
  for (Slot& slot : slots_) {
    try {
      slot.queue.finish();
    } catch (const std::exception&) {
    }
  }
}

}  // namespace omniconv
