// Filtering from host memory to host memory in strips, on a device that is the CPU in disguise.
#include "omniconv/filter2d_host.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <mutex>

#include "../error_testing.h"
#include "fake_gpu.h"
#include "omniconv/problem.h"

namespace omniconv {
namespace {

constexpr const char* borders[] = {"", "constant:9", "reflect", "reflect101", "wrap", "valid"};

std::vector<std::byte> random_bytes(std::int64_t bytes, unsigned seed) {
  std::vector<std::byte> values(static_cast<std::size_t>(bytes));
  for (std::byte& value : values) value = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  return values;
}

Filter2dProblem problem_of(const std::string& text) {
  return get<Filter2dProblem>(parse_problem("filter2d " + text));
}

Filter weights_for(const Filter2dProblem& problem) {
  Filter filter;
  for (std::int64_t i = 0; i < problem.r * problem.s; ++i)
    filter.weights.push_back(static_cast<double>(i * i % 7) - 2.25);
  filter.scale = 0.0625;
  return filter;
}

// An image in packed rows, and its output by the CPU, in one piece.
struct Case {
  explicit Case(const std::string& text) : problem(problem_of(text)), filter(weights_for(problem)) {
    input = random_bytes(problem.h * input_row(), 5);
    expected.resize(static_cast<std::size_t>(P(problem) * output_row()));
    const Context cpu({.device = "cpu", .threads = 2});
    HostFilter2d(cpu, Filter2dPlan(cpu, problem, filter)).run(input.data(), 0, expected.data(), 0);
  }
  std::int64_t input_row() const { return problem.w * problem.c * size_of(problem.input); }
  std::int64_t output_row() const { return Q(problem) * problem.c * size_of(problem.output); }

  Filter2dProblem problem;
  Filter filter;
  std::vector<std::byte> input, expected;
};

class HostFilter : public testing::Test {
 protected:
  HostFilter2d make(const Case& of, const HostFilter2dOptions& options) {
    plan_ = std::make_shared<FakePlan>(fake_, of.problem, of.filter, solver_);
    return HostFilter2d(Context(fake_), plan_on(fake_, plan_->of_cpu(), plan_), options);
  }
  HostFilter2dReport expect_equal(const Case& of, const HostFilter2dOptions& options) {
    HostFilter2d filter = make(of, options);
    HostFilter2dReport report;
    for (int i = 0; i < 2; ++i) {  // the second uses what the first left
      std::vector<std::byte> output(of.expected.size(), std::byte{0xA5});
      report = filter.run(of.input.data(), 0, output.data(), 0);
      EXPECT_TRUE(output == of.expected) << to_text(of.problem) << ", strips of " << report.strip_rows;
    }
    return report;
  }
  std::string error_with(const Case& of, const HostFilter2dOptions& options, ErrorKind kind = ErrorKind::bad_input) {
    return error_of([&] { expect_equal(of, options); }, kind);
  }

