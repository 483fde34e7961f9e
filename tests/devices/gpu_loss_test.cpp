// loss on GPU devices: every loss, pass, type and size of a team, values that are no ordinary numbers, labels that name
// no class, and arrays that begin anywhere.
#include <cmath>
#include <limits>

#include "../conformance/matrix_testing.h"
#include "gpu_testing.h"
#include "omniconv/loss.h"

// Tests are compiled several at a time: names of its own.
namespace omniconv::loss_tests {
namespace {

using GpuLoss = Gpu;

// Types by turns, since each program costs a fraction of a second of compilation.
TEST_F(GpuLoss, EveryLossPassTypeAndTeam) {
  const Context context(device);
  constexpr const char* types[] = {"f32", "f16", "bf16"};
  std::size_t turn = 0;
  for (const char* const kind : {"softmax", "mse"})
    for (const char* const pass : {"fwd", "bwd", "bwd sums"})
      for (const char* const extents : {"n1c1", "n600c3", "n300c8", "n70c10", "n40c21", "n18c64", "n9c127", "n5c129",
                                        "n7c380", "n5c1000", "n3c1025", "n2c4096", "n2c4097", "n3c9004"})
        EXPECT_EQ(expect_exact_and_bounded(
                      context, parse_problem(fmt::format("loss {} {} {} {}", kind, pass, types[turn++ % 3], extents)),
                      {.solver = {.solver = "loss/direct/gpu.1"}}),
                  1);
}

// Elements of the arrays' buffers before the arrays.
struct Before {
  std::int64_t x = 0, target = 0, result = 0, sums = 0;
};
// y, or dx, of f32, behind which is y of sums: 3 and the loss.
template <typename Target>
std::vector<float> results(const Context& context, LossProblem problem, const std::vector<float>& x,
                           const std::vector<Target>& target, const Before& places = {},
                           const SolverOptions& options = {}) {
  Queue queue = context.make_queue();
  const auto placed = [&](const auto& values, std::int64_t before) {
    const auto bytes = static_cast<std::int64_t>(values.size() * 4);
    const Buffer buffer = context.allocate(bytes + before * 4);
    queue.upload(buffer, before * 4, values.data(), bytes).wait();
    return Operand{buffer, before * 4};
  };
  std::vector<float> result(problem.backward ? x.size() : static_cast<std::size_t>(problem.n), -7);
  std::vector<float> sums(static_cast<std::size_t>(problem.sums ? problem.n : 0), 3);
  const Operand to = placed(result, places.result);
  LossRun run{.x = placed(x, places.x), .scale = 0.75};
  if (problem.sums) run.y = placed(sums, places.sums);
  (problem.loss == Loss::softmax ? run.labels : run.t) = placed(target, places.target);
  (problem.backward ? run.dx : run.y) = to;
  LossPlan(context, problem, options).run(queue, run).wait();
  queue.download(result.data(), to.buffer, to.offset_bytes, static_cast<std::int64_t>(result.size() * 4)).wait();
  if (!problem.sums) return result;
  queue.download(sums.data(), run.y.buffer, run.y.offset_bytes, static_cast<std::int64_t>(sums.size() * 4)).wait();
  result.insert(result.end(), sums.begin(), sums.end());
  return result;
}
LossProblem problem_of(const std::string& text) {
  return get<LossProblem>(parse_problem("loss " + text));
}

// Rows alone, and behind so many classes more of -infinity, which change nothing.
void expect_ends_of_the_numbers(const Context& context, const SolverOptions& options) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  struct Row {
    std::vector<float> x;
    std::int32_t label;
    float y;
    std::vector<float> dx;  // by 0.75
  };
  const float half = 0.375f, two = std::log(2.0f);
  const std::vector<Row> examples = {{{nan, 0, 0}, 1, nan, {nan, nan, nan}},
                                     {{0, 0, nan}, 1, nan, {nan, nan, nan}},
                                     {{infinity, 0, 0}, 0, nan, {nan, nan, nan}},
                                     {{0, infinity, 0}, 0, nan, {nan, nan, nan}},
                                     {{-infinity, 0, 0}, 1, two, {0, -half, half}},
                                     {{-infinity, 0, 0}, 0, infinity, {-0.75f, half, half}},
                                     {{-infinity, -infinity, 5}, 2, 0, {0, 0, 0}},
                                     {{-infinity, -infinity, -infinity}, 2, nan, {nan, nan, nan}},
                                     {{1, 2, 3}, -1, nan, {nan, nan, nan}},
                                     {{1, 2, 3}, 3, nan, {nan, nan, nan}},
                                     {{1, 2, 3}, std::numeric_limits<std::int32_t>::max(), nan, {nan, nan, nan}},
                                     {{1, 2, 3}, std::numeric_limits<std::int32_t>::min(), nan, {nan, nan, nan}},
                                     {{0, 0, -1e6f}, 2, 1e6f + two, {half, half, -0.75f}}};
  const auto expect = [](float found, float expected, const std::string& what) {
    EXPECT_TRUE(found == expected || std::abs(found - expected) <= 0x1p-20f * std::abs(expected) ||
                (std::isnan(found) && std::isnan(expected)))
        << what << ": " << found << ", not " << expected;
  };
  for (const std::size_t more : {0u, 1u, 60u, 600u, 6000u}) {
    LossProblem problem = problem_of(fmt::format("n{}c{}", examples.size(), 3 + more));
    std::vector<float> x;
    std::vector<std::int32_t> labels;
    for (const Row& row : examples) {
      x.insert(x.end(), row.x.begin(), row.x.end());
      x.insert(x.end(), more, -infinity);
      labels.push_back(row.label == 3 ? 3 + static_cast<std::int32_t>(more) : row.label);
    }
    const std::vector<float> y = results(context, problem, x, labels, {}, options);
    problem.backward = true;
    const std::vector<float> dx = results(context, problem, x, labels, {}, options);
    for (std::size_t i = 0; i < examples.size(); ++i) {
      const std::string what = fmt::format("row {} and {}", i, more);
      expect(y[i], examples[i].y, what);
      for (std::size_t j = 0; j < 3; ++j) expect(dx[i * (3 + more) + j], examples[i].dx[j], what);
      for (std::size_t j = 3; j < 3 + more; ++j)
        expect(dx[i * (3 + more) + j], std::isnan(examples[i].dx[0]) ? nan : 0, what);
    }
  }
}

TEST_F(GpuLoss, EndsOfTheNumbers) {
  expect_ends_of_the_numbers(Context(device), {});
}
// Of the classic study's kernels: rows that a work item has by itself, and that several share.
TEST_F(GpuLoss, EndsOfTheNumbersOnRungs) {
  for (const char* const tuning : {"rung=1 tile_m=16 tile_n=16 work=1", "rung=3 tile_m=16 tile_n=8 work=2"}) {
    const SolverOptions options{.solver = "loss/rungs/gpu.1", .tuning = tuning};
    const Context context(device);
    // A PoCL that is not trusted with barriers has no tiles.
    if (explain(context, parse_problem("loss n4c3"), options).front().applicable)
      expect_ends_of_the_numbers(context, options);
  }
}

// A loss that is small beside 1 keeps its digits, wherever in the row its maximum comes: at the end of ascending
// logits, too, where every part has another one.
TEST_F(GpuLoss, SmallLossesKeepTheirDigits) {
  const Context context(device);
  for (const std::size_t c : {3u, 40u, 1000u, 9000u})
    for (const std::size_t at : {std::size_t{0}, c / 2, c - 1}) {
      std::vector<float> x(c);
      for (std::size_t j = 0; j < c; ++j) x[j] = static_cast<float>(j * 16 / c) - 60;
      x[at] = 0;
      double others = 0, norm = 0;
      for (std::size_t j = 0; j < c; ++j)
        if (j != at) others += std::exp(x[j]), norm += std::exp(x[j]) * -x[j];
      const double expected = std::log1p(others);
      const float y =
          results(context, problem_of(fmt::format("n1c{}", c)), x, std::vector{static_cast<std::int32_t>(at)})[0];
      // README.md of loss/direct: a chain of 16 elements for each part of 4096, a rescaling for each, and a team's
      // sums.
      const double parts = std::ceil(static_cast<double>(c) / 4096), units = (16 * parts + 32) / 2 + 12 + 4 * parts;
      EXPECT_NEAR(y, expected, units * 0x1p-23 * (expected + norm)) << c << ' ' << at;
      const std::vector<float> dx =
          results(context, problem_of(fmt::format("bwd n1c{}", c)), x, std::vector{static_cast<std::int32_t>(at)});
      EXPECT_NEAR(dx[at], -0.75 * others / (1 + others), 0.75 * units * 0x1p-23 * (expected + norm)) << c << ' ' << at;
    }
}

// To the bit.
TEST_F(GpuLoss, ArraysBeginAnywhere) {
  const Context context(device);
  for (const char* const text :
       {"n7c40", "bwd n7c40", "bwd n7c10", "n3c4100", "bwd n3c4100", "n2c1000", "bwd sums n7c10", "bwd sums n3c4100"}) {
    const LossProblem problem = problem_of(text);
    std::vector<float> x(static_cast<std::size_t>(problem.n * problem.c));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 1000) / 64 - 8;
    std::vector<std::int32_t> labels(static_cast<std::size_t>(problem.n), 3);
    const std::vector<float> expected = results(context, problem, x, labels);
    for (const Before& places :
         {Before{1, 0, 0, 0}, Before{0, 3, 0, 1}, Before{0, 0, 2, 0}, Before{4, 8, 12, 4}, Before{1, 2, 3, 5}})
      EXPECT_EQ(results(context, problem, x, labels, places), expected) << text << places.x << places.result;
  }
  for (const char* const text :
       {"mse n7c40", "mse bwd n7c41", "mse n3c4100", "mse bwd n3c4100", "mse bwd sums n7c41", "mse bwd sums n3c4100"}) {
    const LossProblem problem = problem_of(text);
    std::vector<float> x(static_cast<std::size_t>(problem.n * problem.c)), t = x;
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(i * 7919 % 1000) / 64 - 8, t[i] = static_cast<float>(i % 11) / 3;
    const std::vector<float> expected = results(context, problem, x, t);
    for (const Before& places :
         {Before{1, 0, 0, 0}, Before{0, 3, 0, 1}, Before{0, 0, 2, 0}, Before{4, 8, 12, 4}, Before{1, 2, 3, 5}})
      EXPECT_EQ(results(context, problem, x, t, places), expected) << text << places.x << places.result;
  }
}

