// filter2d/fft on every device of the program's kind: bands and tiles of every border, its bound, what is not finite,
// and where it is taken.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "../devices/gpu_testing.h"
#include "alpha_testing.h"
#include "checking/verify.h"
#include "devices/device.h"

namespace omniconv {
namespace {

constexpr const char* fft_filter = "filter2d/fft/gpu.1";

// By this solver alone, within its bound, on every device.
void expect_filtered_by_fft(const std::string& text, checking::VerifyOptions options = {}) {
  options.solver.solver = fft_filter;
  const Filter2dProblem problem = filter_problem(text);
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    for (const checking::VerifyResult& result :
         checking::verify(context, problem, operations::AnyTask(task_for(problem, filter_for(problem))), options))
      EXPECT_EQ(result.status, checking::Status::ok)
          << id << ' ' << text << ' ' << options.solver.tuning << ": " << result.reason;
  }
}

TEST(GpuFftFilter, BordersTilesAndShapes) {
  expect_filtered_by_fft("filter2d f32 h40w50c1r9s9 constant:3");
  expect_filtered_by_fft("filter2d f32 h37w150c3r15s4 replicate", {.solver = {.tuning = "tile=32 tiles=0"}});
  expect_filtered_by_fft("filter2d f32 h70w64c5r31s30 reflect");
  expect_filtered_by_fft("filter2d f32 h90w60c2r2s40 reflect101");
  expect_filtered_by_fft("filter2d f32 h20w300c3r1s16 wrap", {.solver = {.tuning = "tile=16 tiles=0"}});
  expect_filtered_by_fft("flip filter2d f32 h150w31c2r4s13 valid kernel:random");
  expect_filtered_by_fft("filter2d f32 h3w4c3r11s13 reflect");
  expect_filtered_by_fft("filter2d f32 h1w1c2r3s5 replicate");
}

// Strips begin bands anew, and end them anywhere.
TEST(GpuFftFilter, Strips) {
  for (const std::int64_t rows : {7, 60})
    expect_filtered_by_fft("filter2d f32 h130w90c2r13s9 reflect", {.strip_rows = rows});
}

// Bands of 32,767 rows at most, the last of which is not whole.
TEST(GpuFftFilter, BandsCoverTheOutput) {
  expect_filtered_by_fft("filter2d f32 h33000w1c1r9s1", {.solver = {.tuning = "tile=64 tiles=0"}});
}

std::vector<float> filtered(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                            const char* solver, const std::vector<float>& image) {
  const Filter2dPlan plan(context, problem, filter, {.solver = solver});
  const auto bytes = static_cast<std::int64_t>(image.size() * sizeof(float));
  const Buffer input = context.allocate(bytes), output = context.allocate(bytes);
  Queue queue = context.make_queue();
  queue.upload(input, 0, image.data(), bytes);
  // A workspace that holds what is no number.
  const std::vector<float> poison(static_cast<std::size_t>(plan.workspace_bytes() / 4 + 1), NAN);
  const Buffer workspace = context.allocate(static_cast<std::int64_t>(poison.size() * sizeof(float)));
  queue.upload(workspace, 0, poison.data(), workspace.bytes());
  plan.run(queue, {.input = input, .output = output, .workspace = workspace});
  std::vector<float> made(image.size());
  queue.download(made.data(), output, 0, bytes).wait();
  return made;
}

// Infinities and NaN go no further than windows reach, as by the definition.
TEST(GpuFftFilter, WhatIsNotFiniteStaysInItsWindows) {
  const Filter2dProblem problem = filter_problem("filter2d f32 h150w140c2r9s7 reflect");
  const Filter filter = filter_for(problem);
  std::vector<float> image(150 * 140 * 2);
  std::mt19937 random(1);
  for (float& value : image) value = static_cast<float>(random() % 1000) / 999.0f;
  const auto pixel = [&](int row, int column, int channel) -> float& {
    return image[static_cast<std::size_t>((row * 140 + column) * 2 + channel)];
  };
  pixel(3, 4, 0) = std::numeric_limits<float>::quiet_NaN();
  pixel(149, 139, 1) = std::numeric_limits<float>::infinity();
  pixel(70, 60, 1) = -std::numeric_limits<float>::infinity();
  const std::vector<float> expected =
      filtered(Context({.device = "cpu"}), problem, filter, "filter2d/direct/cpu.1", image);
  for (const std::string& id : tested_ids()) {
    const std::vector<float> found = filtered(Context({.device = id}), problem, filter, fft_filter, image);
    int finite = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(std::isnan(found[i]), std::isnan(expected[i])) << id << ' ' << i;
      if (std::isinf(expected[i])) {
        ASSERT_EQ(found[i], expected[i]) << id << ' ' << i;
      }
      if (!std::isfinite(expected[i])) continue;
      ASSERT_NEAR(found[i], expected[i], 1e-3) << id << ' ' << i;
      ++finite;
    }
    EXPECT_LT(finite, static_cast<int>(found.size()) - 3 * 40);
  }
}

