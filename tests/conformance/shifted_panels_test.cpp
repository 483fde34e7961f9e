// conv2d/shifted_panels on the CPU: how it cuts a problem, and what it computes of its panels, bands, chunks and parts.
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "../error_testing.h"
#include "conformance.h"
#include "conv2d_testing.h"
#include "core/checked.h"
#include "operations/conv2d/shifted_panels/blocking.h"
#include "operations/conv2d/shifted_panels/tiles.h"
#include "vector/matrix/gemm_panels.h"
#include "vector/matrix/matrix_tiles.h"

namespace omniconv {
namespace {

using operations::PixelBlock, operations::ShiftedBlocking;

constexpr const char* shifted_panels = "conv2d/shifted_panels/cpu.1";

Context shifted_context(int threads = 2) {
  return Context({.device = "cpu", .threads = threads});
}

Conv2dProblem filter_gradient(const std::string& text) {
  return with_pass(conv2d_problem(text), Pass::backward_filter);
}

ShiftedBlocking blocking(const Conv2dProblem& problem, std::int64_t limit = -1) {
  return {problem, 2, limit};
}

// Of the workspace: none, the whole, between, the least.
std::vector<std::int64_t> shifted_limits(const Conv2dProblem& problem) {
  const std::int64_t whole = blocking(problem).workspace_bytes(), least = blocking(problem, 0).workspace_bytes();
  return {-1, whole, (least + whole) / 2, least};
}

// Exact on small integers and within its bound on random numbers, by this solver alone.
void expect_shifted(const Conv2dProblem& problem, std::int64_t limit = -1, std::int64_t some = 0) {
  const checking::VerifyOptions options{.solver = {.solver = shifted_panels, .max_workspace_bytes = limit},
                                        .sampled = some > 0 || instrumented,
                                        .samples = samples(some > 0 ? some : 2000)};
  EXPECT_EQ(expect_exact_and_bounded(shifted_context(), problem, options), 1) << to_text(problem) << ", " << limit;
}

// Each geometry in both layouts, the types and the words in turn.
void expect_shifted_in_turn(std::initializer_list<const char*> geometries) {
  constexpr std::array types = {"f32", "f16", "f64", "bf16", "tf32"};
  std::size_t number = 0;
  for (const char* geometry : geometries)
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"", "acc", "flip", "acc flip"}) {
        if (instrumented && number % 3 != 0 && ++number) continue;
        expect_shifted(filter_gradient(fmt::format("{} {} {} {}", words, types[number++ % 5], layout, geometry)));
      }
}

TEST(ShiftedPanels, EveryLayoutTypeAndWord) {
  for (const char* type : {"f32", "f16", "f64", "bf16", "tf32"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"", "acc", "flip", "acc flip"})
        for (const char* geometry : {"n3c10h9w11k20r3s2p1g2u2", "n2c3h8w7k10r3s3p1", "n2c9h8w7k10r1s1"})
          expect_shifted(filter_gradient(fmt::format("{} {} {} {}", words, type, layout, geometry)));
}

// Strides and dilations that share divisors, and those that do not, and that pass elements by.
TEST(ShiftedPanels, StridesAndDilations) {
  expect_shifted_in_turn({"n2c9h17w19k10r3s3p1u2", "n1c8h20w21k5r3s3pt2pl1dh2dw3uh3uw2", "n2c7h20w20k4r3s3p2d2u2",
                          "n1c4h27w21k9r2s2u5", "n2c9h12w11k7r2s3d4p4", "n1c2h19w23k3r2s3p1d3u2", "n1c9h15w9k4r1s3uw4",
                          "n2c8h9w15k4r3s1uh4", "n1c3h9w14k5r2s2uw9uh5"});
}

// Single taps with strides: rows and columns are taken apart.
TEST(ShiftedPanels, SingleTapsWithStrides) {
  expect_shifted_in_turn({"n2c9h17w19k10r1s1u2", "n2c13h14w16k9r1s1u3p2", "n1c3h14w16k4r1s3uh3",
                          "n1c8h11w17k4r3s1uw4pl1", "n3c2h9w9k3r1s1u2p1g1", "n1c9h2w3k4r1s1u4", "n2c20h8w9k10r1s1uw2g2",
                          "n1c7h5w40k3r1s1uw7pr6"});
}

// Of four kinds, some larger than the filter: taps and whole rows of outputs that meet nothing else.
TEST(ShiftedPanels, Paddings) {
  expect_shifted_in_turn({"n2c9h6w7k10r3s3pt1pb2pl3pr4", "n1c3h5w6k4r2s2p7", "n2c8h4w5k9r1s1p3", "n1c7h3w4k5r3s3p9u3",
                          "n1c9h1w1k2r5s5p4", "n1c9h5w5k3r3s3pt2", "n1c9h5w5k3r3s3pr2", "n2c1h4w4k1r2s3pb5pl6",
                          "n1c5h4w3k6r1s1pl5uw3pt7uh2"});
}

