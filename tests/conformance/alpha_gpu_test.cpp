// Premultiplied alpha on every device of the program's kind, and the division that it rests on.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "../devices/gpu_testing.h"
#include "alpha_testing.h"
#include "devices/device.h"
#include "midpoints_testing.h"
#include "text/device_text.h"

namespace omniconv {
namespace {

class EveryDeviceWithAlpha : public testing::TestWithParam<const char*> {};

// Every case is a text to compile, which takes longer than to run: each form of weights meets one border and one
// position of opacity for each type, not all of them.
TEST_P(EveryDeviceWithAlpha, FormsBordersPositions) {
  const std::string type = GetParam();
  const char* const five_borders[] = {"constant:3", "replicate", "reflect101", "wrap", "valid"};
  const char* const positions[] = {"c4{} alpha:3", "c2{} alpha:0", "c3{} alpha:1", "c5{} alpha:2"};
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    std::size_t i = type.size();
    for (const char* kernel :
         {"r3s5 kernel:random", "r3s5 kernel:rank1", "r4s3 kernel:equal", "r3s3 kernel:laplacian"}) {
      const auto shape = [&](const char* position) { return fmt::format(fmt::runtime(position), kernel); };
      expect_conformance(context,
                         fmt::format("filter2d {} h9w143{} {}", type, shape(positions[0]), five_borders[i % 5]));
      expect_conformance(context, fmt::format("filter2d {} h21w31{} wrap", type, shape(positions[1 + i % 3])),
                         {.strip_rows = 4});
      ++i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(GpuAlpha, EveryDeviceWithAlpha,
                         testing::Values("u8", "u16", "s32", "f16", "f32", "u8>u16", "f32>u8"), [](const auto& type) {
                           std::string name = type.param;
                           std::replace(name.begin(), name.end(), '>', '_');
                           return name;
                         });

TEST(GpuAlpha, OpaqueImagesAreFilteredAsIfThereWereNoAlpha) {
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    for (const char* text : {"filter2d u8 h21w37c4r5s5 kernel:gaussian:5,1.1", "filter2d u16 h21w37c4r7s6 kernel:equal",
                             "filter2d u8>f32 h21w37c4r3s5", "filter2d u8 h21w37c4r3s3 kernel:laplacian"})
      expect_opaque_as_plain(context, text, 3);
  }
}

// As on the CPU: nothing is divided by no opacity.
TEST(GpuAlpha, WhereAllIsTransparentColorsAreTheBias) {
  const Filter filter{.weights = {0.25, 0.5, 0.25}, .bias = 9};
  const std::vector<std::uint8_t> pixels{0, 50, 0, 60, 0, 70, 200, 80};
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    EXPECT_EQ(run_on<std::uint8_t>(context, filter_problem("filter2d u8 h1w4c2r1s3 alpha:0"), filter, pixels),
              (std::vector<std::uint8_t>{0, 9, 0, 9, 50, 89, 150, 89}));
    EXPECT_EQ(run_on<std::int16_t>(context, filter_problem("filter2d u8>s16 h1w3c2r1s3 alpha:1"),
                                   {.weights = {-1, 3, -1}, .bias = -7}, {10, 0, 20, 0, 30, 0}),
              (std::vector<std::int16_t>{-7, 0, -7, 0, -7, 0}));
  }
}

// Rows that are long enough for work items of several pixels, each position of opacity, borders in turn.
TEST(GpuAlpha, PixelsThatAreWords) {
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    for (const char* text : {"h19w530c4r3s3 alpha:3 constant:3", "h9w700c4r5s4 alpha:0 reflect",
                             "h21w301c4r1s2 alpha:2 valid", "h8w290c4r4s1 alpha:1 wrap", "h40w300c4r7s6 alpha:3"})
      expect_conformance(context, fmt::format("filter2d u8 {}", text), {.strip_rows = 5});
  }
}

// Rows of such pixels that begin anywhere are read byte by byte.
TEST(GpuAlpha, PixelsThatBeginAnywhere) {
  const Filter2dProblem problem = filter_problem("filter2d u8 h11w300c4r3s3 alpha:3");
  const Filter filter = filter_for(problem, 1);
  std::mt19937 random(1);
  std::vector<std::uint8_t> pixels(11 * 1200);
  for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random());
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    const Filter2dPlan plan(context, problem, filter);
    Queue queue = context.make_queue();
    constexpr std::int64_t stride = 1203, offset = 5;
    std::vector<std::uint8_t> apart(offset + 11 * stride), made(apart.size());
    for (std::int64_t row = 0; row < 11; ++row)
      std::copy_n(pixels.begin() + row * 1200, 1200, apart.begin() + offset + row * stride);
    const auto bytes = static_cast<std::int64_t>(apart.size());
    const Buffer input = context.allocate(bytes), output = context.allocate(bytes);
    queue.upload(input, 0, apart.data(), bytes).wait();
    plan.run(queue, {.input = input,
                     .output = output,
                     .workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1)),
                     .input_offset_bytes = offset,
                     .output_offset_bytes = offset,
                     .input_stride_bytes = stride,
                     .output_stride_bytes = stride})
        .wait();
    queue.download(made.data(), output, 0, bytes).wait();
    const std::vector<std::uint8_t> expected = run_on<std::uint8_t>(context, problem, filter, pixels);
    for (std::int64_t row = 0; row < 11; ++row)
      EXPECT_TRUE(std::equal(expected.begin() + row * 1200, expected.begin() + (row + 1) * 1200,
                             made.begin() + offset + row * stride))
          << id << ", row " << row;
  }
}

