// The notation: what it means, how it prints, and what is refused where.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "omniconv/error.h"
#include "omniconv/problem.h"

namespace omniconv {
namespace {

using Limits = std::numeric_limits<std::int64_t>;

template <typename T>
T parse(std::string_view line) {
  return std::get<T>(parse_problem(line));
}
const auto conv = parse<Conv2dProblem>;
const auto filter = parse<Filter2dProblem>;
const auto gemm = parse<GemmProblem>;

std::string canonical(std::string_view line) {
  return to_text(parse_problem(line));
}

template <typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    const std::string message = error.what();
    EXPECT_EQ(std::count_if(message.begin(), message.end(), [](unsigned char c) { return c < 0x20 || c > 0x7E; }), 0);
    EXPECT_LT(message.size(), 1000u);
    return message;
  }
  return "no error";
}

// What is wrong with the line, from its column on.
std::string refusal(std::string_view line) {
  const std::string message = message_of([&] { parse_problem(line); });
  const std::string beginning = "problem text, column ";
  EXPECT_TRUE(message.starts_with(beginning)) << message;
  return message.substr(std::min(message.size(), beginning.size()));
}

void expect_refusal(std::string_view line, int column, std::string_view part) {
  const std::string found = refusal(line);
  EXPECT_TRUE(found.starts_with(std::to_string(column) + ": ")) << line << "\n  " << found;
  EXPECT_NE(found.find(part), std::string::npos) << line << "\n  " << found;
}

TEST(Conv2dText, LettersMeanTheirFields) {
  const Conv2dProblem p = conv("n1c6h30w40k8r2s3pt4pb5pl6pr7uh2uw3dh4dw5g2");
  EXPECT_EQ(p.n, 1);
  EXPECT_EQ(p.c, 6);
  EXPECT_EQ(p.h, 30);
  EXPECT_EQ(p.w, 40);
  EXPECT_EQ(p.k, 8);
  EXPECT_EQ(p.r, 2);
  EXPECT_EQ(p.s, 3);
  EXPECT_EQ(p.pad_top, 4);
  EXPECT_EQ(p.pad_bottom, 5);
  EXPECT_EQ(p.pad_left, 6);
  EXPECT_EQ(p.pad_right, 7);
  EXPECT_EQ(p.stride_h, 2);
  EXPECT_EQ(p.stride_w, 3);
  EXPECT_EQ(p.dilation_h, 4);
  EXPECT_EQ(p.dilation_w, 5);
  EXPECT_EQ(p.groups, 2);
}

TEST(Conv2dText, ShortFormsSetAllTheySpeakOf) {
  const Conv2dProblem all = conv("n1c1h9w9k1r2s2p1u2d3");
  EXPECT_EQ(std::vector({all.pad_top, all.pad_bottom, all.pad_left, all.pad_right}), std::vector<std::int64_t>(4, 1));
  EXPECT_EQ(all.stride_h, 2);
  EXPECT_EQ(all.stride_w, 2);
  EXPECT_EQ(all.dilation_h, 3);
  EXPECT_EQ(all.dilation_w, 3);
  const Conv2dProblem axes = conv("n1c1h9w9k1r2s2ph1pw2");
  EXPECT_EQ(std::vector({axes.pad_top, axes.pad_bottom, axes.pad_left, axes.pad_right}),
            (std::vector<std::int64_t>{1, 1, 2, 2}));
  const Conv2dProblem one = conv("n1c1h9w9k1r2s2pw2uw3dh2");
  EXPECT_EQ(one.pad_top, 0);
  EXPECT_EQ(one.pad_left, 2);
  EXPECT_EQ(one.stride_h, 1);
  EXPECT_EQ(one.stride_w, 3);
  EXPECT_EQ(one.dilation_h, 2);
  EXPECT_EQ(one.dilation_w, 1);
}