TEST(ShiftedPanels, Groups) {
  expect_shifted_in_turn({"n2c6h7w9k6r3s3p1g6", "n2c18h7w9k36r3s3p1g2", "n1c21h5w6k9r1s1g3", "n2c10h6w6k30r3s2g5",
                          "n1c33h5w7k33r3s3p1g33", "n1c40h5w7k2r3s1p1g2", "n2c4h9w8k40r3s3p1g4u2"});
}

// Channels and filters that fill no panel.
TEST(ShiftedPanels, ChannelsAndFilters) {
  std::size_t number = 0;
  for (const int c : {1, 2, 3, 5, 6, 7, 13, 17, 33})
    for (const int k : {1, 2, 3, 5, 8, 15, 16, 17, 33, 47})
      for (const char* layout : {"nchw", "nhwc"}) {
        if (instrumented && ++number % 5 != 0) continue;
        expect_shifted(filter_gradient(fmt::format("{} n2c{}h6w7k{}r2s3p1", layout, c, k)));
      }
}

// Few channels: the taps of a row are lines of one tile.
TEST(ShiftedPanels, JoinedTaps) {
  expect_shifted_in_turn({"n2c3h15w17k20r7s7p3u2", "n1c1h12w13k4r5s5", "n2c2h9w9k18r3s9p4", "n1c4h9w30k3r2s16p8",
                          "n3c1h6w40k5r1s31p15", "n1c6h8w9k7r3s3p1", "n1c3h9w20k7r3s3p1dh2uw3", "n2c6h9w11k16r3s4p2g2",
                          "n1c3h9w20k7r3s3p1d2"});
  EXPECT_TRUE(blocking(filter_gradient("n2c3h15w17k20r7s7p3u2")).joins_taps);
  const ShiftedBlocking apart = blocking(filter_gradient("n2c3h15w17k20r7s7p3d2"));
  EXPECT_FALSE(apart.joins_taps);
  EXPECT_EQ(apart.line_cut.panels, 0);
}

TEST(ShiftedPanels, RowsAndColumnsOfTaps) {
  expect_shifted_in_turn({"n2c9h7w20k10r1s7p3", "n2c9h20w7k10r7s1p3", "n1c8h3w70k5r1s64", "n1c8h70w3k5r64s1",
                          "n1c2h20w7k10r7s1p3", "n1c13h9w9k5r9s9"});
}

// Rows of more than two chunks, alone and beside others.
TEST(ShiftedPanels, LongRows) {
  expect_shifted_in_turn({"n1c7h1w513k3r1s1", "n1c3h2w1100k9r2s3p1", "n2c8h3w1500k4r3s3p1uw2", "n1c9h2w1030k4r1s1uw2",
                          "n1c5h3w512k3r3s3p1", "n1c7h2w777k2r1s5dw3"});
}

// Small images, in numbers that are no multiple of a chunk's.
TEST(ShiftedPanels, SmallImages) {
  expect_shifted_in_turn({"n1c8h7w7k9r3s3p1", "n5c8h7w7k9r3s3p1", "n6c8h7w7k9r3s3p1", "n11c9h7w7k3r3s3p1",
                          "n23c3h7w7k17r3s3p1", "n300c7h1w1k5r1s1", "n257c2h3w1k3r2s1", "n19c8h5w3k9r2s2u2",
                          "n13c9h7w7k8r1s1u2"});
}

// What a problem is cut into: whatever the limit, chunks have the same pixels in the same order, each pixel is in one
// of them, and chunks of a part follow each other as the bound says.
struct Covering {
  std::vector<std::vector<std::int64_t>> chunks;  // their pixels, by their numbers
  std::int64_t bands = 0;
};

Covering covering(const ShiftedBlocking& cut) {
  Covering found{.chunks = std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(cut.all_chunks())),
                 .bands = cut.bands()};
  const auto& g = cut.shape;
  for (std::int64_t b = 0; b < cut.bands(); ++b) {
    const PixelBlock band = cut.band(b);
    EXPECT_TRUE(band.images <= cut.band_images && band.rows <= cut.band_rows && band.columns == g.q);
    for (std::int64_t i = 0; i < cut.chunks(band); ++i) {
      const PixelBlock chunk = cut.chunk(band, i);
      EXPECT_TRUE(chunk.images <= cut.chunk_images && chunk.rows <= cut.chunk_rows &&
                  chunk.columns <= cut.chunk_columns);
      std::vector<std::int64_t>& pixels = found.chunks.at(static_cast<std::size_t>(cut.chunks_before(band) + i));
      EXPECT_TRUE(pixels.empty());
      for (std::int64_t image = 0; image < chunk.images; ++image)
        for (std::int64_t row = 0; row < chunk.rows; ++row)
          for (std::int64_t column = 0; column < chunk.columns; ++column) {
            const std::int64_t n = band.image + chunk.image + image, p = band.row + chunk.row + row,
                               q = chunk.column + column;
            EXPECT_TRUE(n < g.n && p < g.p && q < g.q);
            pixels.push_back((n * g.p + p) * g.q + q);
          }
    }
  }
  return found;
}

