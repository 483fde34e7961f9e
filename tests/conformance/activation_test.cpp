// activation: every solver of the CPU against the definition, values that are no ordinary numbers, gradients against
// differences; the operation's bad input.
#include "omniconv/activation.h"

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
#include "operations/activation/activation.h"
#include "solver_testing.h"

namespace omniconv {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr const char* solvers[] = {"activation/direct/cpu.1", "activation/double/cpu.1"};

ActivationProblem activation(const std::string& text) {
  return get<ActivationProblem>(parse_problem("activation " + text));
}

using Bytes = std::vector<std::byte>;
Bytes stored(DataType type, const std::vector<double>& values) {
  Bytes bytes(values.size() * static_cast<std::size_t>(size_of(type)));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(type, values[i], bytes.data() + static_cast<std::int64_t>(i) * size_of(type));
  return bytes;
}
double number(DataType type, const Bytes& bytes, std::size_t i) {
  return load_element(type, bytes.data() + static_cast<std::int64_t>(i) * size_of(type));
}

// y of x, or dx of y and dy, by a solver.
Bytes result_of(const Context& context, ActivationProblem problem, const std::string& solver, const Bytes& given,
                const Bytes& dy = {}) {
  problem.n = problem.c = problem.h = 1;
  problem.w = static_cast<std::int64_t>(given.size()) / size_of(problem.type);
  Queue queue = context.make_queue();
  const auto operand = [&](const Bytes& bytes) {
    const Buffer buffer = context.allocate(static_cast<std::int64_t>(bytes.size()));
    queue.upload(buffer, 0, bytes.data(), static_cast<std::int64_t>(bytes.size())).wait();
    return Operand{buffer};
  };
  Bytes result(given.size(), std::byte{0x5A});
  const Operand from = operand(given), to = operand(result);
  ActivationRun run{.x = from, .y = to};
  if (problem.backward) run = {.x = to, .y = from, .dy = operand(dy)};
  ActivationPlan(context, problem, {.solver = solver}).run(queue, run).wait();
  queue.download(result.data(), to.buffer, 0, static_cast<std::int64_t>(result.size())).wait();
  return result;
}

TEST(Activation, EveryFunctionPassAndTypeAtAnyInstructionSet) {
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    const Context context({.device = "cpu", .threads = 2});
    for (const char* const function : {"relu", "sigmoid", "tanh"})
      for (const char* const pass : {"fwd", "bwd"})
        for (const char* const type : {"f32", "f64", "f16", "bf16"})
          for (const char* const geometry : {"n2c3h7w9", "n1c1h1w1", "n1c1h1w31", "n1c5h129w131"})
            EXPECT_EQ(expect_exact_and_bounded(
                          context, parse_problem(fmt::format("activation {} {} {} {}", function, pass, type, geometry)),
                          {.solver = {.solver = "all"}, .sampled = true, .samples = 4000}),
                      2);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

// What passes keeps its bits, which no arithmetic does: NaN of any bits, the least numbers.
TEST(Activation, ReluChoosesBits) {
  const Context context({.device = "cpu", .threads = 1});
  const std::vector<std::uint32_t> x = {0x3f800000, 0xbf800000, 0,          0x80000000, 0x7f800000,
                                        0xff800000, 0x7fc12345, 0xffc00001, 0x7f800001, 0xff812345,
                                        1,          0x80000001, 0x7f7fffff, 0xff7fffff};
  const std::vector<std::uint32_t> y = {0x3f800000, 0,          0,          0, 0x7f800000, 0,          0x7fc12345,
                                        0xffc00001, 0x7f800001, 0xff812345, 1, 0,          0x7f7fffff, 0};
  const auto bytes = [](const std::vector<std::uint32_t>& words, int times) {
    Bytes all;
    for (int i = 0; i < times; ++i) {
      const auto* const first = reinterpret_cast<const std::byte*>(words.data());
      all.insert(all.end(), first, first + words.size() * 4);
    }
    return all;
  };
  for (const char* const solver : solvers)
    EXPECT_EQ(result_of(context, activation("n1c1h1w1"), solver, bytes(x, 7)), bytes(y, 7)) << solver;
  // Backward dy is what passes.
  std::vector<std::uint32_t> dy(x.size()), dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    dy[i] = 0x7f812300 + static_cast<std::uint32_t>(i), dx[i] = y[i] ? dy[i] : 0;
  for (const char* const solver : solvers)
    EXPECT_EQ(result_of(context, activation("bwd n1c1h1w1"), solver, bytes(x, 7), bytes(dy, 7)), bytes(dx, 7))
        << solver;
  for (const auto& [type, magnitude] : {std::pair(DataType::f16, 0x7c00), std::pair(DataType::bf16, 0x7f80)}) {
    ActivationProblem problem = activation("n1c1h1w1");
    problem.type = type;
    Bytes halves(2 * 65536), expected(2 * 65536);
    for (int bits = 0; bits < 65536; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      const std::uint16_t kept = (bits & 0x7fff) > magnitude || (bits < 0x8000 && bits > 0) ? half : 0;
      std::memcpy(halves.data() + 2 * bits, &half, 2), std::memcpy(expected.data() + 2 * bits, &kept, 2);
    }
    for (const char* const solver : solvers)
      EXPECT_EQ(result_of(context, problem, solver, halves), expected) << solver << name(type);
  }
}

TEST(Activation, EndsOfTheNumbers) {
  const Context context({.device = "cpu", .threads = 1});
  const std::vector<double> x = {-infinity, infinity, nan, -1000, 1000, 0, -0.0};
  const std::vector<double> sigmoid = {0, 1, nan, 0, 1, 0.5, 0.5}, tanh = {-1, 1, nan, -1, 1, 0, 0};
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    for (const char* const solver : solvers)
      for (const DataType type : {DataType::f32, DataType::f64, DataType::f16, DataType::bf16})
        for (const bool is_sigmoid : {true, false}) {
          ActivationProblem problem = activation(is_sigmoid ? "sigmoid n1c1h1w1" : "tanh n1c1h1w1");
          problem.type = type;
          const Bytes y = result_of(context, problem, solver, stored(type, x));
          for (std::size_t i = 0; i < x.size(); ++i) {
            const double found = number(type, y, i), expected = is_sigmoid ? sigmoid[i] : tanh[i];
            EXPECT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected)))
                << solver << ' ' << to_text(problem) << ": " << found << " of " << x[i];
          }
        }
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

