// Which solver a GPU is given where several serve, by a device that runs nothing.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "../error_testing.h"
#include "omniconv/context.h"
#include "omniconv/filter2d.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "operations/filter2d/weights.h"
#include "operations/gemm/gemm.h"
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
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r1s3"), "filter2d/separable/gpu-fused.1");
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r3s3"), "filter2d/box/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "u16 h560w560c3r11s11"), "filter2d/separable/gpu-fused.1");
    // Running sums do not grow with the window.
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r5s5"), "filter2d/box/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r13s13"), "filter2d/box/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r31s31"), "filter2d/box/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r9s41"), "filter2d/box/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r3s400"), "filter2d/box/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "u8 h560w560c3r3s700"), "filter2d/separable/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "f32 h560w560c3r31s31"), "filter2d/separable/gpu-fused.1");
    EXPECT_EQ(choice_for_box(kind, "f32 h560w560c3r40s40"), "filter2d/separable/gpu.1");
    // Sums beyond 2^24, and beyond 2^31.
    EXPECT_EQ(choice_for_box(kind, "u16 h560w560c3r31s31"), "filter2d/box/gpu.1");
    EXPECT_EQ(choice_for_box(kind, "u16 h560w560c3r300s300"), "filter2d/direct/gpu.1");
  }
}

// Where a kernel of full rank has so many taps that transforms cost less: on a device as large as an H200.
TEST(Choice, TransformsOfImagesOnGpus) {
  const auto chosen = [](const char* text) {
    const auto device = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
    device->set_compute_units(132);
    const auto problem = get<Filter2dProblem>(parse_problem(text));
    Filter filter{.weights = std::vector<double>(static_cast<std::size_t>(problem.r * problem.s))};
    for (std::size_t i = 0; i < filter.weights.size(); ++i) filter.weights[i] = static_cast<double>(i * i % 101) / 101;
    for (const Candidate& candidate : explain(Context(device), problem, filter, {}))
      if (candidate.applicable) return candidate.solver;
    return std::string();
  };
  for (const char* problem : {"filter2d f32 h5600w5600c3r31s31", "filter2d f32 h5600w5600c3r45s45",
                              "filter2d f32 h5600w5600c1r21s21", "filter2d f32 h1000w1000c3r31s31"})
    EXPECT_EQ(chosen(problem), "filter2d/fft/gpu.1") << problem;
  for (const char* problem : {"filter2d f32 h5600w5600c3r13s13", "filter2d f32 h5600w5600c3r63s63",
                              "filter2d f32 h5600w5600c3r9s9", "filter2d u8 h5600w5600c3r31s31"})
    EXPECT_NE(chosen(problem), "filter2d/fft/gpu.1") << problem;
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
  Candidate candidate(const char* solver, const char* problem, const SolverOptions& options = {}) const {
    for (const Candidate& candidate : explain(Context(device), parse_problem(problem), options))
      if (candidate.solver == solver) return candidate;
    return {};
  }
  Candidate split(const char* problem, const SolverOptions& options = {}) const {
    return candidate("conv2d/split_gemm/gpu.1", problem, options);
  }
  std::shared_ptr<devices::RecordingDevice> device =
      std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
};

// Those that warps feed are there from 8.0 on; a request for multiply-adds alone leaves them.
TEST_F(ChoiceOnMatrixUnits, WarpsFeedThemFromCapability80On) {
  constexpr const char *solver = "conv2d/mma_gemm/gpu.1", *problem = "n8c64h28w28k64r3s3p1";
  for (const int capability : {80, 86, 89, 90}) {
    device->set_capability(capability);
    EXPECT_TRUE(candidate(solver, problem).applicable) << capability;
    EXPECT_EQ(split(problem).applicable, capability == 90) << capability;
  }
  EXPECT_NE(candidate(solver, problem, {.units = Units::fma}).reason.find("other units"), std::string::npos);
  EXPECT_NE(candidate(solver, problem, {.relative_error = true}).reason.find("largest numbers of all"),
            std::string::npos);
  device->set_capability(75);
  EXPECT_NE(candidate(solver, problem).reason.find("compute capability 8.0 and above"), std::string::npos);
}