TEST(ShiftedPanels, ChunksCoverEveryPixelOnce) {
  std::int64_t most_bands = 0, most_parts = 0;
  for (const char* text :
       {"n3c40h70w70k48r3s3p1", "n1c64h100w100k64r3s3p1", "n1c200h33w1100k9r3s3p1", "n301c64h7w7k64r3s3p1",
        "n67c40h5w9k70r1s1u2", "f64 n5c3h120w150k20r5s5p2u2", "n1c1h1w1k1r1s1", "n2c300h20w513k300r1s1",
        "n9c512h14w14k8r3s3p1", "nhwc n7c90h40w512k33r1s3p1", "n1000c3h3w3k2r2s2", "n2c64h224w224k64r3s3p1g64"}) {
    const Conv2dProblem problem = filter_gradient(text);
    const ShiftedBlocking whole = blocking(problem);
    const Covering expected = covering(whole);
    std::set<std::int64_t> seen;
    std::size_t count = 0, most = 0;
    for (const std::vector<std::int64_t>& chunk : expected.chunks) {
      EXPECT_FALSE(chunk.empty()) << text;
      seen.insert(chunk.begin(), chunk.end());
      count += chunk.size(), most = std::max(most, chunk.size());
    }
    EXPECT_EQ(static_cast<std::int64_t>(count), whole.shape.n * whole.shape.p * whole.shape.q) << text;
    EXPECT_EQ(seen.size(), count) << text;
    EXPECT_LE(most, 512u) << text;
    const double added = static_cast<double>(divide_up(whole.all_chunks(), whole.parts) - 1 + whole.parts - 1);
    EXPECT_GE(whole.chain(), static_cast<double>(most) + added) << text;
    EXPECT_LE(whole.parts, whole.all_chunks()) << text;
    most_parts = std::max(most_parts, whole.parts);
    const std::int64_t bytes = whole.workspace_bytes();
    for (std::int64_t limit = bytes; limit > 0; limit = limit * 3 / 4) {
      const ShiftedBlocking cut = blocking(problem, limit);
      const Covering found = covering(cut);
      EXPECT_EQ(found.chunks, expected.chunks) << text << ", " << limit;
      EXPECT_EQ(cut.parts, whole.parts) << text;
      EXPECT_EQ(cut.chain(), whole.chain()) << text;
      most_bands = std::max(most_bands, found.bands);
    }
  }
  EXPECT_GT(most_bands, 10);
  EXPECT_GT(most_parts, 10);
}

// A limit is kept to where there are bands that do; else the offer names the least.
TEST(ShiftedPanels, KeepsToWorkspaceLimits) {
  for (const char* text :
       {"n3c40h70w70k48r3s3p1", "n1c512h28w28k512r3s3p1", "n4c3h224w224k64r7s7p3u2", "n301c64h7w7k64r3s3p1"})
    for (const char* layout : {"nchw", "nhwc"}) {
      const Conv2dProblem problem = filter_gradient(fmt::format("{} {}", layout, text));
      const std::int64_t whole = blocking(problem).workspace_bytes(), least = blocking(problem, 0).workspace_bytes();
      EXPECT_LE(least, whole) << text;
      EXPECT_EQ(blocking(problem, least - 1).workspace_bytes(), least) << text;
      for (std::int64_t limit = whole; limit > least / 2; limit = limit * 7 / 8)
        EXPECT_LE(blocking(problem, limit).workspace_bytes(), std::max(limit, least)) << text << ", " << limit;
      const auto all = explain(shifted_context(), problem, {.solver = shifted_panels, .max_workspace_bytes = least});
      EXPECT_TRUE(all.front().applicable) << text;
      EXPECT_EQ(all.front().workspace_bytes, least) << text;
      const auto none =
          explain(shifted_context(), problem, {.solver = shifted_panels, .max_workspace_bytes = least - 1});
      EXPECT_FALSE(none.front().applicable) << text;
    }
}