  std::string solver_ = "auto";
  std::shared_ptr<FakeGpu> fake_ = std::make_shared<FakeGpu>();
  std::shared_ptr<FakePlan> plan_;
};

TEST_F(HostFilter, StripsGiveTheBitsOfTheWhole) {
  for (const char* const border : borders)
    for (const char* const extents : {"h61w17c3r5s3 ", "h23w40r9s2 ", "h2w9r7s7 "}) {
      if (std::string(border) == "valid" && extents[1] == '2' && extents[2] == 'w') continue;
      const Case of("u8 " + std::string(extents) + border);
      for (const HostCopies copies : {HostCopies::staged, HostCopies::direct})
        for (const std::int64_t rows : {1, 4, 7, 100})
          for (const bool locks : {true, false}) {
            fake_->page_locks = locks;
            const HostFilter2dReport report =
                expect_equal(of, {.strip_rows = rows, .copies = copies, .copy_threads = 2});
            EXPECT_EQ(report.strip_rows, std::min(rows, P(of.problem)));
            EXPECT_EQ(report.strips, (P(of.problem) + report.strip_rows - 1) / report.strip_rows);
            const bool staged = copies == HostCopies::staged || std::string(border) == "wrap";
            EXPECT_EQ(report.page_locked, locks && staged);
          }
    }
}

TEST_F(HostFilter, StridesAreKept) {
  const Case of("u16>f32 h30w11c2r3s3");
  const std::int64_t in = of.input_row() + 6, out = of.output_row() + 12;
  std::vector<std::byte> input(static_cast<std::size_t>(30 * in)), first(static_cast<std::size_t>(30 * out));
  for (std::int64_t y = 0; y < 30; ++y)
    std::memcpy(&input[static_cast<std::size_t>(y * in)], &of.input[static_cast<std::size_t>(y * of.input_row())],
                static_cast<std::size_t>(of.input_row()));
  for (const bool on_cpu : {false, true})
    for (const HostCopies copies : {HostCopies::staged, HostCopies::direct}) {
      const Context cpu({.device = "cpu", .threads = 2});
      HostFilter2d filter = on_cpu ? HostFilter2d(cpu, Filter2dPlan(cpu, of.problem, of.filter))
                                   : make(of, {.strip_rows = 4, .copies = copies});
      std::vector<std::byte> output(static_cast<std::size_t>(30 * out), std::byte{0x5A});
      filter.run(input.data(), in, output.data(), out);
      for (std::int64_t y = 0; y < 30; ++y) {
        const std::byte* const row = &output[static_cast<std::size_t>(y * out)];
        EXPECT_EQ(std::memcmp(row, &of.expected[static_cast<std::size_t>(y * of.output_row())],
                              static_cast<std::size_t>(of.output_row())),
                  0)
            << y;
        EXPECT_TRUE(std::all_of(row + of.output_row(), row + out, [](std::byte b) { return b == std::byte{0x5A}; }));
      }
    }
}

// Rows of 300 bytes, filtered without a workspace, for which one byte is taken.
class Room : public HostFilter {
 protected:
  Room() { solver_ = "filter2d/definition/cpu.1"; }
  static std::int64_t strip_bytes(std::int64_t rows) { return (2 * rows + 2) * 300; }
  const Case of_{"u8 h200w100c3r3s3"};
};

TEST_F(Room, ALimitMakesStripsSmaller) {
  EXPECT_EQ(expect_equal(of_, {}).strips, 1);
  for (const std::int64_t rows : {60, 25, 3}) {
    const std::int64_t limit = 3 * strip_bytes(rows);
    const HostFilter2dReport report = expect_equal(of_, {.device_memory_bytes = limit, .in_flight = 3});
    EXPECT_LE(report.device_bytes, limit);
    EXPECT_GE(report.device_bytes, limit / 4);
    EXPECT_GT(report.strips, 1);
  }
}

// Strips as low as the kernel would read most rows twice were they halved: fewer are under way instead.
TEST_F(Room, LowStripsAreRatherFewerThanLower) {
  const HostFilter2dReport fewer =
      expect_equal(of_, {.device_memory_bytes = 2 * strip_bytes(3), .strip_rows = 3, .in_flight = 3});
  EXPECT_EQ(fewer.strip_rows, 3);
  EXPECT_EQ(fewer.device_bytes, 2 * strip_bytes(3));
  const HostFilter2dReport lower =
      expect_equal(of_, {.device_memory_bytes = 2 * strip_bytes(4), .strip_rows = 4, .in_flight = 3});
  EXPECT_EQ(lower.strip_rows, 2);
  EXPECT_EQ(lower.device_bytes, 3 * strip_bytes(2));
}

TEST_F(Room, FreeMemoryIsALimitToo) {
  fake_->free = 4 * strip_bytes(10);
  const HostFilter2dReport report = expect_equal(of_, {.device_memory_bytes = std::int64_t{1} << 40});
  EXPECT_LE(report.device_bytes, fake_->free);
  EXPECT_GE(report.strips, 20);
}

TEST_F(Room, SoIsTheLargestBuffer) {
  fake_->set_max_buffer_bytes(20 * 300);
  EXPECT_GE(expect_equal(of_, {}).strips, 10);
}

TEST_F(Room, TheLeastLimitWorksAndLessIsRefusedWithSizes) {
  const std::int64_t least = strip_bytes(1);
  const HostFilter2dReport report = expect_equal(of_, {.device_memory_bytes = least});
  EXPECT_EQ(report.strip_rows, 1);
  EXPECT_EQ(report.device_bytes, least);
  const std::string message = error_with(of_, {.device_memory_bytes = least - 1});
  EXPECT_EQ(message,
            "a limit of " + std::to_string(least - 1) +
                " bytes of device memory (--device-memory) is too small: 1 output row of 300 bytes, the 3 input rows "
                "of 300 bytes for it, and a workspace of 0 bytes take 1200 bytes");
}

TEST_F(Room, ADeviceThatIsFullIsRefusedWithSizes) {
  fake_->free = strip_bytes(1) - 1;
  const std::string message = error_with(of_, {}, ErrorKind::out_of_memory);
  for (const std::string& part : {std::string("device fake has no room for one strip"),
                                  std::string("3 input rows of 300 bytes"), std::to_string(fake_->free) + " of its"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(fake_->allocations, 0);
}

// What was said to be free is not.
TEST_F(Room, RefusedMemoryMakesStripsSmaller) {
  fake_->given = 20 * 300;
  const HostFilter2dReport report = expect_equal(of_, {});
  EXPECT_GT(fake_->refusals, 0);
  EXPECT_GE(report.strips, 10);
  EXPECT_LE((report.strip_rows + 2) * 300, fake_->given);
}

// A device that is lost has not run out of memory: no smaller strips are tried, and its own words are said.
TEST_F(Room, ADeviceLostWhileMemoryIsTakenIsNoLackOfMemory) {
  for (const int at : {1, 2, 5}) {
    fake_->lost_at = at;
    fake_->allocations = 0;
    EXPECT_EQ(error_with(of_, {.strip_rows = 50}, ErrorKind::environment), FakeGpu::lost);
    EXPECT_EQ(fake_->allocations, at);
  }
}

// A driver that gives memory at its first use refuses it there, or finds there that the device is lost.
class LateDevice final : public devices::RecordingDevice {
 public:
  explicit LateDevice(ErrorKind kind) : RecordingDevice(devices::DeviceKind::opencl), kind_(kind) {}
  std::shared_ptr<devices::Queue> make_queue(const QueueOptions&) override {
    return std::make_shared<LateQueue>(kind_);
  }

 private:
  struct LateQueue final : NoQueue {
    explicit LateQueue(ErrorKind the_kind) : kind(the_kind) {}
    Event upload(std::shared_ptr<devices::Buffer> to, std::int64_t, const void*, std::int64_t) override {
      if (to->bytes() > 20 * 300) throw Error(kind, "at its first use");
      return done();
    }
    ErrorKind kind;
  };
  ErrorKind kind_;
};

TEST_F(Room, MemoryRefusedAtItsFirstUseMakesStripsSmaller) {
  std::vector<std::byte> output(of_.expected.size());
  const auto filter = [&](ErrorKind kind) {
    const Context context(std::make_shared<LateDevice>(kind));
    const Filter2dPlan plan(context, of_.problem, of_.filter);
    return HostFilter2d(context, plan).run(of_.input.data(), 0, output.data(), 0);
  };
  EXPECT_GE(filter(ErrorKind::out_of_memory).strips, 10);
  EXPECT_EQ(error_of([&] { filter(ErrorKind::environment); }, ErrorKind::environment), "at its first use");
}

TEST_F(Room, NoMemoryAtAllIsSaidWithSizes) {
  fake_->given = 0;
  const std::string message = error_with(of_, {}, ErrorKind::out_of_memory);
  for (const char* const part : {"device fake has no room for one strip", "1 output row of 300 bytes",
                                 "3 input rows of 300 bytes", "no room for a buffer of"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_F(HostFilter, ALostDeviceIsReported) {
  const Case of("u8 h90w20r3s3");
  for (const bool locks : {true, false})
    for (const int at : {1, 3, 9}) {
      fake_->page_locks = locks;
      HostFilter2d filter = make(of, {.strip_rows = 10});
      plan_->fail_at = at;
      std::vector<std::byte> output(of.expected.size());
      const std::string message =
          error_of([&] { filter.run(of.input.data(), 0, output.data(), 0); }, ErrorKind::environment);
      EXPECT_NE(message.find("the device is lost"), std::string::npos) << message;
    }
}

TEST_F(HostFilter, BadInputIsNamed) {
  const Case of("u16 h20w20r3s3");
  HostFilter2d filter = make(of, {});
  std::vector<std::byte> memory(4096);
  const auto refused = [&](const void* in, std::int64_t in_stride, void* out, std::int64_t out_stride) {
    return outcome_of([&] { filter.run(in, in_stride, out, out_stride); });
  };
  EXPECT_EQ(refused(nullptr, 0, memory.data(), 0), "the input is a null pointer");
  EXPECT_EQ(refused(memory.data(), 0, nullptr, 0), "the output is a null pointer");
  EXPECT_EQ(refused(memory.data(), 39, memory.data(), 0),
            "the input stride of 39 bytes must be a multiple of 2 and at least 40");
  EXPECT_EQ(refused(memory.data(), 0, memory.data() + 2000, 41),
            "the output stride of 41 bytes must be a multiple of 2 and at least 40");
  EXPECT_EQ(refused(memory.data(), 0, memory.data() + 798, 0).find("input and output overlap"), 0u);
  EXPECT_EQ(refused(memory.data(), 0, memory.data() + 800, 0), "nothing was thrown");

  const auto made = [&](const HostFilter2dOptions& options) { return error_with(of, options); };
  EXPECT_NE(made({.in_flight = 0}).find("in_flight=0 must be at least 1"), std::string::npos);
  EXPECT_NE(made({.strip_rows = -1}).find("strip_rows=-1"), std::string::npos);
  EXPECT_NE(made({.device_memory_bytes = -5}).find("device_memory_bytes=-5"), std::string::npos);
  const Context cpu({.device = "cpu"});
  EXPECT_THROW(HostFilter2d(Context(fake_), Filter2dPlan(cpu, of.problem, of.filter)), Error);
}

// No strip is finished before the device has three: a pipeline that waits for each in turn would wait forever.
class ThreeAtOnce final : public operations::Filter2dPlanBody {
 public:
  using Filter2dPlanBody::Filter2dPlanBody;
  void append(devices::Sequence& sequence, const Filter2dRun&) const override {
    sequence.call(devices::HostTask([this] {
      std::unique_lock lock(mutex_);
      most_ = std::max(most_, ++running_);
      changed_.notify_all();
      EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30), [&] { return most_ >= 3; }));
      --running_;
    }));
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int running_ = 0, most_ = 0;
};

TEST_F(HostFilter, ThreeStripsAreInFlight) {
  const Case of("u8 h90w20r3s3");
  for (const bool locks : {true, false}) {
    fake_->page_locks = locks;
    const Filter2dPlan of_cpu(Context(fake_->cpu()), of.problem, of.filter);
    const auto body = std::make_shared<ThreeAtOnce>(choice::task_of(of_cpu));
    std::vector<std::byte> output(of.expected.size());
    HostFilter2d(Context(fake_), plan_on(fake_, of_cpu, body), {.strip_rows = 10})
        .run(of.input.data(), 0, output.data(), 0);
  }
}

}  // namespace
}  // namespace omniconv