// Scaled, and with a bias; runs of no rows write nothing.
TEST(GpuFftFilter, ScalesAndRunsOfNoRows) {
  const Filter2dProblem problem = filter_problem("filter2d f32 h30w40c3r7s5 constant:2");
  Filter filter = filter_for(problem);
  filter.scale = -0.3, filter.bias = 5;
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    for (const checking::VerifyResult& result : checking::verify(
             context, problem, operations::AnyTask(task_for(problem, filter)), {.solver = {.solver = fft_filter}}))
      EXPECT_EQ(result.status, checking::Status::ok) << id << ": " << result.reason;
    const Filter2dPlan plan(context, problem, filter, {.solver = fft_filter});
    std::vector<float> made(30 * 40 * 3, 7.0f);
    const auto bytes = static_cast<std::int64_t>(made.size() * sizeof(float));
    const Buffer output = context.allocate(bytes);
    Queue queue = context.make_queue();
    queue.upload(output, 0, made.data(), bytes).wait();
    plan.run(queue, {.input = context.allocate(bytes),
                     .output = output,
                     .workspace = context.allocate(plan.workspace_bytes()),
                     .output_first = 4,
                     .output_rows = 0})
        .wait();
    queue.download(made.data(), output, 0, bytes).wait();
    EXPECT_EQ(made, std::vector<float>(made.size(), 7.0f)) << id;
  }
}

// Finite numbers whose tiles' spectra are not.
TEST(GpuFftFilter, LargeNumbersAreFiltered) {
  const Filter2dProblem problem = filter_problem("filter2d f32 h90w80c1r31s31");
  const Filter filter{.weights = std::vector<double>(31 * 31, 1.0 / (31 * 31))};
  std::vector<float> image(90 * 80, 1e35f);
  for (std::size_t i = 0; i < image.size(); i += 7) image[i] = 3e34f;
  const std::vector<float> expected =
      filtered(Context({.device = "cpu"}), problem, filter, "filter2d/direct/cpu.1", image);
  for (const std::string& id : tested_ids()) {
    const std::vector<float> found = filtered(Context({.device = id}), problem, filter, fft_filter, image);
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i] / expected[i], 1, 1e-4) << id << ' ' << i;
  }
}

TEST(GpuFftFilter, RefusesWhatItDoesNotServe) {
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    const auto reason = [&](const char* text, const SolverOptions& options = {}) -> std::string {
      const Filter2dProblem problem = filter_problem(text);
      for (const Candidate& candidate : explain(context, problem, filter_for(problem), options))
        if (candidate.solver == fft_filter) return candidate.applicable ? "" : candidate.reason;
      return "not a candidate";
    };
    EXPECT_NE(reason("filter2d u8 h90w90c3r31s31").find("promised bits"), std::string::npos);
    EXPECT_NE(reason("filter2d f64 h90w90c3r31s31").find("double precision"), std::string::npos);
    EXPECT_NE(reason("filter2d f16 h90w90c3r31s31").find("f32 and of f64"), std::string::npos);
    EXPECT_NE(reason("filter2d f32 h90w90c4r31s31 alpha:3").find("opacity"), std::string::npos);
    EXPECT_NE(reason("filter2d f32 h190w190c3r65s3").find("64"), std::string::npos);
    EXPECT_NE(reason("filter2d f32 h90w90c3r31s31", {.max_error = 2}).find("max_error"), std::string::npos);
    EXPECT_NE(reason("filter2d f32 h90w90c3r31s31", {.relative_error = true}).find("largest input"), std::string::npos);
    EXPECT_EQ(reason("filter2d f32 h90w90c3r31s31"), "");
  }
}

}  // namespace
}  // namespace omniconv
