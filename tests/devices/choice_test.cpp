// Which solver a GPU is given where several serve, by a device that runs nothing.
#include <gtest/gtest.h>

#include "omniconv/filter2d.h"
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

}  // namespace
}  // namespace omniconv
