// Strips on a device with memory of its own: the limit, and how the time is told.
#include <nlohmann/json.hpp>

#include "command.h"

namespace omniconv {
namespace {

using nlohmann::json;

class DeviceMemory : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (const std::string reason = no_opencl(); !reason.empty()) GTEST_SKIP() << reason;
    std::string pixels(64 * 500, ' ');
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * i >> 3);
    write("in.pgm", "P5 64 500 255\n" + pixels);
  }
  json filter(const std::string& options) const {
    const Outcome outcome = run("filter in.pgm out.pgm --kernel sharpen --json report.json " + options);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    return json::parse(read_here("report.json"));
  }
};

TEST_F(DeviceMemory, ALimitMakesStripsAndChangesNoBit) {
  EXPECT_EQ(filter("--device cpu --device-memory 1K")["device_bytes"], 0);
  const std::string expected = read_here("out.pgm");
  EXPECT_EQ(filter("--device opencl")["strips"], 1);
  EXPECT_EQ(read_here("out.pgm"), expected);
  const json report = filter("--device opencl --device-memory 10K");
  EXPECT_GE(report["strips"].get<int>(), 20);
  EXPECT_LE(report["device_bytes"].get<int>(), 10240);
  EXPECT_EQ(read_here("out.pgm"), expected);
  for (const char* const key : {"context_ms", "compile_ms", "plan_ms", "copy_in_ms", "kernel_ms", "copy_out_ms",
                                "read_ms", "compute_ms", "write_ms", "total_ms"})
    EXPECT_GT(report[key].get<double>(), 0) << key;
}

TEST_F(DeviceMemory, TheCpuCopiesNothing) {
  const json report = filter("--device cpu");
  EXPECT_EQ(report["copy_in_ms"], 0.0);
  EXPECT_GT(report["kernel_ms"].get<double>(), 0);
  EXPECT_EQ(report["copy_out_ms"], 0.0);
}

TEST_F(DeviceMemory, TooLittleIsRefusedWithSizes) {
  refuses("filter in.pgm out.pgm --kernel sharpen --device opencl --device-memory 255",
          {"255 bytes of device memory (--device-memory) is too small", "1 output row of 64 bytes",
           "3 input rows of 64 bytes", "take 256 bytes"});
  refuses("filter in.pgm out.pgm --kernel sharpen --device opencl --device-memory lots",
          {"--device-memory 'lots' is no size in bytes"});
  refuses("filter in.pgm out.pgm --kernel sharpen --device opencl --device-memory 0",
          {"--device-memory '0' is no size in bytes"});
  refuses("filter in.pgm out.pgm --kernel sharpen --max-memory -1", {"--max-memory '-1' is no size in bytes"});
  EXPECT_EQ(filter("--device opencl --device-memory 256")["strip_rows"], 1);
}

}  // namespace
}  // namespace omniconv