// Problems of several bands of images and of rows, and of parts, whole and under limits.
TEST(ShiftedPanels, BandsAndParts) {
  for (const char* geometry : {"n3c40h70w70k48r3s3p1", "n1c64h100w100k64r3s3p1", "n5c3h120w150k20r5s5p2u2",
                               "n2c70h60w300k33r1s3p1", "n1c20h3w5000k20r1s7p3", "n300c9h7w7k10r3s3p1",
                               "n77c20h5w9k30r1s1", "n3c90h80w80k70r1s1u2", "n2c60h50w50k60r3s3p3d3g3"}) {
    int bands = 0;
    for (const char* words : {"nchw", "nhwc acc flip"}) {
      const Conv2dProblem problem = filter_gradient(fmt::format("{} {}", words, geometry));
      for (const std::int64_t limit : shifted_limits(problem)) {
        if (instrumented && limit != shifted_limits(problem).back()) continue;
        bands += blocking(problem, limit).bands() > 1;
        expect_shifted(problem, limit, 150);
      }
    }
    EXPECT_GT(bands, 0) << geometry;
  }
  EXPECT_GT(blocking(filter_gradient("n1c64h100w100k64r3s3p1")).bands(), 1);
  EXPECT_GT(blocking(filter_gradient("n5c3h120w150k20r5s5p2u2")).parts, 1);
}

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
  std::vector<float> made(static_cast<std::size_t>(count));
  operations::fill_random(DataType::f32, 0, seed, std::as_writable_bytes(std::span(made)));
  return made;
}

// What a plan of it leaves in w (y: of the forward pass, by `direct`).
void run_shifted(const Context& context, const Conv2dProblem& problem, const SolverOptions& options,
                 std::vector<float>& x, std::vector<float>& w, std::vector<float>& y) {
  Queue queue = context.make_queue();
  const Conv2dPlan plan(context, problem, options);
  Conv2dRun run{
      .x = {context.borrow(std::span(x))}, .w = {context.borrow(std::span(w))}, .y = {context.borrow(std::span(y))}};
  if (plan.workspace_bytes() > 0) run.workspace = context.allocate(plan.workspace_bytes());
  plan.run(queue, run).wait();
}

// The bits follow neither from the number of threads nor from a limit of the workspace.
TEST(ShiftedPanels, ThreadsAndLimitsChangeNothing) {
  int number = 0;
  for (const char* text : {"n3c20h90w110k40r3s3p1", "nhwc acc n3c20h90w110k40r3s3p1u2", "n5c3h120w150k20r5s5p2u2",
                           "nhwc flip n70c40h7w7k50r3s3p1g2", "n2c30h70w90k17r1s1u2", "n1c9h40w1500k40r1s3p1"}) {
    if (instrumented && number++ % 3 != 0) continue;
    const Conv2dProblem problem = filter_gradient(text);
    const Conv2dElements elements = elements_of(problem);
    std::vector<float> x = random_floats(elements.x, 1), y = random_floats(elements.y, 2), expected;
    for (const int threads : {1, 2, 5})
      for (const std::int64_t limit : shifted_limits(problem)) {
        // Fewer threads need no more.
        std::int64_t most = limit < 0 ? -1 : std::max(limit, ShiftedBlocking(problem, threads, 0).workspace_bytes());
        std::vector<float> w = random_floats(elements.w, 3);
        run_shifted(shifted_context(threads), problem, {.solver = shifted_panels, .max_workspace_bytes = most}, x, w,
                    y);
        if (expected.empty()) expected = w;
        EXPECT_EQ(w, expected) << text << ", " << threads << " threads, " << most;
      }
  }
}

// Runs of one plan leave nothing for the next: sums begin anew, in a workspace full of NaN.
TEST(ShiftedPanels, WorkspacesHoldAnything) {
  for (const char* text :
       {"n3c40h70w70k48r3s3p1", "n5c3h60w70k20r5s5p2u2", "nhwc n2c9h9w11k7r3s3p4", "n1c9h7w7k5r1s1u2p1"})
    for (const std::int64_t limit : {std::int64_t{-1}, blocking(filter_gradient(text), 0).workspace_bytes()}) {
      const Conv2dProblem problem = filter_gradient(text);
      const Conv2dElements elements = elements_of(problem);
      const Context context = shifted_context();
      const Conv2dPlan plan(context, problem, {.solver = shifted_panels, .max_workspace_bytes = limit});
      std::vector<float> x = random_floats(elements.x, 1), y = random_floats(elements.y, 2), first;
      const Buffer workspace = context.allocate(plan.workspace_bytes());
      std::vector<std::byte> filled(static_cast<std::size_t>(workspace.bytes()), std::byte{0xFF});
      Queue queue = context.make_queue();
      for (int i = 0; i < 2; ++i) {
        if (i == 0) queue.upload(workspace, 0, filled.data(), workspace.bytes()).wait();
        std::vector<float> w(static_cast<std::size_t>(elements.w), std::numeric_limits<float>::quiet_NaN());
        plan.run(queue, {.x = {context.borrow(std::span(x))},
                         .w = {context.borrow(std::span(w))},
                         .y = {context.borrow(std::span(y))},
                         .workspace = workspace})
            .wait();
        for (const float value : w) ASSERT_TRUE(std::isfinite(value)) << text;
        if (i == 0) first = w;
        EXPECT_EQ(w, first) << text;
      }
    }
}

