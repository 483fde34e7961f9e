// update on GPU devices: the bits of the definition, whatever the rule, type and place; gradients that are not finite;
// recorded steps.
#include "../conformance/matrix_testing.h"
#include "../conformance/update_testing.h"
#include "devices/sequence.h"
#include "gpu_testing.h"

namespace omniconv {
namespace {

using GpuUpdate = Gpu;

constexpr const char* direct = "update/direct/gpu.1";

TEST_F(GpuUpdate, EveryRuleAndType) {
  const Context context(device);
  for (const char* const rule : {"sgd", "nesterov", "adam"})
    for (const char* const type : {"f32", "f16", "bf16"})
      for (const char* const rest : {"n3000", "scaled guarded n1025"})
        EXPECT_EQ(expect_exact_and_bounded(context, parse_problem(fmt::format("update {} {} {}", rule, type, rest)),
                                           {.solver = {.solver = direct}}),
                  1);
}

// Whole groups, one element less and more, and rests; aligned and not.
TEST_F(GpuUpdate, BitsAreThoseOfTheDefinition) {
  const Context context(device);
  for (const char* const rule : {"sgd", "nesterov", "adam"})
    for (const char* const type : {"f32", "f16", "bf16"})
      for (const char* const words : {"", "scaled guarded"})
        for (const std::int64_t n : {1, 2, 3, 5, 31, 33, 127, 129, 1000, 1023, 1024, 3073}) {
          UpdateProblem problem = update(fmt::format("{} {} {} n1", rule, type, words));
          problem.n = n;
          const UpdateValues values = some_values(problem), expected = defined(problem, {}, values);
          expect_same(stepped(context, problem, direct, {}, values), expected, to_text(problem));
        }
}

TEST_F(GpuUpdate, ArraysBeginAnywhere) {
  const Context context(device);
  for (const char* const text : {"adam f16 n2500", "nesterov n2500", "adam guarded n2500", "bf16 guarded n2500"}) {
    const UpdateProblem problem = update(text);
    const UpdateValues values = some_values(problem), expected = defined(problem, {}, values);
    for (const UpdatePlaces& places :
         {UpdatePlaces{1, 0, 0, 0, 0}, UpdatePlaces{0, 1, 0, 0, 0}, UpdatePlaces{0, 0, 2, 0, 0},
          UpdatePlaces{0, 0, 0, 3, 0}, UpdatePlaces{0, 0, 0, 0, 1}, UpdatePlaces{4, 8, 12, 4, 8},
          UpdatePlaces{3, 2, 1, 7, 5}})
      expect_same(stepped(context, problem, direct, {}, values, places), expected,
                  fmt::format("{} at {} {} {} {} {}", text, places.g, places.w, places.m, places.v, places.copy));
  }
}

// Where the moments are far apart from 1, roots and quotients are those of IEEE 754, too.
TEST_F(GpuUpdate, AdamsQuotientsAreNearest) {
  const Context context(device);
  const UpdateProblem problem = update("adam n60000");
  for (const double epsilon : {1e-8, 0.0, 0.3}) {
    UpdateValues values = some_values(problem);
    for (std::size_t i = 0; i < values.w.size(); ++i) {
      const int exponent = static_cast<int>(i % 61) - 30;
      values.m[i] = std::ldexp(rounded(DataType::f32, 1 + std::sin(static_cast<double>(i))), exponent);
      values.v[i] = std::ldexp(rounded(DataType::f32, 2 + std::sin(static_cast<double>(i * i % 1000))), exponent);
      values.w[i] = 0;
    }
    const UpdateScalars scalars{.rate = 1, .l1 = 0, .l2 = 0, .epsilon = epsilon, .step = 1};
    expect_same(stepped(context, problem, direct, scalars, values), defined(problem, scalars, values), "adam");
  }
}

TEST_F(GpuUpdate, StrangeGradients) {
  const Context context(device);
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16})
    expect_strange_gradients(context, direct, type);
}

TEST_F(GpuUpdate, GradientsThatAreNotFiniteStopNoOthersOfTheirStep) {
  const Context context(device);
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16})
    expect_others_change(context, {.solver = direct}, type);
}

TEST_F(GpuUpdate, RecordedStepsReadChangingScalars) {
  const Context context(device);
  for (const char* const text : {"n1500", "nesterov f16 n1500", "adam n1500", "adam bf16 scaled guarded n1500"})
    expect_recorded_steps(context, update(text));
}

TEST_F(GpuUpdate, AStepIsOneLaunch) {
  const Context context(device);
  for (const char* const text : {"n1500", "guarded n1500", "adam bf16 scaled guarded n1500"}) {
    const UpdateProblem problem = update(text);
    Sequence sequence = context.make_sequence();
    UpdatePlan(context, problem, {.solver = direct})
        .append(sequence, UpdateOnDevice(context, problem, some_values(problem)).run({}));
    EXPECT_EQ(sequence.impl()->steps().size(), 1u) << text;
  }
}

TEST_F(GpuUpdate, RefusesF64) {
  const Context context(device);
  const std::string error = error_of([&] { UpdatePlan(context, update("f64 n4")); }, ErrorKind::bad_input);
  EXPECT_HAS(error, "f64 is served on the CPU, since not every GPU has double precision");
}

}  // namespace
}  // namespace omniconv
