// Kernels by name as a program of somebody else sees them: through the public headers alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "omniconv/omniconv.h"

namespace omniconv {
namespace {

TEST(PublicKernels, HaveTheirWeights) {
  const Kernel box = named_kernel("box:4x2");
  EXPECT_EQ(box.r, 2);
  EXPECT_EQ(box.s, 4);
  EXPECT_EQ(box.weights, std::vector<double>(8, 0.125));
  EXPECT_TRUE(box.second_weights.empty());
  EXPECT_FALSE(box.anchor_y || box.anchor_x);
  const Kernel sobel = named_kernel(" sobel ");
  EXPECT_EQ(sobel.weights, (std::vector<double>{-1, 0, 1, -2, 0, 2, -1, 0, 1}));
  EXPECT_EQ(sobel.second_weights, (std::vector<double>{-1, -2, -1, 0, 0, 0, 1, 2, 1}));
}

TEST(PublicKernels, BadNamesAreRefused) {
  const auto refusal = [](const char* text) -> std::string {
    try {
      named_kernel(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal("gausian:9"), "unknown kernel \"gausian\": did you mean gaussian?");
  EXPECT_EQ(refusal("gaussian"),
            "kernel \"gaussian\": 0 given; gaussian takes 1 to 2 arguments: write gaussian:SIZE[,SIGMA]");
  EXPECT_EQ(refusal("box:0"), "kernel \"box:0\": SIZE is \"0\"; it must be a whole number from 1 to 4096");
  // Files and written matrices are the command's.
  EXPECT_TRUE(refusal("@mask.txt").starts_with("unknown kernel \"@mask.txt\": "));
  EXPECT_TRUE(refusal("3x3: 0,-1,0, -1,5,-1, 0,-1,0").starts_with("unknown kernel \"3x3\": "));
}

TEST(PublicKernels, AreListed) {
  const std::span<const KernelDescription> all = named_kernels();
  const auto listed = std::find_if(all.begin(), all.end(),
                                   [](const KernelDescription& one) { return one.usage == "gaussian:SIZE[,SIGMA]"; });
  ASSERT_NE(listed, all.end());
  EXPECT_TRUE(listed->meaning.starts_with("Gaussian blur"));
}

TEST(PublicKernels, AFilterHasWhatTheKernelHas) {
  const Filter filter =
      filter_of({.r = 1, .s = 2, .weights = {3, 4}, .anchor_y = 0, .anchor_x = 1, .second_weights = {5, 6}});
  EXPECT_EQ(filter.weights, (std::vector<double>{3, 4}));
  EXPECT_EQ(filter.anchor_y, 0);
  EXPECT_EQ(filter.anchor_x, 1);
  EXPECT_EQ(filter.second_weights, (std::vector<double>{5, 6}));
  EXPECT_EQ(filter.scale, 1);
  EXPECT_EQ(filter.bias, 0);
}

TEST(PublicKernels, MakeAPlanInTwoLines) {
  const Context context({.device = "cpu"});
  const Kernel sharpen = named_kernel("sharpen");
  HostFilter2d filter(context,
                      Filter2dPlan(context, {.h = 3, .w = 3, .r = sharpen.r, .s = sharpen.s}, filter_of(sharpen)));
  const std::array<std::uint8_t, 9> x{9, 9, 9, 9, 10, 9, 9, 9, 9};
  std::array<std::uint8_t, 9> y{};
  filter.run(x.data(), 0, y.data(), 0);
  EXPECT_EQ(y, (std::array<std::uint8_t, 9>{9, 8, 9, 8, 14, 8, 9, 8, 9}));
}

}  // namespace
}  // namespace omniconv
