// loss: every solver of the CPU against the definition, closed forms, values that are no ordinary numbers, labels that
// name no class, gradients against differences; the operation's bad input.
#include "omniconv/loss.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "../error_testing.h"
#include "../list_testing.h"
#include "conformance.h"
#include "core/convert.h"
#include "matrix_testing.h"
#include "operations/loss/loss.h"
#include "solver_testing.h"

// Tests are compiled several at a time: names of its own.
namespace omniconv::loss_tests {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr const char* solvers[] = {"loss/direct/cpu.1", "loss/double/cpu.1"};
constexpr DataType types[] = {DataType::f32, DataType::f64, DataType::f16, DataType::bf16};

LossProblem loss(const std::string& text) {
  return get<LossProblem>(parse_problem("loss " + text));
}

using Bytes = std::vector<std::byte>;
Bytes stored(DataType type, const std::vector<double>& values) {
  Bytes bytes(values.size() * static_cast<std::size_t>(size_of(type)));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(type, values[i], bytes.data() + static_cast<std::int64_t>(i) * size_of(type));
  return bytes;
}
std::vector<double> numbers(DataType type, const Bytes& bytes) {
  std::vector<double> values;
  for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(size_of(type)))
    values.push_back(load_element(type, bytes.data() + at));
  return values;
}

struct Results {
  Bytes y, dx;
};
// With `sums` y is added to that.
Results results_of(const Context& context, const LossProblem& problem, const std::string& solver, const Bytes& x,
                   const Bytes& target, const Scalar& scale = 1, const Bytes& sums = {}) {
  Queue queue = context.make_queue();
  const auto operand = [&](const Bytes& bytes) {
    const Buffer buffer = context.allocate(static_cast<std::int64_t>(bytes.size()));
    queue.upload(buffer, 0, bytes.data(), static_cast<std::int64_t>(bytes.size())).wait();
    return Operand{buffer};
  };
  Results results;
  if (operations::has_losses(problem))
    results.y.resize(static_cast<std::size_t>(problem.n * size_of(operations::loss_type(problem))), std::byte{0x5A});
  if (problem.sums) results.y = sums;
  if (problem.backward) results.dx.resize(x.size(), std::byte{0x5A});
  LossRun run{.x = operand(x), .scale = scale};
  (problem.loss == Loss::softmax ? run.labels : run.t) = operand(target);
  if (!results.y.empty()) run.y = operand(results.y);
  if (!results.dx.empty()) run.dx = operand(results.dx);
  LossPlan(context, problem, {.solver = solver}).run(queue, run).wait();
  for (auto [bytes, from] : {std::pair(&results.y, &run.y), std::pair(&results.dx, &run.dx)})
    if (!bytes->empty())
      queue.download(bytes->data(), from->buffer, 0, static_cast<std::int64_t>(bytes->size())).wait();
  return results;
}
// y, or dx.
Bytes result_of(const Context& context, const LossProblem& problem, const std::string& solver, const Bytes& x,
                const Bytes& target, const Scalar& scale = 1) {
  const Results results = results_of(context, problem, solver, x, target, scale);
  return problem.backward ? results.dx : results.y;
}
std::vector<double> softmax(const Context& context, LossProblem problem, const std::string& solver,
                            const std::vector<double>& x, const std::vector<double>& labels, double scale = 1) {
  problem.n = static_cast<std::int64_t>(labels.size());
  problem.c = static_cast<std::int64_t>(x.size() / labels.size());
  return numbers(problem.backward ? problem.type : operations::loss_type(problem),
                 result_of(context, problem, solver, stored(problem.type, x), stored(DataType::s32, labels), scale));
}

