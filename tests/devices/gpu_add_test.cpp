// add on GPU devices: the bits of the definition, whatever the pass, type, layout and place; arrays that are the same
// memory.
#include <array>

#include "../conformance/add_testing.h"
#include "../conformance/matrix_testing.h"
#include "gpu_testing.h"

namespace omniconv::gpu_add_tests {
namespace {

using GpuAdd = Gpu;
constexpr const char* direct = "add/direct/gpu.1";

TEST_F(GpuAdd, EveryPassTypeAndLayout) {
  const Context context(device);
  for (const char* const words : {"relu", "nhwc relu", "bwd", "bwd nhwc"})
    for (const char* const type : {"f32", "f16", "bf16"})
      for (const char* const geometry : {"n3c8h16w16k8", "n2c16h12w14k32u2", "n2c5h13w17k10u2"})
        EXPECT_EQ(expect_exact_and_bounded(context, parse_problem(fmt::format("add {} {} {}", words, type, geometry)),
                                           {.solver = {.solver = direct}}),
                  1);
}

TEST_F(GpuAdd, BitsAreThoseOfTheDefinition) {
  const Context context(device);
  add_testing::expect_bits_of_the_definition(context, direct, DataType::f32);
  for (const DataType type : {DataType::f16, DataType::bf16})
    add_testing::expect_bits_of_the_definition(context, direct, type, std::array{"n3c4h8w8k12u2", "n2c5h6w31k5u2"});
}

// Whole groups and the rest behind them, of which the latter goes another way.
TEST_F(GpuAdd, WholeGroupsInPlace) {
  const Context context(device);
  for (const char* const text :
       {"f16 n3c5h31w29k5", "relu n3c6h31w29k13", "relu n3c6h31w29k13u2", "nhwc bf16 n3c8h31w29k24",
        "nhwc n3c6h31w29k13u2", "bwd n3c5h31w29k8u2", "bwd nhwc bf16 n3c8h31w29k24u2", "bwd nhwc n3c8h31w29k9u3"}) {
    const AddProblem p = add_testing::add(text);
    const add_testing::Given given = add_testing::some_arrays(p);
    for (const bool in_place : {false, true})
      for (const std::int64_t place : {0, 1, 4})
        elements_testing::expect_bits(
            add_testing::result_of(context, p, direct, given, {.other = place, .in_place = in_place}),
            add_testing::defined(p, given), fmt::format("{} {}{}", text, place, in_place ? ", in place" : ""));
  }
}

TEST_F(GpuAdd, NumbersThatAreNone) {
  const Context context(device);
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16})
    add_testing::expect_numbers_that_are_none(context, direct, type);
}

TEST_F(GpuAdd, RefusesF64) {
  const Context context(device);
  const std::string error =
      error_of([&] { AddPlan(context, add_testing::add("f64 n1c1h4w4k1")); }, ErrorKind::bad_input);
  EXPECT_HAS(error, "f64 is served on the CPU, since not every GPU has double precision");
}

}  // namespace
}  // namespace omniconv::gpu_add_tests