TEST_F(ChoiceOnMatrixUnits, TakesThemWhereSumsAreLong) {
  for (const char* problem :
       {"n32c256h56w56k256r3s3p1", "nhwc n64c128h28w28k128r3s3p1", "bwd_data n64c64h56w56k64r3s3p1",
        "bwd_filter n64c64h56w56k64r3s3p1", "tf32 n64c128h28w28k128r3s3p1", "bf16 nhwc n64c128h28w28k128r3s3p1",
        "bwd_data bf16 n64c3h224w224k64r7s7p3u2"})
    EXPECT_EQ(chosen(problem), "conv2d/split_gemm/gpu.1") << problem;
  EXPECT_EQ(chosen("n64c256h56w56k256r3s3p1g256"), "conv2d/depthwise/gpu.1");
}

// They are taken where nothing else multiplies on matrix units. From 8.6 on these may take fp32's three products no
// faster than the multiply-add units do.
TEST_F(ChoiceOnMatrixUnits, WarpsFeedThemWhereTilesOf90AreNot) {
  constexpr const char *solver = "conv2d/mma_gemm/gpu.1", *tiles = "conv2d/implicit_gemm/gpu.1";
  const auto opencl = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::opencl);
  opencl->set_compute_units(132);
  const auto cuda = device;
  constexpr const char* long_sums[] = {"n32c256h56w56k256r3s3p1",
                                       "nhwc n64c128h28w28k128r3s3p1",
                                       "bwd_data n64c64h56w56k64r3s3p1",
                                       "bwd_filter n64c64h56w56k64r3s3p1",
                                       "tf32 bwd_data n64c128h28w28k128r3s3p1",
                                       "bf16 nhwc n64c128h28w28k128r3s3p1",
                                       "f16 bwd_filter n64c64h56w56k64r3s3p1"};
  for (const auto& one : {cuda, opencl})
    for (const int capability : {80, 86, 89, 90}) {
      if (one == cuda && capability == 90) continue;
      device = one;
      device->set_capability(capability);
      for (const std::string problem : long_sums) {
        const bool is_f32 = problem.find("f16") == std::string::npos && problem.find("tf32") == std::string::npos;
        const bool is_slow = is_f32 && (capability == 86 || capability == 89);
        // Fewer products by multiply-adds may take less time than all of them on these units.
        EXPECT_EQ(chosen(problem.c_str(), {.deny = {"conv2d/winograd", "conv2d/fft"}}), is_slow ? tiles : solver)
            << problem << ' ' << capability;
        EXPECT_NE(chosen(problem.c_str(), {.units = Units::fma}), solver) << problem;
      }
      for (const char* problem : {"n64c256h56w56k256r3s3p1g256", "n1c1h4w4k1r1s1", "n1c3h8w8k4r3s3", "n1c64h7w7k64r1s1",
                                  "bf16 n64c32h112w112k32r3s3p1g32", "n1c2048h1w1k1000r1s1", "n64c256h14w14k4r1s1"})
        EXPECT_NE(chosen(problem), solver) << problem << ' ' << capability;
    }
  // Without them the solver is there for tests alone.
  device = opencl;
  device->set_capability(0);
  for (const char* problem : long_sums) {
    EXPECT_NE(chosen(problem), solver) << problem;
    EXPECT_TRUE(candidate(solver, problem).applicable) << problem;
  }
}