// On each instruction set that there is.
template <typename Work>
void for_instruction_sets(const Work& work) {
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    work();
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

TEST(Loss, EveryLossPassAndTypeAtAnyInstructionSet) {
  for_instruction_sets([] {
    const Context context({.device = "cpu", .threads = 2});
    for (const char* const kind : {"softmax", "mse"})
      for (const char* const pass : {"fwd", "bwd", "bwd sums"})
        for (const char* const type : {"f32", "f64", "f16", "bf16"})
          for (const char* const extents : {"n1c1", "n3c2", "n5c3", "n40c5", "n33c10", "n17c24", "n7c25", "n7c33",
                                            "n3c127", "n3c129", "n2c1000", "n2c9001"})
            EXPECT_EQ(expect_exact_and_bounded(
                          context, parse_problem(fmt::format("loss {} {} {} {}", kind, pass, type, extents)),
                          {.solver = {.solver = "all"}, .sampled = true, .samples = 4000}),
                      2);
  });
}

// log(e + e^2 + e^3) = 3.4076059644443806; a row of equal logits costs log(c).
TEST(Loss, KnownLosses) {
  const Context context({.device = "cpu", .threads = 1});
  for_instruction_sets([&] {
    for (const char* const solver : solvers)
      for (const DataType type : types) {
        LossProblem problem = loss("n1c1");
        problem.type = type;
        const double unit = type == DataType::f64 ? 0x1p-52 : 0x1p-23;
        const std::vector<double> y =
            softmax(context, problem, solver, {1, 2, 3, 1, 2, 3, 1, 2, 3, 7, 7, 7, -9, -9, -9}, {0, 1, 2, 1, 2});
        const double expected[] = {2.4076059644443806, 1.4076059644443806, 0.4076059644443806, 1.0986122886681098,
                                   1.0986122886681098};
        for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 30 * unit) << solver << i;
        problem.backward = true;
        const std::vector<double> dx = softmax(context, problem, solver, {1, 2, 3}, {1}, 2);
        const double shares[] = {0.0900305731703804, 0.2447284710547976 - 1, 0.6652409557748219};
        const double rounding = type == DataType::bf16 ? 0x1p-8 : type == DataType::f16 ? 0x1p-11 : 30 * unit;
        for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(dx[j], 2 * shares[j], 2 * rounding) << solver << j;
      }
  });
}

// Of two classes y is log(1 + exp(-gap)), which is exp(-gap) where that is small: no loss vanishes beside 1, nor does
// its gradient. Logits of any magnitude overflow nothing.
TEST(Loss, SmallLossesKeepTheirDigits) {
  const Context context({.device = "cpu", .threads = 1});
  for_instruction_sets([&] {
    for (const char* const solver : solvers)
      for (const double gap : {10.0, 20.0, 40.0, 80.0})
        for (const double at : {0.0, 1024.0, -4096.0}) {
          const double expected = std::log1p(std::exp(-gap)), share = std::exp(-gap) / (1 + std::exp(-gap));
          const double y = softmax(context, loss("n1c1"), solver, {at, at - gap}, {0})[0];
          EXPECT_NEAR(y / expected, 1, 20 * 0x1p-23) << solver << gap;
          const std::vector<double> dx = softmax(context, loss("bwd n1c1"), solver, {at, at - gap}, {0});
          EXPECT_NEAR(dx[0] / -share, 1, 20 * 0x1p-23) << solver << gap;
          EXPECT_NEAR(dx[1] / share, 1, 20 * 0x1p-23) << solver << gap;
          EXPECT_NEAR(softmax(context, loss("n1c1"), solver, {at, at - gap}, {1})[0], gap + expected, gap * 0x1p-22);
        }
  });
}

// Three of a kind: a maximum that several share counts each time.
TEST(Loss, EqualMaximaAreCounted) {
  const Context context({.device = "cpu", .threads = 1});
  for (const char* const solver : solvers)
    for (const std::size_t c : {2u, 5u, 16u, 17u, 100u, 5000u}) {
      const std::vector<double> x(c, 3), dx = softmax(context, loss("bwd f64 n1c1"), solver, x, {1}), expected(c, 1);
      EXPECT_NEAR(softmax(context, loss("f64 n1c1"), solver, x, {1})[0], std::log(static_cast<double>(c)), 1e-14);
      for (std::size_t j = 0; j < c; ++j)
        EXPECT_NEAR(dx[j], 1 / static_cast<double>(c) - (j == 1 ? 1 : 0), 1e-14) << solver << c << ' ' << j;
    }
}

