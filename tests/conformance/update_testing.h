// update by its definition, to the bit: what tests of every device compare with.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/convert.h"
#include "omniconv/update.h"

namespace omniconv {

using Rule = UpdateProblem::Rule;

inline UpdateProblem update(const std::string& text) {
  return get<UpdateProblem>(parse_problem("update " + text));
}

// Scalars of a run.
struct UpdateScalars {
  double rate = 0.013, l1 = 0.003, l2 = 0.07, clip = 1.7, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  std::int64_t step = 3;
};

// Arrays of a problem on the host, as numbers that their types hold.
struct UpdateValues {
  std::vector<double> g = {}, w = {}, m = {}, v = {}, copy = {};
  double factor = 1;
  std::int32_t stop = 0;
};

// No line of it is contracted: multiply-adds are named. README.md of update/direct says the same in words.
template <typename Real>
void update_element(const UpdateProblem& problem, const UpdateScalars& s, double factor, double gradient, double& of_w,
                    double& of_m, double& of_v) {
  const auto rate = static_cast<Real>(s.rate), l1 = static_cast<Real>(s.l1), l2 = static_cast<Real>(s.l2),
             clip = static_cast<Real>(s.clip), momentum = static_cast<Real>(s.momentum);
  auto g = static_cast<Real>(gradient), w = static_cast<Real>(of_w), m = static_cast<Real>(of_m),
       v = static_cast<Real>(of_v);
  if (problem.scaled) g = g * static_cast<Real>(factor);
  if (g > clip) g = clip;
  if (g < -clip) g = -clip;
  g = std::fma(l2, w, g);
  const Real of_sign = w > 0 ? l1 : w < 0 ? -l1 : Real{0};
  g = g + of_sign;
  if (problem.rule == Rule::adam) {
    const AdamCorrections corrections = adam_corrections(s.step, s.beta1, s.beta2);
    const auto gain1 = static_cast<Real>(1 - s.beta1), beta2 = static_cast<Real>(s.beta2),
               gain2 = static_cast<Real>(1 - s.beta2);
    const Real root = std::sqrt(static_cast<Real>(corrections.second));
    const Real quotient = rate / static_cast<Real>(corrections.first), scaled_rate = quotient * root;
    const Real epsilon = static_cast<Real>(s.epsilon) * root, difference = g - m;
    m = std::fma(difference, gain1, m);
    const Real gained = gain2 * g, kept = beta2 * v;
    v = std::fma(gained, g, kept);
    const Real root_of_v = std::sqrt(v), divisor = root_of_v + epsilon, direction = m / divisor;
    w = std::fma(-scaled_rate, direction, w);
  } else {
    m = std::fma(momentum, m, g);
    const Real direction = problem.rule == Rule::sgd ? m : std::fma(momentum, m, g);
    w = std::fma(-rate, direction, w);
  }
  of_w = static_cast<double>(w), of_m = static_cast<double>(m), of_v = static_cast<double>(v);
}

inline double rounded(DataType type, double value) {
  std::byte bytes[8];
  store_element(type, value, bytes);
  return load_element(type, bytes);
}

inline DataType type_of_w(const UpdateProblem& problem) {
  return problem.type == DataType::f64 ? DataType::f64 : DataType::f32;
}
inline bool writes_copy(const UpdateProblem& problem) {
  return problem.type == DataType::f16 || problem.type == DataType::bf16;
}

// One step by the definition.
inline UpdateValues defined(const UpdateProblem& problem, const UpdateScalars& scalars, UpdateValues values) {
  const auto number = static_cast<std::int32_t>(scalars.step);
  const bool is_stopped = problem.guarded && values.stop != 0 && values.stop != number;
  for (std::size_t i = 0; i < values.w.size() && !is_stopped; ++i) {
    const double scaled = problem.scaled ? rounded(type_of_w(problem), values.g[i] * values.factor) : values.g[i];
    if (problem.guarded && !std::isfinite(scaled))
      values.stop = number;
    else if (problem.type == DataType::f64)
      update_element<double>(problem, scalars, values.factor, values.g[i], values.w[i], values.m[i], values.v[i]);
    else
      update_element<float>(problem, scalars, values.factor, values.g[i], values.w[i], values.m[i], values.v[i]);
  }
  if (writes_copy(problem))
    for (std::size_t i = 0; i < values.w.size(); ++i) values.copy[i] = rounded(problem.type, values.w[i]);
  return values;
}

// Gradients of several sizes, some beyond the clip; parameters that are 0, some below the normal range; moments that
// are 0.
inline UpdateValues some_values(const UpdateProblem& problem) {
  UpdateValues values;
  values.factor = problem.scaled ? rounded(type_of_w(problem), 0.3) : 1;
  for (std::int64_t i = 0; i < problem.n; ++i) {
    const auto x = static_cast<double>(i);
    const double size = std::ldexp(1.0, static_cast<int>(i % 12) - 9);
    values.g.push_back(rounded(problem.type, size * std::sin(x * 1.7 + 0.3)));
    const double w = i % 7 == 3 ? 0 : i % 41 == 5 ? 0x1p-140 : std::cos(x * 0.9) * (1 + x / 1000);
    values.w.push_back(rounded(type_of_w(problem), w));
    values.m.push_back(rounded(type_of_w(problem), i % 11 == 4 ? 0 : size * std::cos(x * 2.3)));
    values.v.push_back(rounded(type_of_w(problem), i % 13 == 6 ? 0 : size * size * (1.5 + std::sin(x))));
    values.copy.push_back(0);
  }
  return values;
}

// The bits of equal numbers; NaN is any NaN.
inline void expect_same(const std::vector<double>& found, const std::vector<double>& expected,
                        const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i]) && std::isnan(expected[i])) continue;
    ASSERT_TRUE(found[i] == expected[i] && std::signbit(found[i]) == std::signbit(expected[i]))
        << what << '[' << i << "] is " << found[i] << " and must be " << expected[i];
  }
}
inline void expect_same(const UpdateValues& found, const UpdateValues& expected, const std::string& what) {
  expect_same(found.w, expected.w, what + ": w");
  expect_same(found.m, expected.m, what + ": m");
  expect_same(found.v, expected.v, what + ": v");
  expect_same(found.copy, expected.copy, what + ": copy");
  EXPECT_EQ(found.stop, expected.stop) << what;
}