TEST(Conv2dText, WordsMeanTheirFields) {
  const std::string geometry = " n1c1h1w1k1r1s1";
  EXPECT_EQ(conv("fwd" + geometry).pass, Pass::forward);
  EXPECT_EQ(conv("bwd_data" + geometry).pass, Pass::backward_data);
  EXPECT_EQ(conv("bwd_filter" + geometry).pass, Pass::backward_filter);
  EXPECT_EQ(conv("f32" + geometry).type, DataType::f32);
  EXPECT_EQ(conv("f64" + geometry).type, DataType::f64);
  EXPECT_EQ(conv("f16" + geometry).type, DataType::f16);
  EXPECT_EQ(conv("bf16" + geometry).type, DataType::bf16);
  EXPECT_EQ(conv("tf32" + geometry).type, DataType::tf32);
  EXPECT_EQ(conv("nchw" + geometry).layout, Layout::nchw);
  EXPECT_EQ(conv("nhwc" + geometry).layout, Layout::nhwc);
  EXPECT_TRUE(conv("flip" + geometry).flip);
  EXPECT_TRUE(conv("bias" + geometry).bias);
  EXPECT_TRUE(conv("relu" + geometry).relu);
  EXPECT_TRUE(conv("acc" + geometry).accumulate);
  EXPECT_EQ(conv(geometry), conv("fwd f32 nchw" + geometry));
  EXPECT_EQ(conv(geometry + " \"a name\"").name, "a name");
}

TEST(Conv2dText, OrderSpacesAndCommentsAreFree) {
  const Conv2dProblem p = conv("bwd_data bf16 nhwc flip bias relu acc n2c4h5w6k8r3s3p1 \"x # y\"");
  EXPECT_EQ(p.name, "x # y");
  EXPECT_EQ(conv("\"z\" s3r3 acc k8p1 nhwc n2 relu w6h5 flip\tc4  bf16 bias bwd_data   # a \"comment"), p);
  EXPECT_EQ(conv("s3r3 acc k8p1 nhwc n2 relu w6h5 flip c4 bf16 bias bwd_data#n9"), p);
  EXPECT_EQ(conv("u8u8"[0] == 'u' ? "u8 n1c1h9w9k1r1s1" : "").stride_h, 8);  // a type of filter2d is a stride here
  EXPECT_EQ(conv("s16 n1c1h9w16k1r1").s, 16);
}

TEST(Conv2dText, PrintsCanonically) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"fwd f32 nchw n64c3h224w224k64r7s7p3u2d1g1", "n64c3h224w224k64r7s7p3u2"},
      {"n32c256h56w56k256r3s3p1 nhwc bf16 bwd_filter", "bwd_filter bf16 nhwc n32c256h56w56k256r3s3p1"},
      {"g4pw3uw2s7r1k48w33h65c32n8", "n8c32h65w33k48r1s7pw3uw2g4"},
      {"acc relu bias flip nhwc tf32 bwd_data n1c1h9w9k1r1s1", "bwd_data tf32 nhwc flip bias relu acc n1c1h9w9k1r1s1"},
      {"n1c1h9w9k1r1s1p0uh1uw1dh1dw1", "n1c1h9w9k1r1s1"},
      {"n1c1h9w9k1r1s1ph2pw2uh2uw2dh3dw3", "n1c1h9w9k1r1s1p2u2d3"},
      {"n1c1h9w9k1r1s1pt2pb2pl2pr2", "n1c1h9w9k1r1s1p2"},
      {"n1c1h9w9k1r1s1pt2pb2pl1pr1", "n1c1h9w9k1r1s1ph2pw1"},
      {"n1c1h9w9k1r1s1pt2pb2", "n1c1h9w9k1r1s1ph2"},
      {"n1c1h9w9k1r1s1pl2pr2", "n1c1h9w9k1r1s1pw2"},
      {"n1c1h9w9k1r1s1ph0pw3", "n1c1h9w9k1r1s1pw3"},
      {"n1c1h9w9k1r1s1pt1pb2pl3pr4", "n1c1h9w9k1r1s1pt1pb2pl3pr4"},
      {"n1c1h9w9k1r1s1pt0pb2pl0pr0", "n1c1h9w9k1r1s1pb2"},
      {"n1c1h9w9k1r1s1pt2pb2pl0pr1", "n1c1h9w9k1r1s1pt2pb2pr1"},
      {"n1c1h9w9k1r1s1uh2uw1dh1dw2", "n1c1h9w9k1r1s1uh2dw2"},
      {"n1c1h9w9k1r1s1uh2uw3dh4dw5", "n1c1h9w9k1r1s1uh2uw3dh4dw5"},
      {"n001c01h9w9k1r1s1 \"\"", "n1c1h9w9k1r1s1"},
      {"\"last\" n1c1h9w9k1r1s1 # comment", "n1c1h9w9k1r1s1 \"last\""},
  };
  for (const auto& [line, text] : cases) {
    EXPECT_EQ(canonical(line), text);
    EXPECT_EQ(canonical(text), text);
  }
}

