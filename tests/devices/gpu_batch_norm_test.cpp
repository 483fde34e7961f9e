// batch_norm on GPU devices: every pass, type and layout, channels of one part and of several, arrays that begin
// anywhere.
#include <limits>

#include "../conformance/batch_norm_testing.h"
#include "../conformance/matrix_testing.h"
#include "gpu_testing.h"

namespace omniconv::batch_norm_tests {
namespace {

using GpuBatchNorm = Gpu;
constexpr const char* solver = "batch_norm/direct/gpu.1";

TEST_F(GpuBatchNorm, EveryPassTypeAndLayout) {
  const Context context(device);
  int turn = 0;
  for (const char* const pass : {"fwd", "inference", "bwd"})
    for (const char* const layout : {"nchw", "nhwc"})
      for (const char* const geometry :
           {"n2c8h16w16", "n2c3h17w41", "n70c10h1w1", "n5c130h2w2", "n3c33h1w3", "n2c36h5w9"}) {
        const char* const type = std::array{"f32", "f16", "bf16"}[static_cast<std::size_t>(turn % 3)];
        const char* const relu = turn++ % 2 == 0 ? "" : "relu";
        EXPECT_EQ(
            expect_exact_and_bounded(
                context, parse_problem(fmt::format("batch_norm {} {} {} {} {}", pass, relu, layout, type, geometry)),
                {.solver = {.solver = solver}}),
            1);
      }
}

// More parts than one, of which the last is no whole one; and one part where there is little workspace.
TEST_F(GpuBatchNorm, ChannelsInParts) {
  const Context context(device);
  for (const char* const text : {"n3c1h200w200", "bwd relu n3c2h101w99", "nhwc n3c36h50w51", "bwd nhwc n3c4h100w200"}) {
    const BatchNormProblem problem = batch_norm(text);
    for (const std::int64_t limit : {std::int64_t{-1}, problem.c * 8}) {
      const SolverOptions options{.solver = solver, .max_workspace_bytes = limit};
      EXPECT_EQ(BatchNormPlan(context, problem, options).workspace_bytes() > problem.c * 8, limit < 0) << text;
      EXPECT_EQ(expect_exact_and_bounded(context, problem, {.solver = options, .sampled = true, .samples = 2000}), 1)
          << text;
    }
  }
}

TEST_F(GpuBatchNorm, ChannelsOfTwoValuesAreExact) {
  const Context context(device);
  for (const char* const text : {"n2c3h1w1", "nhwc n8c17h4w8", "n4c2h8w16", "n16c1h64w64", "relu nhwc n64c4h16w32"}) {
    const BatchNormProblem p = batch_norm(text);
    const std::int64_t side = p.layout == Layout::nhwc || p.h * p.w == 1 ? p.c : 1;
    expect_two_values(context, text, solver, [=](std::int64_t i) { return i / side % 2 != 0; });
  }
}

TEST_F(GpuBatchNorm, DeviationsBesideLargeMeans) {
  const Context context(device);
  for (const char* const text : {"n8c3h16w17", "nhwc n8c19h16w17", "n9c1h100w100"})
    expect_deviations_beside_large_means(context, text, solver);
}

TEST_F(GpuBatchNorm, YIsTheSameBackward) {
  const Context context(device);
  for (const char* const text : {"n8c3h16w17", "nhwc n8c19h16w17"}) expect_same_y_backward(context, text, solver);
}

// Where arrays do not begin at multiples of four elements, rows give the same bits, and runs what is within the bound.
TEST_F(GpuBatchNorm, ArraysBeginAnywhere) {
  const Context context(device);
  for (const char* const text :
       {"n6c5h12w8", "nhwc n6c8h9w5", "bwd relu n6c5h12w8", "bwd nhwc n300c4h1w1", "inference n6c5h12w8"}) {
    const BatchNormProblem problem = batch_norm(text);
    Values given;
    for (const ArraySpec& array : arrays_of(problem))
      for (std::int64_t i = 0; i < array.elements(); ++i)
        given[array.name].push_back(static_cast<double>(i * 31 % 17) / 8 + 0.125);
    const Values expected = result_of(context, problem, {.solver = solver}, given);
    for (const std::int64_t before : {1, 2, 4, 7}) {
      const Values found = result_of(context, problem, {.solver = solver}, given, {}, before);
      for (const auto& [name, values] : expected)
        for (std::size_t i = 0; i < values.size(); ++i)
          EXPECT_NEAR(found.at(name)[i], values[i], 1e-4 * (std::fabs(values[i]) + 1)) << text << name << before;
      if (problem.layout == Layout::nhwc) {
        EXPECT_EQ(found, expected) << text << before;
      }
    }
  }
}

TEST_F(GpuBatchNorm, NumbersThatAreNone) {
  const Context context(device);
  for (const double strange : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const BatchNormProblem problem = batch_norm("relu n2c3h10w10");
    Values given = {{"gamma", {1, 1, 1}}, {"beta", {0, 0, 0}}, {"running_mean", {0, 0, 0}}, {"running_var", {1, 1, 1}}};
    for (int i = 0; i < 600; ++i) given["x"].push_back(i * 7 % 11);
    given["x"][113] = strange;
    const Values found = result_of(context, problem, {.solver = solver}, given);
    for (std::int64_t i = 0; i < 600; ++i)
      EXPECT_EQ(std::isnan(found.at("y")[static_cast<std::size_t>(i)]), channel_at(problem, i) == 1);
  }
}

TEST_F(GpuBatchNorm, RefusesF64) {
  const Context context(device);
  const std::string error = error_of([&] { BatchNormPlan(context, batch_norm("f64 n2c1h4w4")); }, ErrorKind::bad_input);
  EXPECT_HAS(error, "f64 is served on the CPU, since not every GPU has double precision");
}

}  // namespace
}  // namespace omniconv::batch_norm_tests
