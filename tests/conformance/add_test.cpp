// add: every solver of the CPU against the definition, the gradient against the sum that it belongs to, arrays that are
// the same memory; the operation's bad input.
#include "omniconv/add.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "../list_testing.h"
#include "add_testing.h"
#include "conformance.h"
#include "matrix_testing.h"

namespace omniconv::add_tests {
namespace {

using add_testing::add;
using add_testing::Array;
using add_testing::Given;
using add_testing::result_of;

constexpr const char* add_solvers[] = {"add/direct/cpu.1", "add/double/cpu.1"};
constexpr DataType types[] = {DataType::f32, DataType::f64, DataType::f16, DataType::bf16};

TEST(Add, BitsAreThoseOfTheDefinitionAtAnyInstructionSet) {
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    const Context context({.device = "cpu", .threads = 2});
    for (const DataType type : types) add_testing::expect_bits_of_the_definition(context, add_solvers[0], type);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

TEST(Add, TheReferenceIsTheDefinition) {
  const Context context({.device = "cpu", .threads = 1});
  for (const DataType type : types) add_testing::expect_bits_of_the_definition(context, add_solvers[1], type);
}

TEST(Add, NumbersThatAreNone) {
  const Context context({.device = "cpu", .threads = 1});
  for (const char* const solver : add_solvers)
    for (const DataType type : types) add_testing::expect_numbers_that_are_none(context, solver, type);
}

// More elements than a piece, cut within lines.
TEST(Add, PiecesByAnyThreads) {
  for (const char* const text : {"relu n3c7h41w53k9u1", "nhwc n3c7h41w53k9u2", "bwd n2c3h60w61k4u2",
                                 "bwd nhwc n2c3h60w61k4u2", "f16 n1c3h100w101k3", "relu n1c1h3w20011k2u2"}) {
    const AddProblem p = add(text);
    const Given given = add_testing::some_arrays(p);
    const std::vector<double> expected = add_testing::defined(p, given);
    for (const int threads : {1, 3})
      elements_testing::expect_bits(result_of(Context({.device = "cpu", .threads = threads}), p, add_solvers[0], given),
                                    expected, text);
  }
}

TEST(Add, TheListByEverySolver) {
  const Context context({.device = "cpu", .threads = 2});
  for (AddProblem problem : listed_problems<AddProblem>("adds.txt")) {
    problem.n = std::min<std::int64_t>(problem.n, 3);
    EXPECT_EQ(
        expect_exact_and_bounded(context, problem, {.solver = {.solver = "all"}, .sampled = true, .samples = 2000}), 2)
        << to_text(problem);
  }
}

// Small whole numbers, of which every sum is exact.
Array whole_numbers(Array array, int seed) {
  for (std::int64_t i = 0; i < array.elements(); ++i)
    array.values.push_back(static_cast<double>((i * 7 + i / 5 + seed) % 11 - 5));
  return array;
}
Array zeros(Array array) {
  array.values.assign(static_cast<std::size_t>(array.elements()), 0);
  return array;
}
double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The sum of dy * (0 + s) is the sum of (0 + ds) * s, of integers to the bit.
TEST(Add, BackwardIsTheAdjoint) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* const words : {"", "nhwc"})
    for (const char* const geometry : add_testing::geometries) {
      const AddProblem forward = add(fmt::format("{} {}", words, geometry)),
                       backward = add(fmt::format("bwd {} {}", words, geometry));
      const Array s = whole_numbers(add_testing::shortcut(forward), 1),
                  dy = whole_numbers(add_testing::output(forward), 3);
      for (const char* const solver : add_solvers)
        EXPECT_EQ(dot(result_of(context, forward, solver, {zeros(add_testing::output(forward)), s}), dy.values),
                  dot(result_of(context, backward, solver, {zeros(add_testing::shortcut(forward)), dy}), s.values))
            << geometry << ' ' << solver;
    }
}

// The sum of dy * y changes with an element of s by ds - d, and with one of x by dy: of a sum without relu differences
// of any length are the derivative, and of small integers they are exact.
TEST(Add, GradientsAreDifferences) {
  const Context context({.device = "cpu", .threads = 1});
  for (const char* const text : {"f64 n2c3h5w4k6u2", "f64 nhwc n1c2h3w3k5", "f64 n1c3h4w2k3"}) {
    const AddProblem forward = add(text), backward = add(std::string("bwd ") + text);
    const Array x = whole_numbers(add_testing::output(forward), 0),
                s = whole_numbers(add_testing::shortcut(forward), 1),
                dy = whole_numbers(add_testing::output(forward), 3),
                d = whole_numbers(add_testing::shortcut(forward), 4);
    const std::vector<double> ds = result_of(context, backward, add_solvers[0], {d, dy});
    const auto loss = [&](const Array& of_x, const Array& of_s) {
      return dot(result_of(context, forward, add_solvers[0], {of_x, of_s}), dy.values);
    };
    for (std::size_t i = 0; i < s.values.size(); ++i) {
      Array more = s, less = s;
      more.values[i] += 1, less.values[i] -= 1;
      EXPECT_EQ((loss(x, more) - loss(x, less)) / 2, ds[i] - d.values[i]) << text << ' ' << i;
    }
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      Array more = x, less = x;
      more.values[i] += 1, less.values[i] -= 1;
      EXPECT_EQ((loss(more, s) - loss(less, s)) / 2, dy.values[i]) << text << ' ' << i;
    }
  }
}

