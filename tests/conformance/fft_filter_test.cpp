// filter2d/fft: bands and tiles of every kind of border and image, its bound, what is not finite, and where it is
// taken.
#include <fmt/format.h>

#include "fft_filter_testing.h"
#include "omniconv/error.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/fft/fft.h"

namespace omniconv {
namespace {

constexpr const char* fft_filter = "filter2d/fft/cpu.1";

void expect_filtered_by_fft(const std::string& text, checking::VerifyOptions options = {}) {
  options.sampled = options.sampled || instrumented;
  options.samples = samples(1000);
  const Filter2dProblem problem = problem_of(text);
  expect_filtered_by(fft_filter, cpu(), problem, filter_for(problem), text, options);
}

std::string fft_filter_reason(const std::string& text, const SolverOptions& options = {}) {
  return filter_reason(fft_filter, cpu(), text, options);
}

// Every border and tile; images below a tile and above, of one channel and several; kernels larger than the image, of
// one row and of one column.
TEST(FftFilter, BordersTilesAndShapes) {
  const char* const all_borders[] = {"constant:3", "replicate", "reflect", "reflect101", "wrap", "valid"};
  std::size_t number = 0;
  for (const char* shape : {"h40w50c1r9s9", "h37w150c3r15s4", "h150w31c2r4s13", "h70w64c5r31s30", "h140w140c1r2s40",
                            "h20w300c3r1s16", "h200w20c1r16s1"})
    for (int i = 0; i < 2; ++i) {
      const std::string text = fmt::format("filter2d {} {} {}", number % 3 == 2 ? "f64" : "f32", shape,
                                           all_borders[number % std::size(all_borders)]);
      expect_filtered_by_fft(text, {.solver = {.tuning = std::array{"", "tile=64", "tile=128", ""}[number % 4]}});
      ++number;
    }
  for (const char* border : {"constant:3", "replicate", "reflect", "reflect101", "wrap"}) {
    expect_filtered_by_fft(fmt::format("filter2d f32 h3w4c3r11s13 {}", border));
    expect_filtered_by_fft(fmt::format("filter2d f32 h1w1c2r3s5 {}", border));
  }
}

TEST(FftFilter, KernelsOfEveryForm) {
  for (const char* kernel :
       {"kernel:equal", "kernel:rank1", "kernel:integer", "kernel:log:9,1.5", "flip kernel:random"})
    expect_filtered_by_fft(fmt::format("filter2d f32 h50w61c3r9s9 {}", kernel));
  // Scaled, and added to.
  const Filter2dProblem problem = problem_of("filter2d f32 h30w40c3r7s5 constant:2");
  Filter filter = filter_for(problem);
  filter.scale = -0.3, filter.bias = 5;
  expect_filtered_by(fft_filter, cpu(), problem, filter, "scaled");
}

// Every type that is stored, as input and output: of integers within the bound before they are rounded.
TEST(FftFilter, EveryType) {
  for (const char* text :
       {"filter2d u8 h90w61c3r19s17", "filter2d u16 h50w61c2r9s9 wrap", "filter2d s16 h50w61c3r9s2 constant:-2",
        "filter2d s32 h50w61c1r9s9 reflect", "filter2d f16 h50w61c3r9s9", "filter2d u8>f32 h50w61c4r9s9 kernel:equal",
        "filter2d f32>u8 h50w61c3r9s9", "filter2d u8>f64 h50w61c3r9s9 kernel:rank1", "filter2d f64>s16 h50w61c3r9s9",
        "filter2d s16>u16 h50w61c3r9s9 valid kernel:integer", "filter2d u8>f16 h50w61c3r9s9 kernel:integer"})
    expect_filtered_by_fft(text);
}

// Bytes of a filter whose bound is below a half are the promised ones or their neighbours, most of them the former.
TEST(FftFilter, BytesAreThePromisedOnesOrNeighbours) {
  const Filter2dProblem problem = problem_of("filter2d u8 h150w140c2r21s21");
  Filter filter = filter_for(problem);
  double sum = 0;
  for (const double weight : filter.weights) sum += std::fabs(weight);
  for (double& weight : filter.weights) weight /= sum;
  const Filter2dTask task = task_for(problem, filter);
  const operations::Answer answer = operations::fft_cpu().offer(task, cpu().impl(), {});
  const operations::ErrorBound& bound = answer.offer()->bound;
  ASSERT_LT(bound.amplification * (bound.chain / 2 + bound.constant) * 0x1p-23 * 255, 0.5);  // weights sum to 1
  std::vector<std::uint8_t> image(150 * 140 * 2);
  std::mt19937 random(1);
  for (std::uint8_t& pixel : image) pixel = static_cast<std::uint8_t>(random());
  const auto filtered = [&](const char* solver) {
    const Filter2dPlan plan(cpu(), problem, filter, {.solver = solver});
    std::vector<std::uint8_t> made(image.size());
    Queue queue = cpu().make_queue();
    const Filter2dRun run{.input = cpu().allocate(static_cast<std::int64_t>(image.size())),
                          .output = cpu().allocate(static_cast<std::int64_t>(image.size())),
                          .workspace = cpu().allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))};
    queue.upload(run.input, 0, image.data(), run.input.bytes()).wait();
    plan.run(queue, run);
    queue.download(made.data(), run.output, 0, run.output.bytes()).wait();
    return made;
  };
  const std::vector<std::uint8_t> made = filtered(fft_filter), promised = filtered(direct_filter);
  std::size_t same = 0;
  for (std::size_t i = 0; i < image.size(); ++i) {
    ASSERT_LE(std::abs(made[i] - promised[i]), 1) << i;
    same += made[i] == promised[i];
  }
  EXPECT_GT(same, image.size() * 99 / 100);
}

