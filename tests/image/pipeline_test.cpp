// Limits of memory in the order of who sets them: the user's before the device's.
#include "image/pipeline.h"
#include "image/kernel_text.h"

#include <gtest/gtest.h>

#include "../devices/recording_device.h"
#include "files.h"

namespace omniconv::image {
namespace {

// A GPU that counts how often it is asked for its free memory.
class AskedDevice final : public devices::RecordingDevice {
 public:
  explicit AskedDevice(std::int64_t free_bytes) : RecordingDevice(devices::DeviceKind::opencl), free_(free_bytes) {}
  std::int64_t free_bytes() override {
    ++questions;
    return free_;
  }
  int questions = 0;

 private:
  std::int64_t free_;
};

// Rows of 100 bytes under a mask of three rows: a strip of one row takes 300 bytes in and 100 out.
class PipelineMemory : public testing::Test {
 protected:
  static constexpr std::int64_t least = 400, plenty = std::int64_t{1} << 40;

  PipelineMemory() {
    job_.input = folder_.file("in.pgm");
    job_.output = folder_.file("out.pgm");
    job_.kernel = parse_kernel("3x3: 1,2,3, 4,-5,6, 7,8,9");
    write_file(job_.input, "P5 100 200 255\n" + std::string(200 * 100, 'x'));
  }
  FilterReport plan(std::int64_t free_bytes) const {
    return plan_filter(Context(std::make_shared<AskedDevice>(free_bytes)), job_);
  }
  // What the refusal says; it must come before the device is asked.
  std::string limit_refusal(std::int64_t free_bytes) const {
    const auto device = std::make_shared<AskedDevice>(free_bytes);
    const std::string message = error_of([&] { plan_filter(Context(device), job_); }, ErrorKind::bad_input);
    EXPECT_EQ(device->questions, 0) << message;
    return message;
  }

  TemporaryFolder folder_;
  FilterJob job_;
};

TEST_F(PipelineMemory, FreeMemoryMakesStripsSmaller) {
  EXPECT_EQ(plan(plenty).strips, 1);
  const FilterReport report = plan(least);
  EXPECT_EQ(report.strip_rows, 1);
  EXPECT_EQ(report.strips, 200);
  EXPECT_EQ(report.device_bytes, least);
  const std::string message = error_of([&] { plan(least - 1); }, ErrorKind::out_of_memory);
  for (const char* const part : {"device recording has no room for one strip", "take 400 bytes", "399 of its"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_F(PipelineMemory, MaxMemoryIsHeldToWhateverTheDeviceHas) {
  job_.max_memory_bytes = plan(least).planned_bytes;
  for (const std::int64_t free_bytes : {least, plenty}) {
    const FilterReport report = plan(free_bytes);
    EXPECT_EQ(report.strip_rows, 1);
    EXPECT_EQ(report.planned_bytes, job_.max_memory_bytes);
  }
  const std::string bytes = std::to_string(job_.max_memory_bytes);
  --job_.max_memory_bytes;
  for (const std::int64_t free_bytes : {std::int64_t{0}, least, plenty})
    EXPECT_EQ(limit_refusal(free_bytes), "--max-memory of " + std::to_string(job_.max_memory_bytes) +
                                             " bytes is too small for " + job_.input + ": the least that works is " +
                                             bytes + " bytes");
}

TEST_F(PipelineMemory, SoIsDeviceMemory) {
  job_.device_memory_bytes = least;
  EXPECT_EQ(plan(plenty).device_bytes, least);
  job_.device_memory_bytes = least - 1;
  for (const std::int64_t free_bytes : {std::int64_t{0}, plenty})
    EXPECT_EQ(limit_refusal(free_bytes),
              "a limit of 399 bytes of device memory (--device-memory) is too small: 1 output row of 100 bytes, the 3 "
              "input rows of 100 bytes for it, and a workspace of 0 bytes take 400 bytes");
}

}  // namespace
}  // namespace omniconv::image