TEST(ShiftedPanels, ArraysBeginAnywhere) {
  for (const char* text : {"n2c9h14w30k10r3s3p1u2", "nhwc n2c19h9w12k19r3s3p1", "nhwc n2c3h9w12k21r3s3",
                           "n1c13h9w12k8r1s1u2", "n3c16h7w7k16r1s1"})
    expect_same_wherever_arrays_begin(shifted_context(), filter_gradient(text), shifted_panels);
}

// <conv(x, w), dy> = <w, dw>, exactly, since all are small integers.
TEST(ShiftedPanels, IsAdjointToForward) {
  std::uint64_t seed = 1;
  for (const char* text : {"n2c10h14w30k15r3s3p1u2g5", "nhwc n2c19h9w12k19r5s4p2d2", "n1c3h20w33k12r7s2p4uh3dw3",
                           "flip nhwc n3c4h9w9k20r3s3p1", "flip n2c8h13w12k7r1s1u2p1"}) {
    Conv2dProblem problem = conv2d_problem(text);
    const Conv2dElements elements = elements_of(problem);
    const auto integers = [&](std::int64_t count) {
      std::vector<float> made(static_cast<std::size_t>(count));
      operations::fill_random(DataType::f32, 3, seed++, std::as_writable_bytes(std::span(made)));
      return made;
    };
    const auto product = [](const std::vector<float>& a, const std::vector<float>& b) {
      double sum = 0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      return sum;
    };
    std::vector<float> x = integers(elements.x), w = integers(elements.w), dy = integers(elements.y), y = dy, dw = w;
    run_shifted(shifted_context(), problem, {.allow = {"conv2d/direct"}}, x, w, y);
    problem.pass = Pass::backward_filter;
    run_shifted(shifted_context(), problem, {.solver = shifted_panels}, x, dw, dy);
    EXPECT_EQ(product(y, dy), product(w, dw)) << text;
    EXPECT_NE(product(w, dw), 0) << text;
  }
}

// A tap alone is not dilated, and a single output has no next one, however large the number; padding that a stride
// passes by is in no panel.
TEST(ShiftedPanels, LargeNumbers) {
  for (const char* layout : {"nchw", "nhwc"})
    for (const char* geometry :
         {"n1c2h7w9k2r1s1d4611686018427387904", "n2c9h7w9k2r1s3dh4611686018427387904",
          "n2c5h3w3k7r3s3u4611686018427387904", "n2c9h3w5k7r1s1u4611686018427387904",
          "n2c9h3w5k7r1s1u9223372036854775807", "n2c9h5w2k3r1s1pl9223372036854775800uw9223372036854775800",
          "n2c9h2w5k3r1s1pt9223372036854775800uh9223372036854775800",
          "n2c9h2w5k3r1s1pt9223372036854775800uh4611686018427387900"})
      for (const char* type : {"f32", "f64"})
        expect_shifted(filter_gradient(fmt::format("{} {} {}", layout, type, geometry)));
}

// Panels that no memory holds are refused, and others serve.
TEST(ShiftedPanels, PanelsTooLargeAreRefused) {
  for (const char* text :
       {"n200c1h1w1k1r2s1pt4611686018427387001uh4611686018427387000", "n1c20h1w1k1r2s2p40000000000u40000000000",
        "f16 n1c7h1w1k1r1s2pl4611686018427387001uw4611686018427387000"}) {
    const Conv2dProblem problem = filter_gradient(text);
    const auto all = explain(shifted_context(), problem, {});
    EXPECT_TRUE(all.front().applicable) << text;
    EXPECT_NE(all.front().solver, shifted_panels) << text;
    const std::string reason = error_of([&] { Conv2dPlan(shifted_context(), problem, {.solver = shifted_panels}); });
    EXPECT_NE(reason.find("is too large"), std::string::npos) << reason;
  }
}