TEST(Add, SumsAreRoundedOnce) {
  const Context context({.device = "cpu", .threads = 1});
  for (const char* const solver : add_solvers) {
    const AddProblem p = add("n1c1h1w3k1"), half = add("f16 n1c1h1w2k1");
    const Given given{{1, 1, 1, 3, {0x1p24, 1, 1}}, {1, 1, 1, 3, {1, 0x1p-24, 0x1.8p-23}}};
    elements_testing::expect_bits(result_of(context, p, solver, given), {0x1p24, 1, 1 + 0x1p-22}, solver);
    // Up to the midpoint, which is even below, and a bit more.
    const Given halves{{1, 1, 1, 2, {2048, 2048}}, {1, 1, 1, 2, {1, 1.0009765625}}};
    elements_testing::expect_bits(result_of(context, half, solver, halves), {2048, 2050}, solver);
  }
}

TEST(Add, BadInput) {
  const auto refusal = [](const std::string& text) { return error_of([&] { add(text); }, ErrorKind::bad_input); };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"n1c2h3k2", "w (columns of the shortcut)"},
      {"n1c2h3w4", "k (channels of the output)"},
      {"n0c2h3w4k2", "n is 0: must be at least 1"},
      {"n1c2h3w4k1", "k is 1: must be at least c, which is 2"},
      {"n1c2h3w4k2u0", "u is 0: must be at least 1"},
      {"bwd relu n1c2h3w4k2", "relu is of the forward pass, and the pass is bwd: leave it out"},
      {"tf32 n1c2h3w4k2", "found 'tf32'"},
      {"bwd_data n1c2h3w4k2", "bwd_data"},
      {"n9223372036854775807c2h3w4k2", "the shortcut"},
      {"n1c1h1w1k1152921504606846976", "the output"},
      {"n1c2h3w4k2r3", "r3"},
  };
  for (const auto& [text, part] : refused) EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
  EXPECT_EQ(to_text(parse_problem("add u1 fwd f32 n2c3h4w5 k3 nchw \"a\"")), "add n2c3h4w5k3 \"a\"");
  EXPECT_EQ(to_text(parse_problem("add u2 relu n2c3h4w5k7 nhwc bf16")), "add bf16 nhwc relu n2c3h4w5k7u2");
  EXPECT_EQ(to_text(parse_problem("add bwd n2c3h4w5k7")), "add bwd n2c3h4w5k7");
  const AddProblem large = add("n1c1h9223372036854775w1k1u9223372036854775807");
  EXPECT_EQ(P(large), 1);
}

// The same memory may be read and written where it is the same from begin to end, and none else.
TEST(Add, RefusesArraysThatOverlap) {
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  const Buffer buffer = context.allocate(1024), other = context.allocate(1024);
  const auto refusal = [&](const char* text, const AddRun& run) {
    return error_of([&] { AddPlan(context, add(text)).run(queue, run); }, ErrorKind::bad_input);
  };
  const auto expect_part = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const char* const forward = "n2c3h4w5k3";
  AddPlan(context, add(forward)).run(queue, {.x = {buffer}, .s = {other}, .y = {buffer}}).wait();
  expect_part(refusal(forward, {.x = {buffer}, .s = {other}, .y = {buffer, 4}}),
              "y and x overlap in memory: y is written while x is read; keep them apart, or make them the same");
  expect_part(refusal(forward, {.x = {other}, .s = {buffer}, .y = {buffer}}), "y and s overlap in memory");
  const std::string of_s = refusal(forward, {.x = {other}, .s = {buffer}, .y = {buffer}});
  EXPECT_EQ(of_s.find("make them the same"), std::string::npos) << of_s;
  expect_part(refusal(forward, {.x = {other}, .y = {buffer}}), "the buffer of s is missing");
  const char* const backward = "bwd n2c3h4w5k4u2";
  AddPlan(context, add(backward)).run(queue, {.s = {buffer}, .y = {other}, .d = {buffer}}).wait();
  expect_part(refusal(backward, {.s = {buffer, 4}, .y = {other}, .d = {buffer}}), "ds and d overlap in memory");
  expect_part(refusal(backward, {.s = {buffer}, .y = {buffer}, .d = {other}}), "ds and dy overlap in memory");
}

}  // namespace
}  // namespace omniconv::add_tests
