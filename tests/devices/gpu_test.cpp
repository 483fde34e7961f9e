// GPU devices of the program's kind: what is found, memory, queues and their errors, and the prelude's arithmetic.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include "core/convert.h"
#include "devices/best_rate.h"
#include "gpu_testing.h"

namespace omniconv {
namespace {

using devices::Definition;
using devices::Grid;
using devices::KernelArgument;

TEST_F(Gpu, ListsWhatCanBeOpened) {
  DeviceListing listing;
  tested_backend().list(listing);
  for (const DeviceInfo& info : listing.found) {
    const std::string prefix = std::string(tested_backend().prefix) + ":";
    ASSERT_EQ(info.id.rfind(prefix, 0), 0u);
    const auto opened = tested_backend().open(info.id.substr(prefix.size()), {});
    EXPECT_EQ(opened->info().id, info.id);
    EXPECT_EQ(opened->kind(), tested_backend().kind);
    EXPECT_FALSE(info.name.empty());
    EXPECT_GT(info.compute_units, 0);
    EXPECT_GT(info.memory_bytes, 0);
    EXPECT_GT(info.max_buffer_bytes, 0);
  }
  for (const DeviceListing::Missing& missing : listing.missing) EXPECT_FALSE(missing.reason.empty()) << missing.id;
}

TEST_F(Gpu, FactsAreOfTheDevice) {
  const devices::DeviceFacts& facts = device->facts();
  EXPECT_EQ(facts.kind, tested_backend().kind);
  EXPECT_EQ(facts.takes_occupancy, tests_cuda() || facts.compute_capability > 0);
  EXPECT_GT(facts.max_group_items, 0);
  EXPECT_GE(facts.most_local_memory_bytes, facts.info.local_memory_bytes);
  EXPECT_EQ(facts.has_byte_dots, facts.compute_capability >= 61);
  EXPECT_EQ(facts.has_clusters, tests_cuda() && facts.compute_capability >= 90);
  EXPECT_EQ(facts.has_overlap, facts.has_clusters);
  if (!tests_cuda()) return;
  EXPECT_GE(facts.unit_local_memory_bytes, facts.most_local_memory_bytes);
  if (facts.compute_capability == 90) {
    EXPECT_EQ(facts.most_local_memory_bytes, 227 << 10);
  }
}

TEST_F(Gpu, NamesTheDevicesThereAreWhenAskedForAnother) {
  for (const char* rest : {"99.0", "0.99", "99", "x", "0.0.0", "-1"}) {
    const std::string text = error_of([&] { tested_backend().open(rest, {}); }, ErrorKind::bad_input);
    EXPECT_HAS(text, std::string(tested_backend().prefix) + ":" + rest);
    EXPECT_HAS(text, device->info().id);
  }
}

TEST_F(Gpu, MovesBytesToAnOffsetAndBack) {
  const Context context(device);
  Queue queue = context.make_queue();
  const Buffer buffer = context.allocate(16);
  EXPECT_EQ(buffer.bytes(), 16);
  std::vector<std::uint8_t> in(16), out(16, 99);
  std::iota(in.begin(), in.end(), std::uint8_t{0});
  queue.upload(buffer, 0, in.data(), 16);
  queue.upload(buffer, 4, in.data() + 10, 3);
  queue.upload(buffer, 16, nullptr, 0).wait();
  queue.download(out.data() + 1, buffer, 3, 5).wait();
  EXPECT_EQ(out, (std::vector<std::uint8_t>{99, 3, 10, 11, 12, 7, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}));
}

TEST_F(Gpu, RefusesTransfersOutsideTheBuffer) {
  const Context context(device);
  Queue queue = context.make_queue();
  const Buffer buffer = context.allocate(16);
  std::uint8_t byte = 0;
  EXPECT_HAS(error_of([&] { queue.upload(buffer, 15, &byte, 2); }, ErrorKind::bad_input), "2 bytes at offset 15");
  EXPECT_HAS(error_of([&] { queue.download(&byte, buffer, -1, 1); }, ErrorKind::bad_input), "offset -1");
  EXPECT_HAS(error_of([&] { queue.download(&byte, buffer, 17, 0); }, ErrorKind::bad_input), "offset 17");
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_HAS(error_of([&] { queue.upload(buffer, 8, &byte, largest); }, ErrorKind::bad_input), "do not fit");
  EXPECT_HAS(error_of([&] { queue.upload(buffer, 0, nullptr, 1); }, ErrorKind::bad_input), "null");
  EXPECT_HAS(error_of([&] { queue.upload(Buffer(), 0, &byte, 1); }, ErrorKind::bad_input), "empty");
  EXPECT_HAS(error_of([&] { Queue().upload(buffer, 0, &byte, 1); }, ErrorKind::bad_input), "empty");
  queue.upload(buffer, 15, &byte, 1).wait();  // none of it was held against the queue
}

TEST_F(Gpu, RefusesBuffersThatCannotBe) {
  const std::int64_t limit = device->info().max_buffer_bytes;
  const std::string text = error_of([&] { device->allocate(limit + 1); }, ErrorKind::bad_input);
  EXPECT_HAS(text, std::to_string(limit + 1));
  EXPECT_HAS(text, std::to_string(limit));
  std::byte byte{};
  EXPECT_HAS(error_of([&] { device->allocate(-1); }, ErrorKind::bad_input), "-1 bytes: the size must be at least 0");
  for (void* const memory : {static_cast<void*>(&byte), static_cast<void*>(nullptr)})
    EXPECT_HAS(error_of([&] { device->borrow(memory, -1); }, ErrorKind::bad_input),
               "-1 bytes: the size must be at least 0");
  EXPECT_HAS(error_of([&] { device->borrow(nullptr, 4); }, ErrorKind::bad_input), "null");
  EXPECT_EQ(device->allocate(0)->bytes(), 0);
}

TEST_F(Gpu, BuildErrorsShowTheLog) {
  const std::string text =
      error_of([&] { device->build("\nKERNEL void f() { nonsense; }\n", {}); }, ErrorKind::environment);
  EXPECT_HAS(text, tests_cuda() ? "nvrtcCompileProgram" : "clBuildProgram");
  EXPECT_HAS(text, tests_cuda() ? "NVRTC_ERROR_COMPILATION" : "CL_BUILD_PROGRAM_FAILURE");
  EXPECT_HAS(text, device->info().id);
  EXPECT_HAS(text, "nonsense");
  // The text says what its lines are of; errors come first.
  const std::string named = error_of(
      [&] {
        device->build(R"(#line 1 "first.kernel"
#warning not this
#line 40 "second.kernel"
KERNEL void f() {
  other_nonsense;
}
)",
                      {});
      },
      ErrorKind::environment);
  EXPECT_HAS(named, "other_nonsense");
  // NVIDIA's OpenCL counts the lines of the whole text, whatever it says of them.
  if (tests_cuda() || device->info().driver.find("NVIDIA") == std::string::npos) {
    EXPECT_HAS(named, tests_cuda() ? "second.kernel(41): error" : "second.kernel:41:");
    EXPECT_LT(named.find("second.kernel"), named.find("first.kernel")) << named;
  }
  const Definition hostile[] = {{"A", "1 -cl-fast-relaxed-math"}};
  EXPECT_HAS(error_of([&] { device->build("", hostile); }, ErrorKind::bad_input), "A=1 -cl-fast");
}

TEST_F(Gpu, EqualProgramsAreOne) {
  const Definition one[] = {{"A", "1"}}, two[] = {{"A", "2"}};
  const auto first = device->build(add_text, one);
  EXPECT_EQ(device->build(add_text, one), first);
  EXPECT_NE(device->build(add_text, two), first);
  std::vector<std::shared_ptr<devices::Program>> built(4);
  std::vector<std::thread> threads;
  for (auto& program : built) threads.emplace_back([&] { program = device->build(add_text, {}); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& program : built) EXPECT_EQ(program, built[0]);
  EXPECT_HAS(error_of([&] { device->build(add_text, {}, {{}, "sm_10a"}); }, ErrorKind::bad_input), "target sm_10a");
}

TEST_F(Gpu, TheFirstErrorOfAQueueStays) {
  const auto queue = device->make_queue();
  const auto program = device->build(add_text, {});
  const auto buffer = filled({1, 2, 3, 4});
  const KernelArgument arguments[] = {buffer.get(), 1.0f};
  queue->launch(program, "add", {{4, 1}, {4, 1}}, arguments).wait();
  Event failed = queue->launch(program, "subtract", {{4, 1}, {4, 1}}, arguments);
  const std::string first = error_of([&] { failed.wait(); }, ErrorKind::environment);
  EXPECT_HAS(first, tests_cuda() ? "cuModuleGetFunction (subtract)" : "clCreateKernel (subtract)");
  EXPECT_HAS(first, tests_cuda() ? "CUDA_ERROR_NOT_FOUND" : "CL_INVALID_KERNEL_NAME");
  EXPECT_HAS(first, device->info().id);
  Event skipped = queue->launch(program, "add", {{4, 1}, {4, 1}}, arguments);
  EXPECT_EQ(error_of([&] { skipped.wait(); }, ErrorKind::environment), first);
  EXPECT_EQ(error_of([&] { queue->finish(); }, ErrorKind::environment), first);
  EXPECT_EQ(error_of([&] { skipped.seconds(); }, ErrorKind::environment), first);

  std::vector<float> values(4);
  device->make_queue()->download(values.data(), buffer, 0, 16).wait();
  EXPECT_EQ(values, (std::vector<float>{2, 3, 4, 5}));  // what came after the error was skipped
}

// What was submitted before the error, and ended well, stays well.
TEST_F(Gpu, AnErrorIsOfTheWorkUpToTheEventAlone) {
  const auto queue = device->make_queue();
  const auto program = device->build(add_text, {});
  const auto buffer = filled({1, 2, 3, 4});
  const KernelArgument arguments[] = {buffer.get(), 1.0f};
  const auto launch = [&](const char* kernel) { return queue->launch(program, kernel, {{4, 1}, {4, 1}}, arguments); };
  Event first = launch("add"), good = launch("add"), failed = launch("subtract"), skipped = launch("add");
  EXPECT_THROW(failed.wait(), Error);
  EXPECT_NO_THROW(first.wait());
  EXPECT_NO_THROW(good.wait());
  EXPECT_GE(good.seconds(), 0);
  EXPECT_THROW(skipped.wait(), Error);
  EXPECT_THROW(skipped.seconds(), Error);
  Event all_good = queue->span(std::move(first), std::move(good));
  EXPECT_NO_THROW(all_good.wait());
  EXPECT_GE(all_good.seconds(), 0);
  Event into_the_error = queue->span(std::move(all_good), std::move(skipped));
  EXPECT_THROW(into_the_error.wait(), Error);
}

// More submissions than the queue keeps under way, and all of their events.
TEST_F(Gpu, EventsLastAsLongAsTheyAreHeld) {
  const auto queue = device->make_queue();
  const auto program = device->build(add_text, {});
  const auto buffer = filled(std::vector<float>(64, 0.0f));
  const KernelArgument arguments[] = {buffer.get(), 1.0f};
  std::vector<Event> events;
  for (int i = 0; i < 300; ++i) events.push_back(queue->launch(program, "add", {{64, 1}, {64, 1}}, arguments));
  float last = 0;
  queue->download(&last, buffer, 63 * 4, 4).wait();
  EXPECT_EQ(last, 300.0f);
  for (Event& event : events) {
    event.wait();
    EXPECT_GE(event.seconds(), 0);
  }
  Event whole = queue->span(std::move(events.front()), std::move(events.back()));
  EXPECT_GT(whole.seconds(), 0);
}

TEST_F(Gpu, RefusesLaunchesThatCannotBe) {
  const auto queue = device->make_queue();
  const auto program = device->build(add_text, {});
  const auto buffer = filled({1, 2, 3, 4});
  const KernelArgument arguments[] = {buffer.get(), 1.0f};
  EXPECT_HAS(error_of(
                 [&] {
                   queue->launch(program, "add", {{4, 1}, {3, 1}}, arguments);
                 },
                 ErrorKind::bad_input),
             "groups of 3");
  const KernelArgument no_buffer[] = {static_cast<const devices::Buffer*>(nullptr), 1.0f};
  EXPECT_HAS(error_of(
                 [&] {
                   queue->launch(program, "add", {{4, 1}, {4, 1}}, no_buffer);
                 },
                 ErrorKind::bad_input),
             "missing");
  const auto foreign = devices::cpu_backend().open("", {})->allocate(16);
  const KernelArgument of_another[] = {foreign.get(), 1.0f};
  EXPECT_HAS(error_of(
                 [&] {
                   queue->launch(program, "add", {{4, 1}, {4, 1}}, of_another);
                 },
                 ErrorKind::bad_input),
             "none of");
  const std::vector<KernelArgument> too_many(65, buffer.get());
  EXPECT_HAS(error_of(
                 [&] {
                   queue->launch(program, "add", {{4, 1}, {4, 1}}, too_many);
                 },
                 ErrorKind::bad_input),
             "65 arguments: 64 are the most");
  queue->launch(program, "add", {{0, 1}, {4, 1}}, arguments).wait();  // nothing to do
  Event incomplete = device->make_queue()->launch(program, "add", {{4, 1}, {4, 1}}, std::span(arguments, 1));
  EXPECT_HAS(error_of([&] { incomplete.wait(); }, ErrorKind::environment),
             tests_cuda() ? "cuLaunchKernel (add): it takes 2 arguments, not 1" : "clEnqueueNDRangeKernel (add");
}

// The arguments of a kernel object are set and used by several threads at once.
TEST_F(Gpu, ThreadsShareAQueue) {
  constexpr int threads = 4, launches = 50;
  const auto queue = device->make_queue();
  const auto program = device->build(add_text, {});
  std::vector<std::shared_ptr<devices::Buffer>> buffers;
  for (int t = 0; t < threads; ++t) buffers.push_back(filled(std::vector<float>(64, 0.0f)));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      const KernelArgument arguments[] = {buffers[static_cast<std::size_t>(t)].get(), static_cast<float>(t + 1)};
      for (int i = 0; i < launches; ++i) {
        Event event = queue->launch(program, "add", {{64, 1}, {16, 1}}, arguments);
        if (i % 5 == 0) event.wait();
      }
    });
  for (std::thread& thread : running) thread.join();
  queue->finish();
  for (int t = 0; t < threads; ++t) {
    std::vector<float> values(64);
    queue->download(values.data(), buffers[static_cast<std::size_t>(t)], 0, 256).wait();
    EXPECT_EQ(values, std::vector<float>(64, static_cast<float>(launches * (t + 1))));
  }
}