// Milliseconds of an H200, through CUDA, of which src/operations/conv2d/mma_gemm/README.md tells: what a model of its
// cost must come near.
TEST_F(ChoiceOnMatrixUnits, WarpsTakeAsLongAsMeasured) {
  struct Measured {
    const char *problem, *tuning;
    double milliseconds;
  };
  constexpr const char *of_64 = "tile_m=64 tile_n=128 tile_k=32 warp_m=32 warp_n=32 resident=2 parts=1 merged=0",
                       *of_128 = "tile_m=128 tile_n=128 tile_k=16 warp_m=64 warp_n=32 resident=1 parts=1 merged=0",
                       *of_16 = "tile_m=16 tile_n=128 tile_k=32 warp_m=16 warp_n=32 resident=3 parts=1 merged=0",
                       *few = "tile_m=32 tile_n=64 tile_k=16 warp_m=32 warp_n=16 resident=4 parts=8 merged=0";
  for (const Measured& one :
       {Measured{"n64c3h224w224k64r7s7p3u2", of_64, 0.436}, Measured{"n64c64h56w56k64r3s3p1", of_64, 0.211},
        Measured{"n32c64h56w56k64r7s7p3", of_64, 0.474}, Measured{"n32c256h56w56k256r3s3p1", of_128, 1.603},
        Measured{"n64c64h56w56k256r1s1", of_128, 0.210}, Measured{"n64c256h56w56k256r3s3p1g256", of_16, 1.901},
        Measured{"n1c512h7w7k512r3s3p1", few, 0.0393}}) {
    constexpr double peak = 28.9e12;
    const Candidate of_one =
        candidate("conv2d/mma_gemm/gpu.1", one.problem, {.solver = "conv2d/mma_gemm/gpu.1", .tuning = one.tuning});
    const double predicted = of_one.cost / peak * 1e3;
    EXPECT_LT(predicted, 1.2 * one.milliseconds) << one.problem;
    EXPECT_GT(predicted, one.milliseconds / 1.2) << one.problem;
  }
}

// Of few channels no planes are written, whatever the layout and type; backward of the data of 16 bits is split_gemm's.
TEST_F(ChoiceOnMatrixUnits, TakesPatchesForFewChannels) {
  constexpr const char* solver = "conv2d/few_channels/gpu.1";
  for (const char* problem :
       {"n64c3h224w224k64r7s7p3u2", "nhwc n64c3h224w224k64r7s7p3u2", "n32c3h224w224k64r3s3p1",
        "nhwc n32c3h224w224k64r3s3p1", "tf32 n10c3h128w128k10r16s16", "tf32 n64c3h224w224k64r7s7p3u2",
        "n4c3h572w572k64r3s3", "bf16 n64c3h224w224k64r7s7p3u2", "f16 nhwc n32c3h224w224k64r3s3p1"})
    EXPECT_EQ(chosen(problem), solver) << problem;
  for (const char* problem : {"bwd_filter n64c3h224w224k64r7s7p3u2", "bwd_data bf16 n64c3h224w224k64r7s7p3u2",
                              "n64c5h224w224k64r7s7p3u2", "n1c3h4w4k2r3s3p1", "n64c256h56w56k256r3s3p1g256"})
    EXPECT_NE(chosen(problem), solver) << problem;
}

