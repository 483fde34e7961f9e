// add by its formulas: what tests of every device compare with.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "elements_testing.h"
#include "omniconv/add.h"

namespace omniconv::add_testing {

using elements_testing::computed;
using elements_testing::stored;

inline AddProblem add(const std::string& text) {
  return get<AddProblem>(parse_problem("add " + text));
}

// An array's extents and what its elements are.
struct Array {
  std::int64_t n = 0, channels = 0, rows = 0, columns = 0;
  std::vector<double> values = {};

  std::int64_t elements() const { return n * channels * rows * columns; }
  double& at(Layout layout, std::int64_t image, std::int64_t channel, std::int64_t row, std::int64_t column) {
    const std::int64_t place = layout == Layout::nhwc ? ((image * rows + row) * columns + column) * channels + channel
                                                      : ((image * channels + channel) * rows + row) * columns + column;
    return values[static_cast<std::size_t>(place)];
  }
};
inline Array shortcut(const AddProblem& p) {
  return {p.n, p.c, p.h, p.w};
}
inline Array output(const AddProblem& p) {
  return {p.n, p.k, static_cast<std::int64_t>(std::ceil(static_cast<double>(p.h) / static_cast<double>(p.stride))),
          static_cast<std::int64_t>(std::ceil(static_cast<double>(p.w) / static_cast<double>(p.stride)))};
}

// Of several sizes, both signs, and zeros of both signs.
inline Array filled(DataType type, Array array, double phase) {
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const double size = std::ldexp(1.0, static_cast<int>(i % 9) - 4), x = static_cast<double>(i);
    array.values.push_back(stored(type, i % 13 == 5 ? (i % 2 == 0 ? 0.0 : -0.0) : size * std::sin(x * 1.7 + phase)));
  }
  return array;
}

// y of x and s.
inline Array defined_output(const AddProblem& p, Array x, Array s) {
  const std::int64_t before = (p.k - p.c) / 2;
  Array y = x;
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t j = 0; j < p.k; ++j)
      for (std::int64_t row = 0; row < y.rows; ++row)
        for (std::int64_t column = 0; column < y.columns; ++column) {
          double& value = y.at(p.layout, n, j, row, column);
          if (j >= before && j < before + p.c)
            value = computed(p.type, value + s.at(p.layout, n, j - before, row * p.stride, column * p.stride));
          if (p.relu && value <= 0) value = 0.0;
        }
  return y;
}
// ds of d and dy: each element of dy is given back to the element of s that was added.
inline Array defined_gradient(const AddProblem& p, const Array& d, Array dy) {
  const std::int64_t before = (p.k - p.c) / 2;
  Array ds = d;
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t j = before; j < before + p.c; ++j)
      for (std::int64_t row = 0; row < dy.rows; ++row)
        for (std::int64_t column = 0; column < dy.columns; ++column) {
          double& value = ds.at(p.layout, n, j - before, row * p.stride, column * p.stride);
          value = computed(p.type, value + dy.at(p.layout, n, j, row, column));
        }
  return ds;
}

// The base, x or d, and the other array, s or dy.
struct Given {
  Array base, other;
};
inline Given some_arrays(const AddProblem& p) {
  const Given given{filled(p.type, p.backward ? shortcut(p) : output(p), 0.3),
                    filled(p.type, p.backward ? output(p) : shortcut(p), 1.1)};
  return given;
}
inline std::vector<double> defined(const AddProblem& p, const Given& given) {
  return (p.backward ? defined_gradient(p, given.base, given.other) : defined_output(p, given.base, given.other))
      .values;
}

// Where arrays begin in their buffers, in elements; with `in_place` the result is the base.
struct Places {
  std::int64_t base = 0, other = 0, result = 0;
  bool in_place = false;
};
inline std::vector<double> result_of(const Context& context, const AddProblem& p, const std::string& solver,
                                     const Given& given, const Places& places = {}) {
  Queue queue = context.make_queue();
  const Operand base = elements_testing::placed(context, queue, p.type, given.base.values, places.base),
                other = elements_testing::placed(context, queue, p.type, given.other.values, places.other);
  const std::vector<double> before(given.base.values.size(), -7);
  const Operand result =
      places.in_place ? base : elements_testing::placed(context, queue, p.type, before, places.result);
  AddRun run;
  if (p.backward)
    run.s = result, run.d = base, run.y = other;
  else
    run.x = base, run.s = other, run.y = result;
  AddPlan(context, p, {.solver = solver}).run(queue, run).wait();
  return elements_testing::taken(queue, p.type, result, given.base.elements());
}

// The forms of a problem: channels that are padded evenly and not, and by no multiple of 4; strides; extents that are
// no multiples of them; rows longer than what is gathered at once.
inline constexpr const char* geometries[] = {"n1c1h1w1k1",     "n2c3h7w9k3",      "n2c3h7w9k8",     "n3c4h8w8k12u2",
                                             "n2c8h6w10k16u2", "n1c16h5w7k32u2",  "n2c5h6w31k5u2",  "n2c3h10w7k4u3",
                                             "n1c2h9w3k3u20",  "n1c2h3w1301k3u2", "n3c130h1w1k133", "n2c4h33w37k4"};

inline void expect_bits_of_the_definition(const Context& context, const std::string& solver, DataType type,
                                          std::span<const char* const> forms = geometries) {
  for (const char* const words : {"", "relu", "nhwc", "nhwc relu", "bwd", "bwd nhwc"})
    for (const char* const geometry : forms) {
      const AddProblem p = add(fmt::format("{} {} {}", name(type), words, geometry));
      const Given given = some_arrays(p);
      const std::vector<double> expected = defined(p, given);
      for (const Places& places : {Places{}, Places{.in_place = true}, Places{1, 0, 0}, Places{0, 1, 0},
                                   Places{0, 0, 3}, Places{4, 8, 12}, Places{.base = 5, .other = 3, .in_place = true}})
        elements_testing::expect_bits(result_of(context, p, solver, given, places), expected,
                                      fmt::format("{} by {} at {} {} {}{}", to_text(p), solver, places.base,
                                                  places.other, places.result, places.in_place ? ", in place" : ""));
    }
}

// NaN stays NaN, whether it comes from the base or the other array, with relu too; infinities have their signs.
inline void expect_numbers_that_are_none(const Context& context, const std::string& solver, DataType type) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* const words : {"", "relu", "nhwc relu", "bwd"})
    for (const char* const geometry : {"n2c12h16w16k12", "n2c8h15w16k20u2"}) {
      const AddProblem p = add(fmt::format("{} {} {}", name(type), words, geometry));
      Given given = some_arrays(p);
      for (std::size_t i = 0; i < given.base.values.size(); i += 5)
        given.base.values[i] = i % 4 == 0 ? nan : i % 4 == 1 ? infinity : i % 4 == 2 ? -infinity : 1;
      for (std::size_t i = 0; i < given.other.values.size(); i += 3)
        given.other.values[i] = i % 4 == 0 ? infinity : i % 4 == 1 ? -infinity : i % 4 == 2 ? nan : -1;
      elements_testing::expect_bits(result_of(context, p, solver, given), defined(p, given),
                                    to_text(p) + " by " + solver);
    }
}

}  // namespace omniconv::add_testing