// An element's result does not depend on where it stands, or on threads.
TEST(Activation, BitsDependOnTheElementAlone) {
  const Context one({.device = "cpu", .threads = 1}), three({.device = "cpu", .threads = 3});
  for (const char* const text : {"sigmoid n1c1h1w1", "tanh n1c1h1w1", "sigmoid bwd n1c1h1w1", "tanh bwd n1c1h1w1"}) {
    const ActivationProblem problem = activation(text);
    std::vector<double> values(70001);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 10000) / 10000 - 0.5;
    const Bytes given = stored(problem.type, values);
    const Bytes all = result_of(three, problem, solvers[0], given, given);
    for (const std::size_t from : {1u, 7u, 9999u}) {
      const Bytes part(given.begin() + static_cast<std::ptrdiff_t>(4 * from), given.end());
      const Bytes found = result_of(one, problem, solvers[0], part, part);
      EXPECT_TRUE(std::equal(found.begin(), found.end(), all.begin() + static_cast<std::ptrdiff_t>(4 * from))) << text;
    }
  }
}

// (f(x + h) - f(x - h)) / 2h is off by h^2 / 6 times the third derivative, which is at most 2, and by the errors of f.
TEST(Activation, GradientsAreThoseOfTheFunctions) {
  const Context context({.device = "cpu", .threads = 1});
  constexpr double h = 0x1p-17;
  std::vector<double> x, ones;
  for (double at = -6; at <= 6; at += 0x1p-4) x.push_back(at), ones.push_back(1);
  for (const char* const function : {"relu", "sigmoid", "tanh"}) {
    const ActivationProblem forward = activation(fmt::format("{} f64 n1c1h1w1", function));
    ActivationProblem backward = forward;
    backward.backward = true;
    const auto of = [&](double shift) {
      std::vector<double> shifted = x;
      for (double& at : shifted) at += shift;
      return result_of(context, forward, solvers[0], stored(DataType::f64, shifted));
    };
    const Bytes y = of(0), before = of(-h), behind = of(h);
    const Bytes dx = result_of(context, backward, solvers[0], y, stored(DataType::f64, ones));
    const auto bound = operations::activation_bound(forward);
    const double off = h * h / 3 + (bound.constant + 1) * 0x1p-52 / h;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0 && forward.function == Activation::relu) continue;  // has no derivative
      const double difference = (number(DataType::f64, behind, i) - number(DataType::f64, before, i)) / (2 * h);
      EXPECT_NEAR(number(DataType::f64, dx, i), difference, off) << function << " at " << x[i];
    }
  }
}

// The list, smaller, by every solver, with guards.
TEST(Activation, TheListByEverySolver) {
  const Context context({.device = "cpu", .threads = 2});
  int turn = 0;
  for (ActivationProblem problem : listed_problems<ActivationProblem>("activations.txt")) {
    problem.n = std::min<std::int64_t>(problem.n, 2);
    problem.c = std::min<std::int64_t>(problem.c, 18);
    problem.h = std::min<std::int64_t>(problem.h, 40);
    problem.backward = turn % 2 == 1;
    problem.layout = Layout(turn++ / 2 % 2);
    EXPECT_EQ(expect_exact_and_bounded(context, problem,
                                       {.solver = {.solver = "all"}, .sampled = instrumented, .samples = 256}),
              2);
  }
}

TEST(Activation, RefusesWhatIsNone) {
  const auto refusal = [](const std::string& text) { return error_of([&] { activation(text); }); };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"n0c1h4w4", "n is 0: must be"},
      {"n1c1h4", "w (columns)"},
      {"tf32 n1c1h4w4", "column 12: found 'tf32'"},
      {"swish n1c1h4w4", "column 12: found 'swish'"},
      {"sigmoids n1c1h4w4", "did you mean sigmoid?"},
      {"relu tanh n1c1h4w4", "expected one function, and 'relu' was given before"},
      {"n1c1h4w4r2", "r2"},
      {"n4294967296c4294967296h4w4", "the input"},
  };
  for (const auto& [text, part] : refused) EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
  EXPECT_EQ(to_text(parse_problem("activation fwd relu f32 nchw n1c2h3w4 \"a layer\"")),
            "activation n1c2h3w4 \"a layer\"");
  EXPECT_EQ(to_text(parse_problem("activation bwd nhwc bf16 tanh n1c2h3w4")), "activation tanh bwd bf16 nhwc n1c2h3w4");
  ActivationProblem problem = activation("n1c1h4w4");
  problem.function = static_cast<Activation>(3);
  const Context context({.device = "cpu", .threads = 1});
  const std::string error = error_of([&] { ActivationPlan(context, problem); }, ErrorKind::bad_input);
  EXPECT_NE(error.find("function is number 3: must be relu, sigmoid or tanh"), std::string::npos) << error;
}

}  // namespace
}  // namespace omniconv