TEST(Filter2dText, MeansItsFields) {
  const Filter2dProblem p =
      filter("filter2d u8>f32 h1080w1920c4r5s7 constant:-2.5 flip kernel:gaussian:5,1.1 \"blur\"");
  EXPECT_EQ(p.input, DataType::u8);
  EXPECT_EQ(p.output, DataType::f32);
  EXPECT_EQ(p.h, 1080);
  EXPECT_EQ(p.w, 1920);
  EXPECT_EQ(p.c, 4);
  EXPECT_EQ(p.r, 5);
  EXPECT_EQ(p.s, 7);
  EXPECT_EQ(p.border, (Border{BorderMode::constant, -2.5}));
  EXPECT_TRUE(p.flip);
  EXPECT_EQ(p.kernel, "gaussian:5,1.1");
  EXPECT_EQ(p.name, "blur");
}

TEST(Filter2dText, Defaults) {
  const Filter2dProblem p = filter("filter2d u16 h3w4r1s2");
  EXPECT_EQ(p.input, DataType::u16);
  EXPECT_EQ(p.output, DataType::u16);
  EXPECT_EQ(p.c, 1);
  EXPECT_EQ(p.border, Border{});
  EXPECT_FALSE(p.flip);
  EXPECT_EQ(p.kernel, "random");
  EXPECT_EQ(p, filter("kernel:random c1h3w4 replicate u16>u16 r1s2 filter2d \"name\""));
}

TEST(Filter2dText, EveryTypeInAndOut) {
  const std::vector<std::string> types{"u8", "u16", "s16", "s32", "f16", "f32", "f64"};
  for (const std::string& in : types)
    for (const std::string& out : types) {
      const std::string both = in == out ? in : in + ">" + out;
      EXPECT_EQ(canonical("filter2d " + in + ">" + out + " h3w3r3s3"), "filter2d " + both + " h3w3r3s3");
    }
  // A word that is a type is no geometry.
  expect_refusal("filter2d u8 h9w9r3 s16", 20, "found 's16'; expected one type, and 'u8' was given before");
  EXPECT_EQ(filter("filter2d u8 h9w9r3s16").s, 16);
}

TEST(Filter2dText, PrintsCanonically) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"replicate h4w5c1r3s3 kernel:random u8>u8 filter2d", "filter2d u8 h4w5r3s3"},
      {"\"n\" kernel:rank1 flip wrap s3r3c3w5h4 u8>f64 filter2d",
       "filter2d u8>f64 h4w5c3r3s3 wrap flip kernel:rank1 \"n\""},
      {"filter2d f32 h4w5r3s3 constant:-0.0", "filter2d f32 h4w5r3s3 constant:0"},
      {"filter2d f32 h4w5r3s3 constant:1e2", "filter2d f32 h4w5r3s3 constant:100"},
      {"filter2d f32 h4w5r3s3 constant:-0.50", "filter2d f32 h4w5r3s3 constant:-0.5"},
      {"filter2d f16 h4w5r3s3 valid kernel:equal", "filter2d f16 h4w5r3s3 valid kernel:equal"},
      {"filter2d f16 reflect h4w5r3s3 kernel:integer", "filter2d f16 h4w5r3s3 reflect kernel:integer"},
      {"filter2d f16 h4w5r3s3 reflect101 kernel:sobel-x", "filter2d f16 h4w5r3s3 reflect101 kernel:sobel-x"},
  };
  for (const auto& [line, text] : cases) {
    EXPECT_EQ(canonical(line), text);
    EXPECT_EQ(canonical(text), text);
  }
}

TEST(GemmText, MeansAndPrints) {
  const GemmProblem p = gemm("batch8 k5n4m3 tn gemm bf16 \"g\"");
  EXPECT_EQ(p.type, DataType::bf16);
  EXPECT_TRUE(p.transpose_a);
  EXPECT_FALSE(p.transpose_b);
  EXPECT_EQ(p.m, 3);
  EXPECT_EQ(p.n, 4);
  EXPECT_EQ(p.k, 5);
  EXPECT_EQ(p.batch, 8);
  EXPECT_EQ(to_text(p), "gemm bf16 tn m3n4k5 batch8 \"g\"");
  EXPECT_EQ(canonical("gemm f32 nt m2048n2048k2048batch1"), "gemm f32 nt m2048n2048k2048");
  for (const std::string type : {"f32", "f64", "f16", "bf16", "tf32"})
    for (const std::string transposed : {"nn", "nt", "tn", "tt"}) {
      const std::string text = "gemm " + type + " " + transposed + " m1n2k3";
      EXPECT_EQ(canonical(text), text);
    }
}

