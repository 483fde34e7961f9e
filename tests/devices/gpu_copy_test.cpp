// Copies from buffer to buffer: of one device, of two contexts, of two devices, of two kinds.
#include <algorithm>
#include <numeric>

#include "gpu_testing.h"

namespace omniconv {
namespace {

class GpuCopy : public Gpu {
 protected:
  static Context another() { return Context(tested_backend().open("", {})); }
  static std::vector<std::uint8_t> numbers(std::int64_t bytes) {
    std::vector<std::uint8_t> values(static_cast<std::size_t>(bytes));
    unsigned seed = 7;
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
    return values;
  }
  static Buffer filled_with(const Context& context, const std::vector<std::uint8_t>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size());
    const Buffer buffer = context.allocate(bytes);
    context.make_queue().upload(buffer, 0, values.data(), bytes).wait();
    return buffer;
  }
  static std::vector<std::uint8_t> content(const Context& context, const Buffer& buffer) {
    std::vector<std::uint8_t> values(static_cast<std::size_t>(buffer.bytes()));
    context.make_queue().download(values.data(), buffer, 0, buffer.bytes()).wait();
    return values;
  }
  // Parts and wholes, by a queue of either side.
  static void check_both_ways(const Context& one, const Context& other, std::int64_t bytes) {
    const std::vector<std::uint8_t> values = numbers(bytes);
    for (const bool swapped : {false, true})
      for (const bool by_target : {false, true}) {
        const Context &from_context = swapped ? other : one, &to_context = swapped ? one : other;
        const Buffer from = filled_with(from_context, values);
        const Buffer to = filled_with(to_context, std::vector<std::uint8_t>(values.size(), 99));
        Queue queue = (by_target ? to_context : from_context).make_queue();
        queue.copy(to, bytes, from, bytes, 0).wait();
        Event part = queue.copy(to, 5, from, 2, bytes - 9);
        part.wait();
        EXPECT_GE(part.seconds(), 0);
        std::vector<std::uint8_t> expected(values.size(), 99);
        std::copy(values.begin() + 2, values.end() - 7, expected.begin() + 5);
        EXPECT_TRUE(content(to_context, to) == expected)
            << from_context.device().id << " to " << to_context.device().id;
        queue.copy(to, 0, from, 0, bytes);
        queue.finish();
        EXPECT_TRUE(content(to_context, to) == values) << from_context.device().id << " to " << to_context.device().id;
      }
  }
};

constexpr std::int64_t several_pieces = (std::int64_t{33} << 20) + 5;

TEST_F(GpuCopy, WithinADevice) {
  check_both_ways(Context(device), Context(device), 1000);
  // Parts of one buffer, and the order of the queue.
  const Context context(device);
  std::vector<std::uint8_t> values = numbers(16);
  const Buffer buffer = filled_with(context, values);
  Queue queue = context.make_queue();
  queue.copy(buffer, 8, buffer, 0, 4);
  queue.copy(buffer, 12, buffer, 8, 4).wait();
  for (const std::ptrdiff_t at : {8, 12}) std::copy(values.begin(), values.begin() + 4, values.begin() + at);
  EXPECT_EQ(content(context, buffer), values);
}

TEST_F(GpuCopy, BetweenContextsOfOneDevice) {
  check_both_ways(Context(device), another(), 1000);
  check_both_ways(Context(device), another(), several_pieces);
}

TEST_F(GpuCopy, FromAndToTheCpu) {
  check_both_ways(Context(device), Context({.device = "cpu"}), several_pieces);
}

TEST_F(GpuCopy, FromAndToBorrowedMemory) {
  alignas(4096) static std::uint8_t memory[4096];
  std::iota(std::begin(memory), std::end(memory), std::uint8_t{3});
  const std::vector<std::uint8_t> values(std::begin(memory), std::end(memory));
  const Context context(device), other = another();
  const Buffer borrowed = context.borrow(memory, sizeof memory);
  for (const Context& target : {context, other}) {
    const Buffer to = target.allocate(sizeof memory);
    context.make_queue().copy(to, 0, borrowed, 0, sizeof memory).wait();
    EXPECT_EQ(content(target, to), values);
  }
}

// The copy is submitted to a queue that knows nothing of the work it must follow.
TEST_F(GpuCopy, StartsAfterTheEvent) {
  const auto program = device->build(add_text, {});
  const Context context(device), other = another(), cpu({.device = "cpu"});
  for (const Context& target : {context, other, cpu}) {
    std::vector<float> values(1 << 20, 0.0f);
    const Buffer from(filled(values));
    const Buffer to = target.allocate(from.bytes());
    Queue source = context.make_queue(), queue = target.make_queue();
    Event last;
    const devices::KernelArgument arguments[] = {from.impl().get(), 1.0f};
    for (int i = 0; i < 30; ++i) last = source.impl()->launch(program, "add", {{1 << 20, 1}, {64, 1}}, arguments);
    queue.copy(to, 0, from, 0, from.bytes(), last);
    queue.download(values.data(), to, 0, to.bytes()).wait();
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float value) { return value == 30.0f; }))
        << target.device().id;
  }
}