// Where arrays begin in their buffers, in elements.
struct UpdatePlaces {
  std::int64_t g = 0, w = 0, m = 0, v = 0, copy = 0;
};

// A plan's arrays on its device.
class UpdateOnDevice {
 public:
  UpdateOnDevice(const Context& context, const UpdateProblem& problem, const UpdateValues& values,
                 const UpdatePlaces& places = {})
      : context_(context), problem_(problem), queue_(context.make_queue()), values_(values) {
    run_.g = placed(problem.type, values.g, places.g);
    run_.w = placed(state(), values.w, places.w);
    run_.m = placed(state(), values.m, places.m);
    if (problem.rule == Rule::adam) run_.v = placed(state(), values.v, places.v);
    if (writes_copy(problem)) run_.copy = placed(problem.type, values.copy, places.copy);
    if (problem.scaled) run_.factor = placed(state(), {values.factor}, 1);
    if (problem.guarded) run_.stop = placed(DataType::s32, {static_cast<double>(values.stop)}, 1);
  }

  UpdateRun run(const UpdateScalars& s) const {
    UpdateRun run = run_;
    const AdamCorrections corrections = adam_corrections(s.step, s.beta1, s.beta2);
    run.rate = s.rate, run.l1 = s.l1, run.l2 = s.l2, run.clip = s.clip, run.momentum = s.momentum;
    run.beta1 = s.beta1, run.beta2 = s.beta2, run.epsilon = s.epsilon;
    run.correction1 = corrections.first, run.correction2 = corrections.second;
    run.number = static_cast<double>(s.step);
    return run;
  }
  void put_gradient(const std::vector<double>& g) {
    values_.g = g;
    upload(run_.g, problem_.type, g);
  }
  void put_stop(std::int32_t stop) { upload(run_.stop, DataType::s32, {static_cast<double>(stop)}); }
  void step(const UpdatePlan& plan, const UpdateScalars& scalars) { plan.run(queue_, run(scalars)).wait(); }