TEST(ProblemText, NamesAreNoPartOfEquality) {
  EXPECT_EQ(conv("n1c1h1w1k1r1s1 \"a\""), conv("n1c1h1w1k1r1s1 \"b\""));
  EXPECT_EQ(filter("filter2d u8 h1w1r1s1 \"a\""), filter("filter2d u8 h1w1r1s1"));
  EXPECT_EQ(gemm("gemm f32 nn m1n1k1 \"a\""), gemm("gemm f32 nn m1n1k1"));
  Filter2dProblem one = filter("filter2d u8 h1w1r1s1"), other = one;
  other.border.value = 7;  // of no meaning under replicate
  EXPECT_EQ(one, other);
  one.border.mode = other.border.mode = BorderMode::constant;
  EXPECT_NE(one, other);
}

TEST(ProblemText, EveryFieldIsPartOfEquality) {
  const std::vector<std::vector<std::string>> families{
      {"n1c4h9w9k4r2s2",
       "n2c4h9w9k4r2s2",
       "n1c8h9w9k4r2s2",
       "n1c4h8w9k4r2s2",
       "n1c4h9w8k4r2s2",
       "n1c4h9w9k8r2s2",
       "n1c4h9w9k4r3s2",
       "n1c4h9w9k4r2s3",
       "n1c4h9w9k4r2s2pt1",
       "n1c4h9w9k4r2s2pb1",
       "n1c4h9w9k4r2s2pl1",
       "n1c4h9w9k4r2s2pr1",
       "n1c4h9w9k4r2s2uh2",
       "n1c4h9w9k4r2s2uw2",
       "n1c4h9w9k4r2s2dh2",
       "n1c4h9w9k4r2s2dw2",
       "n1c4h9w9k4r2s2g2",
       "bwd_data n1c4h9w9k4r2s2",
       "bwd_filter n1c4h9w9k4r2s2",
       "f64 n1c4h9w9k4r2s2",
       "nhwc n1c4h9w9k4r2s2",
       "flip n1c4h9w9k4r2s2",
       "bias n1c4h9w9k4r2s2",
       "relu n1c4h9w9k4r2s2",
       "acc n1c4h9w9k4r2s2",
       "filter2d u8 h9w9r2s2",
       "gemm f32 nn m9n9k9"},
      {"filter2d u8 h9w9r2s2", "filter2d u16 h9w9r2s2", "filter2d u8>u16 h9w9r2s2", "filter2d u8 h8w9r2s2",
       "filter2d u8 h9w8r2s2", "filter2d u8 h9w9c2r2s2", "filter2d u8 h9w9r3s2", "filter2d u8 h9w9r2s3",
       "filter2d u8 h9w9r2s2 wrap", "filter2d u8 h9w9r2s2 constant:0", "filter2d u8 h9w9r2s2 constant:1",
       "filter2d u8 h9w9r2s2 flip", "filter2d u8 h9w9r2s2 kernel:rank1"},
      {"gemm f32 nn m9n9k9", "gemm f64 nn m9n9k9", "gemm f32 nt m9n9k9", "gemm f32 tn m9n9k9", "gemm f32 tt m9n9k9",
       "gemm f32 nn m8n9k9", "gemm f32 nn m9n8k9", "gemm f32 nn m9n9k8", "gemm f32 nn m9n9k9 batch2"}};
  for (const auto& lines : families)
    for (std::size_t i = 0; i < lines.size(); ++i)
      for (std::size_t j = 0; j < lines.size(); ++j)
        EXPECT_EQ(parse_problem(lines[i]) == parse_problem(lines[j]), i == j) << lines[i] << " and " << lines[j];
}