// What no output reads with a tap is no term of its gradient: with an infinite element of x in turn, each gradient is
// what its own terms say.
TEST(ShiftedPanels, GradientsReadNoMoreThanTheyAreOf) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const Context context = shifted_context();
  for (const char* text :
       {"n1c1h3w6k1r3s3", "nhwc n1c1h3w6k1r3s3", "n1c7h4w6k2r2s3", "nhwc n1c7h4w6k2r2s3", "n1c1h7w8k2r2s2u3",
        "n1c8h5w7k1r1s1u2", "nhwc n1c8h5w7k1r1s1u2", "flip n2c3h4w7k2r2s3dh2uw2"}) {
    const Conv2dProblem problem = filter_gradient(text);
    const Conv2dShape g(problem);
    const Conv2dElements elements = elements_of(problem);
    std::vector<float> x(static_cast<std::size_t>(elements.x), 1.0f), y(static_cast<std::size_t>(elements.y), 1.0f),
        w(static_cast<std::size_t>(elements.w));
    for (std::size_t place = 0; place < x.size(); ++place) {
      x[place] = infinite;
      run_shifted(context, problem, {.solver = shifted_panels}, x, w, y);
      std::vector<float> expected(w.size());
      for (std::int64_t k = 0; k < g.k; ++k)
        for (std::int64_t c = 0; c < g.c; ++c)
          for (std::int64_t r = 0; r < g.r; ++r)
            for (std::int64_t s = 0; s < g.s; ++s)
              for (std::int64_t n = 0; n < g.n; ++n)
                for (std::int64_t p = 0; p < g.p; ++p)
                  for (std::int64_t q = 0; q < g.q; ++q)
                    expected[static_cast<std::size_t>(g.w_at(k, c, r, s))] +=
                        x[static_cast<std::size_t>(g.x_at(n, c, g.row_of(p, r), g.column_of(q, s)))];
      ASSERT_EQ(w, expected) << text << ", " << place;
      x[place] = 1;
    }
  }
}

// Of the filters that share a panel, one with a NaN leaves the others their numbers.
TEST(ShiftedPanels, NanStaysWithItsFilter) {
  for (const char* layout : {"nchw", "nhwc"}) {
    const Conv2dProblem problem = filter_gradient(fmt::format("{} n2c9h5w6k11r3s3", layout));
    const Conv2dShape g(problem);
    const Conv2dElements elements = elements_of(problem);
    std::vector<float> x = random_floats(elements.x, 1), y = random_floats(elements.y, 2),
                       w(static_cast<std::size_t>(elements.w));
    y[static_cast<std::size_t>(g.y_at(1, 10, 2, 3))] = std::numeric_limits<float>::quiet_NaN();
    run_shifted(shifted_context(), problem, {.solver = shifted_panels}, x, w, y);
    for (std::int64_t k = 0; k < g.k; ++k)
      for (std::int64_t c = 0; c < g.c; ++c)
        for (std::int64_t tap = 0; tap < 9; ++tap)
          EXPECT_EQ(std::isnan(w[static_cast<std::size_t>(g.w_at(k, c, tap / 3, tap % 3))]), k == 10) << layout << k;
  }
}

// pack_panel: every count of lines and steps, in both orders; nothing else is written.
template <typename Real>
void expect_packed(DataType type) {
  const std::int64_t size = size_of(type);
  for (const bool adjacent : {true, false})
    for (std::int64_t count = 1; count <= 19; ++count)
      for (const std::int64_t width : {count, round_up(count, 16)})
        for (std::int64_t steps = 1; steps <= 39; ++steps) {
          const std::int64_t ld = (adjacent ? steps : count) + 3, rows = adjacent ? count : steps,
                             last = (rows - 1) * ld + (adjacent ? steps : count);
          std::vector<std::byte> stored(static_cast<std::size_t>(last * size));
          for (std::int64_t i = 0; i < last; ++i)
            store_element(type, static_cast<double>(i % 251 + 1), stored.data() + i * size);
          std::vector<Real> packed(static_cast<std::size_t>(width * steps + 2), Real{-7});
          kernels::pack_panel({stored.data(), type, ld, adjacent}, count, width, steps, packed.data() + 1);
          for (std::int64_t t = 0; t < steps; ++t)
            for (std::int64_t i = 0; i < width; ++i) {
              const std::int64_t from = adjacent ? i * ld + t : t * ld + i;
              ASSERT_EQ(packed[static_cast<std::size_t>(t * width + i + 1)],
                        i < count ? static_cast<Real>(from % 251 + 1) : Real{0})
                  << adjacent << ": line " << i << " of " << count << " at step " << t << " of " << steps;
            }
          ASSERT_EQ(packed.front(), Real{-7});
          ASSERT_EQ(packed.back(), Real{-7});
        }
}

