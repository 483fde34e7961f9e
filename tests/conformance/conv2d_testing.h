// The problems over which the conv2d solvers of a device are checked.
#pragma once

#include <random>
#include <vector>

#include "../list_testing.h"
#include "core/convert.h"
#include "matrix_testing.h"
#include "operations/random.h"

namespace omniconv {

// Sanitizers slow the references down most, that of threads more. No multiples of three, so that the passes take turns.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::int64_t samples_of_a_tail = 64;
inline constexpr std::size_t layers_between = 11, tails_between = 2;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr std::int64_t samples_of_a_tail = 64;
inline constexpr std::size_t layers_between = 7, tails_between = 1;
#else
inline constexpr std::int64_t samples_of_a_tail = 512;
inline constexpr std::size_t layers_between = 1, tails_between = 1;
#endif

inline constexpr Pass all_passes[] = {Pass::forward, Pass::backward_data, Pass::backward_filter};

inline Conv2dProblem conv2d_problem(const std::string& text) {
  return get<Conv2dProblem>(parse_problem(text));
}

// The study's rungs have tests of their own, and each would be one more program to compile.
inline const SolverOptions all_but_rungs = {.solver = "all", .deny = {"conv2d/rungs"}};

// tails.txt: every pass in both layouts; or, since each costs a compilation, one pass and layout of each problem in
// turn.
enum class Variants { all, in_turn };
inline void check_tails(const Context& context, Variants variants) {
  std::size_t number = 0;
  for (Conv2dProblem problem : listed_problems<Conv2dProblem>("tails.txt")) {
    if (++number % tails_between != 0) continue;
    for (const Pass pass : all_passes)
      for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
        const std::size_t turn = number / tails_between;
        const bool its_turn = pass == all_passes[turn % 3] && layout == Layout(turn / 3 % 2);
        if ((variants == Variants::in_turn || layers_between > 1) && !its_turn) continue;
        problem.layout = layout;
        expect_exact_and_bounded(context, with_pass(problem, pass),
                                 {.solver = all_but_rungs, .sampled = true, .samples = samples_of_a_tail});
      }
  }
}

// Each type, with everything that is fused.
inline void check_types(const Context& context, std::initializer_list<const char*> types, Variants variants) {
  int number = 0;
  for (const char* type : types)
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words :
           {"fwd bias relu acc", "fwd flip bias", "bwd_data acc", "bwd_filter acc", "bwd_data flip", "bwd_filter flip"})
        for (const char* geometry : {"n3c6h9w11k4r3s2p1g2u2", "n2c5h8w7k10r1s1"}) {
          if (variants == Variants::in_turn && ++number % 5 != 0) continue;
          expect_exact_and_bounded(context, conv2d_problem(fmt::format("{} {} {} {}", words, type, layout, geometry)),
                                   {.solver = all_but_rungs});
        }
}

// A problem with every extent and step at random, small.
inline Conv2dProblem random_conv2d(std::mt19937_64& random) {
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
  };
  for (;;) {
    Conv2dProblem problem;
    problem.layout = from(0, 1) == 0 ? Layout::nchw : Layout::nhwc;
    problem.flip = from(0, 3) == 0;
    problem.groups = from(0, 2) == 0 ? from(2, 3) : 1;
    problem.n = from(1, 4), problem.c = problem.groups * from(1, 6), problem.k = problem.groups * from(1, 9);
    problem.h = from(1, 14), problem.w = from(1, 70), problem.r = from(1, 4), problem.s = from(1, 4);
    problem.pad_top = from(0, 3), problem.pad_bottom = from(0, 3);
    problem.pad_left = from(0, 3), problem.pad_right = from(0, 3);
    problem.stride_h = from(1, 3), problem.stride_w = from(1, 3);
    problem.dilation_h = from(1, 2), problem.dilation_w = from(1, 2);
    try {
      validate(problem);
      return problem;
    } catch (const Error&) {  // no output: others
    }
  }
}

// Every combination of an array that begins at a vector and of one that does not gives the same bits, and nothing
// before the output is written.
inline void expect_same_wherever_arrays_begin(const Context& context, const Conv2dProblem& problem,
                                              const std::string& solver) {
  Queue queue = context.make_queue();
  const Conv2dElements elements = elements_of(problem);
  const Conv2dPlan plan(context, problem, {.allow = {solver}});
  const std::int64_t counts[] = {elements.x, elements.w, elements.y};
  const std::size_t output = problem.pass == Pass::forward ? 2 : problem.pass == Pass::backward_data ? 0 : 1;
  std::vector<float> expected;
  for (const std::int64_t places : {0, 1, 2, 4, 7}) {
    std::vector<Operand> operands;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t before = places >> i & 1;
      std::vector<float> values(static_cast<std::size_t>(counts[i] + before), 0.5f);
      for (std::size_t j = 0; j < static_cast<std::size_t>(counts[i]); ++j)
        values[j + static_cast<std::size_t>(before)] = static_cast<float>((j * 7 + i * 3) % 11) - 5;
      const Buffer buffer = context.allocate(static_cast<std::int64_t>(values.size() * 4));
      queue.upload(buffer, 0, values.data(), buffer.bytes()).wait();
      operands.push_back({buffer, before * 4});
    }
    Conv2dRun run{.x = operands[0], .w = operands[1], .y = operands[2]};
    if (plan.workspace_bytes() > 0) run.workspace = context.allocate(plan.workspace_bytes());
    plan.run(queue, run).wait();
    std::vector<float> made(static_cast<std::size_t>(counts[output]));
    queue.download(made.data(), operands[output].buffer, operands[output].offset_bytes, counts[output] * 4).wait();
    if (places == 0) expected = made;
    EXPECT_EQ(made, expected) << to_text(problem) << ", begun at " << places;
    if (operands[output].offset_bytes > 0) {
      float before = 0;
      queue.download(&before, operands[output].buffer, 0, 4).wait();
      EXPECT_EQ(before, 0.5f) << to_text(problem);
    }
  }
}

