// Random problems of the differential test: the same everywhere, valid, of every word, and small.
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "checking/differential.h"
#include "conformance.h"
#include "omniconv/conv2d.h"
#include "omniconv/gemm.h"
#include "omniconv/pool2d.h"

namespace omniconv {
namespace {

std::vector<std::string> texts(std::int64_t count, std::uint64_t seed) {
  std::vector<std::string> all;
  for (const Problem& problem : checking::random_problems(operations::operations(), count, seed))
    all.push_back(to_text(problem));
  return all;
}

TEST(Draws, ASeedGivesTheSameProblemsEverywhere) {
  const std::vector<std::string> few = texts(20, 7), many = texts(60, 7);
  EXPECT_EQ(few, std::vector<std::string>(many.begin(), many.begin() + 20));
  EXPECT_NE(few, texts(20, 8));
  EXPECT_EQ(few.front(), "f64 nhwc flip relu n2c96h32w97k224r1s1g32");
  EXPECT_EQ(few.back(), "bias_add bf16 n2c31h4w16");
}

TEST(Draws, EveryWordAppears) {
  std::map<std::string, std::set<std::string>> words;
  for (const Problem& problem : checking::random_problems(operations::operations(), 3000, 1)) {
    EXPECT_EQ(parse_problem(to_text(problem)), problem);
    std::istringstream line(to_text(problem));
    for (std::string word; line >> word;) words[std::string(problem.operation_name())].insert(word);
  }
  ASSERT_EQ(words.size(), operations::operations().size());
  const std::map<std::string, std::vector<const char*>> expected = {
      {"conv2d", {"bwd_data", "bwd_filter", "f64", "f16", "bf16", "tf32", "nhwc", "flip", "bias", "relu", "acc"}},
      {"gemm", {"f32", "f64", "f16", "bf16", "tf32", "nn", "nt", "tn", "tt"}},
      {"activation", {"sigmoid", "tanh", "bwd", "f64", "f16", "bf16", "nhwc"}},
      {"batch", {"f64", "f16", "bf16", "nhwc", "flip", "gathered"}},
      {"bias_add", {"bwd", "f64", "f16", "bf16", "nhwc", "relu"}},
      {"batch_norm", {"inference", "bwd", "f64", "f16", "bf16", "nhwc", "relu"}},
      {"loss", {"mse", "bwd", "f64", "f16", "bf16", "sums"}},
      {"norm", {"acc", "f64", "f16", "bf16"}},
      {"update", {"nesterov", "adam", "scaled", "guarded", "f64", "f16", "bf16"}},
      {"pool2d", {"avg", "avg_inside", "bwd", "f64", "f16", "bf16", "nhwc"}},
      {"filter2d",
       {"u8",           "u16",         "s16",  "s32",   "f16",  "f32",     "f64",     "u8>f32",         "constant:0",
        "reflect",      "reflect101",  "wrap", "valid", "flip", "alpha:0", "alpha:3", "kernel:integer", "kernel:rank1",
        "kernel:equal", "kernel:sobel"}}};
  for (const auto& [operation, all] : expected)
    for (const char* const word : all) EXPECT_TRUE(words[operation].contains(word)) << operation << " " << word;
}

TEST(Draws, ExtentsAreAwkwardAndWorkIsBounded) {
  std::set<std::int64_t> channels, strides, dilations;
  int grouped = 0, depthwise = 0, multiplied = 0, asymmetric = 0, large_filters = 0, single_rows = 0;
  const auto expect_bounded = [](const Problem& problem) {
    const operations::Operation& operation = problem.operation();
    EXPECT_LE(operation.figures(operation.task(problem, 1)).operations, 2 * 0x1p25) << to_text(problem);
  };
  for (const Problem& problem : checking::random_problems(operations::operations(), 6000, 2)) expect_bounded(problem);
  const operations::Operation* const convolutions[] = {&operation_of(static_cast<const Conv2dProblem*>(nullptr))};
  for (const Problem& problem : checking::random_problems(convolutions, 2000, 2)) {
    expect_bounded(problem);
    const Conv2dProblem* const conv = problem.get_if<Conv2dProblem>();
    ASSERT_NE(conv, nullptr);
    channels.insert(conv->c);
    strides.insert(conv->stride_w);
    dilations.insert(conv->dilation_h);
    grouped += conv->groups > 1;
    depthwise += conv->groups > 1 && conv->groups == conv->c;
    multiplied += conv->groups > 1 && conv->groups == conv->c && conv->k > conv->c;
    asymmetric += conv->pad_left != conv->pad_right;
    large_filters += conv->r > 7;
    single_rows += conv->r == 1 && conv->s > 1;
  }
  for (const std::int64_t c : {1, 2, 3, 4, 7, 8, 16, 17, 31, 32, 33, 64, 65, 72})
    EXPECT_TRUE(channels.contains(c)) << c;
  EXPECT_GT(*channels.rbegin(), 128);
  EXPECT_EQ(strides, (std::set<std::int64_t>{1, 2, 3, 9}));
  EXPECT_EQ(dilations, (std::set<std::int64_t>{1, 2, 3}));
  for (const int count : {grouped, depthwise, multiplied, asymmetric, large_filters, single_rows}) EXPECT_GE(count, 5);
}

}  // namespace
}  // namespace omniconv
