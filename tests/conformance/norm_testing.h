// norm by its definition, to the bit: what tests of every device compare with.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/convert.h"
#include "omniconv/norm.h"
#include "omniconv/update.h"

namespace omniconv::norm_testing {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline NormProblem norm(const std::string& text) {
  return get<NormProblem>(parse_problem("norm " + text));
}

inline DataType type_of_sum(const NormProblem& problem) {
  return problem.type == DataType::f64 ? DataType::f64 : DataType::f32;
}

struct NormScalars {
  double most = infinity, scale = 1;
};
struct NormResult {
  double sum = 0, factor = 0;
};

// Of 512 chains, halves to halves. No line of it is contracted.
template <typename Real>
Real sum_of_chains(std::vector<Real> chains) {
  while (chains.size() > 1) {
    const std::size_t half = chains.size() / 2;
    for (std::size_t j = 0; j < half; ++j) chains[j] = chains[j] + chains[j + half];
    chains.resize(half);
  }
  return chains[0];
}

// README.md of norm/direct says the same in words.
template <typename Real>
NormResult defined_by(const NormProblem& problem, const NormScalars& scalars, const std::vector<double>& g,
                      double sum_before) {
  std::vector<Real> of_pieces(512, 0);
  for (std::size_t first = 0, piece = 0; first < g.size(); first += 8192, ++piece) {
    std::vector<Real> chains(512, 0);
    for (std::size_t i = first; i < std::min(first + 8192, g.size()); ++i) {
      const auto x = static_cast<Real>(g[i]);
      const Real square = x * x;
      chains[i % 512] = chains[i % 512] + square;
    }
    of_pieces[piece % 512] = of_pieces[piece % 512] + sum_of_chains(chains);
  }
  Real sum = sum_of_chains(of_pieces);
  if (problem.accumulate) sum = static_cast<Real>(sum_before) + sum;
  const auto most = static_cast<Real>(scalars.most), scale = static_cast<Real>(scalars.scale),
             epsilon = static_cast<Real>(1e-6);
  const Real root = std::sqrt(sum), scaled = scale * root, length = scaled + epsilon, ratio = most / length;
  const Real factor = std::isfinite(sum) ? scale * std::min(ratio, Real{1}) : std::numeric_limits<Real>::quiet_NaN();
  return {static_cast<double>(sum), static_cast<double>(factor)};
}
inline NormResult defined(const NormProblem& problem, const NormScalars& scalars, const std::vector<double>& g,
                          double sum_before = 0) {
  return problem.type == DataType::f64 ? defined_by<double>(problem, scalars, g, sum_before)
                                       : defined_by<float>(problem, scalars, g, sum_before);
}

inline double rounded(DataType type, double value) {
  std::byte bytes[8];
  store_element(type, value, bytes);
  return load_element(type, bytes);
}

// Of several sizes and both signs.
inline std::vector<double> some_gradient(const NormProblem& problem) {
  std::vector<double> g;
  for (std::int64_t i = 0; i < problem.n; ++i)
    g.push_back(
        rounded(problem.type, std::ldexp(std::sin(static_cast<double>(i) * 1.7 + 0.3), -(static_cast<int>(i) % 9))));
  return g;
}

inline void expect_same(const NormResult& found, const NormResult& expected, const std::string& what) {
  for (const auto& [a, b, name] :
       {std::tuple{found.sum, expected.sum, "sum"}, {found.factor, expected.factor, "factor"}})
    EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
        << what << ": " << name << " is " << a << " and must be " << b;
}

inline Buffer uploaded(const Context& context, Queue& queue, DataType type, const std::vector<double>& values,
                       std::int64_t before = 0) {
  const std::int64_t size = size_of(type);
  std::vector<std::byte> bytes((values.size() + static_cast<std::size_t>(before)) * static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(type, values[i], bytes.data() + (static_cast<std::int64_t>(i) + before) * size);
  Buffer buffer = context.allocate(std::ssize(bytes));
  queue.upload(buffer, 0, bytes.data(), std::ssize(bytes)).wait();
  return buffer;
}
inline double number_at(Queue& queue, DataType type, const Operand& operand) {
  std::byte bytes[8];
  queue.download(bytes, operand.buffer, operand.offset_bytes, size_of(type)).wait();
  return load_element(type, bytes);
}

// A plan's arrays on its device: g begins `before` elements behind the begin of its buffer.
class NormOnDevice {
 public:
  NormOnDevice(const Context& context, const NormPlan& plan, const std::vector<double>& g, double sum = 0,
               std::int64_t before = 0)
      : queue_(context.make_queue()), type_(type_of_sum(plan.problem())) {
    const DataType of_g = plan.problem().type;
    run.g = {uploaded(context, queue_, of_g, g, before), before * size_of(of_g)};
    run.sum = {uploaded(context, queue_, type_, {sum}, 1), size_of(type_)};
    run.factor = {uploaded(context, queue_, type_, {-1}, 3), 3 * size_of(type_)};
    run.workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
  }
  NormResult result() { return {number_at(queue_, type_, run.sum), number_at(queue_, type_, run.factor)}; }
  Queue& queue() { return queue_; }

  NormRun run;

 private:
  Queue queue_;
  DataType type_;
};

inline NormResult found(const Context& context, const NormProblem& problem, const std::string& solver,
                        const NormScalars& scalars, const std::vector<double>& g, double sum = 0,
                        std::int64_t before = 0) {
  const NormPlan plan(context, problem, {.solver = solver});
  NormOnDevice on_device(context, plan, g, sum, before);
  on_device.run.most = scalars.most, on_device.run.scale = scalars.scale;
  plan.run(on_device.queue(), on_device.run).wait();
  return on_device.result();
}

// Whole pieces and vectors, one element less and more, and more pieces than there are chains; clipped and not.
inline void expect_defined_bits(const Context& context, const std::string& solver, DataType type) {
  for (const std::int64_t n :
       {1, 2, 3, 5, 15, 17, 511, 512, 513, 2049, 8191, 8192, 8193, 20'003, 100'000, 513 * 8192 + 77}) {
    if (n > 100'000 && type != DataType::f32) continue;
    const NormProblem problem{.accumulate = n % 2 == 1, .type = type, .n = n};
    const std::vector<double> g = some_gradient(problem);
    const double before = problem.accumulate ? 0.625 : infinity;  // which is not read
    for (const NormScalars& scalars : {NormScalars{}, {.most = 0.75, .scale = 0.3}})
      for (const std::int64_t place : {0, 1, 4}) {
        if (place > 0 && n > 20'003) continue;
        expect_same(found(context, problem, solver, scalars, g, before, place), defined(problem, scalars, g, before),
                    fmt::format("{} at {}, most {}", to_text(problem), place, scalars.most));
      }
  }
}

// A NaN or an infinity anywhere, of whatever comes before or behind it, and a sum beyond the range make the factor NaN,
// at which each update of the same step stops, that of an array whose gradients are finite, too.
inline void expect_what_is_not_finite_stops(const Context& context, const std::string& solver, DataType type) {
  const NormProblem problem{.accumulate = true, .type = type, .n = 9001};
  const NormPlan plan(context, problem, {.solver = solver});
  const UpdatePlan update(context, {.scaled = true, .guarded = true, .type = type, .n = 3});
  const std::vector<double> ordinary = some_gradient(problem);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double beyond = type == DataType::f64 ? 1e200 : 1e30;  // whose square is
  for (const double strange : {nan, infinity, -infinity, beyond}) {
    if (type == DataType::f16 && strange == beyond) continue;
    for (const std::size_t at : {0u, 511u, 8191u, 8192u, 9000u, 9001u}) {  // the last: what the sum was
      if (at == 9001u && !(strange != -infinity && strange != beyond)) continue;
      for (const double most : {infinity, 2.0, 0.0}) {
        std::vector<double> g = ordinary;
        if (at < g.size()) g[at] = rounded(type, strange);
        NormOnDevice on_device(context, plan, g, at < g.size() ? 1 : strange);
        on_device.run.most = most;
        plan.run(on_device.queue(), on_device.run).wait();
        const std::string what = fmt::format("{} at {} of {}, most {}", strange, at, to_text(problem), most);
        EXPECT_FALSE(std::isfinite(on_device.result().sum)) << what;
        EXPECT_TRUE(std::isnan(on_device.result().factor)) << what;
        Queue& queue = on_device.queue();
        const DataType state = type_of_sum(problem);
        UpdateRun step;
        step.g = {uploaded(context, queue, type, {1, 2, 0})}, step.w = {uploaded(context, queue, state, {1, 2, 3})};
        step.m = {uploaded(context, queue, state, {0, 0, 0})}, step.factor = on_device.run.factor;
        step.stop = {uploaded(context, queue, DataType::s32, {0})}, step.number = 7;
        if (size_of(type) == 2) step.copy = {uploaded(context, queue, type, {0, 0, 0})};
        update.run(queue, step).wait();
        EXPECT_EQ(number_at(queue, DataType::s32, step.stop), 7) << what;
        EXPECT_EQ(number_at(queue, state, step.w), 1) << what;
      }
    }
  }
}

// A recorded run whose scalars change between replays.
inline void expect_recorded_runs(const Context& context, const NormProblem& problem, const std::string& solver) {
  const NormPlan plan(context, problem, {.solver = solver});
  const std::vector<double> g = some_gradient(problem);
  NormOnDevice on_device(context, plan, g);
  on_device.run.most = Scalar::changing(1), on_device.run.scale = Scalar::changing(1);
  Sequence sequence = context.make_sequence();
  plan.append(sequence, on_device.run);
  const Recording recording = context.record(std::move(sequence));
  double sum = 0;
  for (const NormScalars& scalars : {NormScalars{0.5, 2}, {1, 0.25}, {infinity, 1}, {0, 1}}) {
    on_device.run.most.set(scalars.most), on_device.run.scale.set(scalars.scale);
    recording.replay(on_device.queue()).wait();
    const NormResult expected = defined(problem, scalars, g, sum);
    expect_same(on_device.result(), expected, fmt::format("{}, most {}", to_text(problem), scalars.most));
    sum = expected.sum;
  }
}

}  // namespace omniconv::norm_testing