// Backward of the filter: of few channels, and of few filters.
TEST_F(ChoiceOnMatrixUnits, TakesPatchesForFiltersOfFewChannels) {
  constexpr const char *solver = "conv2d/few_channels/gpu-filter.1",
                       *by_warps = "conv2d/few_channels/gpu-filter-warps.1";
  for (const char* problem :
       {"n32c3h224w224k64r3s3p1", "nhwc n32c3h224w224k64r3s3p1", "n1c32h1080w1920k3r5s5p2", "n8c64h180w180k1r3s3p1"})
    EXPECT_EQ(chosen(fmt::format("bwd_filter {}", problem).c_str()), solver) << problem;
  // By warps, where filters are few, or taps many.
  for (const char* problem :
       {"n10c3h128w128k10r16s16", "nhwc n10c3h128w128k10r16s16", "tf32 n10c3h128w128k10r16s16",
        "n1c2h2160w3840k4r1s9pl4pr4", "n1c2h2160w3840k4r9s1pt4pb4", "n1c3h2048w2048k16r5s5p2", "n8c8h128w128k8r7s7p3"})
    EXPECT_EQ(chosen(fmt::format("bwd_filter {}", problem).c_str()), by_warps) << problem;
  const auto cost = [&](const char* of, const char* problem) { return candidate(of, problem).cost; };
  // Where columns are several sets, the first takes twice as long as planes.
  EXPECT_GT(cost(solver, "bwd_filter n64c3h227w227k96r11s11u4"),
            2 * cost("conv2d/split_gemm/gpu.1", "bwd_filter n64c3h227w227k96r11s11u4"));
  EXPECT_NE(candidate(by_warps, "bwd_filter n8c16h64w64k8r9s9").reason.find("16 channels, and it is for 8"),
            std::string::npos);
  EXPECT_NE(candidate(by_warps, "bwd_filter f16 n8c3h64w64k8r9s9").reason.find("f32 and tf32"), std::string::npos);
  EXPECT_NE(candidate(by_warps, "bwd_filter n8c8h90w90k64r25s25").reason.find("4096 columns"), std::string::npos);
  EXPECT_NE(candidate(by_warps, "n8c3h64w64k8r9s9").reason.find("backward of the filter alone"), std::string::npos);
  EXPECT_NE(
      candidate(by_warps, "bwd_filter n8c3h64w64k8r9s9",
                {.solver = by_warps, .tuning = "rows=32 blocks=16 warps=16 resident=2 width=64 height=4 sixteens=4"})
          .reason.find("sums, tiles and warps do not go together so"),
      std::string::npos);
  EXPECT_LE(candidate(by_warps, "bwd_filter n10c3h128w128k10r16s16", {.max_workspace_bytes = 1 << 20}).workspace_bytes,
            1 << 20);
  for (const char* problem :
       {"bwd_filter n32c256h56w56k256r3s3p1", "bwd_filter n64c256h56w56k256r3s3p1g256",
        "bwd_filter n64c64h56w56k64r3s3p1", "n32c3h224w224k64r3s3p1", "bwd_filter bf16 n32c3h224w224k64r3s3p1"})
    EXPECT_NE(chosen(problem), solver) << problem;
  const Candidate free = candidate(solver, "bwd_filter n32c3h224w224k64r3s3p1"),
                  limited = candidate(solver, "bwd_filter n32c3h224w224k64r3s3p1", {.max_workspace_bytes = 1 << 20});
  EXPECT_GT(free.workspace_bytes, 1 << 20);
  EXPECT_TRUE(limited.applicable) << limited.reason;
  EXPECT_LE(limited.workspace_bytes, 1 << 20);
  EXPECT_NE(candidate(solver, "bwd_filter n8c64h64w64k64r9s9").reason.find("64 channels and 64 filters"),
            std::string::npos);
  EXPECT_NE(candidate(solver, "bwd_filter n8c8h90w90k64r25s25").reason.find("4096 columns"), std::string::npos);
  EXPECT_FALSE(candidate(solver, "bwd_filter n8c64h64w64k3r3s3u2").applicable);
  EXPECT_NE(candidate(solver, "bwd_filter f16 n8c3h64w64k64r3s3").reason.find("f32 and tf32"), std::string::npos);
}