  UpdateValues values() {
    UpdateValues now = values_;
    now.w = downloaded(run_.w, state(), now.w.size());
    now.m = downloaded(run_.m, state(), now.m.size());
    if (problem_.rule == Rule::adam) now.v = downloaded(run_.v, state(), now.v.size());
    if (writes_copy(problem_)) now.copy = downloaded(run_.copy, problem_.type, now.copy.size());
    if (problem_.guarded) now.stop = static_cast<std::int32_t>(downloaded(run_.stop, DataType::s32, 1)[0]);
    return now;
  }
  Queue& queue() { return queue_; }

 private:
  DataType state() const { return type_of_w(problem_); }
  Operand placed(DataType type, const std::vector<double>& values, std::int64_t before) {
    const std::int64_t size = size_of(type);
    const Operand operand{context_.allocate((static_cast<std::int64_t>(values.size()) + before) * size), before * size};
    upload(operand, type, values);
    return operand;
  }
  void upload(const Operand& operand, DataType type, const std::vector<double>& values) {
    const std::int64_t size = size_of(type);
    std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < values.size(); ++i)
      store_element(type, values[i], bytes.data() + static_cast<std::int64_t>(i) * size);
    queue_.upload(operand.buffer, operand.offset_bytes, bytes.data(), std::ssize(bytes)).wait();
  }
  std::vector<double> downloaded(const Operand& operand, DataType type, std::size_t elements) {
    const std::int64_t size = size_of(type);
    std::vector<std::byte> bytes(elements * static_cast<std::size_t>(size));
    queue_.download(bytes.data(), operand.buffer, operand.offset_bytes, std::ssize(bytes)).wait();
    std::vector<double> values(elements);
    for (std::size_t i = 0; i < elements; ++i)
      values[i] = load_element(type, bytes.data() + static_cast<std::int64_t>(i) * size);
    return values;
  }

  const Context& context_;
  UpdateProblem problem_;
  Queue queue_;
  UpdateValues values_;
  UpdateRun run_;
};

// One step by a solver.
inline UpdateValues stepped(const Context& context, const UpdateProblem& problem, const std::string& solver,
                            const UpdateScalars& scalars, const UpdateValues& values, const UpdatePlaces& places = {}) {
  UpdateOnDevice on_device(context, problem, values, places);
  on_device.step(UpdatePlan(context, problem, {.solver = solver}), scalars);
  return on_device.values();
}

// NaN and infinities in the gradient: what they become, and that they stop what is guarded, of which all others change.
inline void expect_strange_gradients(const Context& context, const std::string& solver, DataType type) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* const rule : {"sgd", "nesterov", "adam"})
    for (const double strange : {nan, infinity, -infinity})
      for (const bool guarded : {false, true})
        for (const double factor : {1.0, infinity}) {
          UpdateProblem problem = update(fmt::format("{} {} n3001", rule, name(type)));
          problem.guarded = guarded;
          problem.scaled = factor != 1;
          const std::string what = fmt::format("{}, {} times {}", to_text(problem), strange, factor);
          UpdateValues values = some_values(problem);
          values.factor = factor;
          for (const std::size_t place : {2000u, 3000u}) {
            UpdateValues before = values;
            if (!problem.scaled) before.g[place] = strange;
            const UpdateValues expected = defined(problem, {}, before);
            ASSERT_EQ(expected.stop, guarded ? 3 : 0) << what;
            UpdateOnDevice on_device(context, problem, before);
            const UpdatePlan plan(context, problem, {.solver = solver});
            on_device.step(plan, {});
            expect_same(on_device.values(), expected, what);
            if (!guarded || problem.scaled) continue;
            // Sticky: a finite gradient changes nothing later, until it is set to 0.
            on_device.put_gradient(values.g);
            on_device.step(plan, {.step = 4});
            expect_same(on_device.values(), expected, what + ", later");
            on_device.put_stop(0);
            on_device.step(plan, {.step = 4});
            UpdateValues again = expected;
            again.g = values.g, again.stop = 0;
            again = defined(problem, {.step = 4}, again);
            expect_same(on_device.values(), again, what + ", again");
            for (const std::int32_t earlier : {2, 5}) {
              on_device.put_stop(earlier);
              on_device.put_gradient(before.g);
              on_device.step(plan, {});
              again.stop = earlier;
              expect_same(on_device.values(), again, what + ", after another");
            }
          }
        }
}

