// Convolution by Fourier transforms: the transforms against the definition, what is served, and within which bound.
#include "operations/conv2d/fft/fft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "conformance.h"
#include "conv2d_testing.h"
#include "omniconv/plan.h"
#include "operations/conv2d/fft/transforms.h"

namespace omniconv {
namespace {

constexpr const char* id = "conv2d/fft/cpu.1";

Context cpu(int threads = 2) {
  return Context({.device = "cpu", .threads = threads});
}

// A plane of random numbers for each lane.
template <typename Real>
std::vector<Real> random_planes(std::int64_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<Real> numbers(-1, 1);
  std::vector<Real> planes(static_cast<std::size_t>(count));
  for (Real& value : planes) value = numbers(engine);
  return planes;
}

// Aligned as workspaces are.
template <typename Real>
struct Aligned {
  explicit Aligned(std::int64_t count)
      : memory(static_cast<std::size_t>(count) + 64 / sizeof(Real)),
        data(reinterpret_cast<Real*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64)) {}
  std::vector<Real> memory;
  Real* data;
};

// Bin (i, j) of a tile by the definition.
template <typename Real>
std::complex<double> bin_of(const Real* tile, std::int64_t rows, std::int64_t columns, std::int64_t side,
                            std::int64_t i, std::int64_t j) {
  std::complex<double> sum = 0;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      sum += double{tile[r * columns + c]} *
             std::polar(1.0, -2 * M_PI * static_cast<double>((i * r + j * c) % side) / static_cast<double>(side));
  return sum;
}

// Tiles of odd extents, at a tile's edges and beyond them, against the definition in double; and back.
template <typename Real>
void expect_transforms(const operations::FftTransforms<Real>& transforms, std::int64_t rows, std::int64_t columns) {
  const std::int64_t side = transforms.side, lanes = transforms.lanes, point = 2 * lanes;
  const double unit = sizeof(Real) == 4 ? 0x1p-24 : 0x1p-53, roundings = operations::fft_roundings(side);
  const std::vector<Real> planes = random_planes<Real>(lanes * rows * columns, 7);
  operations::FftSource<Real> source{
      .count = lanes, .h = rows, .w = columns, .row_pitch = columns, .rows = side, .columns = side};
  for (std::int64_t lane = 0; lane < lanes; ++lane)
    source.from[static_cast<std::size_t>(lane)] = planes.data() + lane * rows * columns;
  Aligned<Real> spectrum(side * (side / 2 + 1) * point), scratch(transforms.scratch_elements);
  transforms.forward(source, true, spectrum.data, {side * point, point}, scratch.data);
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const Real* const tile = source.from[static_cast<std::size_t>(lane)];
    double norm = 0;
    for (std::int64_t i = 0; i < rows * columns; ++i) norm += double{tile[i]} * double{tile[i]};
    const double most = (2 * roundings + 1) * unit * 2 * static_cast<double>(side) * std::sqrt(norm);
    for (const std::int64_t j : {std::int64_t{0}, std::int64_t{1}, side / 2 - 3, side / 2})
      for (std::int64_t i = 0; i < side; i += side / 8 + 1) {
        const Real* const at = spectrum.data + (j * side + operations::fft_place(i, side)) * point + lane;
        const std::complex<double> expected = 2.0 * std::conj(bin_of(tile, rows, columns, side, i, j));
        EXPECT_LE(std::abs(std::complex<double>(at[0], at[lanes]) - expected), most)
            << side << ": " << i << ", " << j << " of lane " << lane;
      }
  }
  transforms.forward(source, false, spectrum.data, {side * point, point}, scratch.data);
  std::vector<Real> back(planes.size());
  operations::FftTarget<Real> target;
  target.count = lanes, target.row_pitch = columns;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const auto l = static_cast<std::size_t>(lane);
    target.to[l] = back.data() + lane * rows * columns, target.rows[l] = rows, target.columns[l] = columns;
  }
  transforms.inverse(spectrum.data, {side * point, point}, target, scratch.data);
  const double most = (4 * roundings + 2) * unit * std::sqrt(static_cast<double>(rows * columns));
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(2 * back[i], planes[i], most) << side << ": " << i;
}

TEST(Fft, TransformsAreThoseOfTheDefinition) {
  for (const std::int64_t side : operations::fft_sides) {
    expect_transforms(operations::fft_transforms_f32(side), side, side);
    expect_transforms(operations::fft_transforms_f32(side), side - 3, side / 2 + 3);
    expect_transforms(operations::fft_transforms_f64(side), side, side);
    expect_transforms(operations::fft_transforms_f64(side), 5, side - 1);
  }
}