// Their gradient reads y once.
TEST_F(ChoiceOnMatrixUnits, GathersGradientsOfFewChannels) {
  constexpr const char* solver = "conv2d/few_channels/gpu.1";
  for (const char* const problem :
       {"n64c3h224w224k64r7s7p3u2", "n32c3h224w224k64r3s3p1", "n10c3h128w128k10r8s8", "n8c1h180w180k64r3s3p1",
        "n32c3h224w224k32r3s3p1u2", "n32c3h299w299k32r3s3u2", "n4c3h572w572k64r3s3"})
    for (const char* const layout : {"nchw", "nhwc", "tf32 nchw"})
      EXPECT_EQ(chosen(fmt::format("bwd_data {} {}", layout, problem).c_str()), solver) << layout << ' ' << problem;
  const auto reason = [&](const char* problem) { return candidate(solver, problem).reason; };
  EXPECT_NE(reason("bwd_data n64c5h224w224k64r7s7p3u2").find("groups have 5 channels, and it gathers 4"),
            std::string::npos);
  EXPECT_NE(reason("bwd_data bf16 n64c3h224w224k64r7s7p3u2").find("is for f32 and tf32"), std::string::npos);
  EXPECT_NE(reason("bwd_data n64c3h224w224k768r16s16u16").find("768 filters of 16x16 taps"), std::string::npos);
  EXPECT_NE(reason("bwd_data n4c3h224w224k8r16s16u17").find("strides of 17 pass the 16"), std::string::npos);
  EXPECT_NE(reason("bwd_data n1c1h1w16777216k1r1s1").find("an extent of 16777216"), std::string::npos);
  EXPECT_NE(reason("bwd_data n1c4h20000w20000k4r1s1").find("images of 2^30 numbers"), std::string::npos);
  EXPECT_NE(reason("bwd_data n3000c1h1000w1000k1r1s1").find("2^30 pixels"), std::string::npos);
}

// On multiply-add units tiles read the arrays, unless there are no columns to save, or none that would be large, or
// fewer products do.
TEST_F(ChoiceOnMatrixUnits, ColumnsAreWrittenWhereTheyCostLess) {
  const SolverOptions options{.units = Units::fma, .deny = {"conv2d/winograd", "conv2d/fft"}};
  for (const char* problem : {"n32c256h56w56k256r3s3p1", "nhwc n64c128h28w28k128r3s3p1", "n64c3h224w224k64r7s7p3u2",
                              "bwd_data n64c64h56w56k64r3s3p1u2", "bwd_filter n64c64h56w56k64r3s3p1"})
    EXPECT_EQ(chosen(problem, options), "conv2d/implicit_gemm/gpu.1") << problem;
  for (const char* problem : {"n1c512h7w7k512r3s3p1", "bwd_data n64c3h224w224k64r7s7p3u2"})
    EXPECT_EQ(chosen(problem, options), "conv2d/im2col_gemm/gpu.1") << problem;
}

// Fourier transforms take less than matrix units from 9 x 9 taps on, or where those have few channels; and than other
// multiply-adds from 5 x 5 on. As measured (src/operations/conv2d/fft/README.md).
TEST_F(ChoiceOnMatrixUnits, TransformsTilesForManyTaps) {
  constexpr const char* solver = "conv2d/fft/gpu.1";
  for (const char* problem :
       {"n16c64h56w56k64r11s11p5", "nhwc n16c64h56w56k64r11s11p5", "bwd_data n32c64h56w56k64r9s9p4",
        "bwd_filter n2c64h128w128k64r15s15p7", "n8c32h128w128k32r31s31p15", "n10c3h128w128k10r16s16",
        "bwd_data n10c3h128w128k10r16s16p8", "n1c1h1024w1024k1r31s31p15"})
    EXPECT_EQ(chosen(problem), solver) << problem;
  for (const char* problem : {"n32c64h56w56k64r7s7p3", "n64c32h28w28k96r5s5p2", "bwd_filter n64c64h56w56k64r3s3p1",
                              "bwd_filter n1c32h1080w1920k3r5s5p2", "n16c64h112w112k64g64r7s7p3",
                              "tf32 n16c64h56w56k64r11s11p5", "bwd_filter n10c3h128w128k10r16s16",
                              // Corners hold one tap of 256, and its error would be a tile's.
                              "bwd_data n10c3h128w128k10r16s16", "n10c3h128w128k10r16s16p15"})
    EXPECT_NE(chosen(problem), solver) << problem;
  for (const char* problem : {"n32c64h56w56k64r7s7p3", "n64c32h28w28k96r5s5p2", "bwd_filter n64c64h56w56k64r3s3p1"})
    EXPECT_EQ(chosen(problem, {.units = Units::fma}), solver) << problem;
}

