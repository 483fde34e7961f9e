// dropout by its formula: what tests of every device compare with.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "elements_testing.h"
#include "omniconv/dropout.h"

namespace omniconv::dropout_testing {

using elements_testing::stored;

inline DropoutProblem dropout(const std::string& text) {
  return get<DropoutProblem>(parse_problem("dropout " + text));
}

// Philox4x32-10 as its authors describe it: ten rounds of two multiplications, between which the keys are bumped. The
// words of counter {i / 4, of which the lower half is first} are those of elements i to i + 3.
struct Counter {
  std::uint32_t words[4];
};
inline Counter philox_by_rounds(Counter x, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 1; round <= 10; ++round) {
    if (round > 1) k0 += 0x9E3779B9, k1 += 0xBB67AE85;
    const std::uint64_t left = std::uint64_t{0xD2511F53} * x.words[0], right = std::uint64_t{0xCD9E8D57} * x.words[2];
    const auto high = [](std::uint64_t product) { return static_cast<std::uint32_t>(product >> 32); };
    const auto low = [](std::uint64_t product) { return static_cast<std::uint32_t>(product & 0xFFFFFFFF); };
    x = {{high(right) ^ x.words[1] ^ k0, low(right), high(left) ^ x.words[3] ^ k1, low(left)}};
  }
  return x;
}

// The numbers of a run.
struct Numbers {
  double rate = 0.3;
  std::uint64_t seed = 0x123456789ABCDEF0;
  std::uint32_t stream = 11;
  std::uint32_t step = 0;
};
inline bool is_kept(const Numbers& numbers, std::uint64_t i) {
  const std::uint64_t block = i / 4;
  const Counter counter =
      philox_by_rounds({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), numbers.stream,
                         16 * numbers.step + 2}},
                       static_cast<std::uint32_t>(numbers.seed), static_cast<std::uint32_t>(numbers.seed >> 32));
  const double word = counter.words[i % 4];
  return word >= numbers.rate * 0x1p32 || word == 0x1p32 - 1;
}
inline std::vector<double> defined(DataType type, const Numbers& numbers, const std::vector<double>& x) {
  const double scale = 1 / (1 - numbers.rate);
  std::vector<double> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!is_kept(numbers, i))
      y.push_back(0.0);
    else if (type == DataType::f64)
      y.push_back(x[i] * scale);
    else
      y.push_back(stored(type, static_cast<double>(static_cast<float>(x[i]) * static_cast<float>(scale))));
  }
  return y;
}

inline std::vector<double> some_values(DataType type, std::int64_t n) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i), size = std::ldexp(1.0, static_cast<int>(i % 9) - 4);
    values.push_back(stored(type, i % 17 == 4 ? -0.0 : size * std::sin(x * 1.3 + 0.2)));
  }
  return values;
}

inline DropoutRun run_of(const Operand& x, const Operand& y, const Numbers& numbers) {
  return {.x = x,
          .y = y,
          .rate = numbers.rate,
          .seed = numbers.seed,
          .stream = numbers.stream,
          .step = static_cast<double>(numbers.step)};
}

// Where arrays begin in their buffers, in elements; with `in_place` y is x.
struct Places {
  std::int64_t x = 0, y = 0;
  bool in_place = false;
};
inline std::vector<double> result_of(const Context& context, DataType type, const std::string& solver,
                                     const Numbers& numbers, const std::vector<double>& values,
                                     const Places& places = {}) {
  Queue queue = context.make_queue();
  const std::vector<double> before(values.size(), -7);
  const Operand x = elements_testing::placed(context, queue, type, values, places.x),
                y = places.in_place ? x : elements_testing::placed(context, queue, type, before, places.y);
  const DropoutProblem problem{.type = type, .n = std::ssize(values)};
  DropoutPlan(context, problem, {.solver = solver}).run(queue, run_of(x, y, numbers)).wait();
  return elements_testing::taken(queue, type, y, std::ssize(values));
}

// Whole groups and vectors, one element less and more, and rests; wherever arrays begin.
inline void expect_bits_of_the_definition(const Context& context, const std::string& solver, DataType type) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 31, 63, 64, 129, 1000, 1023, 1024, 3073, 8193, 20011}) {
    const std::vector<double> values = some_values(type, n);
    for (const Numbers& numbers :
         {Numbers{}, Numbers{0.5, 7, 0, 1}, Numbers{0.9, 0xFFFFFFFF00000000, 0xFFFFFFFF, 77}}) {
      const std::vector<double> expected = defined(type, numbers, values);
      for (const Places& places : {Places{}, Places{.in_place = true}, Places{1, 0}, Places{0, 3}, Places{4, 8},
                                   Places{.x = 5, .in_place = true}})
        elements_testing::expect_bits(
            result_of(context, type, solver, numbers, values, places), expected,
            fmt::format("{} {} at {} {}{}", name(type), n, places.x, places.y, places.in_place ? ", in place" : ""));
    }
  }
}

// Rates at the ends, and steps and words at theirs.
inline void expect_the_ends(const Context& context, const std::string& solver, DataType type) {
  const std::vector<double> values = some_values(type, 3000);
  elements_testing::expect_bits(result_of(context, type, solver, {.rate = 0}, values), values, "all are kept");
  for (const Numbers& numbers : {Numbers{0x1p-32}, Numbers{0x1p-40}, Numbers{1 - 0x1p-53}, Numbers{1 - 0x1p-32},
                                 Numbers{0.25, ~std::uint64_t{0}, ~std::uint32_t{0}, 1 << 24}, Numbers{0.25, 0, 0, 0}})
    elements_testing::expect_bits(result_of(context, type, solver, numbers, values), defined(type, numbers, values),
                                  fmt::format("{} rate {}", name(type), numbers.rate));
}

// What is kept stays NaN or infinite; what is not is 0, whatever it was.
inline void expect_numbers_that_are_none(const Context& context, const std::string& solver, DataType type) {
  std::vector<double> values = some_values(type, 2500);
  for (std::size_t i = 0; i < values.size(); i += 3)
    values[i] = i % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : -std::numeric_limits<double>::infinity();
  elements_testing::expect_bits(result_of(context, type, solver, {}, values), defined(type, {}, values), solver);
}

// A recorded run reads its step at each replay; one outside its range is taken for the end of it.
inline void expect_recorded_steps(const Context& context, DataType type) {
  const std::vector<double> values = some_values(type, 1500);
  Queue queue = context.make_queue();
  const Operand x = elements_testing::placed(context, queue, type, values),
                y = elements_testing::placed(context, queue, type, values);
  const DropoutPlan plan(context, {.type = type, .n = 1500});
  DropoutRun run = run_of(x, y, {});
  run.step = Scalar::changing(0.5);
  Sequence sequence = context.make_sequence();
  plan.append(sequence, run);
  const Recording recording = context.record(std::move(sequence));
  const std::pair<double, std::uint32_t> steps[] = {{0, 0},
                                                    {1, 1},
                                                    {2, 2},
                                                    {65537, 65537},
                                                    {0x1p24 - 1, (1 << 24) - 1},
                                                    {0x1p24, 1 << 24},
                                                    {-3, 0},
                                                    {1e30, 1 << 24},
                                                    {1e9, 1 << 24},
                                                    {std::numeric_limits<double>::quiet_NaN(), 0}};
  for (const auto& [given, step] : steps) {
    run.step.set(given);
    recording.replay(queue).wait();
    elements_testing::expect_bits(elements_testing::taken(queue, type, y, 1500), defined(type, {.step = step}, values),
                                  fmt::format("step {}", given));
  }
}

}  // namespace omniconv::dropout_testing