// Buffers, programs, queues and devices may be let go of while work is under way.
TEST_F(Gpu, WorkKeepsAliveWhatItNeeds) {
  std::vector<float> values(1 << 16);
  {
    auto own_device = tested_backend().open("", {});
    auto queue = own_device->make_queue();
    const std::vector<float> ones(values.size(), 1.0f);
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
    auto buffer = own_device->allocate(bytes);
    auto program = own_device->build(add_text, {});
    own_device.reset();
    queue->upload(buffer, 0, ones.data(), bytes);
    const KernelArgument arguments[] = {buffer.get(), 1.0f};
    for (int i = 0; i < 20; ++i) queue->launch(program, "add", {{1 << 16, 1}, {64, 1}}, arguments);
    program.reset();
    Event last = queue->download(values.data(), buffer, 0, bytes);
    buffer.reset();
    queue.reset();
    Event moved;
    moved = std::move(last);
    moved.wait();
    moved.wait();
    EXPECT_GE(moved.seconds(), 0);
  }
  EXPECT_EQ(values, std::vector<float>(values.size(), 21.0f));
}

TEST_F(Gpu, ASpanLastsFromItsFirstToItsLast) {
  const auto queue = device->make_queue();
  const auto program = device->build(add_text, {});
  const auto buffer = filled(std::vector<float>(1 << 20, 0.0f));
  const KernelArgument arguments[] = {buffer.get(), 1.0f};
  const auto launch = [&] { return queue->launch(program, "add", {{1 << 20, 1}, {64, 1}}, arguments); };
  launch().wait();
  Event first = launch(), last = launch();
  last.wait();
  const double parts = first.seconds() + last.seconds();
  Event both = queue->span(std::move(first), std::move(last));
  both.wait();
  EXPECT_GE(both.seconds(), parts * 0.999999);  // the sum of nanoseconds, in floating point
  EXPECT_GT(parts, 0);
}