// Fewer products, where these are most of the work and matrix units are not to be used; with an error that is
// amplified.
TEST_F(ChoiceOnMatrixUnits, TransformsTilesForMultiplyAdds) {
  constexpr const char* solver = "conv2d/winograd/gpu.1";
  for (const char* problem :
       {"n32c256h56w56k256r3s3p1", "nhwc n64c128h28w28k128r3s3p1", "bwd_data n64c64h56w56k64r3s3p1",
        "bwd_data nhwc n64c256h14w14k256r3s3p1", "n64c512h7w7k512r3s3p1", "bias relu n64c512h7w7k256r3s3p1"}) {
    EXPECT_EQ(chosen(problem, {.units = Units::fma}), solver) << problem;
    EXPECT_EQ(chosen(problem), "conv2d/split_gemm/gpu.1") << problem;
    EXPECT_NE(chosen(problem, {.units = Units::fma, .max_error = 1}), solver) << problem;
    EXPECT_NE(chosen(problem, {.relative_error = true}), solver) << problem;
  }
  for (const char* problem : {"n1c3h8w8k4r3s3", "n64c256h56w56k256r3s3p1g256", "n32c3h224w224k64r3s3p1"})
    EXPECT_NE(chosen(problem, {.units = Units::fma}), solver) << problem;
  // Milliseconds that README.md predicts, a tenth more.
  const auto predicted = [&](const char* problem) {
    return candidate(solver, problem, {.units = Units::fma}).cost / 28.9e9 / 1.1;
  };
  EXPECT_NEAR(predicted("n32c256h56w56k256r3s3p1"), 0.87, 0.01);
  EXPECT_NEAR(predicted("nhwc n32c256h56w56k256r3s3p1"), 0.91, 0.01);
  EXPECT_NEAR(predicted("n64c64h56w56k64r3s3p1"), 0.22, 0.01);
}

TEST_F(ChoiceOnMatrixUnits, LeavesThemWhereTheRequestForbids) {
  constexpr const char* problem = "n32c256h56w56k256r3s3p1";
  EXPECT_NE(chosen(problem, {.units = Units::fma}), "conv2d/split_gemm/gpu.1");
  EXPECT_NE(split(problem, {.units = Units::fma}).reason.find("other units"), std::string::npos);
  EXPECT_NE(chosen(problem, {.max_workspace_bytes = 1 << 20}), "conv2d/split_gemm/gpu.1");
  EXPECT_EQ(chosen("bf16 n32c256h56w56k256r3s3p1", {.relative_error = true}), "conv2d/split_gemm/gpu.1");
  EXPECT_EQ(split("f64 n32c256h56w56k256r3s3p1").applicable, false);
}