TEST(ProblemText, NamesHoldWhatALineCan) {
  EXPECT_EQ(conv("n1c1h1w1k1r1s1 \"  two  words, # and 'more' \"").name, "  two  words, # and 'more' ");
  EXPECT_EQ(conv("n1c1h1w1k1r1s1 \"gr\xC3\xB6\xC3\x9F"
                 "er \xE2\x82\xAC \xF0\x9F\x99\x82\"")
                .name,
            "gr\xC3\xB6\xC3\x9F"
            "er \xE2\x82\xAC \xF0\x9F\x99\x82");
  const std::string long_name(1000, 'x');
  EXPECT_EQ(conv("n1c1h1w1k1r1s1 \"" + long_name + "\"").name, long_name);
  expect_refusal("n1c1h1w1k1r1s1 \"" + long_name + "y\"", 16, "name of 1001 bytes: must be at most 1000");
  const std::vector<std::string> bad{"a\tb",
                                     "a\nb",
                                     "\x7F",
                                     "\xFF",
                                     "\xC3",
                                     "\xC0\xAF",
                                     "\xE0\x80\x80",
                                     "\xED\xA0\x80",
                                     "\xF4\x90\x80\x80",
                                     "\xC2\x85",
                                     "\x80",
                                     "\xF0\x8F\xBF\xBF",
                                     std::string(1, '\0')};
  for (const std::string& name : bad)
    expect_refusal("n1c1h1w1k1r1s1 \"" + name + "\"", 16, "must be UTF-8 without quotes and control characters");
  Conv2dProblem quoted = conv("n1c1h1w1k1r1s1");
  quoted.name = "a\"b";
  EXPECT_EQ(message_of([&] { validate(quoted); }),
            "conv2d problem: name is 'a\"b': must be UTF-8 without quotes and control characters");
}

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
  EXPECT_EQ(refusal("gemm f32 nn m1n1"), "17: found the end of the line; expected k (gemm_k)");
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
  expect_refusal("n2c1h1w1k288230376151711744r1s1", 9, "the output holds n*k*P*Q");
  expect_refusal("n1c1h1w1k1r1s1p1073741824", 5, "the output holds n*k*P*Q");
  expect_refusal("filter2d u8 h1w1c1152921504606846977r1s1", 17, "the input holds h*w*c");
  EXPECT_NO_THROW(parse_problem("filter2d u8 h1w1c1152921504606846976r1s1"));
  expect_refusal("filter2d u8>u16 h1w1c1152921504606846976r1s1", 21, "the output holds P*Q*c");
  expect_refusal("filter2d u8 h1w1r1073741824s1073741824", 17, "the kernel holds r*s");
  expect_refusal("gemm f64 nn m1073741824n1k1073741824", 13, "a holds batch*m*k");
  expect_refusal("gemm f64 nn m1n1073741824k1073741824", 15, "b holds batch*k*n");
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

