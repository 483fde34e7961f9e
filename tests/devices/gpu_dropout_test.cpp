// dropout on GPU devices: the bits of the definition, whatever the type and place; recorded runs.
#include "../conformance/dropout_testing.h"
#include "../conformance/matrix_testing.h"
#include "gpu_testing.h"

namespace omniconv::gpu_dropout_tests {
namespace {

using GpuDropout = Gpu;
constexpr const char* direct = "dropout/direct/gpu.1";
constexpr DataType types[] = {DataType::f32, DataType::f16, DataType::bf16};

TEST_F(GpuDropout, EveryType) {
  const Context context(device);
  for (const char* const type : {"f32", "f16", "bf16"})
    for (const char* const n : {"n3000", "n1025"})
      EXPECT_EQ(expect_exact_and_bounded(context, parse_problem(fmt::format("dropout {} {}", type, n)),
                                         {.solver = {.solver = direct}}),
                1);
}

TEST_F(GpuDropout, BitsAreThoseOfTheDefinition) {
  const Context context(device);
  for (const DataType type : types) {
    dropout_testing::expect_bits_of_the_definition(context, direct, type);
    dropout_testing::expect_the_ends(context, direct, type);
    dropout_testing::expect_numbers_that_are_none(context, direct, type);
  }
}

TEST_F(GpuDropout, RecordedRunsReadTheirStep) {
  const Context context(device);
  for (const DataType type : types) dropout_testing::expect_recorded_steps(context, type);
}

TEST_F(GpuDropout, RefusesF64) {
  const Context context(device);
  const std::string error =
      error_of([&] { DropoutPlan(context, dropout_testing::dropout("f64 n4")); }, ErrorKind::bad_input);
  EXPECT_HAS(error, "f64 is served on the CPU, since not every GPU has double precision");
}

}  // namespace
}  // namespace omniconv::gpu_dropout_tests