TEST(ShiftedPanels, PanelsArePackedWhole) {
  expect_packed<float>(DataType::f32);
  expect_packed<float>(DataType::f16);
  expect_packed<float>(DataType::bf16);
  expect_packed<double>(DataType::f64);
}

// Tiles and vectors of each size; panels begin at whole vectors, or loads of them fail.
TEST(ShiftedPanels, InstructionSets) {
  int sets = 0;
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    ++sets;
    for (const char* type : {"f32", "f64", "f16", "bf16"})
      for (const char* words : {"nchw acc", "nhwc flip"})
        for (const char* geometry : {"n3c9h7w9k35r3s3p1", "n2c3h9w11k20r5s5p2u2", "n2c15h8w9k17r1s1u2",
                                     "n1c29h5w7k70r2s3p1", "n2c10h6w7k6r3s3p1g2"})
          expect_shifted(filter_gradient(fmt::format("{} {} {}", type, words, geometry)));
    for (const char* text : {"n3c40h70w70k48r3s3p1", "f64 nhwc n7c60h33w30k40r3s3p1"}) {
      if (instrumented) continue;  // slow, where vectors are emulated
      const Conv2dProblem problem = filter_gradient(text);
      expect_shifted(problem, blocking(problem, 0).workspace_bytes(), 100);
    }
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  // Where there is AVX2 there is SSE4 too.
  EXPECT_GE(sets, (hwy::SupportedTargets() & HWY_TARGETS & HWY_AVX2) != 0 ? 2 : 1);
}

TEST(ShiftedPanels, IsChosen) {
  for (const char* geometry :
       {"n4c128h28w28k128r3s3p1", "n4c256h56w56k256r3s3p1", "n4c512h7w7k512r3s3p1", "n4c3h224w224k64r7s7p3u2"})
    for (const char* layout : {"nchw", "nhwc"}) {
      const Conv2dProblem problem = filter_gradient(fmt::format("{} {}", layout, geometry));
      // Winograd's filtering is faster where it may serve.
      EXPECT_EQ(explain(shifted_context(), problem, {.deny = {"conv2d/winograd"}}).front().solver, shifted_panels)
          << to_text(problem);
    }
}

TEST(ShiftedPanels, Refusals) {
  for (const char* pass : {"fwd", "bwd_data"}) {
    const std::string reason = error_of([&] {
      Conv2dPlan(shifted_context(), conv2d_problem(fmt::format("{} n1c4h8w8k4r3s3", pass)), {.solver = shifted_panels});
    });
    EXPECT_NE(reason.find("serves bwd_filter"), std::string::npos) << reason;
  }
}

// The matrix unit, by its model where the processor has none.
class ShiftedTiles : public testing::Test {
 protected:
  ShiftedTiles() {
    if (kernels::matrix_unit() == kernels::MatrixUnit::none) kernels::set_matrix_unit(kernels::MatrixUnit::model);
  }
  ~ShiftedTiles() override { kernels::set_matrix_unit(kernels::MatrixUnit::processor); }

  static constexpr const char* by_tiles = "conv2d/shifted_panels/cpu-tiles.1";
};

// Panels whole and not, single taps and many, strides, dilations, paddings larger than the image, groups, long rows,
// several chunks, bands and parts; and as little workspace as there can be.
TEST_F(ShiftedTiles, EveryLayoutAndLimit) {
  std::size_t number = 0;
  for (const char* geometry :
       {"n2c5h6w7k5r3s3p1",     "n2c40h9w8k33r1s1",       "n1c15h9w8k15r3s3p1g3",       "n1c35h8w9k37r3s2p1u2",
        "n1c13h8w9k7r4s5p2uw3", "n1c2h6w15k6r5s14p6",     "n2c34h7w9k66r3s3p1g2",       "n1c66h5w6k16r2s2d2",
        "n11c9h7w7k6r3s3p1",    "n2c20h9w33k20r3s3p1",    "n1c7h2w1077k6r1s5dw3",       "n2c9h3w2k6r3s3p1u4",
        "n1c1h5w6k1r3s3p1",     "n2c7h20w20k4r3s3p2d2u2", "n1c5h4w3k6r1s1pl5uw3pt7uh2", "n3c40h60w60k40r3s3p1",
        "n1c9h14w16k8r1s3uh3",  "n1c4h40w40k8r3s3u5",     "n2c4h17w19k3r7s7p3u2",       "n1c3h9w9k2r6s7p3"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"", "acc", "flip"}) {
        if (instrumented && ++number % 4 != 0) continue;
        const Conv2dProblem problem = filter_gradient(fmt::format("{} bf16 {} {}", words, layout, geometry));
        for (const std::int64_t limit : {std::int64_t{-1}, operations::GradientCut(problem, 0).workspace_bytes()}) {
          const checking::VerifyOptions options{.solver = {.solver = by_tiles, .max_workspace_bytes = limit},
                                                .sampled = true,
                                                .samples = samples(500),
                                                .may_be_zero = true};
          EXPECT_EQ(expect_exact_and_bounded(shifted_context(), problem, options), 1)
              << to_text(problem) << ", " << limit;
        }
      }
  const operations::GradientCut cut(filter_gradient("bf16 n3c40h60w60k40r3s3p1"), -1);
  EXPECT_GT(cut.parts, 1);
  EXPECT_GT(cut.chunks(), 1);
  EXPECT_GT(operations::GradientCut(filter_gradient("bf16 n3c40h60w60k40r3s3p1"), 0).bands(), 3);
}