Candidate explained(const std::string& text, const SolverOptions& options = {.solver = id}) {
  for (const Candidate& candidate : explain(cpu(), parse_problem(text), options))
    if (candidate.solver == id) return candidate;
  throw bad_input("not among the candidates");
}
std::string refusal(const std::string& text, const SolverOptions& options = {.solver = id}) {
  const Candidate candidate = explained(text, options);
  EXPECT_FALSE(candidate.applicable) << text;
  return candidate.reason;
}

TEST(Fft, RefusesWhatItDoesNotServe) {
  const auto expect = [](const std::string& reason, const char* part) {
    EXPECT_NE(reason.find(part), std::string::npos) << reason;
  };
  expect(refusal("n1c4h9w9k4r3s3p1u2"), "strides of 1");
  expect(refusal("n1c4h9w9k4r3s3p1uw2"), "strides of 1");
  expect(refusal("n1c4h9w9k4r3s3p1dw2"), "without dilation");
  expect(refusal("n1c1h300w300k1r129s3"), "up to 128 x 128");
  expect(refusal("f16 n1c4h9w9k4r3s3"), "f32, tf32 and f64");
  expect(refusal("n1c4h9w9k4r3s3", {.solver = id, .relative_error = true}), "not an element's own terms");
  expect(refusal("n1c4h9w9k4r3s3", {.solver = id, .prepared = {"x"}}), "of w alone");
  expect(refusal("n1c4h90w90k4r17s3", {.solver = id, .tuning = "tile=16"}), "do not hold filters of 17 x 3");
  expect(refusal("n1c1048577h9w9k4r3s3"), "up to 2^20 channels");
}

// Extents from one element to several ragged tiles; filters as large as the image, and of one row.
constexpr const char* geometries[] = {"n1c1h1w1k1r1s1",        "n1c1h1w1k1r3s3p1",      "n2c3h5w7k4r5s7",
                                      "n2c3h19w23k4r5s3p2",    "n3c5h40w9k7r3s3pt2pb1", "n1c2h14w70k3r1s9pw4",
                                      "n1c9h33w20k17r7s1ph3",  "n2c6h19w23k9r3s3p1g3",  "n1c17h9w12k10r5s5p4",
                                      "n2c4h20w15k4r3s3p1g4",  "n1c1h50w40k1r16s15p7",  "n1c19h30w9k19r5s5pl5pr1g19",
                                      "n1c2h40w33k5r16s16p15", "n9c2h6w7k3r3s3p1",      "n2c1h60w75k1r3s5p1",
                                      "n3c3h9w30k3r7s7p3g3",   "n2c3h12w9k4r12s9"};

TEST(Fft, IsWithinItsBound) {
  int number = 0;
  for (const char* geometry : geometries)
    for (const char* words :
         {"", "flip bias relu acc", "bwd_data", "bwd_data flip acc", "bwd_filter", "bwd_filter flip acc"})
      for (const char* layout : {"nchw", "nhwc"})
        for (const std::int64_t tile : {16, 32}) {
          if (instrumented && number++ % 5 != 0) continue;
          const std::string text = fmt::format("{} {} {}", words, layout, geometry);
          expect_exact_and_bounded(cpu(), conv2d_problem(text),
                                   {.solver = {.solver = id, .tuning = fmt::format("tile={}", tile)}});
        }
}

TEST(Fft, OfF64AndTf32) {
  for (const char* words : {"f64", "tf32", "f64 nhwc bwd_data", "f64 bias relu acc", "f64 bwd_filter", "f64 nhwc flip"})
    for (const char* geometry : {"n2c9h11w21k18r3s3p1", "n1c5h40w30k5r7s5p3g5"})
      expect_exact_and_bounded(cpu(), conv2d_problem(fmt::format("{} {}", words, geometry)),
                               {.solver = {.solver = id}});
}

// Of a single tile that holds the image, and of several.
TEST(Fft, LargeTilesServe) {
  int number = 0;
  for (const char* words : {"", "nhwc flip acc", "bwd_data", "nhwc bwd_data", "bwd_filter", "nhwc bwd_filter flip"})
    for (const char* geometry : {"n2c3h45w50k4r33s17p16", "n1c12h200w90k12r65s40p20g12", "n1c2h150w70k3r5s128pw64"})
      for (const char* tuning : {"tile=64", "tile=128"}) {
        if (instrumented && number++ % 5 != 0) continue;
        const std::string text = fmt::format("{} {}", words, geometry);
        if (explained(text, {.solver = id, .tuning = tuning}).applicable)
          expect_exact_and_bounded(cpu(), conv2d_problem(text),
                                   {.solver = {.solver = id, .tuning = tuning}, .sampled = true, .samples = 300});
      }
}