TEST(Validate, RefusesValuesThatNoTextCanSay) {
  const Conv2dProblem good = conv("n1c4h9w9k4r3s3");
  EXPECT_NO_THROW(validate(good));
  const auto conv_message = [&](const auto& change) {
    Conv2dProblem bad = good;
    change(bad);
    return message_of([&] { validate(bad); });
  };
  using C = Conv2dProblem;
  EXPECT_EQ(conv_message([](C& p) { p.pad_top = -1; }), "conv2d problem: pad_top is -1: must be at least 0");
  EXPECT_EQ(conv_message([](C& p) { p.pad_bottom = Limits::min(); }),
            "conv2d problem: pad_bottom is -9223372036854775808: must be at least 0");
  EXPECT_EQ(conv_message([](C& p) { p.pad_left = -2; }), "conv2d problem: pad_left is -2: must be at least 0");
  EXPECT_EQ(conv_message([](C& p) { p.pad_right = -2; }), "conv2d problem: pad_right is -2: must be at least 0");
  EXPECT_EQ(conv_message([](C& p) { p.h = -1; }), "conv2d problem: h is -1: must be at least 1");
  EXPECT_EQ(conv_message([](C& p) { p.dilation_w = -1; }), "conv2d problem: dilation_w is -1: must be at least 1");
  EXPECT_EQ(conv_message([](C& p) { p.groups = -1; }), "conv2d problem: groups is -1: must be at least 1");
  EXPECT_EQ(conv_message([](C& p) { p.type = DataType::u8; }),
            "conv2d problem: type is u8: must be one of f32, f64, f16, bf16, tf32");
  EXPECT_EQ(conv_message([](C& p) { p.type = static_cast<DataType>(77); }),
            "conv2d problem: type is number 77: must be one of f32, f64, f16, bf16, tf32");
  EXPECT_EQ(conv_message([](C& p) { p.pass = static_cast<Pass>(3); }),
            "conv2d problem: pass is number 3: must be forward, backward_data or backward_filter");
  EXPECT_EQ(conv_message([](C& p) { p.layout = static_cast<Layout>(2); }),
            "conv2d problem: layout is number 2: must be nchw or nhwc");

  Filter2dProblem image = filter("filter2d u8 h9w9r3s3");
  image.border = {BorderMode::constant, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(message_of([&] { validate(image); }), "filter2d problem: border value is nan: must be finite");
  image.border = {BorderMode::replicate, std::numeric_limits<double>::infinity()};
  EXPECT_NO_THROW(validate(image));
  image.border.mode = static_cast<BorderMode>(6);
  EXPECT_EQ(message_of([&] { validate(image); }),
            "filter2d problem: border is mode number 6: must be one of the six modes");
  image.border.mode = BorderMode::valid;
  image.r = -4;
  EXPECT_EQ(message_of([&] { validate(image); }), "filter2d problem: r is -4: must be at least 1");

  GemmProblem product = gemm("gemm f32 nn m1n1k1");
  product.k = 0;
  EXPECT_EQ(message_of([&] { validate(product); }), "gemm problem: k is 0: must be at least 1");
  product.k = 1;
  product.type = DataType::s32;
  EXPECT_EQ(message_of([&] { validate(product); }),
            "gemm problem: type is s32: must be one of f32, f64, f16, bf16, tf32");
}

TEST(OutputExtents, CountThePositionsOfTheFilter) {
  for (std::int64_t h = 1; h <= 6; ++h)
    for (std::int64_t r = 1; r <= 4; ++r)
      for (std::int64_t top = 0; top <= 2; ++top)
        for (std::int64_t bottom = 0; bottom <= 2; ++bottom)
          for (std::int64_t u = 1; u <= 3; ++u)
            for (std::int64_t d = 1; d <= 3; ++d) {
              std::int64_t positions = 0;
              while (positions * u + (r - 1) * d < h + top + bottom) ++positions;
              Conv2dProblem p = conv("n1c1h1w1k1r1s1");
              p.h = h, p.r = r, p.pad_top = top, p.pad_bottom = bottom, p.stride_h = u, p.dilation_h = d;
              p.w = h, p.s = r, p.pad_left = top, p.pad_right = bottom, p.stride_w = u, p.dilation_w = d;
              EXPECT_EQ(std::max<std::int64_t>(P(p), 0), positions);
              EXPECT_EQ(Q(p), P(p));
              if (positions > 0)
                EXPECT_NO_THROW(validate(p));
              else
                EXPECT_THROW(validate(p), Error);
            }
}

TEST(OutputExtents, ReadTheirOwnAxis) {
  const Conv2dProblem p = conv("n1c1h20w30k1r3s5pt1pb2pl3pr4uh2uw3dh4dw2");
  EXPECT_EQ(P(p), (20 + 1 + 2 - 4 * 2 - 1) / 2 + 1);
  EXPECT_EQ(Q(p), (30 + 3 + 4 - 2 * 4 - 1) / 3 + 1);
  const Filter2dProblem same = filter("filter2d u8 h20w30r3s5"), valid = filter("filter2d u8 h20w30r3s5 valid");
  EXPECT_EQ(P(same), 20);
  EXPECT_EQ(Q(same), 30);
  EXPECT_EQ(P(valid), 18);
  EXPECT_EQ(Q(valid), 26);
}

TEST(OutputExtents, RefuseWhatCannotBeComputed) {
  Conv2dProblem p = conv("n1c1h9w9k1r1s1");
  p.stride_w = 0;
  EXPECT_EQ(message_of([&] { P(p); }), "conv2d problem: stride_w is 0: must be at least 1");
  p.stride_w = 1;
  p.pad_left = Limits::max();
  EXPECT_EQ(message_of([&] { Q(p); }), "w with its padding is too large: 9 plus 9223372036854775807 passes 2^63");
  EXPECT_EQ(P(p), 9);
  p = conv("n1c1h9w9k1r1s1");
  p.r = Limits::max();
  EXPECT_EQ(P(p), 9 - Limits::max() + 1);
  p.dilation_h = 2;
  EXPECT_THROW(P(p), Error);
  Filter2dProblem image = filter("filter2d u8 h9w9r3s3 valid");
  image.h = Limits::min();
  EXPECT_THROW(P(image), Error);
  image.h = 1, image.r = Limits::max();
  EXPECT_EQ(P(image), 2 - Limits::max());
}

TEST(ProblemLists, SkipCommentsAndEmptyLines) {
  const auto problems =
      parse_problem_list("# list\n\n  n1c1h1w1k1r1s1 \"one\"  # first\r\n\t\r\nfilter2d u8 h1w1r1s1", "x");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(to_text(problems[0]), "n1c1h1w1k1r1s1 \"one\"");
  EXPECT_EQ(to_text(problems[1]), "filter2d u8 h1w1r1s1");
  EXPECT_TRUE(parse_problem_list("", "x").empty());
  EXPECT_TRUE(parse_problem_list("\n\n#", "x").empty());
  EXPECT_EQ(parse_problem_list("gemm f32 nn m1n1k1\n", "x").size(), 1u);
}

TEST(ProblemLists, ErrorsBeginWithSourceAndLine) {
  const auto message = [](std::string_view text) {
    return message_of([&] { parse_problem_list(text, "dir/list.txt"); });
  };
  EXPECT_EQ(message("# ok\n\nn1c1h1w1k1r1s1\n  n1c1h1w1k1r1s0\n"),
            "dir/list.txt:4: column 15: found 's0'; s is 0: must be at least 1");
  EXPECT_EQ(message(std::string(5000, '#')),
            "dir/list.txt:1: column 4097: found a line of 5000 bytes; expected at most 4096");
  EXPECT_EQ(message(std::string_view("n1c1h1w1k1r1s1\n\0", 16)).substr(0, 43),
            "dir/list.txt:2: column 1: found '\\x00'; exp");
}

TEST(ProblemLists, ShippedListsParseAndPrintBack) {
  const auto folder = std::filesystem::path(__FILE__).parent_path() / "../../data/problems";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const auto problems = parse_problem_list(text.str(), entry.path().filename().string());
    EXPECT_FALSE(problems.empty()) << entry.path();
    for (const Problem& problem : problems) {
      const std::string printed = to_text(problem);
      const Problem again = parse_problem(printed);
      EXPECT_EQ(again, problem) << printed;
      EXPECT_EQ(to_text(again), printed);
    }
    ++files;
  }
  EXPECT_GE(files, 5);
}

