// What the notation refuses, where, and with which words.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "problem_testing.h"

namespace omniconv {
namespace {

TEST(Refusals, AnyTwoWaysOfSayingOneThing) {
  const std::string base = "n1c1h9w9k1r1s1";
  const std::vector<std::vector<std::vector<std::string>>> forms{
      {{"p1"}, {"ph1", "pw1"}, {"pt1", "pb1", "pl1", "pr1"}}, {{"u1"}, {"uh1", "uw1"}}, {{"d1"}, {"dh1", "dw1"}}};
  for (const auto& family : forms)
    for (std::size_t i = 0; i < family.size(); ++i)
      for (std::size_t j = 0; j < family.size(); ++j)
        for (const std::string& first : family[i])
          for (const std::string& second : family[j]) {
            for (const std::string between : {"", " "}) {
              const std::string line = base + first + between + second;
              if (i == j && first != second) {
                EXPECT_NO_THROW(parse_problem(line)) << line;
              } else {
                const auto column = static_cast<int>(line.size() - second.size() + 1);
                expect_refusal(line, column, "found '" + second + "'; expected ");
                expect_refusal(line, column, "and '" + first + "' was given before");
              }
            }
          }
  EXPECT_EQ(refusal(base + "p2ph2"),
            "17: found 'ph2'; expected padding to be said in one way, and 'p2' was given before");
  EXPECT_EQ(refusal(base + " n2"), "16: found 'n2'; expected one n, and 'n1' was given before");
  for (const std::string letters : {"n", "c", "h", "w", "k", "r", "s"})
    expect_refusal(base + letters + "1", 15, "expected one " + letters + ", and");
  expect_refusal(base + "g1g1", 17, "expected one g, and 'g1' was given before");
}

TEST(Refusals, AnyWordTwice) {
  const std::vector<std::vector<std::string>> conv_words{{"fwd", "bwd_data", "bwd_filter"},
                                                         {"f32", "f64", "f16", "bf16", "tf32"},
                                                         {"nchw", "nhwc"},
                                                         {"flip"},
                                                         {"bias"},
                                                         {"relu"},
                                                         {"acc"},
                                                         {"\"a\"", "\"b\"", "\"\""}};
  const std::vector<std::vector<std::string>> filter_words{
      {"u8", "f32", "u8>f32", "u8>u8"},
      {"constant:0", "constant:1", "replicate", "reflect", "reflect101", "wrap", "valid"},
      {"flip"},
      {"kernel:random", "kernel:box:3"},
      {"\"a\"", "\"b\""}};
  const std::vector<std::vector<std::string>> gemm_words{{"f32", "bf16"}, {"nn", "nt", "tn", "tt"}, {"\"a\"", "\"b\""}};
  const auto check = [](const std::string& beginning, const auto& slots) {
    for (const auto& slot : slots)
      for (const std::string& first : slot)
        for (const std::string& second : slot) {
          const std::string line = beginning + " " + first + " " + second;
          expect_refusal(line, static_cast<int>(line.size() - second.size() + 1), "expected one ");
        }
  };
  check("n1c1h1w1k1r1s1", conv_words);
  check("filter2d h1w1r1s1", filter_words);
  check("gemm m1n1k1", gemm_words);
  expect_refusal("filter2d u8 h1w1r1s1 filter2d", 22, "expected one operation, and filter2d was given before");
  expect_refusal("gemm f32 nn m1n1k1 filter2d", 20, "expected one operation, and gemm was given before");
}

TEST(Refusals, MissingThings) {
  EXPECT_EQ(refusal("n1c1h1w1k1r1  # more"), "13: found the end of the line; expected s (filter columns)");
  EXPECT_EQ(
      refusal("relu"),
      "5: found the end of the line; expected n (batch size), c (input channels), h (rows), w (columns), k (output "
      "channels), r (filter rows), s (filter columns)");
  EXPECT_EQ(refusal("\"only a name\"").substr(0, 34), "14: found the end of the line; exp");
  EXPECT_EQ(refusal("filter2d h1w1r1s1"),
            "18: found the end of the line; expected a type: u8, u16, s16, s32, f16, f32 or f64");
  EXPECT_EQ(refusal("filter2d u8 h1r1"), "17: found the end of the line; expected w (columns), s (kernel columns)");
  EXPECT_EQ(refusal("gemm nn m1n1k1"), "15: found the end of the line; expected a type: f32, f64, f16, bf16 or tf32");
  EXPECT_EQ(refusal("gemm f32 m1n1k1"),
            "16: found the end of the line; expected nn, nt, tn or tt: which of the operands are transposed");
  EXPECT_EQ(refusal("gemm f32 nn m1n1"), "17: found the end of the line; expected k (length of the sums)");
  for (const std::string_view empty : {"", "   ", "# n1c1h1w1k1r1s1", "\t#"})
    EXPECT_EQ(refusal(empty), "1: found an empty line; expected a problem, as in n1c3h8w8k4r3s3");
}

TEST(Refusals, BadNumbers) {
  expect_refusal("n9223372036854775808c1h1w1k1r1s1", 2,
                 "found '9223372036854775808'; expected a number below 2^63 behind n");
  expect_refusal("n1c1h1w1k1r1s1p" + std::string(500, '9'), 16, std::string(60, '9') + "...'; expected a number below");
  expect_refusal("n1c1h-3w1k1r1s1", 6, "found '-3w1k1r1s1'; expected a number behind h: digits only");
  expect_refusal("n1 c1 h1 w1 k1 r1 s", 19, "found 's'; expected a number behind s");
  expect_refusal("n1c1h1w1k1r1s1u", 15, "found 'u'; expected a number behind u");
  expect_refusal("n1.5c1h1w1k1r1s1", 3, "found '.5c1h1w1k1r1s1'; expected letters of n c h w k");
  expect_refusal("n1c1h1w1k1r1s1x2", 15, "found 'x2'; expected letters of n c h w k r s p ph pw pt pb pl pr u uh uw d");
  expect_refusal("n=1", 2, "expected a number behind n: digits only");
}

TEST(Refusals, ZeroExtents) {
  for (const std::string letters : {"n", "c", "h", "w", "k", "r", "s"}) {
    std::string line = "n1c1h1w1k1r1s1";
    const std::size_t at = line.find(letters + "1");
    line[at + 1] = '0';
    EXPECT_EQ(refusal(line),
              std::to_string(at + 1) + ": found '" + letters + "0'; " + letters + " is 0: must be at least 1");
  }
  EXPECT_EQ(refusal("n1c1h1w1k1r1s1 u0"), "16: found 'u0'; stride_h is 0: must be at least 1");
  EXPECT_EQ(refusal("n1c1h1w1k1r1s1uh1uw0"), "18: found 'uw0'; stride_w is 0: must be at least 1");
  EXPECT_EQ(refusal("n1c1h1w1k1r1s1dh0"), "15: found 'dh0'; dilation_h is 0: must be at least 1");
  EXPECT_EQ(refusal("n1c1h1w1k1r1s1d00"), "15: found 'd00'; dilation_h is 0: must be at least 1");
  EXPECT_EQ(refusal("n1c1h1w1k1r1s1g0"), "15: found 'g0'; groups is 0: must be at least 1");
  EXPECT_EQ(refusal("filter2d u8 h1w1c0r1s1"), "17: found 'c0'; c is 0: must be at least 1");
  EXPECT_EQ(refusal("gemm f32 nn m1n1k1 batch0"), "20: found 'batch0'; batch is 0: must be at least 1");
}

TEST(Refusals, RulesAcrossFields) {
  EXPECT_EQ(refusal("n1c6h1w1k8r1s1g4"), "15: found 'g4'; groups is 4: must divide c, which is 6");
  EXPECT_EQ(refusal("g4 n1c8h1w1k6r1s1"), "1: found 'g4'; groups is 4: must divide k, which is 6");
  EXPECT_EQ(refusal("n1c1h4w5k1r5s5"),
            "5: found 'h4'; output rows P = floor((h 4 + pad_top 0 + pad_bottom 0 - dilation_h 1*(r 5 - 1) - 1) / "
            "stride_h 1) + 1 is 0: must be at least 1");
  EXPECT_EQ(refusal("n1c1h9w4k1r3s3pl1dw3"),
            "7: found 'w4'; output columns Q = floor((w 4 + pad_left 1 + pad_right 0 - dilation_w 3*(s 3 - 1) - 1) / "
            "stride_w 1) + 1 is -1: must be at least 1");
  expect_refusal("n1c1h9w4k1r5s5", 7, "is 0: must be at least 1");
  // Rounded toward zero, -1 / 2 would make one row out of none.
  EXPECT_EQ(refusal("n1c1h4w9k1r5s5u2").substr(0, 15), "5: found 'h4'; ");
  EXPECT_EQ(refusal("filter2d u8 valid h4w9r5s5"),
            "19: found 'h4'; output rows P = h 4 - r 5 + 1 is 0: must be at least 1 under the border valid");
  EXPECT_EQ(refusal("filter2d u8 valid h9w4r5s6"),
            "21: found 'w4'; output columns Q = w 4 - s 6 + 1 is -1: must be at least 1 under the border valid");
  EXPECT_NO_THROW(parse_problem("filter2d u8 h4w4r5s6"));
  EXPECT_NO_THROW(parse_problem("filter2d u8 valid h5w6r5s6"));
}

TEST(Refusals, SizesThatWouldOverflow) {
  const std::string huge = "9223372036854775807";
  EXPECT_EQ(refusal("n1c1h" + huge + "w1k1r1s1p1"),
            "5: found 'h" + huge + "'; h with its padding is too large: " + huge + " plus 1 passes 2^63");
  EXPECT_EQ(refusal("n1c1h9w9k1r1s1pl" + huge),
            "7: found 'w9'; w with its padding is too large: 9 plus " + huge + " passes 2^63");
  EXPECT_EQ(refusal("n1c1h9w9k1r3s1dh" + huge),
            "5: found 'h9'; r with its dilation is too large: " + huge + " times 2 passes 2^63");
  EXPECT_EQ(refusal("n1c1h9w9k1r2s1dh" + huge),
            "5: found 'h9'; r with its dilation is too large: " + huge + " plus 1 passes 2^63");
  EXPECT_EQ(refusal("n1c1h1w" + huge + "k1r1s1"), "7: found 'w" + huge + "'; the input holds n*c*h*w = 1*1*1*" + huge +
                                                      " elements of 4 bytes: must be at most 2^60 bytes");
  // 2^60 bytes are the limit: 2^58 elements of 4 bytes pass, one more does not.
  EXPECT_NO_THROW(parse_problem("n1c1h1w288230376151711744k1r1s1"));
  expect_refusal("n1c1h1w288230376151711745k1r1s1", 7, "the input holds");
  expect_refusal("n4294967296c4294967296h4294967296w4294967296k1r1s1", 1, "the input holds n*c*h*w");
  expect_refusal("n1c1h1w1k288230376151711745r1s1", 9, "the filter holds k*c/groups*r*s");
  // Of a group's channels: 2^61 bytes of two groups, 2^60 of four.
  expect_refusal("n1c1048576h2048w2048k262144r2048s2048g2", 3,
                 "the filter holds k*c/groups*r*s = 262144*524288*2048*2048");
  EXPECT_NO_THROW(parse_problem("n1c1048576h2048w2048k262144r2048s2048g4"));
  expect_refusal("n2c1h1w1k288230376151711744r1s1", 9, "the output holds n*k*P*Q");
  expect_refusal("n1c1h1w1k1r1s1p1073741824", 5, "the output holds n*k*P*Q");
  expect_refusal("filter2d u8 h1w1c1152921504606846977r1s1", 17, "the input holds h*w*c");
  EXPECT_NO_THROW(parse_problem("filter2d u8 h1w1c1152921504606846976r1s1"));
  expect_refusal("filter2d u8>u16 h1w1c1152921504606846976r1s1", 21, "the output holds P*Q*c");
  expect_refusal("filter2d u8 h1w1r1073741824s1073741824", 17, "the kernel holds r*s");
  expect_refusal("gemm f64 nn m1073741824n1k1073741824", 13, "a holds batch*m*k");
  expect_refusal("gemm f64 nn m1n1073741824k1073741824", 26, "b holds batch*k*n");
  expect_refusal("gemm f64 nn m1073741824n1073741824k1", 13, "c holds batch*m*n");
}

TEST(Refusals, UnknownWords) {
  EXPECT_EQ(
      refusal("nhcw n1c1h1w1k1r1s1"),
      "1: found 'nhcw'; expected letters with numbers (of n c h w k r s p ph pw pt pb pl pr u uh uw d dh dw g) or a "
      "known word; did you mean nchw or nhwc?");
  expect_refusal("n1c1h1w1k1r1s1 bfloat16", 16, "found 'bfloat16'; ");
  expect_refusal("n1c1h1w1k1r1s1 relu6", 16, "did you mean relu?");
  expect_refusal("n1c1h1w1k1r1s1 FLIP", 16, "did you mean flip?");
  expect_refusal("fliter2d u8 h1w1r1s1", 1, "did you mean filter2d?");
  expect_refusal("filter2d u8 h1w1r1s1 replicat", 22, "did you mean replicate?");
  expect_refusal("filter2d u8 h1w1r1s1 kernel", 22, "did you mean kernel:random?");
  expect_refusal("gemm u8 nn m1n1k1", 6, "found 'u8'; ");
  expect_refusal("gemm f32 nn m1n1k1 batches8", 20, "found 'batches8'; ");
  expect_refusal("filter2d u8 h1w1r1s1 k1", 22, "found 'k1'; expected letters with numbers (of h w c r s) or");
  expect_refusal("filter2d u8 h1w1r1s1u2", 21, "found 'u2'; expected letters of h w c r s");
  expect_refusal("filter2d u8 h1w1r1s1 relu", 22, "found 'relu'; ");
}

TEST(Refusals, TypesOfFilter2d) {
  const std::string rule = ": must be one of u8, u16, s16, s32, f16, f32, f64";
  EXPECT_EQ(refusal("filter2d bf16 h1w1r1s1"), "10: found 'bf16'; input type is bf16" + rule);
  EXPECT_EQ(refusal("filter2d h1w1r1s1 tf32"), "19: found 'tf32'; input type is tf32" + rule);
  EXPECT_EQ(refusal("filter2d f32>bf16 h1w1r1s1"), "10: found 'f32>bf16'; output type is bf16" + rule);
  expect_refusal("filter2d u8>f3 h1w1r1s1", 13, "found 'f3'; expected a type; did you mean");
  expect_refusal("filter2d u9>f32 h1w1r1s1", 10, "found 'u9'; expected a type; did you mean u8?");
  expect_refusal("filter2d u8> h1w1r1s1", 10, "found 'u8>'; expected a type on both sides of >");
  expect_refusal("filter2d >u8 h1w1r1s1", 10, "found '>u8'; expected a type on both sides of >");
  expect_refusal("filter2d u8>u16>f32 h1w1r1s1", 13, "found 'u16>f32'; expected a type; ");
}

TEST(Refusals, BordersAndKernels) {
  EXPECT_EQ(refusal("filter2d u8 h1w1r1s1 constant"), "22: border 'constant': the value is missing: say constant:0");
  expect_refusal("filter2d u8 h1w1r1s1 constant:nan", 22, "the value must be finite");
  expect_refusal("filter2d u8 mirror h1w1r1s1", 13, "border 'mirror': ambiguous: ");
  expect_refusal("filter2d u8 symmetric h1w1r1s1", 13, "border 'symmetric': ambiguous: ");
  expect_refusal("filter2d u8 wrap:2 h1w1r1s1", 13, "wrap takes no value");
  for (const std::string kernel : {"random", "integer", "rank1", "equal", "box:3", "gaussian:5", "gaussian:5,1.1",
                                   "unsharp:5,1e-1,+2", "motion:9,-45.5", "sobel-x", "log:9,1.4"})
    EXPECT_EQ(filter("filter2d u8 h1w1r1s1 kernel:" + kernel).kernel, kernel);
  expect_refusal("filter2d u8 h1w1r1s1 kernel:", 22, "kernel is '': must be random, integer, rank1, equal, or a named");
  expect_refusal("filter2d u8 h1w1r1s1 kernel:@file", 22, "kernel is '@file': must be random");
  expect_refusal("filter2d u8 h1w1r1s1 kernel:3x3:1", 22, "kernel is '3x3:1': must be random");
  expect_refusal("filter2d u8 h1w1r1s1 kernel:Box", 22, "kernel is 'Box': must be random");
  expect_refusal("filter2d u8 h1w1r1s1 kernel:rank1:2", 22, "rank1 takes no arguments");
  expect_refusal("filter2d u8 h1w1r1s1 kernel:box:", 22, "an argument is empty");
  expect_refusal("filter2d u8 h1w1r1s1 kernel:gaussian:5,", 22, "an argument is empty");
  expect_refusal("filter2d u8 h1w1r1s1 kernel:gaussian:,5", 22, "an argument is empty");
  expect_refusal("filter2d u8 h1w1r1s1 kernel:gaussian:5,,1", 22, "an argument is empty");
  expect_refusal("filter2d u8 h1w1r1s1 kernel:box:3>5", 22, "arguments must be numbers");
  expect_refusal("filter2d u8 h1w1r1s1 kernel:b" + std::string(1000, 'x'), 22, "must be at most 1000 bytes");
}

TEST(Refusals, Quotes) {
  expect_refusal("n1c1h1w1k1r1s1 \"open", 16, "expected a closing quote");
  expect_refusal("n1c1h1w1k1r1s1\"name\"", 15, "expected a space before the name");
  expect_refusal("\"name\"n1c1h1w1k1r1s1", 7, "expected a space behind the name");
  EXPECT_NO_THROW(parse_problem("n1c1h1w1k1r1s1 \"name\"#comment"));
}

TEST(Refusals, ColumnsCountCharacters) {
  expect_refusal("\"\xE2\x82\xAC\xC3\xB6\" n1c1h1w1k1r1s1 oops", 21, "found 'oops'");
  expect_refusal("\t oops", 3, "found 'oops'");
  expect_refusal("n1\xC3\xB6", 3, "found '\\xC3\\xB6'; ");
  expect_refusal("n1c1h1w1k1r1s1\n", 15, "found '\\x0A'; ");
}

TEST(Refusals, LinesAreBounded) {
  const std::string problem = "n1c1h1w1k1r1s1";
  EXPECT_NO_THROW(parse_problem(problem + std::string(4096 - problem.size(), ' ')));
  EXPECT_EQ(refusal(problem + std::string(4097 - problem.size(), ' ')),
            "4097: found a line of 4097 bytes; expected at most 4096");
  EXPECT_EQ(refusal(std::string(1 << 20, 'n')), "4097: found a line of 1048576 bytes; expected at most 4096");
}

}  // namespace
}  // namespace omniconv
