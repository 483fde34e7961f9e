// Sequences and recordings on GPU devices of the program's kind, with kernels that really run.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "gpu_testing.h"

namespace omniconv {
namespace {

using devices::KernelArgument;
using devices::MemoryRange;

constexpr const char* sequence_text = R"(
typedef struct {
  int first, count;
  float factor;
} Part;
KERNEL void add(GLOBAL float* values, const float addend) { values[GLOBAL_ID_X] += addend; }
KERNEL void multiply(GLOBAL float* values, const float factor) { values[GLOBAL_ID_X] *= factor; }
KERNEL void scale_part(GLOBAL float* values, const Part part) {
  const long i = GLOBAL_ID_X;
  if (i >= part.first && i < part.first + part.count) values[i] *= part.factor;
}
KERNEL void number(GLOBAL int* values) {
  values[(GLOBAL_ID_Z * 2 + GLOBAL_ID_Y) * 4 + GLOBAL_ID_X] =
      (int)(100 * (GROUP_ID_Z * 3 + LOCAL_ID_Z) + 10 * (GROUP_ID_Y * 2 + LOCAL_ID_Y) + GROUP_ID_X * 2 + LOCAL_ID_X);
}
)";

class GpuSequence : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped()) return;
    context = Context(device);
    queue = context.make_queue();
    program = device->build(sequence_text, {});
  }
  void append(Sequence& sequence, const char* kernel, const Buffer& buffer, const Scalar& scalar) const {
    const KernelArgument arguments[] = {buffer.impl().get(), scalar};
    const std::int64_t count = buffer.bytes() / 4;
    sequence.impl()->launch(program, kernel, {{count}, {std::min<std::int64_t>(count, 4)}}, arguments);
  }
  Buffer buffer_of(const std::vector<float>& values) { return Buffer(filled(values)); }
  std::vector<float> content(const Buffer& buffer) {
    std::vector<float> values(static_cast<std::size_t>(buffer.bytes() / 4));
    queue.download(values.data(), buffer, 0, buffer.bytes()).wait();
    return values;
  }
  // Ten rounds of y = (y + addend) * factor + 1.
  Recording ten_rounds(const Buffer& y, const Scalar& addend, double factor) const {
    Sequence sequence = context.make_sequence();
    for (int i = 0; i < 10; ++i) {
      append(sequence, "add", y, addend);
      append(sequence, "multiply", y, factor);
      append(sequence, "add", y, 1);
    }
    return context.record(std::move(sequence));
  }
  static float after_ten_rounds(float y, float addend, float factor) {
    for (int i = 0; i < 10; ++i) y = (y + addend) * factor + 1;
    return y;
  }

  Context context{nullptr};
  Queue queue;
  std::shared_ptr<devices::Program> program;
};

TEST_F(GpuSequence, RunsInOrderAsOneSubmission) {
  for (const bool timing : {true, false}) {
    Queue own = context.make_queue({.timing = timing});
    const Buffer x = buffer_of({1, 2, 3, 4}), y = buffer_of({0, 0, 0, 0});
    Sequence sequence = context.make_sequence();
    append(sequence, "add", x, 1);
    append(sequence, "multiply", x, 3);
    sequence.impl()->copy({*y.impl(), 8, 8}, {*x.impl(), 4, 8});
    sequence.impl()->fill({*x.impl(), 0, 4}, 0);
    append(sequence, "add", y, 1);
    Event event = own.submit(std::move(sequence));
    event.wait();
    EXPECT_EQ(content(x), (std::vector<float>{0, 9, 12, 15}));
    EXPECT_EQ(content(y), (std::vector<float>{1, 1, 10, 13}));
    if (timing)
      EXPECT_GT(event.seconds(), 0);
    else
      EXPECT_HAS(error_of([&] { event.seconds(); }, ErrorKind::bad_input), "QueueOptions{.timing = true}");
  }
}

// A hundred launches take longer than the shortest of five that were submitted alone, fifty times as long at least.
TEST_F(GpuSequence, TimesAreOfAllSteps) {
  const Buffer x = buffer_of(std::vector<float>(1 << 20));
  const auto seconds = [&](int launches) {
    Sequence sequence = context.make_sequence();
    for (int i = 0; i < launches; ++i) append(sequence, "add", x, 1);
    Event event = queue.submit(std::move(sequence));
    event.wait();
    return event.seconds();
  };
  double one = seconds(1);
  for (int i = 0; i < 4; ++i) one = std::min(one, seconds(1));
  EXPECT_GT(seconds(100), 50 * one);
}