// Strips begin bands anew, and end them anywhere.
TEST(FftFilter, Strips) {
  for (const std::int64_t rows : {1, 7, 60, 99})
    expect_filtered_by_fft("filter2d f32 h130w90c2r13s9 reflect", {.strip_rows = rows});
}

// Many bands, the last of which is not whole.
TEST(FftFilter, BandsCoverTheOutput) {
  const Filter2dProblem problem = problem_of("filter2d f32 h1100w1200c1r9s9");
  const Filter2dTask task = task_for(problem, filter_for(problem));
  const std::int64_t rows = operations::band_rows(problem, 56, 1 << 20, 1 << 30);
  EXPECT_EQ(rows % 56, 0);
  EXPECT_GE(rows * 1200, 1 << 20);
  EXPECT_EQ(operations::band_problem(task, rows).h, rows + 8);
  expect_filtered_by_fft("filter2d f32 h1100w1200c1r9s9", {.solver = {.tuning = "tile=64"}, .sampled = true});
}

// Under a limit of the workspace bands are smaller, down to a row of tiles; bits are the same.
TEST(FftFilter, BandsKeepTheWorkspaceLimit) {
  const Filter2dProblem problem = problem_of("filter2d f32 h700w600c3r9s9");
  const Filter filter = filter_for(problem);
  const auto plan_within = [&](std::int64_t limit) {
    return Filter2dPlan(cpu(), problem, filter,
                        {.solver = fft_filter, .max_workspace_bytes = limit, .tuning = "tile=64"});
  };
  const std::int64_t free = plan_within(-1).workspace_bytes(), limit = free / 3;
  EXPECT_LE(plan_within(limit).workspace_bytes(), limit);
  const std::string reason = fft_filter_reason("filter2d f32 h700w600c3r9s9", {.max_workspace_bytes = 1000});
  EXPECT_NE(reason.find("needs a workspace of"), std::string::npos) << reason;
  std::vector<float> image(700 * 600 * 3);
  std::mt19937 random(1);
  for (float& pixel : image) pixel = static_cast<float>(random() % 1000) / 999;
  const auto filtered = [&](std::int64_t bytes) {
    return filtered_by(fft_filter, cpu(), problem, filter, image, 0, -1,
                       {.max_workspace_bytes = bytes, .tuning = "tile=64"});
  };
  EXPECT_EQ(filtered(-1), filtered(limit));
}

