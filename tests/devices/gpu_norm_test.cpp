// norm on GPU devices: the bits of the definition, whatever the type and place; gradients that are not finite; recorded
// runs.
#include "../conformance/matrix_testing.h"
#include "../conformance/norm_testing.h"
#include "gpu_testing.h"

namespace omniconv::norm_testing {
namespace {

using GpuNorm = Gpu;

constexpr const char* direct = "norm/direct/gpu.1";
constexpr DataType types[] = {DataType::f32, DataType::f16, DataType::bf16};

TEST_F(GpuNorm, EveryType) {
  const Context context(device);
  for (const DataType type : types)
    for (const char* const rest : {"n1", "n3000", "acc n8193", "n100003"})
      EXPECT_EQ(expect_exact_and_bounded(context, parse_problem(fmt::format("norm {} {}", name(type), rest)),
                                         {.solver = {.solver = direct}}),
                1);
}

TEST_F(GpuNorm, BitsAreThoseOfTheDefinition) {
  const Context context(device);
  for (const DataType type : types) expect_defined_bits(context, direct, type);
}

// Runs beside each other, each with a workspace of its own, give the bits of one by itself.
TEST_F(GpuNorm, BitsAreTheSameInEveryRun) {
  const Context context(device);
  const NormProblem problem = norm("n300007");
  const std::vector<double> g = some_gradient(problem);
  const NormResult expected = defined(problem, {.most = 2}, g);
  for (int again = 0; again < 8; ++again)
    expect_same(found(context, problem, direct, {.most = 2}, g), expected, "again");
}

TEST_F(GpuNorm, WhatIsNotFiniteStops) {
  const Context context(device);
  for (const DataType type : types) expect_what_is_not_finite_stops(context, direct, type);
}

// Roots and quotients are those of IEEE 754, however far from 1.
TEST_F(GpuNorm, FactorsAreNearest) {
  const Context context(device);
  const NormProblem problem = norm("acc n1");
  const NormPlan plan(context, problem, {.solver = direct});
  NormOnDevice on_device(context, plan, {0});
  for (int i = 0; i < 500; ++i) {
    const double sum = rounded(DataType::f32, std::ldexp(1 + std::fabs(std::sin(i)), i % 241 - 120));
    const NormScalars scalars{.most = 1 + std::fabs(std::cos(i)), .scale = i % 3 == 0 ? 1.0 / 128 : 0.7};
    const float before = static_cast<float>(sum);
    on_device.queue().upload(on_device.run.sum.buffer, on_device.run.sum.offset_bytes, &before, sizeof before).wait();
    on_device.run.most = scalars.most, on_device.run.scale = scalars.scale;
    plan.run(on_device.queue(), on_device.run).wait();
    expect_same(on_device.result(), defined(problem, scalars, {0}, sum), fmt::format("a sum of {}", sum));
  }
}

TEST_F(GpuNorm, RecordedRunsReadChangingScalars) {
  const Context context(device);
  for (const char* const text : {"n1500", "acc f16 n9000", "acc bf16 n500"})
    expect_recorded_runs(context, norm(text), direct);
}

TEST_F(GpuNorm, RefusesF64) {
  const Context context(device);
  const std::string error = error_of([&] { NormPlan(context, norm("f64 n4")); }, ErrorKind::bad_input);
  EXPECT_HAS(error, "f64 is served on the CPU, since not every GPU has double precision");
}

}  // namespace
}  // namespace omniconv::norm_testing