TEST(GpuAlpha, AKernelLargerThanItsUnrolledCode) {
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    expect_conformance(context, "filter2d u8 h40w50c4r9s11 alpha:3");
    expect_conformance(context, "filter2d u8 h40w50c4r37s41 alpha:3 kernel:rank1");
  }
}

// Random quotients, and the hardest: n = q d moved by one unit, where q is a midpoint of two fp32 numbers.
std::vector<float> hard_dividends(const std::vector<float>& divisors, std::mt19937& random) {
  std::vector<float> dividends;
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const auto exponent = static_cast<int>(random() % 60) - 30;
    const double mantissa =
        static_cast<double>((1u << 24) + (random() & 0xFFFFFFu));  // 25 bits: every other a midpoint
    const auto n = static_cast<float>(std::ldexp(mantissa, exponent) * static_cast<double>(divisors[i]));
    const float up = std::nextafter(n, INFINITY), down = std::nextafter(n, 0.0f);
    dividends.push_back(i % 3 == 0 ? n : i % 3 == 1 ? up : down);
    if (random() % 2 == 0) dividends.back() = -dividends.back();
  }
  return dividends;
}

// Quotients q of devices, by a kernel of a text that is built behind exact_division.kernel.
void expect_quotients(const std::string& kernel, const devices::Definition& definition,
                      const std::vector<float>& dividends, const std::vector<float>& divisors) {
  const std::string text = std::string(kernels::exact_division()) +
                           "KERNEL void quotients(GLOBAL const float* n, GLOBAL const float* d, GLOBAL float* q) {\n" +
                           kernel + "}\n";
  const auto count = static_cast<std::int64_t>(divisors.size());
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    Queue queue = context.make_queue();
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(float));
    const Buffer n = context.allocate(bytes), d = context.allocate(bytes), q = context.allocate(bytes);
    queue.upload(n, 0, dividends.data(), bytes);
    queue.upload(d, 0, divisors.data(), bytes);
    const auto program = context.impl()->build(text, std::span(&definition, 1));
    const devices::KernelArgument arguments[] = {n.impl().get(), d.impl().get(), q.impl().get()};
    queue.impl()->launch(program, "quotients", {{count, 1}, {64, 1}}, arguments).wait();
    std::vector<float> found(static_cast<std::size_t>(count));
    queue.download(found.data(), q, 0, bytes).wait();
    int wrong = 0;
    for (std::size_t i = 0; i < found.size() && wrong < 10; ++i) {
      const float expected = dividends[i] / divisors[i];
      if (found[i] == expected) continue;
      ++wrong;
      ADD_FAILURE() << id << ": " << dividends[i] << " / " << divisors[i] << " is " << expected << ", found "
                    << found[i];
    }
  }
}

// Random divisors, and dividends that are hard for them.
std::vector<float> random_divisors(std::int64_t count, std::mt19937& random) {
  std::vector<float> divisors;
  for (std::int64_t i = 0; i < count; ++i)
    divisors.push_back(
        std::ldexp(static_cast<float>((1u << 23) + (random() & 0x7FFFFFu)), static_cast<int>(random() % 60) - 50));
  return divisors;
}