TEST_F(Gpu, BorrowsHostMemory) {
  alignas(4096) static float memory[1024];
  for (int i = 0; i < 1024; ++i) memory[i] = static_cast<float>(i);
  const auto queue = device->make_queue();
  const auto program = device->build(add_text, {});
  const auto buffer = device->borrow(memory, sizeof memory);
  const KernelArgument arguments[] = {buffer.get(), 0.5f};
  queue->launch(program, "add", {{1024, 1}, {64, 1}}, arguments);
  queue->download(memory, buffer, 0, sizeof memory).wait();
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(memory[i], static_cast<float>(i) + 0.5f);
  memory[7] = 100;
  queue->upload(buffer, 0, memory, sizeof memory);
  queue->launch(program, "add", {{1024, 1}, {64, 1}}, arguments);
  float seventh = 0;
  queue->download(&seventh, buffer, 28, 4).wait();
  EXPECT_EQ(seventh, 100.5f);
}

TEST_F(Gpu, MeasuresPeaks) {
  const devices::Device::Peaks peaks = device->measure_peaks(0.5);
  EXPECT_GT(peaks.tflops, 0);
  EXPECT_GT(peaks.gbps, 0);
  // By the wall clock launches take no less, and not many times as long: a factor for what else the machine does.
  constexpr int launches = 200;
  const auto program = device->build(add_text, {});
  const auto values = filled({0});
  const auto sequence = std::make_shared<devices::Sequence>();
  const KernelArgument arguments[] = {values.get(), 1.0f};
  for (int i = 0; i < launches; ++i) sequence->launch(program, "add", {{1, 1}, {1, 1}}, arguments);
  const auto recording = device->record(sequence);
  const auto queue = device->make_queue();
  const double rate = devices::best_rate(0.1, [&] {
    const auto start = std::chrono::steady_clock::now();
    queue->replay(recording).wait();
    return devices::Done{launches, devices::seconds_since(start)};
  });
  EXPECT_LT(peaks.launch_seconds, 4 / rate);
  EXPECT_GT(peaks.launch_seconds, 0.05 / rate);
}