// The tile's amplification is what max_error limits: a smaller tile is taken below that of the larger, none below the
// smallest one's.
TEST(Fft, MaxErrorLimitsTheTile) {
  const char* const text = "n1c1h500w500k1r16s16p7";
  const auto bound = [&](double most) { return explained(text, {.solver = id, .max_error = most}).bound; };
  EXPECT_TRUE(bound(1024).starts_with("90.5097 * (2/2 + ")) << bound(1024);
  EXPECT_TRUE(bound(90).starts_with("45.2548 * (2/2 + ")) << bound(90);
  EXPECT_TRUE(bound(45).starts_with("22.6274 * (2/2 + ")) << bound(45);
  const std::string reason = refusal(text, {.solver = id, .max_error = 22});
  EXPECT_NE(reason.find("amplified 22.6274 times, and max_error is 22"), std::string::npos) << reason;
  EXPECT_NE(refusal("n1c1h500w500k1r17s16p7", {.solver = id, .max_error = 45}).find("amplified 45.2548 times"),
            std::string::npos);
}

// Of a single element, zeros do not count.
TEST(Fft, AmplificationIsOfWhatATileReads) {
  const auto bound = [](const char* text) {
    return operations::fft_bound(conv2d_problem(text), operations::FftShape(conv2d_problem(text), 16));
  };
  EXPECT_NEAR(bound("n1c1h100w100k1r3s3").amplification, 16 * std::sqrt(2), 1e-12);
  EXPECT_NEAR(bound("n1c1h4w9k1r3s3p8").amplification, 6 * std::sqrt(2), 1e-12);
  EXPECT_NEAR(bound("bwd_data n1c1h4w9k1r3s3").amplification, std::sqrt(2 * 2 * 7), 1e-12);
  EXPECT_EQ(bound("n1c7h100w100k1r3s3").chain, 14);
  EXPECT_EQ(bound("bwd_filter n2c7h16w28k1r3s3").chain, 2 * 2 * 2);
}

std::vector<float> output_of(const Context& context, const Problem& problem, const SolverOptions& options) {
  const Plan plan(context, problem, options);
  Queue queue = context.make_queue();
  std::vector<NamedOperand> arrays;
  std::uint64_t seed = 1;
  for (const ArraySpec& array : plan.arrays()) {
    Buffer buffer = context.allocate(array.bytes());
    operations::fill_random(array.type, 0, seed++, {buffer.impl()->host(), static_cast<std::size_t>(array.bytes())});
    if (plan.format(array.name) != nullptr) {
      const Buffer prepared = context.allocate(plan.format(array.name)->bytes);
      plan.prepare(queue, array.name, {buffer}, prepared).wait();
      arrays.push_back({array.name, {prepared, 0, plan.format(array.name)}});
    } else {
      arrays.push_back({array.name, {buffer}});
    }
  }
  plan.run(queue, arrays, context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))).wait();
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (plan.arrays()[i].role == ArrayRole::out) {
      const auto* const from = reinterpret_cast<const float*>(arrays[i].operand.buffer.impl()->host());
      return {from, from + plan.arrays()[i].elements()};
    }
  return {};
}

constexpr const char* blocked[] = {"n3c20h61w60k40r5s5p2",
                                   "nhwc n3c20h61w60k40r5s5p2g2",
                                   "bwd_data n3c20h61w60k40r5s5p2g2",
                                   "bwd_filter n9c40h61w60k40r5s5p2",
                                   "nhwc bwd_filter n3c20h61w60k40r5s5p2g2",
                                   "n3c40h50w40k40r7s7p3g40",
                                   "nhwc bwd_filter n3c40h50w40k40r7s7p3g40",
                                   "bwd_filter flip n5c2h70w60k2r7s7p3g2",
                                   "n9c40h61w60k20r5s5p2",    // several blocks of tiles
                                   "n1c64h20w20k200r5s5p2"};  // one, and several of filters