TEST(Loss, EndsOfTheNumbers) {
  const Context context({.device = "cpu", .threads = 1});
  struct Row {
    std::vector<double> x;
    double label, y;
    std::vector<double> dx;
  };
  const double half = 0.5;
  const std::vector<Row> examples = {{{nan, 0, 0}, 1, nan, {nan, nan, nan}},
                                     {{0, 0, nan}, 1, nan, {nan, nan, nan}},
                                     {{infinity, 0, 0}, 0, nan, {nan, nan, nan}},
                                     {{0, infinity, 0}, 0, nan, {nan, nan, nan}},
                                     {{-infinity, 0, 0}, 1, std::log(2.0), {0, -half, half}},
                                     {{-infinity, 0, 0}, 0, infinity, {-1, half, half}},
                                     {{-infinity, -infinity, 5}, 2, 0, {0, 0, 0}},
                                     {{-infinity, -infinity, -infinity}, 2, nan, {nan, nan, nan}},
                                     {{1, 2, 3}, -1, nan, {nan, nan, nan}},
                                     {{1, 2, 3}, 3, nan, {nan, nan, nan}},
                                     {{1, 2, 3}, 2147483647, nan, {nan, nan, nan}},
                                     {{1, 2, 3}, -2147483648.0, nan, {nan, nan, nan}},
                                     {{0, 0, -30000}, 2, 30000 + std::log(2.0), {half, half, -1}}};
  const auto expect = [](double found, double expected, double within, const std::string& what) {
    EXPECT_TRUE(found == expected || std::abs(found - expected) <= within * std::abs(expected) ||
                (std::isnan(found) && std::isnan(expected)))
        << what << ": " << found << ", not " << expected;
  };
  // Rows alone, and behind so many classes more of -infinity, which change nothing.
  for_instruction_sets([&] {
    for (const char* const solver : solvers)
      for (const DataType type : types)
        for (const std::size_t more : {0u, 1u, 14u, 40u}) {
          std::vector<double> x, labels;
          for (const Row& row : examples) {
            x.insert(x.end(), row.x.begin(), row.x.end());
            x.insert(x.end(), more, -infinity);
            labels.push_back(row.label == 3 ? 3 + static_cast<double>(more) : row.label);
          }
          LossProblem problem = loss("n1c1");
          problem.type = type;
          const double within = type == DataType::bf16 ? 0x1p-8 : type == DataType::f16 ? 0x1p-11 : 0x1p-20;
          const std::vector<double> y = softmax(context, problem, solver, x, labels);
          problem.backward = true;
          const std::vector<double> dx = softmax(context, problem, solver, x, labels);
          for (std::size_t i = 0; i < examples.size(); ++i) {
            const std::string what = fmt::format("{} {} row {} and {}", solver, name(type), i, more);
            expect(y[i], examples[i].y, within, what);
            for (std::size_t j = 0; j < 3; ++j) expect(dx[i * (3 + more) + j], examples[i].dx[j], within, what);
            for (std::size_t j = 3; j < 3 + more; ++j)
              expect(dx[i * (3 + more) + j], std::isnan(examples[i].dx[0]) ? nan : 0, 0, what);
          }
        }
  });
}

// A row's result does not depend on where it stands, or on threads.
TEST(Loss, BitsDependOnTheRowAlone) {
  const Context one({.device = "cpu", .threads = 1}), three({.device = "cpu", .threads = 3});
  constexpr std::size_t n = 4001;
  for (const char* const text : {"n1c1", "bwd n1c1", "mse n1c1", "mse bwd n1c1", "f16 n1c1", "bwd bf16 n1c1"})
    for (const std::size_t c : {7u, 40u}) {
      LossProblem problem = loss(text);
      std::vector<double> x(n * c), t(problem.loss == Loss::mse ? n * c : n);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 7919 % 1000) / 64 - 8;
      for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<double>(i % c);
      const DataType of_target = problem.loss == Loss::mse ? problem.type : DataType::s32;
      const auto run = [&](const Context& context, std::size_t from) {
        problem.n = static_cast<std::int64_t>(n - from), problem.c = static_cast<std::int64_t>(c);
        const std::size_t first = problem.loss == Loss::mse ? from * c : from;
        return result_of(context, problem, solvers[0],
                         stored(problem.type, {x.begin() + static_cast<std::ptrdiff_t>(from * c), x.end()}),
                         stored(of_target, {t.begin() + static_cast<std::ptrdiff_t>(first), t.end()}));
      };
      const Bytes all = run(three, 0);
      for (const std::size_t from : {1u, 17u, 4000u}) {
        const Bytes part = run(one, from);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.end() - static_cast<std::ptrdiff_t>(part.size())))
            << text << c << ' ' << from;
      }
    }
}