TEST_F(GpuSequence, CopiesFillsAndNothingAloneAreSubmissions) {
  const Buffer x = buffer_of({1, 2, 3, 4});
  Sequence fill = context.make_sequence();
  fill.impl()->fill({*x.impl(), 4, 8}, 0);
  Event filled_event = queue.submit(std::move(fill));
  Sequence nothing = context.make_sequence();
  nothing.impl()->fill({*x.impl(), 16, 0}, 1);
  const KernelArgument arguments[] = {x.impl().get(), 1.0f};
  nothing.impl()->launch(program, "add", {{0}, {4}}, arguments);
  Event nothing_event = queue.submit(std::move(nothing));
  nothing_event.wait();
  EXPECT_GE(filled_event.seconds(), 0);
  EXPECT_GE(nothing_event.seconds(), 0);
  EXPECT_EQ(content(x), (std::vector<float>{1, 0, 0, 4}));
}

TEST_F(GpuSequence, GridsHaveThreeDimensions) {
  const Buffer values = context.allocate(4 * 2 * 6 * 4);
  Sequence sequence = context.make_sequence();
  const KernelArgument arguments[] = {values.impl().get()};
  sequence.impl()->launch(program, "number", {{4, 2, 6}, {2, 2, 3}}, arguments);
  queue.submit(std::move(sequence));
  std::vector<std::int32_t> got(48), expected;
  queue.download(got.data(), values, 0, values.bytes()).wait();
  for (int z = 0; z < 6; ++z)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 4; ++x) expected.push_back(100 * z + 10 * y + x);
  EXPECT_EQ(got, expected);
}

TEST_F(GpuSequence, KernelsOfOneNameAreOfTheirPrograms) {
  const auto other = device->build(
      "KERNEL void add(GLOBAL float* values, const float addend) { values[GLOBAL_ID_X] -= addend; }\n", {});
  const Buffer x = buffer_of({1, 2, 3, 4});
  Sequence sequence = context.make_sequence();
  append(sequence, "add", x, 10);
  const KernelArgument arguments[] = {x.impl().get(), 1.0f};
  sequence.impl()->launch(other, "add", {{4}, {4}}, arguments);
  queue.submit(std::move(sequence)).wait();
  EXPECT_EQ(content(x), (std::vector<float>{10, 11, 12, 13}));
}

TEST_F(GpuSequence, StructsAreArguments) {
  struct Part {
    std::int32_t first, count;
    float factor;
  };
  const Part part{1, 2, 10};
  const Buffer x = buffer_of({1, 2, 3, 4});
  Sequence sequence = context.make_sequence();
  const KernelArgument arguments[] = {x.impl().get(), std::as_bytes(std::span(&part, 1))};
  sequence.impl()->launch(program, "scale_part", {{4}, {4}}, arguments);
  queue.submit(std::move(sequence));
  EXPECT_EQ(content(x), (std::vector<float>{1, 20, 30, 4}));
}

TEST_F(GpuSequence, RecordingsReadChangingScalarsAtEachReplay) {
  const Buffer y = buffer_of({0, 1, 2, 3});
  Scalar addend = Scalar::changing(2);
  const Recording recording = ten_rounds(y, addend, 0.5);
  EXPECT_EQ(content(y), (std::vector<float>{0, 1, 2, 3}));  // nothing has run yet
  std::vector<float> expected = {0, 1, 2, 3};
  for (const float value : {2.0f, 2.0f, 8.0f, -4.0f}) {
    addend.set(value);
    recording.replay(queue).wait();
    for (float& element : expected) element = after_ten_rounds(element, value, 0.5f);
    EXPECT_EQ(content(y), expected) << value;
  }
  // A copy of the scalar is the same scalar; another queue may replay, and several replays may be under way.
  Scalar same = addend;
  same.set(16);
  Queue other = context.make_queue({.timing = false});
  Event last;
  for (int i = 0; i < 100; ++i) {
    last = recording.replay(other);
    for (float& element : expected) element = after_ten_rounds(element, 16, 0.5f);
  }
  last.wait();
  EXPECT_EQ(content(y), expected);
}

TEST_F(GpuSequence, RecordingsKeepAliveWhatTheyUse) {
  Buffer y = buffer_of({0, 1, 2, 3});
  const Buffer kept = y;
  const std::weak_ptr<devices::Buffer> other = [&] {
    const Buffer hidden = buffer_of({5, 6, 7, 8});
    Sequence sequence = context.make_sequence();
    append(sequence, "add", hidden, 1);
    sequence.impl()->copy({*kept.impl(), 0, 16}, {*hidden.impl(), 0, 16});
    Recording recording = context.record(std::move(sequence));
    program.reset();
    for (int i = 0; i < 3; ++i) recording.replay(queue);
    return std::weak_ptr(hidden.impl());
  }();
  EXPECT_EQ(content(kept), (std::vector<float>{8, 9, 10, 11}));
  queue.finish();
  EXPECT_TRUE(other.expired());
}