// Valid problems of every kind, with every field away from its default now and then.
class Generator {
 public:
  Problem operator()() {
    while (true) {
      const Problem problem = number(0, 2) == 0 ? Problem(gemm()) : number(0, 1) ? Problem(conv()) : Problem(filter());
      try {
        std::visit([](const auto& one) { validate(one); }, problem);
        return problem;
      } catch (const Error&) {
        ++refused;
      }
    }
  }

  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  std::mt19937_64& random() { return random_; }
  int refused = 0;

 private:
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[number(0, static_cast<std::int64_t>(values.size()) - 1)];
  }
  bool coin() { return number(0, 1) == 1; }
  std::int64_t extent() { return number(0, 9) == 0 ? number(1, 1 << 20) : number(1, 40); }
  std::string name() {
    std::string text;
    for (std::int64_t left = coin() ? 0 : number(0, 20); left > 0; --left)
      text += one_of<std::string_view>({"a", "Z", " ", "#", "'", "\\", ":", "\xC3\xB6", "\xE2\x82\xAC"});
    return text;
  }
  DataType matrix_type() {
    return one_of({DataType::f32, DataType::f64, DataType::f16, DataType::bf16, DataType::tf32});
  }
  DataType pixel_type() {
    return one_of(
        {DataType::u8, DataType::u16, DataType::s16, DataType::s32, DataType::f16, DataType::f32, DataType::f64});
  }

  GemmProblem gemm() {
    return {matrix_type(), coin(), coin(), extent(), extent(), extent(), coin() ? 1 : extent(), name()};
  }

  Conv2dProblem conv() {
    Conv2dProblem p;
    p.pass = one_of({Pass::forward, Pass::backward_data, Pass::backward_filter});
    p.type = matrix_type();
    p.layout = one_of({Layout::nchw, Layout::nhwc});
    p.flip = coin(), p.bias = coin(), p.relu = coin(), p.accumulate = coin();
    p.groups = coin() ? 1 : number(1, 8);
    p.n = extent(), p.c = p.groups * number(1, 9), p.h = extent(), p.w = extent(), p.k = p.groups * number(1, 9);
    p.r = number(1, 7), p.s = number(1, 7);
    p.pad_top = number(0, 2), p.pad_bottom = coin() ? p.pad_top : number(0, 2);
    p.pad_left = coin() ? p.pad_top : number(0, 2), p.pad_right = coin() ? p.pad_left : number(0, 2);
    p.stride_h = number(1, 3), p.stride_w = coin() ? p.stride_h : number(1, 3);
    p.dilation_h = number(1, 3), p.dilation_w = coin() ? p.dilation_h : number(1, 3);
    p.name = name();
    return p;
  }

  Filter2dProblem filter() {
    Filter2dProblem p;
    p.input = pixel_type(), p.output = coin() ? p.input : pixel_type();
    p.h = extent(), p.w = extent(), p.c = coin() ? 1 : number(1, 5), p.r = number(1, 40), p.s = number(1, 40);
    p.border.mode = static_cast<BorderMode>(number(0, 5));
    p.border.value = coin() ? static_cast<double>(number(-300, 300))
                            : std::ldexp(static_cast<double>(number(-(1LL << 52), 1LL << 52)), int(number(-600, 600)));
    p.flip = coin();
    p.kernel = one_of<std::string>({"random", "integer", "rank1", "equal", "gaussian:5,1.1", "sobel-x", "box:3"});
    p.name = name();
    return p;
  }

  std::mt19937_64 random_{20240607};
};