// With sums dx has the bits of the gradient alone, whatever the losses' own scale, and y those of the forward pass and
// one addition.
TEST(Loss, SumsAreForwardAndAnAddition) {
  const Context context({.device = "cpu", .threads = 2});
  constexpr std::size_t n = 37;
  const auto as_sum = [](DataType type, double value) {
    return type == DataType::f64 ? value : static_cast<float>(value);
  };
  for_instruction_sets([&] {
    for (const char* const solver : solvers)
      for (const char* const kind : {"softmax", "mse"})
        for (const DataType type : types)
          for (const std::size_t c : {1u, 10u, 24u, 25u, 700u, 5000u}) {
            LossProblem forward = loss(fmt::format("{} n{}c{}", kind, n, c));
            forward.type = type;
            LossProblem backward = forward, both = forward;
            backward.backward = both.backward = both.sums = true;
            std::vector<double> x(n * c), t(forward.loss == Loss::mse ? n * c : n), before(n);
            for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 7919 % 1000) / 64 - 8;
            for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<double>(i * 31 % c);
            if (forward.loss == Loss::softmax) t[5] = -1;  // its loss is NaN
            const DataType of_sums = operations::loss_type(forward);
            for (std::size_t i = 0; i < n; ++i) before[i] = as_sum(of_sums, std::exp(static_cast<double>(i) - 20));
            const Bytes of_x = stored(type, x), target = stored(forward.loss == Loss::mse ? type : DataType::s32, t);
            const std::vector<double> y = numbers(of_sums, result_of(context, forward, solver, of_x, target));
            const Results found =
                results_of(context, both, solver, of_x, target, Scalar(0.375), stored(of_sums, before));
            const std::string what = fmt::format("{} {} {} {}", solver, kind, name(type), c);
            EXPECT_EQ(found.dx, result_of(context, backward, solver, of_x, target, Scalar(0.375))) << what;
            const std::vector<double> sums = numbers(of_sums, found.y);
            for (std::size_t i = 0; i < n; ++i) {
              if (std::isnan(y[i]))
                EXPECT_TRUE(std::isnan(sums[i]) && forward.loss == Loss::softmax && i == 5) << what << ' ' << i;
              else
                EXPECT_EQ(sums[i], as_sum(of_sums, before[i] + y[i])) << what << ' ' << i;
            }
          }
  });
}

// (y(x + h) - y(x - h)) / 2h is off by h^2 / 6 times the third derivative, which is at most 1 of softmax and 0 of mse,
// and by the errors of y.
TEST(Loss, GradientsAreThoseOfTheLosses) {
  const Context context({.device = "cpu", .threads = 1});
  constexpr double h = 0x1p-15;
  constexpr std::size_t c = 9;
  std::vector<double> x, t;
  for (std::size_t j = 0; j < c; ++j)
    x.push_back(std::sin(static_cast<double>(j) * 5) * 3), t.push_back(std::cos(static_cast<double>(j)));
  for (const char* const kind : {"softmax", "mse"})
    for (double label = 0; label < c; label += 4) {
      LossProblem problem = loss(fmt::format("{} f64 n1c{}", kind, c));
      const Bytes target = problem.loss == Loss::mse ? stored(DataType::f64, t) : stored(DataType::s32, {label});
      const auto y = [&](std::size_t j, double by) {
        std::vector<double> moved = x;
        moved[j] += by;
        return numbers(DataType::f64, result_of(context, problem, solvers[0], stored(DataType::f64, moved), target))[0];
      };
      LossProblem backward = problem;
      backward.backward = true;
      const std::vector<double> dx = numbers(
          DataType::f64, result_of(context, backward, solvers[0], stored(DataType::f64, x), target, Scalar(0.25)));
      const auto bound = operations::loss_bound(problem, 2 * c, 0);
      const double off = h * h / 6 + 10 * (bound.chain / 2 + bound.constant) * 0x1p-52 / h;
      for (std::size_t j = 0; j < c; ++j)
        EXPECT_NEAR(dx[j], 0.25 * (y(j, h) - y(j, -h)) / (2 * h), 0.25 * off) << kind << ' ' << label << ' ' << j;
    }
}