// Of three parts of bf16, whose products take twice as long, where errors are to be relative; else of two.
TEST_F(ChoiceOnMatrixUnits, TakesSixProductsWhereErrorsAreRelative) {
  for (const char* problem : {"n32c256h56w56k256r3s3p1", "nhwc tf32 n64c128h28w28k128r3s3p1", "n64c64h56w56k64r3s3p1",
                              "bwd_data n64c128h28w28k128r3s3p1", "bwd_filter n64c128h28w28k128r3s3p1"}) {
    EXPECT_EQ(chosen(problem, {.relative_error = true}), "conv2d/split_gemm/gpu.1") << problem;
    const Candidate six = split(problem, {.relative_error = true}), three = split(problem);
    EXPECT_EQ(six.bound.find("max|a|"), std::string::npos) << six.bound;
    EXPECT_NE(three.bound.find("max|a|"), std::string::npos) << three.bound;
    EXPECT_GT(six.cost, 1.5 * three.cost) << problem;
    EXPECT_GT(six.workspace_bytes, three.workspace_bytes) << problem;
  }
  // Of raw rows they are not made.
  const std::string tuning = "tile_n=128 resident=1 parts=1 shared=0 raw=1";
  constexpr const char* nhwc = "nhwc n32c256h56w56k256r3s3p1";
  EXPECT_TRUE(split(nhwc, {.solver = "conv2d/split_gemm/gpu.1", .tuning = tuning}).applicable);
  EXPECT_FALSE(split(nhwc, {.solver = "conv2d/split_gemm/gpu.1", .relative_error = true, .tuning = tuning}).applicable);
  EXPECT_EQ(split("n1c64h8w8k64r3s3p1", {.solver = "conv2d/split_gemm/gpu.1",
                                         .relative_error = true,
                                         .tuning = "tile_n=64 resident=1 parts=1 shared=0 raw=0"})
                .bound,
            "1 * (10/2 + 27) * 2^-23 * sum|a*b|");
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
  const SolverOptions options{.solver = "conv2d/split_gemm/gpu.1",
                              .tuning = "tile_n=64 resident=1 parts=1 shared=0 raw=0"};
  EXPECT_EQ(split("n1c64h8w8k64r3s3p1", options).bound,
            "1 * (10/2 + 27) * 2^-23 * sum|a*b| + 576 * 2^-38 * max|a| * max|b|");
}

// Matrix products, on the same device.
constexpr const char *split_product = "gemm/split/gpu.1", *tiled_product = "gemm/tiled/gpu.1";

TEST_F(ChoiceOnMatrixUnits, TakesThemForLargeProducts) {
  for (const char* problem :
       {"gemm f32 nn m4096n4096k4096", "gemm f32 nt m4096n4096k4096", "gemm f32 tn m8192n8192k8192",
        "gemm f32 tt m1024n1024k1024", "gemm f32 nn m128n128k50000", "gemm f32 nn m1000n1000k1000batch8",
        "gemm tf32 nt m4096n4096k4096", "gemm f16 nn m2048n2048k2048", "gemm bf16 nt m8192n8192k8192"})
    EXPECT_EQ(chosen(problem), split_product) << problem;
  for (const char* problem : {"gemm f32 nn m1n1k1", "gemm f32 nn m64n64k64", "gemm f32 tt m17n129k65",
                              "gemm f32 nt m16n16k16batch100", "gemm f32 nn m128n128k128"})
    EXPECT_NE(chosen(problem), split_product) << problem;
}

TEST_F(ChoiceOnMatrixUnits, LeavesThemInProductsWhereTheRequestForbids) {
  constexpr const char* problem = "gemm f32 nn m4096n4096k4096";
  EXPECT_EQ(chosen(problem, {.units = Units::fma}), tiled_product);
  EXPECT_NE(candidate(split_product, problem, {.units = Units::fma}).reason.find("other units"), std::string::npos);
  EXPECT_EQ(chosen(problem, {.relative_error = true}), split_product);
  EXPECT_EQ(candidate(split_product, problem, {.relative_error = true}).bound.find("max|a|"), std::string::npos);
  EXPECT_EQ(chosen("gemm bf16 nn m4096n4096k4096", {.relative_error = true}), split_product);
  EXPECT_EQ(chosen(problem, {.max_workspace_bytes = 1 << 20}), tiled_product);
  EXPECT_FALSE(candidate(split_product, "gemm f64 nn m4096n4096k4096").applicable);
  const auto older = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda);
  for (const Candidate& one : explain(Context(older), parse_problem(problem)))
    if (one.solver == split_product) {
      EXPECT_NE(one.reason.find("of compute capability 9.0, through CUDA"), std::string::npos) << one.reason;
    }
}