std::string name_of(const Problem& problem) {
  return std::visit([](const auto& one) { return one.name; }, problem);
}

TEST(RoundTrip, PrintedProblemsParseBack) {
  Generator generate;
  for (int i = 0; i < 20000; ++i) {
    const Problem problem = generate();
    const std::string text = to_text(problem);
    const Problem again = parse_problem(text);
    ASSERT_EQ(again, problem) << text;
    ASSERT_EQ(name_of(again), name_of(problem)) << text;
    ASSERT_EQ(to_text(again), text);
  }
  EXPECT_LT(generate.refused, 20000);
}

TEST(RoundTrip, TheOrderOfWordsIsFree) {
  Generator generate;
  for (int i = 0; i < 5000; ++i) {
    Problem problem = generate();
    std::visit([](auto& one) { one.name.clear(); }, problem);
    std::istringstream text(to_text(problem));
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    std::shuffle(words.begin(), words.end(), generate.random());
    std::string line;
    for (const std::string& word : words) line += word + " ";
    ASSERT_EQ(parse_problem(line), problem) << line;
  }
}

// Damaged lines are refused in one line, or mean a problem that prints and parses back.
TEST(RoundTrip, DamagedLinesNeverPassUnnoticed) {
  Generator generate;
  const std::string_view pieces[] = {"0",         "9",     "99999999999", "n",       "p",  "uh",   "\"",
                                     "#",         " ",     ">",           ":",       "-",  "\xFF", "f32",
                                     "filter2d ", "gemm ", "constant:",   "kernel:", "\n", "e",    "."};
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string line = to_text(generate());
    for (std::int64_t changes = generate.number(1, 4); changes > 0; --changes) {
      const auto at = static_cast<std::size_t>(generate.number(0, static_cast<std::int64_t>(line.size())));
      const auto piece = pieces[generate.number(0, std::ssize(pieces) - 1)];
      line.replace(at, static_cast<std::size_t>(generate.number(0, 3)), piece);
    }
    try {
      const Problem problem = parse_problem(line);
      const std::string text = to_text(problem);
      ASSERT_EQ(parse_problem(text), problem) << line;
    } catch (const Error& error) {
      ++refused;
      const std::string message = error.what();
      ASSERT_EQ(error.kind(), ErrorKind::bad_input);
      ASSERT_TRUE(message.starts_with("problem text, column ")) << message;
      ASSERT_EQ(std::count_if(message.begin(), message.end(), [](unsigned char c) { return c < 0x20 || c > 0x7E; }), 0);
    }
  }
  EXPECT_GT(refused, 5000);
  EXPECT_LT(refused, 20000);
}

}  // namespace
}  // namespace omniconv
