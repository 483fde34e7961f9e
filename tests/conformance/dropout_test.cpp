// dropout: every solver of the CPU against the definition, to the bit; its words against published ones, its shares
// against their chances; arrays that are the same memory; the operation's bad input.
#include "omniconv/dropout.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "../list_testing.h"
#include "conformance.h"
#include "core/philox.h"
#include "dropout_testing.h"
#include "matrix_testing.h"
#include "operations/dropout/direct/elements.h"

namespace omniconv::dropout_tests {
namespace {

using dropout_testing::dropout;
using dropout_testing::Numbers;
using dropout_testing::result_of;

constexpr const char* dropout_solvers[] = {"dropout/direct/cpu.1", "dropout/double/cpu.1"};
constexpr DataType types[] = {DataType::f32, DataType::f64, DataType::f16, DataType::bf16};

// Calls body() with each set of instructions that the processor has.
template <typename Body>
void for_instruction_sets(const Body& body) {
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    body();
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

// Known answers of Random123 (tests/kat_vectors), by this file's rounds and by those of the library.
TEST(Dropout, WordsAreThosePublished) {
  struct Known {
    PhiloxWords counter;
    PhiloxKey key;
    PhiloxWords words;
  };
  constexpr std::uint32_t ones = 0xFFFFFFFF;
  const Known known[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                         {{ones, ones, ones, ones}, {ones, ones}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                         {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                          {0xa4093822, 0x299f31d0},
                          {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Known& one : known) {
    EXPECT_EQ(philox(one.counter, one.key), one.words);
    const auto [c0, c1, c2, c3] = one.counter;
    const dropout_testing::Counter found =
        dropout_testing::philox_by_rounds({{c0, c1, c2, c3}}, one.key[0], one.key[1]);
    EXPECT_TRUE(std::equal(one.words.begin(), one.words.end(), found.words));
  }
}

TEST(Dropout, BitsAreThoseOfTheDefinitionAtAnyInstructionSet) {
  for_instruction_sets([] {
    const Context context({.device = "cpu", .threads = 2});
    for (const DataType type : types) {
      dropout_testing::expect_bits_of_the_definition(context, dropout_solvers[0], type);
      dropout_testing::expect_the_ends(context, dropout_solvers[0], type);
    }
  });
}

TEST(Dropout, TheReferenceIsTheDefinition) {
  const Context context({.device = "cpu", .threads = 1});
  for (const DataType type : types) {
    dropout_testing::expect_bits_of_the_definition(context, dropout_solvers[1], type);
    dropout_testing::expect_the_ends(context, dropout_solvers[1], type);
  }
}

TEST(Dropout, NumbersThatAreNone) {
  const Context context({.device = "cpu", .threads = 1});
  for (const char* const solver : dropout_solvers)
    for (const DataType type : types) dropout_testing::expect_numbers_that_are_none(context, solver, type);
}

// Counters have more than 32 bits.
TEST(Dropout, ElementsFarBehind) {
  const operations::DropoutNumbers numbers{.threshold = 0x80000000, .scale = 2, .seed = 5, .stream = 3};
  for_instruction_sets([&] {
    for (const std::int64_t first :
         {(std::int64_t{1} << 34) - operations::dropout_piece, std::int64_t{1} << 34, std::int64_t{3} << 40}) {
      const std::vector<float> x(operations::dropout_piece, 1);
      std::vector<float> y(x.size(), -7);
      kernels::drop(
          dropout("n1"), numbers, 9,
          {reinterpret_cast<const std::byte*>(x.data()), reinterpret_cast<std::byte*>(y.data()), first, std::ssize(x)});
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i] != 0, dropout_testing::is_kept({0.5, 5, 3, 9}, static_cast<std::uint64_t>(first) + i))
            << first << ' ' << i;
    }
  });
}

// Of n elements that are kept by chance so many are, within 6 sigma. The words of this seed are what they are: chances
// of one in 500 million say that no other outcome was to be expected.
TEST(Dropout, SharesAreTheirChances) {
  const Context context({.device = "cpu", .threads = 2});
  constexpr std::int64_t n = 1 << 20;
  const std::vector<double> ones(n, 1);
  for (const double rate : {0.001, 0.1, 0.25, 0.5, 0.9, 0.999}) {
    const std::vector<double> y = result_of(context, DataType::f32, dropout_solvers[0], {.rate = rate}, ones);
    const auto kept = static_cast<double>(std::count_if(y.begin(), y.end(), [](double v) { return v != 0; }));
    EXPECT_LE(std::fabs(kept - n * (1 - rate)), 6 * std::sqrt(n * rate * (1 - rate))) << rate;
    // Each word of a counter by itself, too.
    for (std::size_t word = 0; word < 4; ++word) {
      double of_word = 0;
      for (std::size_t i = word; i < y.size(); i += 4) of_word += y[i] != 0;
      EXPECT_LE(std::fabs(of_word - n / 4 * (1 - rate)), 6 * std::sqrt(n / 4 * rate * (1 - rate))) << rate << word;
    }
  }
}

// Two masks of different seeds, streams or steps agree as often as chance has it: p^2 + (1 - p)^2.
TEST(Dropout, MasksOfOtherNumbersAreOthers) {
  const Context context({.device = "cpu", .threads = 2});
  constexpr std::int64_t n = 1 << 18;
  const std::vector<double> ones(n, 1);
  const Numbers first;
  const std::vector<double> y = result_of(context, DataType::f32, dropout_solvers[0], first, ones);
  const double agree = first.rate * first.rate + (1 - first.rate) * (1 - first.rate);
  for (const Numbers& other : {Numbers{.seed = first.seed + 1}, Numbers{.seed = first.seed ^ 1ull << 63},
                               Numbers{.stream = 12}, Numbers{.step = 1}, Numbers{.step = 1 << 24}}) {
    const std::vector<double> z = result_of(context, DataType::f32, dropout_solvers[0], other, ones);
    double same = 0;
    for (std::size_t i = 0; i < y.size(); ++i) same += (y[i] != 0) == (z[i] != 0);
    EXPECT_LE(std::fabs(same - n * agree), 6 * std::sqrt(n * agree * (1 - agree))) << other.seed << other.stream;
  }
}

// Off by one a threshold would be noticed by no mask.
TEST(Dropout, ChancesAreRoundedUp) {
  EXPECT_EQ(operations::dropout_threshold(0), 0u);
  EXPECT_EQ(operations::dropout_threshold(0x1p-40), 1u);
  EXPECT_EQ(operations::dropout_threshold(0x1p-32), 1u);
  EXPECT_EQ(operations::dropout_threshold(0x1.8p-32), 2u);
  EXPECT_EQ(operations::dropout_threshold(0.5), 0x80000000u);
  EXPECT_EQ(operations::dropout_threshold(1 - 0x1p-32), 0xFFFFFFFFu);
  EXPECT_EQ(operations::dropout_threshold(1 - 0x1p-53), 0xFFFFFFFFu);
  EXPECT_EQ(operations::dropout_scale(DataType::f64, 0.1), 1 / 0.9);
  EXPECT_EQ(operations::dropout_scale(DataType::f16, 0.1), static_cast<double>(static_cast<float>(1 / 0.9)));
  EXPECT_EQ(operations::dropout_scale(DataType::f32, 1 - 0x1p-53), 0x1p53);
}

// The gradient: of the sum of dy * y by x, which is linear, so that the same function of dy gives it. Scale 2 is exact.
TEST(Dropout, BackwardIsTheSameFunction) {
  const Context context({.device = "cpu", .threads = 1});
  std::vector<double> x, dy;
  for (int i = 0; i < 500; ++i) x.push_back(i * 7 % 11 - 5), dy.push_back(i * 5 % 13 - 6);
  const Numbers numbers{.rate = 0.5};
  const std::vector<double> y = result_of(context, DataType::f32, dropout_solvers[0], numbers, x),
                            dx = result_of(context, DataType::f32, dropout_solvers[0], numbers, dy);
  double of_y = 0, of_x = 0;
  for (std::size_t i = 0; i < x.size(); ++i) of_y += dy[i] * y[i], of_x += dx[i] * x[i];
  EXPECT_EQ(of_y, of_x);
  EXPECT_NE(of_y, 0);
}

TEST(Dropout, RecordedRunsReadTheirStep) {
  const Context context({.device = "cpu", .threads = 2});
  for (const DataType type : types) dropout_testing::expect_recorded_steps(context, type);
}

TEST(Dropout, TheListByEverySolver) {
  const Context context({.device = "cpu", .threads = 2});
  for (DropoutProblem problem : listed_problems<DropoutProblem>("dropouts.txt")) {
    problem.n = std::min<std::int64_t>(problem.n, 30'011);
    EXPECT_EQ(
        expect_exact_and_bounded(context, problem, {.solver = {.solver = "all"}, .sampled = true, .samples = 2000}), 2)
        << to_text(problem);
  }
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Dropout, RefusesWhatIsNone) {
  const auto refusal = [](const std::string& text) { return error_of([&] { dropout(text); }, ErrorKind::bad_input); };
  expect_part(refusal("f32"), "n (elements)");
  expect_part(refusal("n0"), "n is 0: must be at least 1");
  expect_part(refusal("tf32 n4"), "found 'tf32'");
  expect_part(refusal("bwd n4"), "found 'bwd'");
  expect_part(refusal("n4c2"), "c2");
  expect_part(refusal("f16 n576460752303423489"), "the input");
  EXPECT_EQ(to_text(parse_problem("dropout f32 n12 \"a layer\"")), "dropout n12 \"a layer\"");
  EXPECT_EQ(to_text(parse_problem("dropout n7 bf16")), "dropout bf16 n7");
}

TEST(Dropout, RefusesNumbersOutsideTheirRanges) {
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  const DropoutPlan plan(context, dropout("n4"));
  const Operand x{context.allocate(16)}, y{context.allocate(16)};
  const auto refusal = [&](const DropoutRun& run) {
    return error_of([&] { plan.run(queue, run); }, ErrorKind::bad_input);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_part(refusal({.x = x, .y = y, .rate = 1}), "rate is 1: must be from 0 to less than 1");
  expect_part(refusal({.x = x, .y = y, .rate = -0.25}), "rate is -0.25: must be");
  expect_part(refusal({.x = x, .y = y, .rate = nan}), "rate is nan: must be");
  expect_part(refusal({.x = x, .y = y, .step = 0.5}), "step is 0.5: must be a whole number from 0 to 2^24");
  expect_part(refusal({.x = x, .y = y, .step = -1}), "step is -1: must be");
  expect_part(refusal({.x = x, .y = y, .step = 16777217}), "step is 16777217: must be");
  const auto by_name = [&](const char* name, const Scalar& value) {
    const NamedOperand arrays[] = {{"x", x}, {"y", y}};
    const NamedScalar scalars[] = {{name, value}};
    return error_of([&] { plan.plan().run(queue, arrays, {}, scalars); }, ErrorKind::bad_input);
  };
  expect_part(by_name("seed", 0x1p32), "seed is 4294967296: must be a whole number from 0 to 2^32 - 1");
  expect_part(by_name("seed_high", -1), "seed_high is -1: must be a whole number");
  expect_part(by_name("stream", 1.5), "stream is 1.5: must be a whole number");
  expect_part(by_name("rate", Scalar::changing(0.5)), "rate is changing: of dropout step alone may be");
  expect_part(by_name("seed", Scalar::changing(1)), "seed is changing: of dropout step alone may be");
}

TEST(Dropout, RefusesArraysThatOverlap) {
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  const DropoutPlan plan(context, dropout("n4"));
  const Buffer buffer = context.allocate(64);
  plan.run(queue, {.x = {buffer, 8}, .y = {buffer, 8}}).wait();
  plan.run(queue, {.x = {buffer, 0}, .y = {buffer, 16}}).wait();
  expect_part(error_of(
                  [&] {
                    plan.run(queue, {.x = {buffer, 4}, .y = {buffer, 8}});
                  },
                  ErrorKind::bad_input),
              "y and x overlap in memory: y is written while x is read; keep them apart, or make them the same");
}

}  // namespace
}  // namespace omniconv::dropout_tests
