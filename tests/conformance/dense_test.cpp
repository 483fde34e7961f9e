// conv2d/dense on the CPU: fully connected layers as products of matrices that lie in memory as they are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../error_testing.h"
#include "conv2d_testing.h"
#include "omniconv/plan.h"
#include "solver_testing.h"

namespace omniconv::dense_tests {
namespace {

constexpr const char* id = "conv2d/dense/cpu.1";

Context cpu(int threads = 2) {
  return Context({.device = "cpu", .threads = threads});
}

TEST(Dense, EveryPassTypeLayoutAndEnding) {
  const Context context = cpu();
  for (const char* const words :
       {"fwd", "fwd bias", "fwd bias relu acc", "bwd_data", "bwd_data acc", "bwd_filter", "bwd_filter acc"})
    for (const char* const type : {"f32", "f64", "f16", "bf16", "tf32"})
      for (const char* const layout : {"nchw", "nhwc"})
        for (const char* const geometry : {"n5c3h4w7k9r4s7", "n70c17h1w1k33r1s1", "n1c130h3w3k1r3s3"})
          EXPECT_EQ(expect_exact_and_bounded(context,
                                             conv2d_problem(fmt::format("{} {} {} {}", words, type, layout, geometry)),
                                             {.solver = {.solver = id}}),
                    1);
}

TEST(Dense, RefusesWhatIsNoProduct) {
  const auto reason = [](const char* text) {
    return explain(cpu(), conv2d_problem(text), {.solver = id}).front().reason;
  };
  const std::string whole = "multiplies where filters are as large as images";
  EXPECT_EQ(reason("n2c3h5w5k4r3s3"), whole);
  EXPECT_EQ(reason("nhwc n2c3h5w5k4r1s1"), whole);
  EXPECT_EQ(reason("n2c4h3w3k4r3s3g2"), "multiplies whole matrices, not those of groups");
  EXPECT_EQ(reason("flip n2c3h3w3k4r3s3"), "multiplies filters as they lie, not turned");
  EXPECT_NE(reason("n2c3h3w3k4r3s3p1"), "");
}

// Weights that many images share are read once, not for each image.
TEST(Dense, IsChosenForManyImages) {
  for (const char* const text : {"bias relu n64c64h7w7k128r7s7", "bwd_data n64c64h7w7k128r7s7",
                                 "bwd_filter n64c128h1w1k10r1s1", "bwd_data n2c784h1w1k1000r1s1"}) {
    const Plan plan(cpu(), conv2d_problem(text));
    EXPECT_EQ(plan.solver(), id) << text;
  }
}

}  // namespace
}  // namespace omniconv::dense_tests
