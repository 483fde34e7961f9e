// The notation: what it means, how it prints, and lists of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "problem_testing.h"

namespace omniconv {
namespace {

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
  EXPECT_EQ(conv("u8 n1c1h9w9k1r1s1").stride_h, 8);  // a type of filter2d is a stride here
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

TEST(ProblemText, AlphaNamesAChannel) {
  EXPECT_EQ(filter("filter2d u8 h1w1r1s1").alpha_channel, -1);
  EXPECT_EQ(filter("alpha:3 filter2d u8 h1w1c4r1s1").alpha_channel, 3);
  EXPECT_EQ(canonical("kernel:equal alpha:00 flip filter2d u8 wrap h1w1c2r1s1"),
            "filter2d u8 h1w1c2r1s1 wrap flip alpha:0 kernel:equal");
  EXPECT_NE(filter("filter2d u8 h1w1c2r1s1 alpha:0"), filter("filter2d u8 h1w1c2r1s1 alpha:1"));
  EXPECT_NE(filter("filter2d u8 h1w1c2r1s1 alpha:0"), filter("filter2d u8 h1w1c2r1s1"));
  const std::string number = "expected the number of a channel, counted from 0, as in alpha:3";
  for (const std::string word :
       {"alpha:", "alpha:x", "alpha:-1", "alpha:+1", "alpha:1x", "alpha:1.0", "alpha:99999999999999999999"})
    expect_refusal("filter2d u8 h1w1c4r1s1 " + word, 24, number);
  expect_refusal("filter2d u8 h1w1c4r1s1 alpha:4", 24, "alpha channel is 4: must be from 0 to 3, counted from 0");
  expect_refusal("filter2d u8 h1w1r1s1 alpha:0", 22, "alpha channel is 0: it needs at least 2 channels, and c is 1");
  expect_refusal("filter2d u8 h1w1c4r1s1 alpha:3 alpha:3", 32, "expected one alpha");
  expect_refusal("filter2d u8 h1w1c4r1s1 alfa:3", 24, "did you mean alpha:3?");
  Filter2dProblem negative = filter("filter2d u8 h1w1c4r1s1");
  negative.alpha_channel = -2;
  EXPECT_EQ(message_of([&] { validate(negative); }),
            "filter2d problem: alpha channel is -2: must be from 0 to 3, counted from 0");
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
  const auto folder = std::filesystem::path(OMNICONV_SOURCE_DIR) / "data/problems";
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

}  // namespace
}  // namespace omniconv