TEST_F(GpuCopy, RefusesWhatCannotBe) {
  const Context context(device), cpu({.device = "cpu"});
  Queue queue = context.make_queue();
  const Buffer small = context.allocate(16), large = filled_with(context, std::vector<std::uint8_t>(32));
  const Buffer of_cpu = cpu.allocate(16);
  const auto refused = [&](Queue by, const Buffer& to, std::int64_t to_offset, const Buffer& from,
                           std::int64_t from_offset, std::int64_t bytes) {
    return error_of([&] { by.copy(to, to_offset, from, from_offset, bytes); }, ErrorKind::bad_input);
  };
  EXPECT_HAS(refused(queue, small, 9, large, 0, 8), "copy to a buffer: 8 bytes at offset 9 do not fit");
  EXPECT_HAS(refused(queue, large, 0, small, 9, 8), "copy from a buffer: 8 bytes at offset 9 do not fit");
  EXPECT_HAS(refused(queue, large, 0, small, -1, 1), "offset -1");
  EXPECT_HAS(refused(queue, large, 0, small, 0, -1), "-1 bytes");
  EXPECT_HAS(refused(queue, large, 4, large, 0, 5), "5 bytes at offset 0 of a buffer overlap those at its offset 4");
  EXPECT_HAS(refused(queue, Buffer(), 0, small, 0, 1), "the buffer is empty");
  EXPECT_HAS(refused(queue, small, 0, Buffer(), 0, 1), "the buffer is empty");
  EXPECT_HAS(refused(Queue(), small, 0, large, 0, 1), "the queue is empty");
  EXPECT_HAS(refused(queue, of_cpu, 0, cpu.allocate(1), 0, 1), "neither buffer is of the queue's device");
  EXPECT_HAS(refused(cpu.make_queue(), small, 0, large, 0, 1), "neither buffer is of the queue's device cpu");
  queue.copy(large, 4, large, 0, 4).wait();  // none of it was held against the queue
}

TEST_F(GpuCopy, BetweenTwoDevices) {
  const std::vector<std::string> ids = tested_ids();
  if (ids.size() < 2) GTEST_SKIP() << "one device alone: " << ids.front();
  const Context one({.device = ids[0]}), other({.device = ids[1]});
  check_both_ways(one, other, several_pieces);
}

TEST_F(GpuCopy, BetweenCudaAndOpenCl) {
  DeviceListing others;
  (tests_cuda() ? devices::opencl_backend() : devices::cuda_backend()).list(others);
  if (others.found.empty())
    GTEST_SKIP() << (others.missing.empty() ? "no device of the other kind" : others.missing.front().reason);
  check_both_ways(Context(device), Context({.device = others.found.front().id}), several_pieces);
}

}  // namespace
}  // namespace omniconv
