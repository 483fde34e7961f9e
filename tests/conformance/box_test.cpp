// filter2d/box where it differs from other solvers: windows larger than blocks and images, sums at the limits of their
// types, infinities that must not spread.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/convert.h"
#include "cpu_testing.h"
#include "operations/filter2d/reference/filter2d.h"

namespace omniconv {
namespace {

const char* const box = "filter2d/box/cpu.1";

// Equal weights of 1 / (r * s).
Filter mean_of(const Filter2dProblem& problem) {
  const std::int64_t taps = problem.r * problem.s;
  return {.weights = std::vector<double>(static_cast<std::size_t>(taps), 1.0 / static_cast<double>(taps))};
}

// The box alone: the references take r * s steps for each element of the whole image.
void expect_box(const std::string& text, std::int64_t samples, std::int64_t strip_rows = 0) {
  const Filter2dProblem problem = problem_of(text);
  const checking::VerifyOptions options{
      .solver = {.solver = box}, .sampled = true, .samples = samples, .strip_rows = strip_rows};
  for (const checking::VerifyResult& result :
       checking::verify(cpu(), problem, operations::AnyTask(task_for(problem, filter_for(problem))), options))
    EXPECT_EQ(result.status, checking::Status::ok) << text << ", strips of " << strip_rows << ": " << result.reason;
}

// The box's output for an image of the type's values.
template <typename Stored>
std::vector<std::byte> filtered(const Filter2dProblem& problem, const Filter& filter, std::vector<Stored>& image) {
  const Filter2dPlan plan(cpu(), problem, filter, {.solver = box});
  std::vector<std::byte> output(
      static_cast<std::size_t>(P(problem) * Q(problem) * problem.c * size_of(problem.output)));
  Queue queue = cpu().make_queue();
  plan.run(queue, {.input = cpu().borrow(image.data(), static_cast<std::int64_t>(image.size() * sizeof(Stored))),
                   .output = cpu().borrow(output.data(), static_cast<std::int64_t>(output.size())),
                   .workspace = cpu().allocate(plan.workspace_bytes())})
      .wait();
  return output;
}

// An image whose pixels are all `value`: every window's sum is r * s of them.
template <typename Stored>
void expect_sums_of(const std::string& text, Stored value) {
  const Filter2dProblem problem = problem_of(text);
  const Filter filter = mean_of(problem);
  std::vector<Stored> image(static_cast<std::size_t>(problem.h * problem.w * problem.c), value);
  const std::vector<std::byte> output = filtered(problem, filter, image);
  const std::int64_t sum = static_cast<std::int64_t>(value) * problem.r * problem.s;
  std::byte expected[8];
  store_element(problem.output, static_cast<float>(sum) * static_cast<float>(filter.weights.front()), expected);
  const auto size = static_cast<std::size_t>(size_of(problem.output));
  for (std::size_t at = 0; at < output.size(); at += size)
    ASSERT_EQ(load_element(problem.output, output.data() + at), load_element(problem.output, expected))
        << text << " at element " << at / size;
}

// Each pair lies on both sides of a limit: of u16 and then i32 along windows, of u16 down columns, of 64-bit sums.
TEST(Box, SumsAtTheLimitsOfTheirTypes) {
  for (const char* size :
       {"r1s257", "r1s258", "r257s1", "r258s1", "r257s3", "r16s16", "r17s16", "r257s257", "r300s301"})
    for (const char* channels : {"c1", "c3", "c40"}) {
      const std::string geometry = fmt::format("h5w40{}{}", channels, size);
      expect_sums_of<std::uint8_t>("filter2d u8>f32 " + geometry, 255);
      expect_sums_of<std::uint16_t>("filter2d u16>f32 " + geometry, 65535);
      expect_sums_of<std::int16_t>("filter2d s16>f32 " + geometry, -32768);
    }
  for (const char* size : {"r181s181", "r181s182", "r255s257", "r256s256"}) {  // 2^31 / 65535 and 2^31 / 32768
    const std::string geometry = fmt::format("h4w70c3{}", size);
    expect_sums_of<std::uint16_t>("filter2d u16>f32 " + geometry, 65535);
    expect_sums_of<std::int16_t>("filter2d s16>f32 " + geometry, -32768);
    expect_sums_of<std::int16_t>("filter2d s16>f32 " + geometry, 32767);
  }
  for (const std::int32_t value : {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()})
    for (const char* size : {"r3s3", "r31s31", "r200s201"})
      for (const char* channels : {"c1", "c3", "c9"})
        expect_sums_of<std::int32_t>(fmt::format("filter2d s32>f32 h6w50{}{}", channels, size), value);
}

// Long rows of extremes in turn, so that running sums rise and fall over their whole range.
template <typename Stored>
void expect_definition_on_waves(const std::string& text) {
  const Filter2dProblem problem = problem_of(text);
  const Filter filter = mean_of(problem);
  std::vector<Stored> image(static_cast<std::size_t>(problem.h * problem.w * problem.c));
  for (std::int64_t h = 0; h < problem.h; ++h)
    for (std::int64_t w = 0; w < problem.w; ++w)
      for (std::int64_t ch = 0; ch < problem.c; ++ch)
        image[static_cast<std::size_t>((h * problem.w + w) * problem.c + ch)] =
            ((w / problem.s + h / problem.r + ch) % 2 != 0) ? std::numeric_limits<Stored>::max()
                                                            : std::numeric_limits<Stored>::lowest();
  const std::vector<std::byte> output = filtered(problem, filter, image);
  const Filter2dTask task{problem, analyse(problem, filter)};
  const RowWindow x{reinterpret_cast<const std::byte*>(image.data()),
                    problem.w * problem.c * static_cast<std::int64_t>(sizeof(Stored)), 0, problem.h};
  const std::int64_t size = size_of(problem.output);
  for (std::int64_t p = 0; p < P(problem); ++p)
    for (std::int64_t q = 0; q < Q(problem); ++q)
      for (std::int64_t ch = 0; ch < problem.c; ++ch) {
        std::byte expected[8];
        reference::definition_element(task, x, p, q, ch, expected);
        const std::byte* const found = output.data() + ((p * Q(problem) + q) * problem.c + ch) * size;
        ASSERT_EQ(std::memcmp(found, expected, static_cast<std::size_t>(size)), 0)
            << text << ": y[" << p << ", " << q << ", " << ch << "]";
      }
}

TEST(Box, LongRowsOfExtremes) {
  for (const char* rest : {"h7w9000c1r2s31", "h9w5000c3r3s9 wrap", "h12w1500c4r7s37 reflect", "h6w900c19r3s11 valid"}) {
    expect_definition_on_waves<std::uint8_t>(fmt::format("filter2d u8 {}", rest));
    expect_definition_on_waves<std::uint16_t>(fmt::format("filter2d u16 {}", rest));
    expect_definition_on_waves<std::int16_t>(fmt::format("filter2d s16 {}", rest));
    expect_definition_on_waves<std::int32_t>(fmt::format("filter2d s32>f32 {}", rest));
  }
}

class EveryBoxType : public testing::TestWithParam<const char*> {};

TEST_P(EveryBoxType, LargeBoxes) {
  for (const char* border : {"constant:9", "replicate", "reflect", "reflect101", "wrap"})
    for (const char* size : {"h50w300c3r101s7", "h20w300c3r3s201", "h9w11c2r31s41", "h1w1c3r64s65", "h3w200c20r5s33"})
      expect_box(fmt::format("filter2d {} {} {} kernel:equal", GetParam(), size, border), 400);
  expect_box(fmt::format("filter2d {} h120w400c3r101s77 valid kernel:equal", GetParam()), 400);
}

// Rows of several blocks of columns, whose borders reach from one end of the row to the other; strips, where columns
// give the threads their work.
TEST_P(EveryBoxType, BlocksOfColumns) {
  for (const char* border : {"constant:9", "replicate", "reflect", "wrap", "valid"}) {
    expect_box(fmt::format("filter2d {} h310w3000c3r301s21 {} kernel:equal", GetParam(), border), 200);
    for (const std::int64_t strip : {1, 5})
      expect_box(fmt::format("filter2d {} h40w3000c3r15s31 {} kernel:equal", GetParam(), border), 400, strip);
  }
}

// Every length of window and number of channels: steps shorter and longer than a vector, tails of every length.
TEST_P(EveryBoxType, WindowsAndChannels) {
  for (const int s : {1, 2, 3, 5, 6, 7, 8, 13, 16, 31, 32, 33, 64})
    for (const int c : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33})
      expect_box(fmt::format("filter2d {} h4w37c{}r2s{} kernel:equal", GetParam(), c, s), 200);
}

INSTANTIATE_TEST_SUITE_P(Filter2d, EveryBoxType,
                         testing::ValuesIn(types_to_check({"u8", "u16", "s16", "s32", "f16", "f32", "f64", "u8>f32",
                                                           "f32>u8", "f16>f64"})),
                         [](const auto& type) {
                           std::string name = type.param;
                           std::replace(name.begin(), name.end(), '>', '_');
                           return name;
                         });

// An infinity and a NaN change the windows that hold them, and not a bit elsewhere.
TEST(Box, InfinitiesStayWhereTheyAre) {
  const Filter2dProblem problem = problem_of("filter2d f32 h60w300c3r7s9");
  const Filter filter = mean_of(problem);
  std::vector<float> image(static_cast<std::size_t>(problem.h * problem.w * problem.c));
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 251) - 0.3f;
  const std::vector<std::byte> clean = filtered(problem, filter, image);
  const auto at = [&](std::int64_t h, std::int64_t w, std::int64_t ch) {
    return static_cast<std::size_t>((h * problem.w + w) * problem.c + ch);
  };
  image[at(20, 150, 1)] = std::numeric_limits<float>::infinity();
  image[at(41, 0, 2)] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::byte> output = filtered(problem, filter, image);
  for (std::int64_t p = 0; p < problem.h; ++p)
    for (std::int64_t q = 0; q < problem.w; ++q)
      for (std::int64_t ch = 0; ch < problem.c; ++ch) {
        float found = 0, before = 0;
        std::memcpy(&found, output.data() + at(p, q, ch) * sizeof found, sizeof found);
        std::memcpy(&before, clean.data() + at(p, q, ch) * sizeof before, sizeof before);
        const bool near_infinity = ch == 1 && std::abs(p - 20) <= 3 && std::abs(q - 150) <= 4;
        const bool near_nan = ch == 2 && std::abs(p - 41) <= 3 && q <= 4;
        if (near_infinity)
          ASSERT_EQ(found, std::numeric_limits<float>::infinity()) << p << ", " << q;
        else if (near_nan)
          ASSERT_TRUE(std::isnan(found)) << p << ", " << q;
        else
          ASSERT_EQ(found, before) << p << ", " << q << ", " << ch;
      }
}

