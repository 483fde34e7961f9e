// Winograd's filtering backward to the filter: how it cuts a problem, what it computes of its strips, chunks, bands and
// units, its bound, and where it is chosen.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../error_testing.h"
#include "conformance.h"
#include "conv2d_testing.h"
#include "core/checked.h"
#include "operations/conv2d/reference/tile_norms.h"
#include "operations/conv2d/winograd/filter_blocking.h"

namespace omniconv {
namespace {

using operations::StripRange, operations::WinogradFilterBlocking;

constexpr const char* winograd_filter = "conv2d/winograd/cpu.1";

Context winograd_filter_context(int threads = 2) {
  return Context({.device = "cpu", .threads = threads});
}

Conv2dProblem winograd_gradient(const std::string& text) {
  return with_pass(conv2d_problem(text), Pass::backward_filter);
}

WinogradFilterBlocking filter_blocking(const Conv2dProblem& problem, std::int64_t limit = -1, int threads = 2,
                                       const std::string& tuning = "") {
  return {problem, {3, 4}, operations::Tuning::parse(tuning), threads, limit};
}

// Of the workspace: none, the whole, between, the least.
std::vector<std::int64_t> winograd_filter_limits(const Conv2dProblem& problem) {
  const std::int64_t whole = filter_blocking(problem).workspace_bytes(),
                     least = filter_blocking(problem, 0).workspace_bytes();
  return {-1, whole, (least + whole) / 2, least};
}

// Exact on small integers where its form is, and within its bound on random numbers, by this solver alone.
void expect_winograd_gradient(const Conv2dProblem& problem, const SolverOptions& request = {}, std::int64_t some = 0) {
  checking::VerifyOptions options{
      .solver = request, .sampled = some > 0 || instrumented, .samples = samples(some > 0 ? some : 2000)};
  options.solver.solver = winograd_filter;
  EXPECT_EQ(expect_exact_and_bounded(winograd_filter_context(), problem, options), 1)
      << to_text(problem) << ", " << request.tuning;
}

// Each geometry in both layouts and with both tiles, the types and the words in turn.
void expect_gradients_in_turn(std::initializer_list<const char*> geometries) {
  constexpr std::array types = {"f32", "f64", "tf32"};
  std::size_t number = 0;
  for (const char* geometry : geometries)
    for (const char* layout : {"nchw", "nhwc"})
      for (const int tile : {4, 2})
        for (const char* words : {"", "acc", "flip", "acc flip"}) {
          if (instrumented && number % 3 != 0 && ++number) continue;
          expect_winograd_gradient(
              winograd_gradient(fmt::format("{} {} {} {}", words, types[number++ % 3], layout, geometry)),
              {.tuning = fmt::format("tile={} tiles=256 steps=128", tile)});
        }
}

TEST(WinogradFilter, EveryLayoutTypeWordAndTile) {
  for (const char* type : {"f32", "f64", "tf32"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"", "acc", "flip", "acc flip"})
        for (const char* tuning : {"", "tile=4 tiles=32 steps=256", "tile=2 tiles=32 steps=256"})
          expect_winograd_gradient(winograd_gradient(fmt::format("{} {} {} n3c18h9w11k20r3s3p1", words, type, layout)),
                                   {.tuning = tuning});
}

TEST(WinogradFilter, Groups) {
  expect_gradients_in_turn({"n2c6h7w9k6r3s3p1g6", "n2c18h7w9k36r3s3p1g2", "n2c10h6w6k30r3s3g5", "n1c33h5w7k33r3s3p1g33",
                            "n1c40h5w7k2r3s3p1g2", "n2c4h9w8k40r3s3p1g4"});
}

// Images that no whole tiles cover, down to single outputs.
TEST(WinogradFilter, RaggedTiles) {
  std::size_t number = 0;
  for (const int h : {3, 4, 5, 6, 7, 8, 9, 10})
    for (const int w : {3, 4, 5, 6, 7, 8, 9, 10})
      for (const char* layout : {"nchw", "nhwc"})
        for (const int tile : {4, 2}) {
          if (instrumented && ++number % 7 != 0) continue;
          expect_winograd_gradient(winograd_gradient(fmt::format("{} n2c3h{}w{}k5r3s3", layout, h, w)),
                                   {.tuning = fmt::format("tile={} tiles=32 steps=128", tile)});
        }
}

// None, some larger than the filter, and of four kinds: rows and whole tiles that meet nothing.
TEST(WinogradFilter, Paddings) {
  expect_gradients_in_turn({"n2c9h6w7k10r3s3pt1pb2pl3pr4", "n1c3h5w6k4r3s3p7", "n2c8h4w5k9r3s3", "n1c7h3w4k5r3s3p19",
                            "n1c9h1w1k2r3s3p1", "n1c9h5w5k3r3s3pt2", "n1c9h5w5k3r3s3pr2", "n2c1h4w4k1r3s3pb5pl6",
                            "n1c5h4w3k6r3s3pl1pt17"});
}

// Channels and filters that fill no panel.
TEST(WinogradFilter, ChannelsAndFilters) {
  std::size_t number = 0;
  for (const int c : {1, 2, 3, 5, 7, 8, 13, 16, 17, 33})
    for (const int k : {1, 2, 3, 5, 6, 7, 13, 17, 33, 50})
      for (const char* layout : {"nchw", "nhwc"}) {
        if (instrumented && ++number % 5 != 0) continue;
        expect_winograd_gradient(winograd_gradient(fmt::format("{} n2c{}h6w7k{}r3s3p1", layout, c, k)));
      }
}

TEST(WinogradFilter, ManySmallImages) {
  expect_gradients_in_turn({"n1c8h7w7k9r3s3p1", "n11c9h7w7k3r3s3p1", "n23c3h7w7k17r3s3p1", "n300c7h1w1k5r3s3p1",
                            "n257c2h3w1k3r3s3p1", "n70c8h9w3k9r3s3"});
}

// Rows of more tiles than a chunk has.
TEST(WinogradFilter, LongRows) {
  expect_gradients_in_turn({"n1c7h3w1030k3r3s3", "n1c3h2w2100k9r3s3p1", "n2c8h6w1500k4r3s3p1"});
}

// What a problem is cut into: whatever the limit and the threads, chunks have the same tiles in the same order, and
// each tile is in one of them.
TEST(WinogradFilter, ChunksCoverEveryTileOnce) {
  std::int64_t most_bands = 0;
  for (const char* text : {"n3c40h70w70k48r3s3p1", "n1c64h100w100k64r3s3p1", "n1c200h33w4100k9r3s3p1",
                           "n301c64h7w7k64r3s3p1", "f64 n5c3h120w150k20r3s3p2", "n1c1h1w1k1r3s3p1",
                           "n2c300h20w513k300r3s3p1", "n9c512h14w14k512r3s3p1", "n2c64h224w224k64r3s3p1g64"})
    for (const char* tuning : {"", "tile=4 tiles=32 steps=128", "tile=4 tiles=1024 steps=512"}) {
      const Conv2dProblem problem = winograd_gradient(text);
      const WinogradFilterBlocking whole = filter_blocking(problem, -1, 2, tuning);
      for (std::int64_t limit = whole.workspace_bytes(); limit > 0; limit = limit * 3 / 4)
        for (const int threads : {1, 2, 7}) {
          const WinogradFilterBlocking cut = filter_blocking(problem, limit, threads, tuning);
          EXPECT_EQ(cut.chunk_strips, whole.chunk_strips) << text;
          EXPECT_EQ(cut.strip_tiles, whole.strip_tiles) << text;
          EXPECT_EQ(cut.chain(), whole.chain()) << text;
          EXPECT_LE(cut.chunk_strips * cut.strip_tiles, cut.step_limit) << text;
          std::int64_t strips = 0, tiles = 0;
          for (std::int64_t i = 0; i < cut.bands(); ++i) {
            const StripRange band = cut.band(i);
            EXPECT_EQ(band.first, strips) << text;
            EXPECT_EQ(band.first % cut.chunk_strips, 0) << text;
            EXPECT_GT(band.count, 0) << text;
            EXPECT_LE(cut.steps_of(band) * cut.x_width, cut.x_panel()) << text;
            for (std::int64_t strip = 0; strip < band.count; ++strip) tiles += cut.tiles_of(band.first + strip);
            strips += band.count;
          }
          EXPECT_EQ(strips, cut.strips()) << text;
          EXPECT_EQ(tiles, problem.n * divide_up(P(problem), 4) * divide_up(Q(problem), 4)) << text;
          most_bands = std::max(most_bands, cut.bands());
        }
    }
  EXPECT_GT(most_bands, 10);
}

// A limit is kept to where there are bands that do; else the least is needed.
TEST(WinogradFilter, KeepsToWorkspaceLimits) {
  for (const char* text :
       {"n3c40h70w70k48r3s3p1", "n1c512h28w28k512r3s3p1", "n4c3h224w224k64r3s3p1", "n301c64h7w7k64r3s3p1"})
    for (const char* layout : {"nchw", "nhwc"}) {
      const Conv2dProblem problem = winograd_gradient(fmt::format("{} {}", layout, text));
      const std::int64_t whole = filter_blocking(problem).workspace_bytes(),
                         least = filter_blocking(problem, 0).workspace_bytes();
      EXPECT_LE(least, whole) << text;
      for (std::int64_t limit = whole; limit > least / 2; limit = limit * 7 / 8)
        EXPECT_LE(filter_blocking(problem, limit).workspace_bytes(), std::max(limit, least)) << text << ", " << limit;
      const SolverOptions kept{.solver = winograd_filter,
                               .max_workspace_bytes = least,
                               .tuning = filter_blocking(problem).tuning().to_text()},
          passed{.solver = winograd_filter, .max_workspace_bytes = least - 1, .tuning = kept.tuning};
      const Context context = winograd_filter_context();
      EXPECT_TRUE(explain(context, problem, kept).front().applicable) << text;
      EXPECT_EQ(explain(context, problem, kept).front().workspace_bytes, least) << text;
      EXPECT_FALSE(explain(context, problem, passed).front().applicable) << text;
    }
}

// Problems of several bands and chunks, whole and under limits.
TEST(WinogradFilter, BandsAndChunks) {
  for (const char* geometry : {"n3c40h70w70k48r3s3p1", "n1c64h100w100k64r3s3p1", "n5c3h120w150k20r3s3p2",
                               "n1c20h3w5000k20r3s3p1", "n300c9h7w7k10r3s3p1", "n2c60h50w50k60r3s3p3g3"}) {
    int bands = 0;
    for (const char* words : {"nchw", "nhwc acc flip"}) {
      const Conv2dProblem problem = winograd_gradient(fmt::format("{} {}", words, geometry));
      const std::string tuning = filter_blocking(problem).tuning().to_text();
      for (const std::int64_t limit : winograd_filter_limits(problem)) {
        if (instrumented && limit != winograd_filter_limits(problem).back()) continue;
        bands += filter_blocking(problem, limit).bands() > 1;
        expect_winograd_gradient(problem, {.max_workspace_bytes = limit, .tuning = tuning}, 150);
      }
    }
    EXPECT_GT(bands, 0) << geometry;
  }
}

std::vector<float> random_numbers(std::int64_t count, std::uint64_t seed, int integers = 0) {
  std::vector<float> made(static_cast<std::size_t>(count));
  operations::fill_random(DataType::f32, integers, seed, std::as_writable_bytes(std::span(made)));
  return made;
}

void run_gradient(const Context& context, const Conv2dProblem& problem, const SolverOptions& options,
                  std::vector<float>& x, std::vector<float>& w, std::vector<float>& y) {
  Queue queue = context.make_queue();
  const Conv2dPlan plan(context, problem, options);
  Conv2dRun run{
      .x = {context.borrow(std::span(x))}, .w = {context.borrow(std::span(w))}, .y = {context.borrow(std::span(y))}};
  if (plan.workspace_bytes() > 0) {
    run.workspace = context.allocate(plan.workspace_bytes());
    const std::vector<std::byte> anything(static_cast<std::size_t>(plan.workspace_bytes()), std::byte{0xFF});  // NaN
    queue.upload(run.workspace, 0, anything.data(), run.workspace.bytes()).wait();
  }
  plan.run(queue, run).wait();
}

// The bits follow neither from the number of threads nor from a limit of the workspace, nor from what it held.
TEST(WinogradFilter, ThreadsAndLimitsChangeNothing) {
  int number = 0;
  for (const char* text : {"n3c20h90w110k40r3s3p1", "nhwc acc n3c20h90w110k40r3s3p1", "n5c3h120w150k20r3s3p2",
                           "nhwc flip n70c40h7w7k50r3s3p1g2", "n1c9h40w1500k40r3s3p1", "n1c40h9w9k8r3s3"}) {
    if (instrumented && number++ % 3 != 0) continue;
    const Conv2dProblem problem = winograd_gradient(text);
    const Conv2dElements elements = elements_of(problem);
    const std::string tuning = filter_blocking(problem).tuning().to_text();
    std::vector<float> x = random_numbers(elements.x, 1), y = random_numbers(elements.y, 2), expected;
    for (const int threads : {1, 2, 5})
      for (const std::int64_t limit : winograd_filter_limits(problem)) {
        const std::int64_t least = filter_blocking(problem, 0, threads).workspace_bytes(),
                           most = limit < 0 ? -1 : std::max(limit, least);
        std::vector<float> w = random_numbers(elements.w, 3);
        run_gradient(winograd_filter_context(threads), problem,
                     {.solver = winograd_filter, .max_workspace_bytes = most, .tuning = tuning}, x, w, y);
        for (const float value : w) ASSERT_TRUE(std::isfinite(value)) << text;
        if (expected.empty()) expected = w;
        EXPECT_EQ(w, expected) << text << ", " << threads << " threads, " << most;
      }
  }
}

TEST(WinogradFilter, ArraysBeginAnywhere) {
  for (const char* text : {"n2c9h14w30k10r3s3p1", "nhwc n2c19h9w12k19r3s3p1", "nhwc n2c3h9w12k21r3s3",
                           "acc n1c13h9w12k8r3s3", "n3c16h7w7k16r3s3p1"})
    expect_same_wherever_arrays_begin(winograd_filter_context(), winograd_gradient(text), winograd_filter);
}

// <conv(x, w), dy> = <w, dw>, exactly, since all are small integers and tiles are the smaller ones.
TEST(WinogradFilter, IsAdjointToForward) {
  std::uint64_t seed = 1;
  for (const char* text : {"n2c10h14w30k15r3s3p1g5", "nhwc n2c19h9w12k19r3s3p2", "n1c3h20w33k12r3s3pt2",
                           "flip nhwc n3c4h9w9k20r3s3p1", "flip n2c8h13w12k7r3s3"}) {
    Conv2dProblem problem = conv2d_problem(text);
    const Conv2dElements elements = elements_of(problem);
    const auto product = [](const std::vector<float>& a, const std::vector<float>& b) {
      double sum = 0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      return sum;
    };
    std::vector<float> x = random_numbers(elements.x, seed++, 3), w = random_numbers(elements.w, seed++, 3),
                       dy = random_numbers(elements.y, seed++, 3), y = dy, dw = w;
    run_gradient(winograd_filter_context(), problem, {.allow = {"conv2d/direct"}}, x, w, y);
    problem.pass = Pass::backward_filter;
    run_gradient(winograd_filter_context(), problem, {.solver = winograd_filter, .tuning = "tile=2 tiles=64 steps=128"},
                 x, dw, dy);
    EXPECT_EQ(product(y, dy), product(w, dw)) << text;
    EXPECT_NE(product(w, dw), 0) << text;
  }
}

// The tile's amplification is what max_error limits.
TEST(WinogradFilter, MaxErrorLimitsTheTile) {
  const Conv2dProblem problem = winograd_gradient("n4c64h56w56k64r3s3p1");
  const auto offered = [&](double most) {
    return explain(winograd_filter_context(), problem, {.solver = winograd_filter, .max_error = most}).front();
  };
  for (const double most : {1024.0, 211.0})
    EXPECT_TRUE(offered(most).bound.starts_with("210.25 * (")) << offered(most).bound;
  for (const double most : {210.0, 16.0}) EXPECT_TRUE(offered(most).bound.starts_with("16 * (")) << offered(most).bound;
  EXPECT_NE(offered(16).bound.find("sum|dy|"), std::string::npos) << offered(16).bound;
  EXPECT_FALSE(offered(15.9).applicable);
  EXPECT_NE(offered(15.9).reason.find("amplified 16 times, and max_error is 15.9"), std::string::npos);
}

// What the checker takes for the norm, element by element: in sums over tiles of dy, ragged ones among them.
TEST(WinogradFilter, NormsAreOfAllTiles) {
  for (const char* text : {"n2c4h7w6k6r3s3p1g2", "nhwc flip n2c2h9w5k3r3s3pt2"})
    for (const std::int64_t tile : {4, 2}) {
      const Conv2dProblem problem = winograd_gradient(text);
      const Conv2dShape g(problem);
      const Conv2dElements elements = elements_of(problem);
      const std::vector<float> x = random_numbers(elements.x, 1), y = random_numbers(elements.y, 2);
      reference::TileNorms norms(
          problem,
          {reinterpret_cast<const std::byte*>(x.data()), nullptr, reinterpret_cast<const std::byte*>(y.data())}, tile,
          tile);
      for (std::int64_t k = 0; k < g.k; ++k)
        for (std::int64_t c = 0; c < g.c_group; ++c) {
          double expected = 0;
          for (std::int64_t n = 0; n < g.n; ++n)
            for (std::int64_t p = 0; p < g.p; p += tile)
              for (std::int64_t q = 0; q < g.q; q += tile) {
                double sum = 0, largest = 0;
                for (std::int64_t i = p; i < std::min(p + tile, g.p); ++i)
                  for (std::int64_t j = q; j < std::min(q + tile, g.q); ++j)
                    sum += std::fabs(y[static_cast<std::size_t>(g.y_at(n, k, i, j))]);
                for (std::int64_t h = std::max<std::int64_t>(p - g.pad_top, 0);
                     h < std::min(p - g.pad_top + tile + 2, g.h); ++h)
                  for (std::int64_t w = std::max<std::int64_t>(q - g.pad_left, 0);
                       w < std::min(q - g.pad_left + tile + 2, g.w); ++w)
                    largest = std::max<double>(
                        largest,
                        std::fabs(x[static_cast<std::size_t>(g.x_at(n, k / g.k_group * g.c_group + c, h, w))]));
                expected += sum * largest;
              }
          for (std::int64_t tap = 0; tap < 9; ++tap)
            EXPECT_NEAR(norms.at(g.w_at(k, c, tap / 3, tap % 3)), expected, 1e-12 * expected) << text;
        }
    }
}

// A large input that a tap does not meet is what the bound's norm is there for.
TEST(WinogradFilter, LargeInputsElsewhereInTheTile) {
  std::vector<float> x(64, 1.0f), w(9), y(36, 0.0f);
  x[0] = 0x1p20f;
  y[2 * 6 + 2] = 1;  // no tap reads x[0] with it
  run_gradient(winograd_filter_context(), winograd_gradient("n1c1h8w8k1r3s3"),
               {.solver = winograd_filter, .tuning = "tile=4 tiles=32 steps=128"}, x, w, y);
  const operations::WinogradError error = operations::winograd_error({3, 4});
  const double bound = error.amplification * (0.5 + error.roundings / 2 + 2) * 0x1p-23 * 0x1p20;
  for (const float value : w) EXPECT_NEAR(value, 1, bound);
}

// One output alone, one input alone: each tap that joins them, wherever they are.
TEST(WinogradFilter, SingleProducts) {
  const Context context = winograd_filter_context();
  for (const char* text : {"n2c2h7w6k2r3s3p1", "nhwc n2c2h7w6k2r3s3p1", "flip n2c2h7w6k2r3s3p1"}) {
    const Conv2dProblem problem = winograd_gradient(text);
    const Conv2dShape g(problem);
    const Conv2dElements elements = elements_of(problem);
    std::vector<float> x(static_cast<std::size_t>(elements.x)), w(static_cast<std::size_t>(elements.w)),
        y(static_cast<std::size_t>(elements.y));
    for (std::int64_t p = 0; p < g.p; ++p)
      for (std::int64_t q = 0; q < g.q; ++q) {
        const std::int64_t r = (p + q) % 3, s = (p + 2 * q) % 3, h = g.row_of(p, r), column = g.column_of(q, s);
        if (h < 0 || h >= g.h || column < 0 || column >= g.w) continue;
        const auto x_at = static_cast<std::size_t>(g.x_at(1, 1, h, column)),
                   y_at = static_cast<std::size_t>(g.y_at(1, 0, p, q)),
                   w_at = static_cast<std::size_t>(g.w_at(0, 1, r, s));
        x[x_at] = 2, y[y_at] = 3;
        run_gradient(context, problem, {.solver = winograd_filter, .tuning = "tile=2 tiles=32 steps=128"}, x, w, y);
        for (std::size_t i = 0; i < w.size(); ++i) ASSERT_EQ(w[i], i == w_at ? 6 : 0) << text << ": " << p << ", " << q;
        x[x_at] = 0, y[y_at] = 0;
      }
  }
}

// Tiles and vectors of each size.
TEST(WinogradFilter, InstructionSets) {
  int sets = 0;
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    ++sets;
    for (const char* type : {"f32", "f64"})
      for (const char* words : {"nchw acc", "nhwc flip"})
        for (const char* geometry :
             {"n3c9h7w9k35r3s3p1", "n2c3h9w11k20r3s3p2", "n1c29h5w7k70r3s3p1", "n2c10h6w7k6r3s3p1g2"})
          for (const int tile : {4, 2})
            expect_winograd_gradient(winograd_gradient(fmt::format("{} {} {}", type, words, geometry)),
                                     {.tuning = fmt::format("tile={} tiles=32 steps=128", tile)});
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  // Where there is AVX2 there is SSE4 too.
  EXPECT_GE(sets, (hwy::SupportedTargets() & HWY_TARGETS & HWY_AVX2) != 0 ? 2 : 1);
}

TEST(WinogradFilter, IsChosen) {
  const auto chosen = [](const std::string& text) {
    return explain(winograd_filter_context(), winograd_gradient(text), {}).front().solver;
  };
  for (const char* layout : {"nchw", "nhwc"}) {
    for (const char* geometry : {"n4c64h56w56k64r3s3p1", "n4c256h56w56k256r3s3p1", "n4c512h14w14k512r3s3p1"})
      EXPECT_EQ(chosen(fmt::format("{} {}", layout, geometry)), winograd_filter) << layout << geometry;
    for (const char* geometry : {"n4c3h224w224k64r3s3p1", "n1c64h3w3k64r3s3p1", "n4c64h56w56k64r3s3p1g64"})
      EXPECT_NE(chosen(fmt::format("{} {}", layout, geometry)), winograd_filter) << layout << geometry;
  }
}

TEST(WinogradFilter, Refusals) {
  const auto reason = [](const std::string& text, const SolverOptions& options) {
    return error_of([&] { Conv2dPlan(winograd_filter_context(), winograd_gradient(text), options); });
  };
  for (const char* text : {"n1c4h9w9k4r5s5", "n1c4h9w9k4r3s5", "n1c4h9w9k4r3s3u2", "n1c4h9w9k4r3s3d2"})
    EXPECT_NE(reason(text, {.solver = winograd_filter}).find("serves "), std::string::npos) << text;
  EXPECT_NE(reason("n1c4h9w9k4r3s3", {.solver = winograd_filter, .prepared = {"x"}}).find("prepared"),
            std::string::npos);
  EXPECT_NE(reason("n1c4h9w9k4r3s3", {.solver = winograd_filter, .relative_error = true}).find("own terms"),
            std::string::npos);
}

}  // namespace
}  // namespace omniconv
