// activation on GPU devices: every function, pass and type, values that are no ordinary numbers, and arrays that begin
// anywhere.
#include <cmath>
#include <limits>

#include "../conformance/matrix_testing.h"
#include "gpu_testing.h"
#include "omniconv/activation.h"

namespace omniconv {
namespace {

using GpuActivation = Gpu;

TEST_F(GpuActivation, EveryFunctionPassAndType) {
  const Context context(device);
  for (const char* const function : {"relu", "sigmoid", "tanh"})
    for (const char* const pass : {"fwd", "bwd"})
      for (const char* const type : {"f32", "f16", "bf16"})
        for (const char* const geometry : {"n2c8h16w16", "n1c3h17w41", "n1c1h1w1"})
          EXPECT_EQ(expect_exact_and_bounded(
                        context, parse_problem(fmt::format("activation {} {} {} {}", function, pass, type, geometry)),
                        {.solver = {.solver = "activation/direct/gpu.1"}}),
                    1);
}

// Elements of the arrays' buffers before the arrays.
struct Before {
  std::int64_t given = 0, dy = 0, result = 0;
};
// The f32 results of x, or backward of y with such gradients.
std::vector<float> results(const Context& context, const std::string& text, const std::vector<float>& given, float dy,
                           const Before& places) {
  auto problem = get<ActivationProblem>(parse_problem("activation " + text));
  problem.w = static_cast<std::int64_t>(given.size());
  Queue queue = context.make_queue();
  const auto placed = [&](const std::vector<float>& values, std::int64_t before) {
    const auto bytes = static_cast<std::int64_t>(values.size() * 4);
    const Buffer buffer = context.allocate(bytes + before * 4);
    queue.upload(buffer, before * 4, values.data(), bytes).wait();
    return Operand{buffer, before * 4};
  };
  const Operand from = placed(given, places.given), to = placed(std::vector<float>(given.size(), -7), places.result);
  ActivationRun run{.x = from, .y = to};
  if (problem.backward) run = {.x = to, .y = from, .dy = placed(std::vector<float>(given.size(), dy), places.dy)};
  ActivationPlan(context, problem).run(queue, run).wait();
  std::vector<float> result(given.size());
  queue.download(result.data(), to.buffer, to.offset_bytes, static_cast<std::int64_t>(result.size() * 4)).wait();
  return result;
}

TEST_F(GpuActivation, EndsOfTheNumbers) {
  const Context context(device);
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> some = {-infinity, infinity, nan, -1000, 1000, 0, -0.0f};
  const std::pair<const char*, std::vector<float>> expected[] = {{"relu", {0, infinity, nan, 0, 1000, 0, 0}},
                                                                 {"sigmoid", {0, 1, nan, 0, 1, 0.5f, 0.5f}},
                                                                 {"tanh", {-1, 1, nan, -1, 1, 0, 0}}};
  const float bound = 6 * 0x1p-23f;  // of tanh
  std::vector<float> x;
  for (int i = 0; i < 3000; ++i) x.push_back(some[static_cast<std::size_t>(i % 7)]);  // a whole group and a rest
  for (const auto& [function, of] : expected) {
    const std::vector<float> y = results(context, fmt::format("{} n1c1h1w1", function), x, 0, {});
    for (std::size_t i = 0; i < y.size(); ++i)
      if (const float should = of[i % 7]; std::isnan(should))
        EXPECT_TRUE(std::isnan(y[i])) << function << ' ' << i;
      else
        EXPECT_TRUE(y[i] == should || std::abs(y[i] - should) <= bound * std::abs(should)) << function << ' ' << i;
  }
}

// All 16-bit patterns, and f32 ones: what passes keeps its bits, NaN's and those of the least numbers, too.
TEST_F(GpuActivation, ReluChoosesBits) {
  const Context context(device);
  const auto expect = [&]<typename Bits>(const char* type, const std::vector<Bits>& x, Bits infinity) {
    auto problem = get<ActivationProblem>(parse_problem(fmt::format("activation {} n1c1h1w1", type)));
    problem.w = static_cast<std::int64_t>(x.size());
    std::vector<Bits> expected = x, y(x.size());
    for (Bits& bits : expected) {
      const auto magnitude = static_cast<Bits>(bits << 1) >> 1;
      if (magnitude == 0 || (magnitude != bits && magnitude <= infinity)) bits = 0;
    }
    const auto bytes = static_cast<std::int64_t>(x.size() * sizeof(Bits));
    Queue queue = context.make_queue();
    const ActivationRun run{.x = {context.allocate(bytes)}, .y = {context.allocate(bytes)}};
    queue.upload(run.x.buffer, 0, x.data(), bytes).wait();
    ActivationPlan(context, problem).run(queue, run).wait();
    queue.download(y.data(), run.y.buffer, 0, bytes).wait();
    EXPECT_EQ(y, expected) << type;
  };
  std::vector<std::uint16_t> halves;
  std::vector<std::uint32_t> words;
  for (std::uint32_t i = 0; i < 65536; ++i) halves.push_back(static_cast<std::uint16_t>(i)), words.push_back(i * 65537);
  expect("f16", halves, std::uint16_t{0x7c00});
  expect("bf16", halves, std::uint16_t{0x7f80});
  expect("f32", words, std::uint32_t{0x7f800000});
}

TEST_F(GpuActivation, ArraysBeginAnywhere) {
  const Context context(device);
  std::vector<float> x;
  for (int i = 0; i < 5000; ++i) x.push_back(static_cast<float>(i % 200 - 100) / 40);
  for (const char* const text : {"relu n1c1h1w1", "sigmoid n1c1h1w1", "tanh bwd n1c1h1w1", "relu bwd n1c1h1w1"}) {
    const std::vector<float> expected = results(context, text, x, 3, {});
    for (const Before& places : {Before{1, 0, 0}, Before{0, 3, 0}, Before{0, 0, 2}, Before{4, 8, 12}, Before{1, 2, 3}})
      EXPECT_EQ(results(context, text, x, 3, places), expected) << text << places.given << places.dy << places.result;
  }
}

TEST_F(GpuActivation, RefusesF64) {
  const Context context(device);
  const std::string error =
      error_of([&] { ActivationPlan(context, get<ActivationProblem>(parse_problem("activation f64 n1c1h4w4"))); },
               ErrorKind::bad_input);
  EXPECT_HAS(error, "f64 is served on the CPU, since not every GPU has double precision");
}

}  // namespace
}  // namespace omniconv