// Pixels whose sum passes the largest number of fp32, though their mean does not.
TEST(Box, HugePixelsHaveAMean) {
  const Filter2dProblem problem = problem_of("filter2d f32 h20w60c3r9s9 reflect");
  std::vector<float> image(static_cast<std::size_t>(problem.h * problem.w * problem.c), 0x1p127f);
  const std::vector<std::byte> output = filtered(problem, mean_of(problem), image);
  for (std::size_t i = 0; i < image.size(); ++i) {
    float found = 0;
    std::memcpy(&found, output.data() + i * sizeof found, sizeof found);
    ASSERT_NEAR(found / 0x1p127f, 1, 1e-5) << i;
  }
}

TEST(Box, ServesEqualWeightsAlone) {
  for (const char* text : {"filter2d u8 h30w40r5s5", "filter2d u16 h30w40r5s5", "filter2d f32 h30w40r31s31"}) {
    const Filter2dProblem problem = problem_of(text);
    Filter filter = mean_of(problem);
    EXPECT_EQ(Filter2dPlan(cpu(), problem, filter).solver(), box) << text;
    filter.weights.back() *= 1.5;
    std::string reason;
    for (const Candidate& candidate : explain(cpu(), problem, filter))
      if (candidate.solver == box) reason = candidate.reason;
    EXPECT_EQ(reason, "the weights are not all equal") << text;
  }
}

}  // namespace
}  // namespace omniconv