// The text of the format that the solver has filters prepared in.
inline std::string format_of_filters(const Context& context, const std::string& solver, const std::string& tuning,
                                     const std::string& text) {
  const Plan plan(context, parse_problem(text), {.solver = solver, .tuning = tuning, .prepared = {"w"}});
  return plan.format("w")->text;
}

// Of images of other sizes, where the tuning says the tile. `taps`: of the filters, as "r3s3".
inline void expect_filters_shared(const Context& context, const std::string& solver, const std::string& tuning,
                                  const std::string& taps) {
  const auto format = [&](const char* before, const char* behind) {
    return format_of_filters(context, solver, tuning, before + taps + behind);
  };
  const std::string of_w = format("n1c16h20w20k24", "p1");
  EXPECT_EQ(of_w, format("bias n4c16h7w31k24", ""));
  EXPECT_NE(of_w, format("nhwc n1c16h20w20k24", "p1"));
  EXPECT_NE(of_w, format("bwd_data n1c16h20w20k24", "p1"));
  EXPECT_NE(of_w, format("flip n1c16h20w20k24", "p1"));
  EXPECT_NE(of_w, format("n1c16h20w20k24", "p1g2"));
}

// <conv(x, w), dy> = <x, dx> = <w, dw>, exactly, since all are small integers. Of a tuning where one is given.
inline void expect_adjoint(const Context& context, Conv2dProblem problem, const std::string& solver, std::uint64_t seed,
                           const std::string& tuning = {}) {
  SolverOptions options{.allow = {solver}};
  if (!tuning.empty()) options = {.solver = solver, .tuning = tuning};
  const Conv2dElements elements = elements_of(problem);
  Queue queue = context.make_queue();
  const auto integers = [&](std::int64_t count, std::uint64_t of) {
    std::vector<std::byte> data(static_cast<std::size_t>(count) * 4);
    operations::fill_random(DataType::f32, 3, of, data);
    return data;
  };
  const auto put = [&](const std::vector<std::byte>& data) {
    const Buffer buffer = context.allocate(static_cast<std::int64_t>(data.size()));
    queue.upload(buffer, 0, data.data(), buffer.bytes()).wait();
    return buffer;
  };
  const std::vector<std::byte> x = integers(elements.x, seed), w = integers(elements.w, seed + 1),
                               dy = integers(elements.y, seed + 2);
  const Buffer of_x = put(x), of_w = put(w), of_dy = put(dy);
  const auto product_with = [&](Pass pass, std::int64_t count, const std::vector<std::byte>& other) {
    problem.pass = pass;
    const Conv2dPlan plan(context, problem, options);
    std::vector<std::byte> result(static_cast<std::size_t>(count) * 4, std::byte{0xFF});
    const Buffer output = put(result);
    Conv2dRun run{.x = {of_x}, .w = {of_w}, .y = {of_dy}};
    (pass == Pass::forward ? run.y : pass == Pass::backward_data ? run.x : run.w) = {output};
    if (plan.workspace_bytes() > 0) run.workspace = context.allocate(plan.workspace_bytes());
    plan.run(queue, run).wait();
    queue.download(result.data(), output, 0, output.bytes()).wait();
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i)
      sum += load_element(DataType::f32, &result[static_cast<std::size_t>(4 * i)]) *
             load_element(DataType::f32, &other[static_cast<std::size_t>(4 * i)]);
    return sum;
  };
  const double forward = product_with(Pass::forward, elements.y, dy),
               data = product_with(Pass::backward_data, elements.x, x),
               filter = product_with(Pass::backward_filter, elements.w, w);
  EXPECT_EQ(forward, data) << to_text(problem) << " by " << solver;
  EXPECT_EQ(forward, filter) << to_text(problem) << " by " << solver;
}

// A forward run of f32 that is recorded gives, replayed on other arrays, the bits of a run on these.
inline void expect_recorded(const Context& context, const Conv2dProblem& problem, const char* solver) {
  Queue queue = context.make_queue();
  const Conv2dPlan plan(context, problem, {.solver = solver});
  const Conv2dElements elements = elements_of(plan.problem());
  const auto put = [&](const Buffer& to, std::uint64_t seed) {
    std::vector<std::byte> values(static_cast<std::size_t>(to.bytes()));
    operations::fill_random(DataType::f32, 0, seed, values);
    queue.upload(to, 0, values.data(), to.bytes()).wait();
  };
  const Conv2dRun run{.x = {context.allocate(elements.x * 4)},
                      .w = {context.allocate(elements.w * 4)},
                      .y = {context.allocate(elements.y * 4)},
                      .workspace = context.allocate(plan.workspace_bytes())};
  const auto y = [&] {
    std::vector<float> values(static_cast<std::size_t>(elements.y));
    queue.download(values.data(), run.y.buffer, 0, elements.y * 4).wait();
    return values;
  };
  Sequence sequence = context.make_sequence();
  plan.append(sequence, run);
  const Recording recording = context.record(std::move(sequence));
  for (const std::uint64_t seed : {1, 2}) {
    put(run.x.buffer, seed), put(run.w.buffer, seed + 10);
    plan.run(queue, run).wait();
    const std::vector<float> expected = y();
    put(run.y.buffer, 99);
    recording.replay(queue).wait();
    EXPECT_EQ(y(), expected) << to_text(problem) << " by " << solver;
  }
}

}  // namespace omniconv