// Whatever the limit, each chunk is of one band, and the bound is the same.
TEST_F(ShiftedTiles, BandsAreWholeChunks) {
  for (const char* text : {"bf16 n3c40h61w60k40r3s3p1", "bf16 n70c64h7w7k64r3s3p1", "bf16 n2c40h60w200k30r3s3p1u2"}) {
    const Conv2dProblem problem = filter_gradient(text);
    const operations::GradientCut whole(problem, -1), least(problem, 0);
    EXPECT_LT(least.workspace_bytes(), whole.workspace_bytes()) << text;
    for (std::int64_t limit = whole.workspace_bytes(); limit > least.workspace_bytes() / 2; limit = limit * 3 / 4) {
      const operations::GradientCut cut(problem, limit);
      EXPECT_LE(cut.workspace_bytes(), std::max(limit, least.workspace_bytes())) << text;
      EXPECT_EQ(cut.chunk_rows, whole.chunk_rows) << text;
      EXPECT_EQ(cut.parts, whole.parts) << text;
      EXPECT_EQ(cut.chain(), whole.chain()) << text;
      std::int64_t rows = 0;
      for (std::int64_t i = 0; i < cut.bands(); ++i) {
        const operations::GradientBand band = cut.band(i);
        EXPECT_EQ(band.row % cut.chunk_rows, 0) << text;
        EXPECT_TRUE(band.images == 1 || band.rows == cut.shape.p) << text;
        rows += band.images * band.rows;
      }
      EXPECT_EQ(rows, cut.shape.n * cut.shape.p) << text;
    }
  }
}

TEST_F(ShiftedTiles, ThreadsAndLimitsChangeNothing) {
  for (const char* text : {"bf16 acc n3c40h60w60k40r3s3p1", "bf16 nhwc flip n70c40h7w7k50r3s3p1g2"}) {
    const Conv2dProblem problem = filter_gradient(text);
    const Conv2dElements elements = elements_of(problem);
    const auto numbers = [](std::int64_t count, std::uint64_t seed) {
      std::vector<std::byte> made(static_cast<std::size_t>(count * size_of(DataType::bf16)));
      operations::fill_random(DataType::bf16, 0, seed, made);
      return made;
    };
    const std::vector<std::byte> x = numbers(elements.x, 1), y = numbers(elements.y, 2);
    std::vector<std::byte> expected;
    for (const int threads : {1, 2, 5})
      for (const std::int64_t limit : {std::int64_t{-1}, operations::GradientCut(problem, 0).workspace_bytes()}) {
        const Context context = shifted_context(threads);
        const Plan plan(context, problem, {.solver = by_tiles, .max_workspace_bytes = limit});
        Queue queue = context.make_queue();
        const auto given = [&](const std::vector<std::byte>& data) {
          Buffer buffer = context.allocate(static_cast<std::int64_t>(data.size()));
          queue.upload(buffer, 0, data.data(), buffer.bytes()).wait();
          return buffer;
        };
        const std::vector<std::byte> filled(static_cast<std::size_t>(plan.workspace_bytes()), std::byte{0xFF});  // NaN
        std::vector<std::byte> w = numbers(elements.w, 3);
        const Buffer result = given(w);
        plan.run(queue, {{"x", {given(x)}}, {"dw", {result}}, {"dy", {given(y)}}}, given(filled)).wait();
        queue.download(w.data(), result, 0, result.bytes()).wait();
        if (expected.empty()) expected = w;
        EXPECT_TRUE(w == expected) << text << ", " << threads << " threads, " << limit;
      }
  }
}

TEST_F(ShiftedTiles, ArraysBeginAnywhere) {
  for (const char* text : {"bf16 n2c35h9w12k19r3s3", "bf16 nhwc n2c35h9w12k19r3s3u2"})
    expect_same_wherever_arrays_begin(shifted_context(), filter_gradient(text), by_tiles);
}

}  // namespace
}  // namespace omniconv