TEST(GpuAlpha, QuotientsAreThoseOfIeee754) {
  std::mt19937 random(3);
  std::vector<float> divisors = random_divisors(1 << 20, random), dividends = hard_dividends(divisors, random);
  const std::vector<std::pair<float, float>> special = {
      {0.0f, 3.0f},           {1.0f, 1.0f},           {1.0f, 3.0f},
      {255.0f, 1.0f},         {0x1p-140f, 0x1p-130f}, {0x1.fffffep127f, 2.0f},
      {2.0f, -3.0f},          {0x1.fffffep0f, 1.0f},  {1.0f, 0x1.fffffep0f},
      {0x1p-149f, 0x1p-149f}, {5.0f, INFINITY},       {INFINITY, 5.0f}};
  for (std::size_t i = 0; i < special.size(); ++i) std::tie(dividends[i], divisors[i]) = special[i];
  expect_quotients("  q[GLOBAL_ID_X] = divide(n[GLOBAL_ID_X], d[GLOBAL_ID_X]);\n", {"QUOTIENTS_ARE_NORMAL", "0"},
                   dividends, divisors);
}

TEST(GpuAlpha, QuotientsByOneReciprocalAreThoseOfIeee754) {
  std::mt19937 random(5);
  std::vector<float> divisors = random_divisors(1 << 19, random), dividends = hard_dividends(divisors, random);
  const auto add = [&](float n, float d) { dividends.push_back(n), divisors.push_back(d); };
  // Down from 2^24, where reciprocals are the hardest, and anywhere.
  for (std::uint32_t i = 1; i < 1 << 17; ++i) {
    const std::uint32_t d = i % 2 == 0 ? (1u << 24) - i / 2 : (1u << 23) + (random() & 0x7FFFFFu);
    const int exponent_n = static_cast<int>(random() % 40) - 40, exponent_d = static_cast<int>(random() % 40) - 40;
    for_nearest_to_midpoints(d, 3, [&](float n, int) {
      add(std::ldexp(n, exponent_n), std::ldexp(static_cast<float>(d), exponent_d));
      add(-n, static_cast<float>(d));
    });
  }
  EXPECT_GT(divisors.size(), std::size_t{3} << 18);
  for (const float n : {0.0f, 1.0f, 255.0f, 0x1p-90f, 0x1.fffffep20f, 0x1.aaaaa6p0f})
    for (const float d : {1.0f, 3.0f, 0x1p-20f, 0x1.fffffap0f, 0x1.fffffep0f}) add(n, d);
  while (divisors.size() % 64 != 0) add(1, 1);
  expect_quotients(
      "  const divisor_t divisor = divisor_of(d[GLOBAL_ID_X]);\n"
      "  q[GLOBAL_ID_X] = quotient_by(&divisor, n[GLOBAL_ID_X]);\n",
      {"QUOTIENTS_ARE_NORMAL", "1"}, dividends, divisors);
}

// Also weights so small, or so far apart, that quotients of their sums may not share a reciprocal.
TEST(GpuAlpha, WeightsOfAllMagnitudes) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> pixels(17 * 40 * 4);
  for (std::uint8_t& value : pixels) value = random() % 3 == 0 ? 0 : static_cast<std::uint8_t>(random());
  const Context cpu({.device = "cpu"});
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    for (const double most : {1.0, 0x1p-40, 0x1p-90, 0x1p80})
      for (const double share : {1.0, 0x1p-20, 0x1p-40})
        for (const char* text : {"filter2d u8 h17w40c4r3s3 alpha:3", "filter2d u8>f32 h17w40c4r3s3 alpha:1"}) {
          Filter filter{.weights = std::vector<double>(9)};
          for (std::size_t i = 0; i < 9; ++i)
            filter.weights[i] = most * (i % 2 == 0 ? 1 : share) * (static_cast<double>(random() % 100) - 20) / 64;
          filter.weights[4] += 4 * most;
          const Filter2dProblem problem = filter_problem(text);
          std::vector<std::byte> image(pixels.size());
          std::memcpy(image.data(), pixels.data(), pixels.size());
          EXPECT_EQ(run_bytes(context, problem, filter, image), run_bytes(cpu, problem, filter, image))
              << id << ", " << text << ", weights of " << most << " and " << share << " of it";
        }
  }
}

}  // namespace
}  // namespace omniconv