// Runs of no rows write nothing, by any solver.
TEST(FftFilter, RunsOfNoRows) {
  for (const char* solver : {fft_filter, "filter2d/direct/cpu.1", "filter2d/box/cpu.1"}) {
    const Filter2dProblem problem = problem_of("filter2d f32 h20w30c2r3s5 kernel:equal");
    const std::vector<float> image(20 * 30 * 2, 1.0f);
    EXPECT_EQ(filtered_by(solver, cpu(), problem, filter_for(problem), image, 7.0f, 0),
              std::vector<float>(image.size(), 7.0f))
        << solver;
  }
}

TEST(FftFilter, WhatIsNotFiniteStaysInItsWindows) {
  expect_what_is_not_finite_to_stay(fft_filter, cpu());
}

TEST(FftFilter, LargeNumbersAreFiltered) {
  expect_large_numbers_to_be_filtered(fft_filter, cpu());
}

TEST(FftFilter, RefusesWhatItDoesNotServe) {
  EXPECT_NE(fft_filter_reason("filter2d u8 h90w90c3r31s31").find("promised bits"), std::string::npos);
  EXPECT_EQ(fft_filter_reason("filter2d u8 h90w90c3r31s31", {.solver = fft_filter}), "");
  EXPECT_EQ(fft_filter_reason("filter2d u8 h90w90c3r31s31", {.allow = {"filter2d/fft"}}), "");
  for (const char* operation : {"filter2d", "filter2d/"})
    EXPECT_NE(fft_filter_reason("filter2d u8 h90w90c3r31s31", {.allow = {operation}}).find("promised bits"),
              std::string::npos);
  // What is denied beside it leaves nobody: no limit of the workspace is spoken of.
  try {
    const Filter2dProblem problem = problem_of("filter2d u8 h90w90c3r31s31");
    Filter2dPlan(cpu(), problem, filter_for(problem), {.deny = {"filter2d/direct", "filter2d/definition"}});
    ADD_FAILURE() << "served";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("workspace of"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("promised bits"), std::string::npos) << error.what();
  }
  EXPECT_NE(fft_filter_reason("filter2d f32 h90w90c4r31s31 alpha:3").find("opacity"), std::string::npos);
  EXPECT_NE(fft_filter_reason("filter2d f32 h90w90c3 kernel:sobel r3s3").find("pair"), std::string::npos);
  EXPECT_NE(fft_filter_reason("filter2d f32 h190w190c3r129s3").find("128"), std::string::npos);
  EXPECT_NE(fft_filter_reason("filter2d f32 h90w90c3r31s31", {.max_error = 2}).find("max_error"), std::string::npos);
  EXPECT_NE(fft_filter_reason("filter2d f32 h90w90c3r31s31", {.relative_error = true}).find("largest input"),
            std::string::npos);
  EXPECT_NE(
      fft_filter_reason("filter2d f32 h90w90c3r31s31", {.solver = fft_filter, .tuning = "tile=16"}).find("do not hold"),
      std::string::npos);
  EXPECT_EQ(fft_filter_reason("filter2d f32 h90w90c3r31s31"), "");
}

// Where a kernel has so many taps that transforms cost less.
TEST(FftFilter, IsTakenForLargeKernels) {
  const auto chosen = [](const char* text) {
    const Filter2dProblem problem = problem_of(text);
    return Filter2dPlan(cpu(), problem, filter_for(problem)).solver();
  };
  EXPECT_EQ(chosen("filter2d f32 h1000w1000c3r9s9"), "filter2d/direct/cpu.1");
  EXPECT_EQ(chosen("filter2d f32 h1000w1000c3r63s63"), fft_filter);
  EXPECT_NE(chosen("filter2d f32 h1000w1000c3r63s63 kernel:rank1"), fft_filter);
  EXPECT_NE(chosen("filter2d f32 h1000w1000c3r63s63 kernel:equal"), fft_filter);
}

}  // namespace
}  // namespace omniconv