// Planes of both operands: two parts of each number, in whole sixty-fours of terms, or of columns where these lie side
// by side.
TEST_F(ChoiceOnMatrixUnits, ProductsSayTheirBoundAndWorkspace) {
  const SolverOptions whole{.solver = split_product, .tuning = "tile_n=128 resident=1 parts=1 shared=0 raw=0"},
      in_parts{.solver = split_product, .tuning = "tile_n=128 resident=1 parts=2 shared=0 raw=0"};
  constexpr const char* problem = "gemm f32 nn m512n384k1000";
  EXPECT_EQ(candidate(split_product, problem, whole).bound,
            "1 * (17/2 + 27) * 2^-23 * sum|a*b| + 1000 * 2^-38 * max|a| * max|b|");
  EXPECT_EQ(candidate(split_product, problem, in_parts).bound,
            "1 * (10/2 + 27) * 2^-23 * sum|a*b| + 1000 * 2^-38 * max|a| * max|b|");
  const std::int64_t planes = 4 * (512 * 1024 + 1000 * 384), rest = 2304 + 256;
  EXPECT_EQ(candidate(split_product, problem, whole).workspace_bytes, planes + rest);
  EXPECT_EQ(candidate(split_product, problem, in_parts).workspace_bytes, planes + rest + 2 * 512 * 384 * 4);
  SolverOptions relative = whole;
  relative.relative_error = true;
  EXPECT_EQ(candidate(split_product, problem, relative).bound, "1 * (17/2 + 27) * 2^-23 * sum|a*b|");
  EXPECT_EQ(candidate(split_product, problem, relative).workspace_bytes, planes / 2 * 3 + 4352 + 256);
  EXPECT_EQ(candidate(split_product, "gemm bf16 nn m512n384k1000", whole).bound, "1 * (641/2 + 2) * 2^-23 * sum|a*b|");
}

// Planes of a tile that are 16 bytes more than a group's 48 KB.
TEST(Choice, LocalMemoryOfFewPixelsIsCountedToTheLastByte) {
  constexpr const char *solver = "conv2d/few_pixels/gpu.1", *problem = "bwd_filter n1c64h18w17k64r5s6pl5pr5";
  const Context context(std::make_shared<devices::RecordingDevice>(devices::DeviceKind::cuda));
  for (const Candidate& candidate : explain(context, parse_problem(problem), {}))
    EXPECT_FALSE(candidate.solver == solver && candidate.applicable);
  const SolverOptions one_tile{.solver = solver, .tuning = "warps=1 filters=4 resident=1"};
  const std::string refusal = error_of([&] { Plan(context, parse_problem(problem), one_tile); });
  EXPECT_NE(refusal.find("takes 49168 bytes of local memory, and the device has 49152"), std::string::npos) << refusal;
}

// Convolutions through products promise fused multiply-adds alone.
TEST_F(ChoiceOnMatrixUnits, ProductsInsideConvolutionsKeepToMultiplyAdds) {
  constexpr const char* through_products = "conv2d/im2col_gemm/gpu.1";
  for (const char* problem : {"n32c256h56w56k256r3s3p1", "bwd_data n32c256h56w56k256r3s3p1",
                              "bwd_filter n32c256h56w56k256r3s3p1", "bf16 nhwc n64c256h56w56k256r1s1"}) {
    const Candidate one = candidate(through_products, problem, {.units = Units::fma});
    EXPECT_TRUE(one.applicable) << one.reason;
    EXPECT_TRUE(one.tuning.starts_with("gemm.tile_m=")) << one.tuning;
    EXPECT_EQ(one.bound.find("max|a|"), std::string::npos) << one.bound;
  }
  const operations::GemmTask task =
      operations::task_for(get<GemmProblem>(parse_problem("gemm f32 nn m4096n4096k4096")));
  EXPECT_TRUE(operations::best_gemm(task, device, -1).uses_only_fma);
  const auto tuned = operations::tuned_gemm(task, device, -1,
                                            operations::Tuning::parse("tile_n=128 resident=1 parts=1 shared=0 raw=0"));
  EXPECT_EQ(tuned.offer(), nullptr);
}

}  // namespace
}  // namespace omniconv