// Quarters are exact.
TEST(Loss, ScaleMayChange) {
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  const LossPlan plan(context, loss("bwd n1c4"));
  const float x[] = {0, 0, 0, 0};
  const std::int32_t label = 2;
  const LossRun buffers{.x = {context.allocate(16)}, .labels = {context.allocate(4)}, .dx = {context.allocate(16)}};
  queue.upload(buffers.x.buffer, 0, x, 16).wait();
  queue.upload(buffers.labels.buffer, 0, &label, 4).wait();
  LossRun run = buffers;
  run.scale = Scalar::changing(1);
  Sequence sequence = context.make_sequence();
  plan.append(sequence, run);
  const Recording recording = context.record(std::move(sequence));
  for (const float scale : {1.0f, 8.0f, -0.5f}) {
    run.scale.set(scale);
    recording.replay(queue).wait();
    float dx[4];
    queue.download(dx, buffers.dx.buffer, 0, 16).wait();
    for (int j = 0; j < 4; ++j) EXPECT_EQ(dx[j], scale * (j == 2 ? -0.75f : 0.25f)) << scale;
  }
}

// The list, smaller, by every solver, with guards.
TEST(Loss, TheListByEverySolver) {
  const Context context({.device = "cpu", .threads = 2});
  int turn = 0;
  for (LossProblem problem : listed_problems<LossProblem>("losses.txt")) {
    problem.n = std::min<std::int64_t>(problem.n, 300);
    problem.c = std::min<std::int64_t>(problem.c, problem.n > 10 ? 100 : 9000);
    if (!problem.sums) problem.backward = turn++ % 2 == 1;
    EXPECT_EQ(expect_exact_and_bounded(context, problem,
                                       {.solver = {.solver = "all"}, .sampled = instrumented, .samples = 256}),
              2);
  }
}

TEST(Loss, RefusesWhatIsNone) {
  const auto refusal = [](const std::string& text) { return error_of([&] { loss(text); }); };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"n0c4", "n is 0: must be"},
      {"n4c0", "c is 0: must be"},
      {"n1", "c (classes)"},
      {"tf32 n1c4", "column 6: found 'tf32'"},
      {"hinge n1c4", "column 6: found 'hinge'"},
      {"softmaxx n1c4", "did you mean softmax?"},
      {"softmax mse n1c4", "expected one loss, and 'softmax' was given before"},
      {"n1c4h2", "h2"},
      {"n4294967296c4294967296", "x"},
      {"n2305843009213693952c1 f16", "y"},
      {"sums n1c4", "column 6: found 'sums'"},
      {"fwd n1c4 sums", "sums is of the backward pass, and the pass is fwd: say bwd, or leave it out"},
      {"bwd sums sums n1c4", "sums"},
      {"bwd sum n1c4", "did you mean sums?"},
  };
  for (const auto& [text, part] : refused) EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
  EXPECT_EQ(to_text(parse_problem("loss fwd softmax f32 n2c3 \"the last\"")), "loss n2c3 \"the last\"");
  EXPECT_EQ(to_text(parse_problem("loss bwd bf16 c3n2 mse")), "loss mse bwd bf16 n2c3");
  EXPECT_EQ(to_text(parse_problem("loss sums bf16 c3n2 bwd mse")), "loss mse bwd bf16 sums n2c3");
  EXPECT_NE(loss("bwd sums n2c3"), loss("bwd n2c3"));
  LossProblem problem = loss("n1c4");
  problem.loss = static_cast<Loss>(2);
  const Context context({.device = "cpu", .threads = 1});
  const std::string error = error_of([&] { LossPlan(context, problem); }, ErrorKind::bad_input);
  EXPECT_NE(error.find("loss is number 2: must be softmax or mse"), std::string::npos) << error;
}

}  // namespace
}  // namespace omniconv::loss_tests