// Neither threads nor blocks change a bit, nor do filters that come transformed.
TEST(Fft, BitsAreOfTheProblemAlone) {
  int number = 0;
  for (const char* text : blocked) {
    if (instrumented && number++ % 3 != 0) continue;
    const Problem problem = parse_problem(text);
    const SolverOptions options{.solver = id, .tuning = "tile=16"};
    const std::vector<float> expected = output_of(cpu(), problem, options);
    EXPECT_EQ(output_of(cpu(1), problem, options), expected) << text;
    SolverOptions limited = options;
    if (std::string(text).find("bwd_filter") == std::string::npos) {
      limited.prepared = {"w"};
      EXPECT_EQ(output_of(cpu(), problem, limited), expected) << text;
      limited.max_workspace_bytes = explained(text, limited).workspace_bytes / 2;
      if (explained(text, limited).applicable) {
        EXPECT_EQ(output_of(cpu(), problem, limited), expected) << text;
      }
      limited = options;
    }
    std::int64_t smallest = explained(text, options).workspace_bytes;
    for (std::int64_t limit = smallest - 1; limit > 0; limit = limit * 3 / 4) {
      limited.max_workspace_bytes = limit;
      const Candidate candidate = explained(text, limited);
      if (!candidate.applicable) continue;
      EXPECT_LE(candidate.workspace_bytes, limit) << text;
      if (candidate.workspace_bytes == smallest) continue;
      smallest = candidate.workspace_bytes;
      EXPECT_EQ(output_of(cpu(), problem, limited), expected) << text << ", limit " << limit;
    }
  }
}

// Of images of other sizes, where the tile is the same.
TEST(Fft, PreparedFiltersAreShared) {
  expect_filters_shared(cpu(), id, "tile=16", "r3s5");
  EXPECT_NE(format_of_filters(cpu(), id, "tile=16", "n1c16h20w20k24r3s5p1"),
            format_of_filters(cpu(), id, "tile=16", "n1c16h20w20k24r5s3p1"));
}

TEST(Fft, KeepsToWorkspaceLimits) {
  for (const char* text : blocked) {
    const SolverOptions free{.solver = id, .tuning = "tile=16"};
    SolverOptions limited = free;
    limited.max_workspace_bytes = 64;
    const std::string reason = refusal(text, limited);
    EXPECT_NE(reason.find("workspace"), std::string::npos) << reason;
    const std::int64_t least = explained(text, limited).workspace_bytes;
    if (least <= 0) continue;
    EXPECT_LE(least, explained(text, free).workspace_bytes) << text;
  }
}

// Of an impulse the output is the filter, and of a filter of one tap the image, within the bound of one product.
TEST(Fft, ImpulsesGiveFilters) {
  const Context context = cpu();
  Queue queue = context.make_queue();
  constexpr std::int64_t extent = 40, taps = 9;
  for (const std::int64_t at : {std::int64_t{0}, 13 * extent + 27, extent * extent - 1}) {
    std::vector<float> x(extent * extent), w = random_planes<float>(taps * taps, 3), y(extent * extent);
    x[static_cast<std::size_t>(at)] = 1;
    const Conv2dPlan plan(context, conv2d_problem("n1c1h40w40k1r9s9p4 flip"), {.solver = id});
    plan.run(queue, {.x = {context.borrow(std::span(x))},
                     .w = {context.borrow(std::span(w))},
                     .y = {context.borrow(std::span(y))},
                     .workspace = context.allocate(plan.workspace_bytes())})
        .wait();
    for (std::int64_t i = 0; i < extent * extent; ++i) {
      const std::int64_t r = i / extent - at / extent + taps / 2, s = i % extent - at % extent + taps / 2;
      const bool inside = r >= 0 && r < taps && s >= 0 && s < taps;
      EXPECT_NEAR(y[static_cast<std::size_t>(i)], inside ? w[static_cast<std::size_t>(r * taps + s)] : 0, 1e-5)
          << at << ", " << i;
    }
  }
}

// Where filters are large auto takes it, where they are small it does not.
TEST(Fft, AutoTakesItWhereFiltersAreLarge) {
  const auto chosen = [](const char* text) { return explain(cpu(), parse_problem(text), {}).front().solver; };
  for (const char* text :
       {"n1c32h64w64k32r11s11p5", "n1c1h1024w1024k1r31s31p15", "n4c32h64w64k32g32r31s31p15", "n1c3h512w512k3r15s15p7",
        "bwd_data n1c32h64w64k32r11s11p5", "bwd_filter n1c32h64w64k32r11s11p5"})
    EXPECT_EQ(chosen(text), id) << text;
  for (const char* text : {"n4c64h56w56k64r3s3p1", "n4c64h56w56k64r1s1", "n4c256h14w14k256r3s3p1",
                           "n16c64h28w28k64g64r3s3p1", "bwd_filter n4c256h14w14k256r3s3p1"})
    EXPECT_NE(chosen(text), id) << text;
}

}  // namespace
}  // namespace omniconv
