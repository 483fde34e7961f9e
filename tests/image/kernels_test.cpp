#include <cmath>
#include <string>
#include <utility>

#include "kernel_testing.h"

namespace omniconv::image {
namespace {

TEST(NamedKernels, MatricesAreTheseNumbers) {
  expect_kernel(parse_kernel("identity"), 1, 1, {1});
  expect_kernel(parse_kernel("laplacian"), 3, 3, {0, 1, 0, 1, -4, 1, 0, 1, 0});
  expect_kernel(parse_kernel("sobel-x"), 3, 3, {-1, 0, 1, -2, 0, 2, -1, 0, 1});
  expect_kernel(parse_kernel("sobel-y"), 3, 3, {-1, -2, -1, 0, 0, 0, 1, 2, 1});
  expect_kernel(parse_kernel("prewitt-x"), 3, 3, {-1, 0, 1, -1, 0, 1, -1, 0, 1});
  expect_kernel(parse_kernel("prewitt-y"), 3, 3, {-1, -1, -1, 0, 0, 0, 1, 1, 1});
  expect_kernel(parse_kernel("scharr-x"), 3, 3, {-3, 0, 3, -10, 0, 10, -3, 0, 3});
  expect_kernel(parse_kernel("scharr-y"), 3, 3, {-3, -10, -3, 0, 0, 0, 3, 10, 3});
  expect_kernel(parse_kernel("sharpen"), 3, 3, {0, -1, 0, -1, 5, -1, 0, -1, 0});
  expect_kernel(parse_kernel(" emboss\t"), 3, 3, {-2, -1, 0, -1, 1, 1, 0, 1, 2});
}

TEST(NamedKernels, EveryOneThatIsListedCanBeMade) {
  ASSERT_EQ(named_kernels().size(), 20u);
  for (const KernelDescription& description : named_kernels()) {
    EXPECT_FALSE(description.meaning.empty());
    std::string text(description.usage);
    for (const auto& [word, value] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
             {"[,SIGMA]", ",2"}, {"SIZE", "5"}, {"SIGMA", "2"}, {"AMOUNT", "0.5"}, {"LENGTH", "5"}, {"DEGREES", "30"}})
      if (const auto place = text.find(word); place != std::string::npos) text.replace(place, word.size(), value);
    const Kernel kernel = parse_kernel(text);
    EXPECT_EQ(std::ssize(kernel.weights), kernel.r * kernel.s) << text;
  }
}

TEST(NamedKernels, BoxIsTheMean) {
  expect_kernel(parse_kernel("box:3"), 3, 3, Weights2d(9, 1.0 / 9));
  expect_kernel(parse_kernel("average: 4"), 4, 4, Weights2d(16, 1.0 / 16));
  expect_kernel(parse_kernel("box:1"), 1, 1, {1});
  expect_kernel(parse_kernel("box:4x2"), 2, 4, Weights2d(8, 1.0 / 8));
  expect_kernel(parse_kernel("average:1x3"), 3, 1, Weights2d(3, 1.0 / 3));
}

// As many weights as SciPy's gaussian_filter has by default, truncate = 4, and those of `gaussian` of that size.
TEST(NamedKernels, BlurIsAsLargeAsItsSigmaNeeds) {
  for (const auto& [sigma, size] : std::initializer_list<std::pair<std::string, std::int64_t>>{{"0.1", 1},
                                                                                               {"0.2", 3},
                                                                                               {"0.5", 5},
                                                                                               {"1", 9},
                                                                                               {"1.2", 11},
                                                                                               {"1.5", 13},
                                                                                               {"2", 17},
                                                                                               {"10.6", 85},
                                                                                               {"511", 4089}}) {
    const Kernel kernel = parse_kernel("blur:" + sigma);
    EXPECT_EQ(kernel.r, size) << sigma;
    if (size < 100)
      expect_kernel(kernel, size, size, parse_kernel("gaussian:" + std::to_string(size) + "," + sigma).weights);
  }
}

TEST(NamedKernels, GaussianFollowsItsFormula) {
  for (std::int64_t size = 1; size <= 12; ++size)
    for (const double sigma : {0.4, 0.8, 1.0, 1.1, 1.2, 2.5, 40.0}) {
      const std::string text = "gaussian:" + std::to_string(size) + "," + std::to_string(sigma);
      const Kernel kernel = parse_kernel(text);
      double total = 0;
      const auto formula = [&](std::int64_t i, std::int64_t j) {
        const double y = static_cast<double>(2 * i - size + 1) / 2, x = static_cast<double>(2 * j - size + 1) / 2;
        return std::exp(-(y * y + x * x) / (2 * sigma * sigma));
      };
      for (std::int64_t i = 0; i < size; ++i)
        for (std::int64_t j = 0; j < size; ++j) total += formula(i, j);
      for (std::int64_t i = 0; i < size; ++i)
        for (std::int64_t j = 0; j < size; ++j) {
          EXPECT_NEAR(at(kernel, i, j), formula(i, j) / total, 0x1p-20 * formula(i, j) / total) << text;
          EXPECT_EQ(at(kernel, i, j), at(kernel, j, i)) << text;
          EXPECT_EQ(at(kernel, i, j), at(kernel, size - 1 - i, j)) << text;
          EXPECT_EQ(at(kernel, i, j), at(kernel, i, size - 1 - j)) << text;
        }
      EXPECT_NEAR(sum(kernel), 1, sum_rounding(kernel)) << text;
    }
}

TEST(NamedKernels, GaussianHasADefaultSigma) {
  EXPECT_EQ(parse_kernel("gaussian:9").weights, parse_kernel("gaussian:9,1.7").weights);  // 0.3 * 3 + 0.8
  EXPECT_EQ(parse_kernel("gaussian:2").weights, Weights2d(4, 0.25));
  EXPECT_EQ(parse_kernel("gaussian:1").weights, Weights2d{1});
}

TEST(NamedKernels, GaussianOfExtremeSigmaIsFinite) {
  EXPECT_EQ(parse_kernel("gaussian:3,1e-300").weights, (Weights2d{0, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(parse_kernel("gaussian:2,1e-300").weights, Weights2d(4, 0.25));
  const Kernel even = parse_kernel("gaussian:4,1e-3");
  EXPECT_EQ(at(even, 1, 1), 0.25);
  EXPECT_EQ(at(even, 0, 1), 0);
  const Kernel wide = parse_kernel("gaussian:3,1e300");
  for (const double weight : wide.weights) EXPECT_NEAR(weight, 1.0 / 9, 0x1p-20 / 9);
}

TEST(NamedKernels, GaussianPassesTheRankOneRule) {
  for (std::int64_t size = 2; size <= 31; ++size) {
    const std::string name = "gaussian:" + std::to_string(size);
    EXPECT_TRUE(is_rank_one(parse_kernel(name))) << name;
    for (int tenths = 2; tenths <= 80; tenths += tenths < 30 ? 1 : 7) {
      const std::string text = name + "," + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
      const Kernel kernel = parse_kernel(text);
      EXPECT_TRUE(is_rank_one(kernel)) << text;
      EXPECT_NEAR(sum(kernel), 1, sum_rounding(kernel)) << text;
    }
  }
  EXPECT_FALSE(is_rank_one(parse_kernel("sharpen")));
  EXPECT_TRUE(is_rank_one(parse_kernel("sobel-x")));
}

TEST(NamedKernels, LogSumsToZero) {
  const double sigma = 1.4;
  const Kernel kernel = parse_kernel("log:9,1.4");
  EXPECT_NEAR(sum(kernel), 0, sum_rounding(kernel));
  double gaussian_sum = 0, mean = 0;
  const auto squares = [](std::int64_t i, std::int64_t j) {
    return static_cast<double>((i - 4) * (i - 4) + (j - 4) * (j - 4));
  };
  const auto gaussian = [&](std::int64_t i, std::int64_t j) { return std::exp(-squares(i, j) / (2 * sigma * sigma)); };
  const auto laplacian = [&](std::int64_t i, std::int64_t j) {
    return gaussian(i, j) / gaussian_sum * (squares(i, j) - 2 * sigma * sigma) / std::pow(sigma, 4);
  };
  for (std::int64_t i = 0; i < 9; ++i)
    for (std::int64_t j = 0; j < 9; ++j) gaussian_sum += gaussian(i, j);
  for (std::int64_t i = 0; i < 9; ++i)
    for (std::int64_t j = 0; j < 9; ++j) mean += laplacian(i, j) / 81;
  for (std::int64_t i = 0; i < 9; ++i)
    for (std::int64_t j = 0; j < 9; ++j) {
      EXPECT_NEAR(at(kernel, i, j), laplacian(i, j) - mean,
                  256 * 0x1p-53);  // every term is below 1, of under 256 roundings
      EXPECT_EQ(at(kernel, i, j), at(kernel, 8 - i, j));
      EXPECT_EQ(at(kernel, i, j), at(kernel, j, i));
    }
  EXPECT_LT(at(kernel, 4, 4), 0);  // the sign of `laplacian`
}

TEST(NamedKernels, UnsharpAddsWhatTheGaussianTakes) {
  const Kernel gaussian = parse_kernel("gaussian:5,1.2"), kernel = parse_kernel("unsharp:5,1.2,0.75");
  EXPECT_NEAR(sum(kernel), 1, sum_rounding(kernel));
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 5; ++j) {
      const double image = i == 2 && j == 2 ? 1 : 0;
      EXPECT_NEAR(at(kernel, i, j), image + 0.75 * (image - at(gaussian, i, j)), 0x1p-20 * 0.75);
    }
  EXPECT_EQ(parse_kernel("unsharp:3,1,0").weights, (Weights2d{0, 0, 0, 0, 1, 0, 0, 0, 0}));
}

TEST(NamedKernels, MotionAlongAnAxisIsARowOfEqualWeights) {
  expect_kernel(parse_kernel("motion:5,0"), 1, 5, Weights2d(5, 0.2));
  expect_kernel(parse_kernel("motion:5,180"), 1, 5, Weights2d(5, 0.2));
  expect_kernel(parse_kernel("motion:5,90"), 5, 1, Weights2d(5, 0.2));
  expect_kernel(parse_kernel("motion:5,-270"), 5, 1, Weights2d(5, 0.2));
  expect_kernel(parse_kernel("motion:4,0"), 1, 5, {0.125, 0.25, 0.25, 0.25, 0.125});
  expect_kernel(parse_kernel("motion:1,0"), 1, 1, {1});
}

TEST(NamedKernels, MotionWeighsPixelsByTheAreaThatIsCovered) {
  // A unit square turned by 45 degrees: an octagon of area 2 (sqrt 2 - 1) in the middle, four equal corners beside it.
  const Kernel turned = parse_kernel("motion:1,45");
  ASSERT_EQ(turned.r, 3);
  ASSERT_EQ(turned.s, 3);
  const double middle = 2 * (std::sqrt(2.0) - 1), corner = (1 - middle) / 4;
  const double expected[] = {0, corner, 0, corner, middle, corner, 0, corner, 0};
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(turned.weights[i], expected[i], 64 * 0x1p-53);
}

TEST(NamedKernels, MotionRisesToTheRightAndIsItsOwnHalfTurn) {
  for (const char* text : {"motion:9,30", "motion:12.5,61", "motion:40,7", "motion:9,135"}) {
    const Kernel kernel = parse_kernel(text);
    EXPECT_EQ(kernel.r % 2, 1) << text;
    EXPECT_EQ(kernel.s % 2, 1) << text;
    EXPECT_NEAR(sum(kernel), 1, sum_rounding(kernel)) << text;
    for (std::size_t i = 0; i < kernel.weights.size(); ++i) {
      EXPECT_GE(kernel.weights[i], 0) << text;
      EXPECT_EQ(kernel.weights[i], kernel.weights[kernel.weights.size() - 1 - i]) << text;
    }
  }
  const Kernel kernel = parse_kernel("motion:9,30");
  EXPECT_GT(at(kernel, 0, kernel.s - 2), 0);
  EXPECT_EQ(at(kernel, kernel.r - 1, kernel.s - 2), 0);
}

TEST(NamedKernels, EveryArgumentIsChecked) {
  const std::pair<const char*, const char*> cases[] = {
      {"gaussian", "kernel \"gaussian\": 0 given; gaussian takes 1 to 2 arguments: write gaussian:SIZE[,SIGMA]"},
      {"gaussian:5,1,2",
       "kernel \"gaussian:5,1,2\": 3 given; gaussian takes 1 to 2 arguments: write gaussian:SIZE[,SIGMA]"},
      {"box", "kernel \"box\": 0 given; box takes 1 argument: write box:SIZE"},
      {"identity:3", "kernel \"identity:3\": 1 given; identity takes no arguments: write identity"},
      {"unsharp:5,1", "kernel \"unsharp:5,1\": 2 given; unsharp takes 3 arguments: write unsharp:SIZE,SIGMA,AMOUNT"},
      {"gaussian:0", "kernel \"gaussian:0\": SIZE is \"0\"; it must be a whole number from 1 to 4096"},
      {"gaussian:", "kernel \"gaussian:\": SIZE is \"\"; it must be a whole number from 1 to 4096"},
      {"gaussian:5x", "kernel \"gaussian:5x\": SIZE is \"5x\"; it must be a whole number from 1 to 4096"},
      {"gaussian:5.5", "kernel \"gaussian:5.5\": SIZE is \"5.5\"; it must be a whole number from 1 to 4096"},
      {"box:-3", "kernel \"box:-3\": SIZE is \"-3\"; it must be a whole number from 1 to 4096"},
      {"box:4097", "kernel \"box:4097\": SIZE is \"4097\"; it must be a whole number from 1 to 4096"},
      {"box:99999999999999999999",
       "kernel \"box:99999999999999999999\": SIZE is \"99999999999999999999\"; it must be a whole number from 1 to "
       "4096"},
      {"box:3x", "kernel \"box:3x\": HEIGHT is \"\"; it must be a whole number from 1 to 4096"},
      {"box:0x3", "kernel \"box:0x3\": WIDTH is \"0\"; it must be a whole number from 1 to 4096"},
      {"box:3x5x7", "kernel \"box:3x5x7\": HEIGHT is \"5x7\"; it must be a whole number from 1 to 4096"},
      {"blur:0", "kernel \"blur:0\": SIGMA is \"0\"; it must be a number above 0, at most 511"},
      {"blur:512", "kernel \"blur:512\": SIGMA is \"512\"; it must be a number above 0, at most 511"},
      {"gaussian:5,-1", "kernel \"gaussian:5,-1\": SIGMA is \"-1\"; it must be a finite number above 0"},
      {"gaussian:5,0", "kernel \"gaussian:5,0\": SIGMA is \"0\"; it must be a finite number above 0"},
      {"gaussian:5,inf", "kernel \"gaussian:5,inf\": SIGMA is \"inf\"; it must be a finite number above 0"},
      {"gaussian:5,nan", "kernel \"gaussian:5,nan\": SIGMA is \"nan\"; it must be a finite number above 0"},
      {"gaussian:5,1 px", "kernel \"gaussian:5,1 px\": SIGMA is \"1 px\"; it must be a finite number above 0"},
      {"log:2,1", "kernel \"log:2,1\": SIZE is \"2\"; it must be a whole number from 3 to 4096"},
      {"log:5,1e-200", "kernel \"log:5,1e-200\": the weight in row 1, column 1 is inf; weights must be finite"},
      {"unsharp:4,1,1",
       "kernel \"unsharp:4,1,1\": SIZE is \"4\"; it must be odd: the image itself stands in the middle, and an even "
       "size "
       "has none"},
      {"unsharp:5,1,much", "kernel \"unsharp:5,1,much\": AMOUNT is \"much\"; it must be a finite number"},
      {"motion:0.5,0", "kernel \"motion:0.5,0\": LENGTH is \"0.5\"; it must be a number from 1 to 4094"},
      {"motion:9,up", "kernel \"motion:9,up\": DEGREES is \"up\"; it must be a finite number"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(kernel_error(text), message);
}

TEST(NamedKernels, UnknownOnesGetTheNearestNames) {
  EXPECT_EQ(kernel_error("gausian:5"), "unknown kernel \"gausian\": did you mean gaussian?");
  EXPECT_EQ(kernel_error("GAUSSIAN:5"), "unknown kernel \"GAUSSIAN\": did you mean gaussian?");
  EXPECT_NE(kernel_error("xyzzy").find("known are: identity, box, average, blur, gaussian"), std::string::npos);
  EXPECT_EQ(kernel_error("box\n:3"), "unknown kernel \"box\\x0A\": did you mean box?");
  EXPECT_EQ(kernel_error(" \t"),
            "no kernel is given: write a name (gaussian:9,1.5), @FILE, or WIDTHxHEIGHT[+X+Y]: weights");
}

TEST(NamedKernels, GradientMagnitudesArePairs) {
  for (const std::string name : {"sobel", "prewitt", "scharr"}) {
    const Kernel pair = parse_kernel(name);
    EXPECT_EQ(pair.weights, parse_kernel(name + "-x").weights);
    EXPECT_EQ(pair.second_weights, parse_kernel(name + "-y").weights);
    EXPECT_TRUE(parse_kernel(name + "-x").second_weights.empty());
    EXPECT_EQ(kernel_error(name + ":3"),
              "kernel \"" + name + ":3\": 1 given; " + name + " takes no arguments: write " + name);
  }
}

TEST(Normalize, DividesByTheSum) {
  Kernel kernel = parse_kernel("3x1: 1,2,1");
  normalize(kernel);
  expect_kernel(kernel, 1, 3, {0.25, 0.5, 0.25});
  kernel = parse_kernel("2x1: -3,1");
  normalize(kernel);
  expect_kernel(kernel, 1, 2, {1.5, -0.5});
}

TEST(Normalize, RefusesAPair) {
  EXPECT_EQ(error_of([] {
              Kernel kernel = parse_kernel("sobel");
              normalize(kernel);
            }),
            "the kernel cannot be normalized: it is a pair, whose magnitude is no weighted sum; leave the "
            "normalization out, or give --scale");
}

TEST(Normalize, RefusesASumOfZero) {
  const std::string message = "the kernel cannot be normalized: its weights sum to zero; leave the normalization out";
  for (const char* text : {"laplacian", "sobel-x", "log:9,1.4", "3x1: 0.1,0.2,-0.3"})
    EXPECT_EQ(error_of([&] {
                Kernel kernel = parse_kernel(text);
                normalize(kernel);
              }),
              message)
        << text;
  Kernel large = parse_kernel("2x1: 1.5e308,1.5e308");
  EXPECT_EQ(error_of([&] { normalize(large); }),
            "the kernel cannot be normalized: the sum of its weights passes the largest double; scale them down");
}

}  // namespace
}  // namespace omniconv::image
