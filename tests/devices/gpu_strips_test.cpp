// Images in strips through a GPU's limited memory: the bits are those of one strip, and those of the CPU.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gpu_testing.h"
#include "image/kernel_text.h"
#include "image/pipeline.h"
#include "omniconv/filter2d_host.h"
#include "omniconv/problem.h"

namespace omniconv {
namespace {

namespace fs = std::filesystem;

constexpr const char* borders[] = {"constant:9", "replicate", "reflect", "reflect101", "wrap", "valid"};

class GpuStrips : public Gpu {
 protected:
  static std::string random_text(std::size_t bytes) {
    std::string text(bytes, ' ');
    unsigned seed = 3;
    for (char& value : text) value = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
    return text;
  }
};

TEST_F(GpuStrips, FromHostMemoryToHostMemory) {
  const Context gpu(device);
  for (const char* const border : borders)
    for (const char* const extents : {"u8 h150w53c3r5s3", "f32 h90w33r3s7", "u8 h150w40r9s9"}) {
      const auto problem = get<Filter2dProblem>(parse_problem("filter2d " + std::string(extents) + " " + border));
      Filter filter;
      const bool separable = problem.r == 9;
      for (std::int64_t i = 0; i < problem.r; ++i)
        for (std::int64_t j = 0; j < problem.s; ++j)
          filter.weights.push_back(
              static_cast<double>(separable ? (i + 1) * (j % 3 - 2) : (i * problem.s + j) % 4 - 1));
      filter.scale = 0.125;
      const auto input_bytes = problem.h * problem.w * problem.c * size_of(problem.input);
      const auto output_bytes = P(problem) * Q(problem) * problem.c * size_of(problem.output);
      std::string input = random_text(static_cast<std::size_t>(input_bytes));
      for (std::size_t i = 0; problem.input == DataType::f32 && i < input.size(); i += 4) {
        const auto value = static_cast<float>(input[i]);
        std::memcpy(&input[i], &value, 4);
      }
      // One with a workspace, which smaller strips need less of.
      const Filter2dPlan plan(gpu, problem, filter, {.solver = separable ? "filter2d/separable/gpu.1" : "auto"});
      EXPECT_EQ(plan.workspace_bytes(P(problem)), plan.workspace_bytes());
      EXPECT_EQ(plan.workspace_bytes(1) < plan.workspace_bytes(), separable);
      std::string whole(static_cast<std::size_t>(output_bytes), 'a'), strips(whole.size(), 'b');
      EXPECT_EQ(HostFilter2d(gpu, plan).run(input.data(), 0, whole.data(), 0).strips, 1);
      for (const HostCopies copies : {HostCopies::staged, HostCopies::direct}) {
        HostFilter2d small(gpu, plan, {.device_memory_bytes = 20000, .copies = copies});
        const HostFilter2dReport report = small.run(input.data(), 0, strips.data(), 0);
        EXPECT_GE(report.strips, 8) << to_text(problem);
        EXPECT_LE(report.device_bytes, 20000);
        EXPECT_GT(report.upload_seconds, 0);
        EXPECT_GT(report.kernel_seconds, 0);
        EXPECT_GT(report.download_seconds, 0);
        for (const double seconds : {report.upload_seconds, report.kernel_seconds, report.download_seconds})
          EXPECT_LE(seconds, report.total_seconds);
        EXPECT_TRUE(strips == whole) << to_text(problem) << ", strips of " << report.strip_rows;
      }
      if (!is_integer(problem.input)) continue;
      const Context cpu({.device = "cpu"});
      HostFilter2d(cpu, Filter2dPlan(cpu, problem, filter)).run(input.data(), 0, strips.data(), 0);
      EXPECT_TRUE(strips == whole) << to_text(problem) << ", of the CPU";
    }
}

TEST_F(GpuStrips, FromFileToFile) {
  std::string pattern = (fs::temp_directory_path() / "omniconv-strips-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path folder = pattern;
  // Opacity is copied by the host, beside what the device does.
  std::ofstream(folder / "in.pam", std::ios::binary)
      << "P7\nWIDTH 37\nHEIGHT 160\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" + random_text(37 * 160 * 4);
  const auto filtered = [&](const Context& context, image::FilterJob job, std::int64_t least_strips) {
    job.output = folder / "out.pam";
    const image::FilterReport report = image::filter_file(context, job, {});
    EXPECT_GE(report.strips, least_strips);
    EXPECT_TRUE(job.device_memory_bytes == 0 || report.device_bytes <= job.device_memory_bytes);
    std::ifstream in(job.output, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const Context gpu(device), cpu({.device = "cpu"});
  for (const char* const border : borders)
    for (const image::Alpha alpha : {image::Alpha::ignore, image::Alpha::filter, image::Alpha::premultiply}) {
      image::FilterJob job;
      job.input = folder / "in.pam";
      const bool copied = alpha != image::Alpha::premultiply;
      if (!copied && job.border.mode != BorderMode::wrap && job.border.mode != BorderMode::replicate) continue;
      job.kernel = image::parse_kernel(copied ? "5x3: 1,2,-3, 4,-5,6, -7,8,9, 1,-2,3, 2,4,-6" : "gaussian:5");
      job.scale = copied ? 0.0625 : 1;
      job.border = parse_border(border);
      job.alpha = alpha;
      const std::string whole = filtered(gpu, job, 1);
      EXPECT_EQ(whole, filtered(cpu, job, 1)) << border;
      job.device_memory_bytes = 16384;
      EXPECT_EQ(whole, filtered(gpu, job, 8)) << border;
    }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace omniconv