// Of a guarded step: elements of a gradient that is not finite keep their values, all others are those of the plan
// without a guard, to the bit; then nothing changes.
inline void expect_others_change(const Context& context, const SolverOptions& options, DataType type) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::size_t of_nan = 1500, of_infinity = 5000;  // among the vectors, and behind them
  for (const char* const rule : {"sgd", "nesterov", "adam"})
    for (const bool scaled : {false, true}) {
      UpdateProblem free = update(fmt::format("{} {} n5001", rule, name(type))), guarded = free;
      free.scaled = guarded.scaled = scaled, guarded.guarded = true;
      const std::string what = to_text(guarded);
      UpdateValues values = some_values(guarded);
      values.g[of_nan] = nan, values.g[of_infinity] = -infinity;
      const UpdatePlan plan(context, guarded, options);
      UpdateValues kept = values;  // all but the copy, which is of w in any case
      if (writes_copy(guarded))
        for (std::size_t i = 0; i < kept.w.size(); ++i) kept.copy[i] = rounded(type, kept.w[i]);

      UpdateOnDevice without(context, free, values), with(context, guarded, values);
      without.step(UpdatePlan(context, free, options), {});
      with.step(plan, {});
      UpdateValues expected = without.values();
      for (const std::size_t i : {of_nan, of_infinity})
        expected.w[i] = kept.w[i], expected.m[i] = kept.m[i], expected.v[i] = kept.v[i],
        expected.copy[i] = kept.copy[i];
      ASSERT_NE(expected.w, values.w) << what;
      expected.stop = 3;
      expect_same(with.values(), expected, what);
      with.step(plan, {.step = 4});
      expect_same(with.values(), expected, what + ", the next step");

      // What another array of the same step raised stops none of this one.
      UpdateOnDevice other(context, guarded, values), stopped(context, guarded, values);
      other.put_stop(3);
      other.step(plan, {});
      expect_same(other.values(), expected, what + ", another array");
      stopped.put_stop(2);
      stopped.step(plan, {});
      kept.stop = 2;
      expect_same(stopped.values(), kept, what + ", an earlier stop");

      if (!scaled) continue;
      for (const double factor : {nan, infinity}) {
        kept.g[of_nan] = kept.g[of_infinity] = 0, kept.factor = factor, kept.stop = 0;
        UpdateOnDevice by_none(context, guarded, kept);
        by_none.step(plan, {});
        kept.stop = 3;
        expect_same(by_none.values(), kept, what + ", by a factor that is not finite");
      }
    }
}

// A recorded step whose scalars change between replays is as many steps of their own.
inline void expect_recorded_steps(const Context& context, const UpdateProblem& problem) {
  const UpdateValues values = some_values(problem);
  UpdateOnDevice recorded(context, problem, values);
  const UpdatePlan plan(context, problem);
  UpdateRun run = recorded.run({});
  for (Scalar* const scalar : {&run.rate, &run.l1, &run.l2, &run.clip, &run.momentum, &run.beta1, &run.beta2,
                               &run.epsilon, &run.correction1, &run.correction2})
    *scalar = Scalar::changing(0.5);
  Sequence sequence = context.make_sequence();
  plan.append(sequence, run);
  const Recording recording = context.record(std::move(sequence));
  UpdateValues expected = values;
  for (int step = 1; step <= 4; ++step) {
    const UpdateScalars scalars{.rate = 0.1 / step,
                                .l1 = 0.001 * step,
                                .l2 = 0.02 * step,
                                .clip = 2.0 / step,
                                .momentum = 0.6 + 0.1 * step,
                                .beta1 = 0.7 + 0.05 * step,
                                .beta2 = 0.95 + 0.01 * step,
                                .epsilon = 1e-3 / step,
                                .step = step};
    const AdamCorrections corrections = adam_corrections(step, scalars.beta1, scalars.beta2);
    run.rate.set(scalars.rate), run.l1.set(scalars.l1), run.l2.set(scalars.l2), run.clip.set(scalars.clip);
    run.momentum.set(scalars.momentum), run.beta1.set(scalars.beta1), run.beta2.set(scalars.beta2);
    run.epsilon.set(scalars.epsilon);
    run.correction1.set(corrections.first), run.correction2.set(corrections.second);
    recording.replay(recorded.queue()).wait();
    expected = defined(problem, scalars, expected);
    expect_same(recorded.values(), expected, fmt::format("{}, step {}", to_text(problem), step));
  }
}

}  // namespace omniconv
