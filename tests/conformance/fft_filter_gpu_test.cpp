// filter2d/fft on every device of the program's kind: bands and tiles of every border, its bound, and what is not
// finite or too large.
#include "../devices/gpu_testing.h"
#include "devices/device.h"
#include "fft_filter_testing.h"

namespace omniconv {
namespace {

constexpr const char* fft_filter = "filter2d/fft/gpu.1";

template <typename Expect>
void on_every_device(const Expect& expect) {
  for (const std::string& id : tested_ids()) {
    SCOPED_TRACE(id);
    expect(Context({.device = id}));
  }
}

void expect_filtered_by_fft(const std::string& text, const checking::VerifyOptions& options = {}) {
  const Filter2dProblem problem = problem_of(text);
  on_every_device([&](const Context& context) {
    expect_filtered_by(fft_filter, context, problem, filter_for(problem), text, options);
  });
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

// Every type that is stored, as input and output: of integers within the bound before they are rounded.
TEST(GpuFftFilter, EveryType) {
  expect_filtered_by_fft("filter2d u8 h60w61c3r19s17");
  expect_filtered_by_fft("filter2d u16 h50w61c2r9s9 wrap");
  expect_filtered_by_fft("filter2d s16>f16 h50w61c3r9s2 constant:-2");
  expect_filtered_by_fft("filter2d s32 h50w61c1r9s9 reflect");
  expect_filtered_by_fft("filter2d f16>u8 h50w61c3r9s9");
  expect_filtered_by_fft("filter2d u8>f32 h50w61c4r9s9 kernel:equal");
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

TEST(GpuFftFilter, WhatIsNotFiniteStaysInItsWindows) {
  on_every_device([](const Context& context) { expect_what_is_not_finite_to_stay(fft_filter, context); });
}

TEST(GpuFftFilter, LargeNumbersAreFiltered) {
  on_every_device([](const Context& context) { expect_large_numbers_to_be_filtered(fft_filter, context); });
}

// Scaled, and with a bias; runs of no rows write nothing.
TEST(GpuFftFilter, ScalesAndRunsOfNoRows) {
  const Filter2dProblem problem = problem_of("filter2d f32 h30w40c3r7s5 constant:2");
  Filter filter = filter_for(problem);
  filter.scale = -0.3, filter.bias = 5;
  on_every_device([&](const Context& context) {
    expect_filtered_by(fft_filter, context, problem, filter, "scaled");
    const std::vector<float> image(30 * 40 * 3, 1.0f);
    EXPECT_EQ(filtered_by(fft_filter, context, problem, filter, image, 7.0f, 0),
              std::vector<float>(image.size(), 7.0f));
  });
}

TEST(GpuFftFilter, RefusesWhatItDoesNotServe) {
  on_every_device([](const Context& context) {
    const auto reason = [&](const char* text, const SolverOptions& options = {}) {
      return filter_reason(fft_filter, context, text, options);
    };
    EXPECT_NE(reason("filter2d u8 h90w90c3r31s31").find("promised bits"), std::string::npos);
    EXPECT_NE(reason("filter2d f64 h90w90c3r31s31").find("double precision"), std::string::npos);
    EXPECT_EQ(reason("filter2d u8 h90w90c3r31s31", {.solver = fft_filter}), "");
    EXPECT_NE(reason("filter2d f32 h90w90c4r31s31 alpha:3").find("opacity"), std::string::npos);
    EXPECT_NE(reason("filter2d f32 h190w190c3r129s3").find("128"), std::string::npos);
    EXPECT_NE(reason("filter2d f32 h90w90c3r31s31", {.max_error = 2}).find("max_error"), std::string::npos);
    EXPECT_NE(reason("filter2d f32 h90w90c3r31s31", {.relative_error = true}).find("largest input"), std::string::npos);
    EXPECT_EQ(reason("filter2d f32 h90w90c3r31s31"), "");
  });
}

}  // namespace
}  // namespace omniconv