// The words of the prelude, against the same of core, on random bit patterns and the values around every edge.
TEST_F(Gpu, ConvertsAsTheHostDoes) {
  std::vector<float> inputs = {0.0f,
                               -0.0f,
                               std::nanf(""),
                               -std::nanf(""),
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity()};
  for (const float edge : {0.0f, 1.0f, 128.0f, 255.0f, 256.0f, 32767.0f, 32768.0f, 65504.0f, 65520.0f, 65535.0f,
                           65536.0f, 2147483648.0f, 4294967296.0f, 0x1p-14f, 0x1p-24f, 0x1p-25f})
    for (const float sign : {1.0f, -1.0f}) {
      for (const float step : {-1.5f, -0.5f, 0.0f, 0.5f, 1.5f, 2.5f}) inputs.push_back(sign * (edge + step));
      inputs.push_back(std::nextafter(sign * edge, 0.0f));
      inputs.push_back(std::nextafter(sign * edge, sign * 1e30f));
    }
  std::mt19937 random(1);
  while (inputs.size() < 1 << 16) {
    inputs.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    inputs.push_back(std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40) - 40));
  }
  const auto count = static_cast<std::int64_t>(inputs.size());
  const auto program = device->build(R"(
KERNEL void convert(GLOBAL const float* x, GLOBAL uchar* a, GLOBAL ushort* b, GLOBAL short* c, GLOBAL int* d, GLOBAL half_t* e) {
  const long i = GLOBAL_ID_X;
  a[i] = to_u8(x[i]);
  b[i] = to_u16(x[i]);
  c[i] = to_s16(x[i]);
  d[i] = to_s32(x[i]);
  STORE_HALF(x[i], e, i);
}
KERNEL void widen(GLOBAL const half_t* x, GLOBAL float* y) { y[GLOBAL_ID_X] = LOAD_HALF(x, GLOBAL_ID_X); }
)",
                                     {});
  const auto queue = device->make_queue();
  const auto x = filled(inputs);
  const DataType types[] = {DataType::u8, DataType::u16, DataType::s16, DataType::s32, DataType::f16};
  std::vector<std::shared_ptr<devices::Buffer>> results;
  std::vector<KernelArgument> arguments = {x.get()};
  for (const DataType type : types) {
    results.push_back(device->allocate(count * size_of(type)));
    arguments.push_back(results.back().get());
  }
  queue->launch(program, "convert", {{count, 1}, {64, 1}}, arguments);
  for (std::size_t t = 0; t < 5; ++t) {
    const std::int64_t size = size_of(types[t]);
    std::vector<std::byte> got(static_cast<std::size_t>(count * size));
    queue->download(got.data(), results[t], 0, count * size).wait();
    for (std::int64_t i = 0; i < count; ++i) {
      std::byte expected[8] = {};
      const float value = inputs[static_cast<std::size_t>(i)];
      store_element(types[t], value, expected);
      const double stored = load_element(types[t], &got[static_cast<std::size_t>(i * size)]);
      if (types[t] == DataType::f16 && std::isnan(value)) {
        ASSERT_TRUE(std::isnan(stored)) << value;  // any NaN will do
      } else {
        ASSERT_EQ(std::memcmp(&got[static_cast<std::size_t>(i * size)], expected, static_cast<std::size_t>(size)), 0)
            << value << " became " << stored << " as " << name(types[t]);
      }
    }
  }
  std::vector<std::uint16_t> halves(1 << 16);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  const auto narrow = device->allocate(1 << 17), wide = device->allocate(1 << 18);
  std::vector<float> widened(1 << 16);
  queue->upload(narrow, 0, halves.data(), 1 << 17);
  const KernelArgument widen_arguments[] = {narrow.get(), wide.get()};
  queue->launch(program, "widen", {{1 << 16, 1}, {64, 1}}, widen_arguments);
  queue->download(widened.data(), wide, 0, 1 << 18).wait();
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const float expected = half_to_float(halves[i]);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(widened[i]));
    else
      ASSERT_EQ(std::bit_cast<std::uint32_t>(widened[i]), std::bit_cast<std::uint32_t>(expected)) << i;
  }
}

