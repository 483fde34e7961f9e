// Sequences and recordings on the CPU.
#include <gtest/gtest.h>

#include <future>
#include <span>
#include <vector>

#include "../error_testing.h"
#include "devices/cpu/cpu_device.h"
#include "omniconv/error.h"
#include "recording_device.h"

namespace omniconv {
namespace {

using devices::HostTask;

class CpuSequence : public testing::Test {
 protected:
  const Context context{{.device = "cpu", .threads = 2}};
  Queue queue = context.make_queue();
};

TEST_F(CpuSequence, RunsInOrderAsOneSubmission) {
  std::vector<std::uint8_t> memory(3 << 20, 1);
  const Buffer buffer = context.borrow(std::span(memory));
  std::vector<int> seen;
  Sequence sequence = context.make_sequence();
  sequence.impl()->fill({*buffer.impl(), 0, 2 << 20}, 5);
  sequence.impl()->call(HostTask([&] { seen.push_back(memory[(2 << 20) - 1] + memory[2 << 20]); }));
  sequence.impl()->copy({*buffer.impl(), 2 << 20, 1 << 20}, {*buffer.impl(), 0, 1 << 20});
  sequence.impl()->call(HostTask([&] { seen.push_back(memory[2 << 20]); }));
  Event event = queue.submit(std::move(sequence));
  event.wait();
  EXPECT_EQ(seen, (std::vector<int>{6, 5}));
  EXPECT_GT(event.seconds(), 0);
}

TEST_F(CpuSequence, FillsAndCopiesKeepToTheirParts) {
  std::vector<std::uint8_t> memory(100, 1);
  const Buffer buffer = context.borrow(std::span(memory));
  Sequence sequence = context.make_sequence();
  sequence.impl()->fill({*buffer.impl(), 30, 20}, 5);
  sequence.impl()->copy({*buffer.impl(), 70, 15}, {*buffer.impl(), 40, 15});
  queue.submit(std::move(sequence)).wait();
  for (std::size_t i = 0; i < memory.size(); ++i)
    EXPECT_EQ(memory[i], (i >= 30 && i < 50) || (i >= 70 && i < 80) ? 5 : 1) << i;
}

TEST_F(CpuSequence, CallsAreGivenTheScalarsOfTheirSubmission) {
  std::promise<void> begin;
  devices::submit(*queue.impl(), HostTask([begun = begin.get_future().share()] { begun.wait(); }));
  std::vector<double> given;
  Scalar scalar = Scalar::changing(2);
  const auto append_call = [&](Sequence& to) {
    to.impl()->call(HostTask([&given](std::span<const double> values) { given.push_back(values[0]); }),
                    std::span(&scalar, 1));
  };
  Sequence recorded = context.make_sequence();
  append_call(recorded);
  const Recording recording = context.record(std::move(recorded));
  for (const double value : {2.0, 8.0}) {  // none of them runs before all are submitted
    scalar.set(value);
    Sequence sequence = context.make_sequence();
    append_call(sequence);
    queue.submit(std::move(sequence));
    recording.replay(queue);
  }
  scalar.set(-1);
  begin.set_value();
  queue.finish();
  EXPECT_EQ(given, (std::vector<double>{2, 2, 8, 8}));
}

TEST_F(CpuSequence, RecordingsReadChangingScalarsAtEachReplay) {
  double y = 0;
  Scalar addend = Scalar::changing(2);
  Sequence sequence = context.make_sequence();
  for (int i = 0; i < 10; ++i) {
    sequence.impl()->call(HostTask([&y, addend] { y += addend.value(); }));
    sequence.impl()->call(HostTask([&y] { y *= 0.5; }));
    sequence.impl()->call(HostTask([&y] { y += 1; }));
  }
  const Recording recording = context.record(std::move(sequence));
  EXPECT_EQ(y, 0);
  double expected = 0;
  const auto ten_rounds = [&](double value) {
    for (int i = 0; i < 10; ++i) expected = (expected + value) * 0.5 + 1;
  };
  for (const double value : {2.0, 2.0, 8.0, -4.0}) {
    addend.set(value);
    recording.replay(queue).wait();
    ten_rounds(value);
    EXPECT_EQ(y, expected);
  }
  Event last;
  for (int i = 0; i < 100; ++i) {
    last = recording.replay(queue);
    ten_rounds(-4);
  }
  last.wait();
  EXPECT_EQ(y, expected);
}

// Of what a host function holds, and of a buffer.
TEST_F(CpuSequence, RecordingsKeepAliveWhatTheyUse) {
  const auto count = std::make_shared<int>(0);
  Buffer buffer = context.allocate(16);
  const std::weak_ptr<devices::Buffer> watched = buffer.impl();
  Sequence sequence = context.make_sequence();
  sequence.impl()->call(HostTask([count] { ++*count; }));
  sequence.impl()->fill({*buffer.impl(), 0, 16}, 1);
  Recording recording = context.record(std::move(sequence));
  buffer = Buffer();
  Event event = recording.replay(queue);
  recording.replay(queue).wait();
  EXPECT_EQ(*count, 2);
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(count.use_count(), 2);
  recording.replay(queue);
  recording = Recording();
  queue.finish();
  EXPECT_EQ(*count, 3);
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(count.use_count(), 1);
}

TEST_F(CpuSequence, SubmittedWorkIsLetGoOfBeforeItsEvent) {
  const auto held = std::make_shared<int>(0);
  for (int i = 0; i < 200; ++i) {
    devices::submit(*queue.impl(), HostTask([held] {})).wait();
    ASSERT_EQ(held.use_count(), 1) << i;
  }
}

TEST_F(CpuSequence, AnErrorEndsTheSequence) {
  int ran = 0;
  Sequence sequence = context.make_sequence();
  sequence.impl()->call(HostTask([&] { ++ran; }));
  sequence.impl()->call(HostTask([] { throw environment_error("broken"); }));
  sequence.impl()->call(HostTask([&] { ran += 10; }));
  const Recording recording = context.record(std::move(sequence));
  EXPECT_EQ(error_of([&] { recording.replay(queue).wait(); }, ErrorKind::environment), "broken");
  EXPECT_EQ(ran, 1);
  Queue other = context.make_queue();
  EXPECT_EQ(error_of([&] { recording.replay(other).wait(); }, ErrorKind::environment), "broken");
  EXPECT_EQ(ran, 2);
}

TEST_F(CpuSequence, TimesAreKeptAsLongAsTheirEvents) {
  std::vector<Event> events;
  for (int i = 0; i < 300; ++i) events.push_back(devices::submit(*queue.impl(), HostTask([] {})));
  events.back().wait();
  for (const Event& event : events) EXPECT_GE(event.seconds(), 0);
  Event whole = queue.impl()->span(std::move(events.front()), std::move(events.back()));
  EXPECT_GT(whole.seconds(), 0);
  Queue untimed = context.make_queue({.timing = false});
  Event event = devices::submit(*untimed.impl(), HostTask([] {}));
  event.wait();
  EXPECT_EQ(error_of([&] { event.seconds(); }),
            "the event has no times: its queue of cpu was made without; make it with QueueOptions{.timing = true}");
}

// They are used again.
TEST_F(CpuSequence, ThoseThatAreClearedHoldNothing) {
  const Scalar scalar = Scalar::changing(1);
  Sequence sequence = context.make_sequence();
  devices::Sequence& held = *sequence.impl();
  held.call(HostTask([](std::span<const double>) {}), std::span(&scalar, 1));
  EXPECT_TRUE(held.changes());
  held.clear();
  EXPECT_TRUE(held.is_empty());
  EXPECT_TRUE(held.scalars().empty());
  EXPECT_FALSE(held.changes());
}

TEST_F(CpuSequence, WhatCannotBeIsRefused) {
  Sequence sequence = context.make_sequence();
  const Sequence moved = std::move(sequence);
  EXPECT_EQ(error_of([&] { context.record(std::move(sequence)); }),
            "record: the sequence was moved from, or never made; make one with Context::make_sequence");
  EXPECT_EQ(error_of([&] { queue.submit(context.make_sequence()); }),
            "an empty sequence was submitted to a queue of cpu: append a step to it");
  Sequence native = context.make_sequence();
  native.impl()->call_native(devices::NativeCall([](void*) {}));
  EXPECT_EQ(error_of([&] { context.record(std::move(native)); }),
            "a native call was submitted to a queue of cpu, which has no stream: submit a host function");
  const Buffer elsewhere =
      Context(std::make_shared<devices::RecordingDevice>(devices::DeviceKind::opencl)).allocate(64);
  const Buffer here = context.allocate(64);
  Sequence fill = context.make_sequence(), copy = context.make_sequence();
  fill.impl()->fill({*elsewhere.impl(), 0, 64}, 1);
  copy.impl()->copy({*here.impl(), 0, 64}, {*elsewhere.impl(), 0, 64});
  const std::string foreign =
      " by the queue of cpu: the buffer is memory of another device; take a queue of that device";
  EXPECT_EQ(error_of([&] { queue.submit(std::move(fill)); }), "a fill" + foreign);
  EXPECT_EQ(error_of([&] { queue.submit(std::move(copy)); }), "a copy" + foreign);
  Recording recording;
  EXPECT_EQ(error_of([&] { recording.replay(queue); }),
            "replay: the recording was moved from, or never made; make one with Context::record");
}

}  // namespace
}  // namespace omniconv
