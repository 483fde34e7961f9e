#include "streaming/strip_flow.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "devices/device.h"
#include "omniconv/error.h"
#include "streaming/channel.h"

namespace omniconv {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

class Flow {
 public:
  Flow(const StripLayout& layout, StripSlots& slots, const StripStaging& staging, StripEnds& ends)
      : layout_(layout), slots_(slots), early_(slots.in_place() || staging.is_page_locked()), ends_(ends) {
    for (std::byte* const memory : staging.inputs()) free_inputs_.put(memory);
    for (std::byte* const memory : staging.outputs()) free_outputs_.put(memory);
    for (int slot = 0; slot < layout.slots(); ++slot) free_slots_.put(slot);
  }

  FlowSeconds run() {
    {
      std::jthread reading, completing, writing;
      guard([&] {
        reading = std::jthread([this] { guard([this] { read(); }); });
        completing = std::jthread([this] { guard([this] { complete(); }); });
        writing = std::jthread([this] { guard([this] { write(); }); });
        submit();
      });
    }
    if (!error_) return seconds_;
    slots_.drain();  // what was submitted before the error still uses the strips' memory
    std::rethrow_exception(error_);
  }

 private:
  // A strip from stage to stage, with what it holds.
  struct Item {
    std::int64_t number = 0;
    std::byte *input_staging = nullptr, *output_staging = nullptr;
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    int slot = 0;
    Clock::time_point submitted = {};
  };

  // Closing the channels wakes whoever waits.
  template <typename Stage>
  void guard(const Stage& stage) {
    try {
      stage();
    } catch (...) {
      if (!stopping_.exchange(true)) error_ = std::current_exception();
    }
    if (!stopping_) return;
    free_inputs_.close(), free_outputs_.close(), free_slots_.close();
    read_.close(), submitted_.close(), completed_.close();
  }

  void read() {
    for (std::int64_t i = 0; i < layout_.strips().count() && !stopping_; ++i) {
      const auto staging = free_inputs_.take();
      if (!staging) return;
      const Clock::time_point start = Clock::now();
      const std::byte* const input = ends_.read(layout_.strips()[i], *staging);
      seconds_.read += seconds_between(start, Clock::now());
      read_.put({.number = i, .input_staging = *staging, .input = input});
    }
    read_.close();
  }

  void submit() {
    while (auto item = read_.take()) {
      const auto staging = free_outputs_.take();
      const auto slot = free_slots_.take();
      if (!staging || !slot || stopping_) return;
      const Strip strip = layout_.strips()[item->number];
      item->output_staging = *staging;
      item->output = ends_.place(strip, *staging);
      item->slot = *slot;
      item->submitted = Clock::now();
      slots_.submit(*slot, strip, item->input, early_ ? item->output : nullptr);
      submitted_.put(*item);
    }
    submitted_.close();
  }

  // Copies to memory that is not page-locked may only return when they are done: they are submitted here, where waiting
  // holds nobody up.
  void complete() {
    Clock::time_point last = Clock::now();
    while (const auto item = submitted_.take()) {
      if (stopping_) return;
      const Strip strip = layout_.strips()[item->number];
      if (!early_) slots_.download(item->slot, strip, item->output);
      slots_.wait(item->slot);
      free_slots_.put(item->slot);
      const Clock::time_point now = Clock::now();
      seconds_.compute += seconds_between(std::max(item->submitted, last), now);
      last = now;
      ends_.complete(strip, item->input, item->output);
      free_inputs_.put(item->input_staging);
      completed_.put(*item);
    }
    completed_.close();
  }

  void write() {
    while (const auto item = completed_.take()) {
      if (stopping_) return;
      const Clock::time_point start = Clock::now();
      ends_.write(layout_.strips()[item->number], item->output);
      seconds_.write += seconds_between(start, Clock::now());
      free_outputs_.put(item->output_staging);
    }
  }

  const StripLayout& layout_;
  StripSlots& slots_;
  const bool early_;
  StripEnds& ends_;
  Channel<std::byte*> free_inputs_, free_outputs_;
  Channel<int> free_slots_;
  Channel<Item> read_, submitted_, completed_;
  FlowSeconds seconds_;  // each of them by its own thread
  std::atomic<bool> stopping_ = false;
  std::exception_ptr error_;
};

}  // namespace

StripStaging::StripStaging(const StripLayout& layout)
    : inputs_(static_cast<std::size_t>(count(layout))), outputs_(inputs_.size()) {}

StripStaging::StripStaging(const Context& context, const StripLayout& layout) : page_locked_(true) {
  for (int i = 0; i < count(layout); ++i) {
    inputs_.push_back(allocate(*context.impl(), layout.input_bytes()));
    outputs_.push_back(allocate(*context.impl(), layout.output_bytes()));
  }
}

int StripStaging::count(const StripLayout& layout) {
  return static_cast<int>(std::min<std::int64_t>(std::max(layout.slots() + 1, 3), layout.strips().count()));
}

// The system may refuse to lock more pages; copies are slower then, and right all the same.
std::byte* StripStaging::allocate(devices::Device& device, std::int64_t bytes) {
  try {
    memory_.push_back(device.allocate_host(bytes));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::environment && error.kind() != ErrorKind::out_of_memory) throw;
    memory_.push_back(device.Device::allocate_host(bytes));
  }
  page_locked_ = page_locked_ && memory_.back()->is_page_locked();
  return memory_.back()->data();
}

FlowSeconds run_strips(const StripLayout& layout, StripSlots& slots, const StripStaging& staging, StripEnds& ends) {
  return Flow(layout, slots, staging, ends).run();
}

}  // namespace omniconv