TEST_F(Gpu, MemoryOfTheHostIsCopiedFromAndTo) {
  const Context context(device);
  Queue queue = context.make_queue();
  const std::shared_ptr<devices::HostMemory> in = device->allocate_host(1 << 20), out = device->allocate_host(1 << 20);
  EXPECT_EQ(in->bytes(), 1 << 20);
  EXPECT_TRUE(in->is_page_locked());
  for (std::int64_t i = 0; i < in->bytes(); ++i) in->data()[i] = static_cast<std::byte>(i * 7);
  const Buffer buffer = context.allocate(in->bytes());
  queue.upload(buffer, 0, in->data(), in->bytes());
  queue.download(out->data(), buffer, 0, out->bytes()).wait();
  EXPECT_EQ(std::memcmp(in->data(), out->data(), 1 << 20), 0);
  EXPECT_EQ(device->allocate_host(0)->bytes(), 0);
  EXPECT_HAS(error_of([&] { device->allocate_host(-1); }, ErrorKind::bad_input), "-1 bytes");
}

TEST_F(Gpu, TimesOfTwoQueuesAreOnOneClock) {
  const Context context(device);
  Queue first = context.make_queue(), second = context.make_queue();
  const std::vector<std::byte> memory(4 << 20);
  const auto bytes = static_cast<std::int64_t>(memory.size());
  const Buffer one = context.allocate(bytes), other = context.allocate(bytes);
  Event earlier = first.upload(one, 0, memory.data(), bytes);
  earlier.wait();
  Event later = second.upload(other, 0, memory.data(), bytes);
  later.wait();
  // One after the other: all of the later one's time is after the earlier one, none of the earlier one's after the
  // later.
  EXPECT_GT(later.seconds(), 0);
  EXPECT_DOUBLE_EQ(later.seconds_after(earlier), later.seconds());
  EXPECT_EQ(earlier.seconds_after(later), 0);
  EXPECT_EQ(later.seconds_after(Event()), later.seconds());
  EXPECT_EQ(Event().seconds_after(later), 0);
  // Of the same queue, which is in order.
  Event last = second.upload(other, 0, memory.data(), bytes);
  last.wait();
  EXPECT_EQ(last.seconds_after(later), last.seconds());
}

TEST_F(Gpu, FreeMemoryIsAPartOfAll) {
  const std::int64_t before = device->free_bytes();
  EXPECT_GT(before, 0);
  EXPECT_LE(before, device->info().memory_bytes);
  if (!tests_cuda()) return;  // OpenCL has no such question
  const auto buffer = device->allocate(std::int64_t{256} << 20);
  EXPECT_LE(device->free_bytes(), before - (std::int64_t{128} << 20));
}

}  // namespace
}  // namespace omniconv