TEST_F(GpuSequence, RecordingsAreOfOneDevice) {
  const Recording recording = ten_rounds(buffer_of({0, 0, 0, 0}), 1, 1);
  const Context cpu({.device = "cpu"});
  Queue cpus = cpu.make_queue();
  EXPECT_HAS(error_of([&] { recording.replay(cpus); }, ErrorKind::bad_input),
             "a recording of device " + device->info().id + " was replayed on a queue of device cpu");
  Sequence of_cpu = cpu.make_sequence();
  of_cpu.impl()->call(devices::HostTask([] {}));
  EXPECT_HAS(error_of([&] { context.record(std::move(of_cpu)); }, ErrorKind::bad_input),
             "the sequence was made for device cpu, and the context is of device " + device->info().id);
  Sequence with_task = context.make_sequence();
  with_task.impl()->call(devices::HostTask([] {}));
  EXPECT_HAS(error_of([&] { queue.submit(std::move(with_task)); }, ErrorKind::bad_input), "work of the device cpu");
  if (tests_cuda()) return;  // whose contexts share memory
  const Context again(tested_backend().open("", {}));
  Queue own = again.make_queue();
  EXPECT_HAS(error_of([&] { recording.replay(own); }, ErrorKind::bad_input),
             "on a queue of another context of device " + device->info().id);
}

TEST_F(GpuSequence, NativeCallsAreGivenTheQueue) {
  const Buffer y = buffer_of({1, 1, 1, 1});
  std::vector<void*> given;
  const auto call = [&](Sequence& sequence) {
    sequence.impl()->call_native(devices::NativeCall([&given](void* native) { given.push_back(native); }));
  };
  Sequence sequence = context.make_sequence();
  call(sequence);
  append(sequence, "add", y, 1);
  call(sequence);
  Event event = queue.submit(std::move(sequence));
  event.wait();
  EXPECT_GE(event.seconds(), 0);
  ASSERT_EQ(given.size(), 2u);
  EXPECT_NE(given[0], nullptr);
  EXPECT_EQ(given[0], given[1]);
  EXPECT_EQ(content(y), (std::vector<float>{2, 2, 2, 2}));
}

TEST_F(GpuSequence, RefusesWhatCannotBe) {
  const Buffer x = buffer_of({1, 2, 3, 4}), foreign = Context({.device = "cpu"}).allocate(16);
  const auto refused = [&](const auto& fill) {
    Sequence sequence = context.make_sequence();
    return error_of(
        [&] {
          fill(*sequence.impl());
          queue.submit(std::move(sequence));
        },
        ErrorKind::bad_input);
  };
  using Steps = devices::Sequence;
  EXPECT_HAS(refused([&](Steps& s) { s.copy({*x.impl(), 0, 8}, {*x.impl(), 4, 8}); }), "overlap those at its offset 0");
  EXPECT_HAS(refused([&](Steps& s) {
               s.copy({*x.impl(), 0, 8}, {*x.impl(), 8, 4});
             }),
             "a copy of 4 bytes to a range of 8 bytes");
  EXPECT_HAS(refused([&](Steps& s) {
               s.copy({*x.impl(), 0, 8}, {*foreign.impl(), 0, 8});
             }),
             "a copy: a buffer is none of the queue's device");
  EXPECT_HAS(refused([&](Steps& s) { s.fill({*x.impl(), 8, 9}, 0); }), "9 bytes at offset 8 do not fit");
  EXPECT_HAS(refused([&](Steps& s) { s.fill({*foreign.impl(), 8, 8}, 0); }), "a fill: a buffer is none of");
  const KernelArgument arguments[] = {x.impl().get(), 1.0f};
  EXPECT_HAS(refused([&](Steps& s) { s.launch(nullptr, "add", {{4}, {4}}, arguments); }), "the program is missing");
  if (tests_cuda()) return;
  EXPECT_HAS(refused([&](Steps& s) {
               s.launch(program, "add", {{4}, {2}}, arguments, {.cluster = {2}});
             }),
             "knows no clusters of groups");
  EXPECT_HAS(refused([&](Steps& s) {
               s.launch(program, "add", {{4}, {2}}, arguments, {.meets = true});
             }),
             "may run some groups after others, which cannot meet");
  EXPECT_HAS(refused([&](Steps& s) {
               s.launch(program, "add", {{4}, {4}}, arguments, {.local_memory_bytes = 64});
             }),
             "and not 64 bytes more");
  devices::TensorMap map;
  map.buffer = x.impl().get();
  map.rank = 1;
  map.extents = {4};
  map.box = {4};
  const KernelArgument with_map[] = {&map};
  EXPECT_HAS(refused([&](Steps& s) { s.launch(program, "add", {{4}, {4}}, with_map); }), "knows no tensor maps");
  // What overlaps the launch before only may.
  const std::shared_ptr<devices::Sequence> sequence = queue.impl()->take_sequence();
  sequence->launch(program, "add", {{4}, {4}}, arguments, {.overlaps = true});
  queue.impl()->submit(sequence);
  EXPECT_EQ(content(x), (std::vector<float>{2, 3, 4, 5}));
}

}  // namespace
}  // namespace omniconv