// The bits of the gradient alone, and of the forward pass and an addition.
TEST_F(GpuLoss, SumsAreForwardAndAnAddition) {
  const Context context(device);
  for (const char* const kind : {"softmax", "mse"})
    for (const std::size_t c : {1u, 3u, 10u, 130u, 1000u, 4096u, 4100u, 9001u}) {
      constexpr std::size_t n = 19;
      LossProblem problem = problem_of(fmt::format("{} n{}c{}", kind, n, c));
      std::vector<float> x(n * c), t = x;
      std::vector<std::int32_t> labels(n);
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>(i * 7919 % 1000) / 64 - 8, t[i] = static_cast<float>(i % 11) / 3;
      for (std::size_t i = 0; i < n; ++i) labels[i] = static_cast<std::int32_t>(i * 31 % c);
      const auto all = [&] {
        return problem.loss == Loss::mse ? results(context, problem, x, t) : results(context, problem, x, labels);
      };
      const std::vector<float> y = all();
      problem.backward = true;
      std::vector<float> expected = all();
      for (const float one : y) expected.push_back(3 + one);
      problem.sums = true;
      EXPECT_EQ(all(), expected) << kind << c;
    }
}

// Of a recording too; quarters are exact.
TEST_F(GpuLoss, ScaleMayChange) {
  const Context context(device);
  Queue queue = context.make_queue();
  const LossPlan plan(context, problem_of("bwd n1c4"));
  const float x[] = {0, 0, 0, 0};
  const std::int32_t label = 2;
  LossRun run{.x = {context.allocate(16)}, .labels = {context.allocate(4)}, .dx = {context.allocate(16)}};
  run.scale = Scalar::changing(1);
  queue.upload(run.x.buffer, 0, x, 16).wait();
  queue.upload(run.labels.buffer, 0, &label, 4).wait();
  Sequence sequence = context.make_sequence();
  plan.append(sequence, run);
  const Recording recording = context.record(std::move(sequence));
  for (const float scale : {1.0f, 8.0f, -0.5f}) {
    run.scale.set(scale);
    recording.replay(queue).wait();
    float dx[4];
    queue.download(dx, run.dx.buffer, 0, 16).wait();
    for (int j = 0; j < 4; ++j) EXPECT_NEAR(dx[j], scale * (j == 2 ? -0.75f : 0.25f), 0x1p-22f * std::abs(scale));
  }
}

TEST_F(GpuLoss, RefusesF64) {
  const Context context(device);
  const std::string error = error_of([&] { LossPlan(context, problem_of("f64 n1c4")); }, ErrorKind::bad_input);
  EXPECT_HAS(error, "f64 is served on the CPU, since not every GPU has double precision");
}

}  // namespace
}  // namespace omniconv::loss_tests
