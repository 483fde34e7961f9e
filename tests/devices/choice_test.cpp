// Which solver a GPU is given where several serve, by a device that runs nothing.
#include <gtest/gtest.h>

#include "omniconv/context.h"
#include "omniconv/filter2d.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "operations/filter2d/weights.h"
#include "recording_device.h"

namespace omniconv {
namespace {

std::string choice_for_box(devices::DeviceKind kind, const std::string& text) {
  const auto problem = get<Filter2dProblem>(parse_problem("filter2d " + text));
  const Filter box{.weights = std::vector<double>(static_cast<std::size_t>(problem.r * problem.s), 1.0)};
  return Filter2dPlan(Context(std::make_shared<devices::RecordingDevice>(kind)), problem, box).solver();
}

TEST(Choice, BoxesOnGpus) {
  for (const devices::DeviceKind kind : {devices::DeviceKind::cuda, devices::DeviceKind::opencl}) {
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r3s3"), "filter2d/separable/gpu-fused.1");
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r17s17"), "filter2d/separable/gpu-fused.1");
    // Too many rows, a window too wide.
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r18s18"), "filter2d/separable/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r31s31"), "filter2d/separable/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r9s41"), "filter2d/separable/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "f32 h560w560c3r31s31"), "filter2d/separable/gpu.1");
    // Sums beyond 2^24.
    EXPECT_EQ(choice_for_box(kind, "u16 h560w560c3r31s31"), "filter2d/direct/gpu.1");
  }
}

// Convolutions on a device with the matrix units of 9.0, as large as an H200.
class ChoiceOnMatrixUnits : public testing::Test {
 protected:
  ChoiceOnMatrixUnits() {
    device->be_of_capability_90();
    device->set_compute_units(132);
  }
  std::string chosen(const char* problem, const SolverOptions& options = {}) const {
    for (const Candidate& candidate : explain(Context(device), parse_problem(problem), options))
      if (candidate.applicable) return candidate.solver;
    return {};
  }
  Candidate split(const char* problem, const SolverOptions& options = {}) const {
    for (const Candidate& candidate : explain(Context(device), parse_problem(problem), options))
      if (candidate.solver == "conv2d/split_gemm/gpu.1") return candidate;
    return {};
  }
  std::shared_ptr<devices::RecordingDevice> device =
      std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
};

TEST_F(ChoiceOnMatrixUnits, TakesThemWhereSumsAreLong) {
  for (const char* problem :
       {"n32c256h56w56k256r3s3p1", "nhwc n64c128h28w28k128r3s3p1", "bwd_data n64c64h56w56k64r3s3p1",
        "bwd_filter n64c64h56w56k64r3s3p1", "tf32 n64c128h28w28k128r3s3p1", "bf16 nhwc n64c128h28w28k128r3s3p1",
        "n64c3h224w224k64r7s7p3u2"})
    EXPECT_EQ(chosen(problem), "conv2d/split_gemm/gpu.1") << problem;
  EXPECT_EQ(chosen("n64c256h56w56k256r3s3p1g256"), "conv2d/depthwise/gpu.1");
}

TEST_F(ChoiceOnMatrixUnits, LeavesThemWhereTheRequestForbids) {
  constexpr const char* problem = "n32c256h56w56k256r3s3p1";
  EXPECT_NE(chosen(problem, {.units = Units::fma}), "conv2d/split_gemm/gpu.1");
  EXPECT_NE(split(problem, {.units = Units::fma}).reason.find("other units"), std::string::npos);
  EXPECT_NE(chosen(problem, {.relative_error = true}), "conv2d/split_gemm/gpu.1");
  EXPECT_NE(split(problem, {.relative_error = true}).reason.find("largest numbers of all"), std::string::npos);
  EXPECT_NE(chosen(problem, {.max_workspace_bytes = 1 << 20}), "conv2d/split_gemm/gpu.1");
  EXPECT_EQ(chosen("bf16 n32c256h56w56k256r3s3p1", {.relative_error = true}), "conv2d/split_gemm/gpu.1");
  EXPECT_EQ(split("f64 n32c256h56w56k256r3s3p1").applicable, false);
}

// Sums are cut into parts for few tiles; not where the limit of the workspace leaves no room for the parts.
TEST_F(ChoiceOnMatrixUnits, PartsOfSumsKeepToTheWorkspace) {
  constexpr const char* problem = "n1c512h7w7k512r3s3p1";
  const Candidate free = split(problem);
  EXPECT_EQ(free.tuning.find("parts=1 "), std::string::npos) << free.tuning;
  EXPECT_FALSE(free.tuning.ends_with("parts=1")) << free.tuning;
  const Candidate limited = split(problem, {.max_workspace_bytes = free.workspace_bytes - 1});
  EXPECT_TRUE(limited.applicable) << limited.reason;
  EXPECT_LT(limited.workspace_bytes, free.workspace_bytes);
}

TEST_F(ChoiceOnMatrixUnits, BoundsNameTheirAbsoluteTerm) {
  const SolverOptions options{.solver = "conv2d/split_gemm/gpu.1", .tuning = "tile_n=64 resident=1 parts=1"};
  EXPECT_EQ(split("n1c64h8w8k64r3s3p1", options).bound,
            "1 * (10/2 + 27) * 2^-23 * sum|a*b| + 576 * 2^-38 * max|a| * max|b|");
}

}  // namespace
}  // namespace omniconv
