// Printed problems parse back: random ones, shuffled ones, damaged ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "problem_testing.h"

namespace omniconv {
namespace {

// Valid problems of every kind, with every field away from its default now and then.
class Generator {
 public:
  Problem operator()() {
    while (true) {
      const Problem problem = number(0, 2) == 0 ? Problem(gemm()) : number(0, 1) ? Problem(conv()) : Problem(filter());
      try {
        validate(problem);
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
    p.alpha_channel = p.c < 2 || coin() ? -1 : number(0, p.c - 1);
    p.kernel = one_of<std::string>({"random", "integer", "rank1", "equal", "gaussian:5,1.1", "sobel-x", "box:3"});
    p.name = name();
    return p;
  }

  std::mt19937_64 random_{20240607};
};

TEST(RoundTrip, PrintedProblemsParseBack) {
  Generator generate;
  for (int i = 0; i < 20000; ++i) {
    const Problem problem = generate();
    const std::string text = to_text(problem);
    const Problem again = parse_problem(text);
    ASSERT_EQ(again, problem) << text;
    ASSERT_EQ(again.name(), problem.name()) << text;
    ASSERT_EQ(to_text(again), text);
  }
  EXPECT_LT(generate.refused, 20000);
}

TEST(RoundTrip, TheOrderOfWordsIsFree) {
  Generator generate;
  for (int i = 0; i < 5000; ++i) {
    const Problem problem = generate();
    const std::string whole = to_text(problem);
    std::istringstream text(whole.substr(0, whole.find('"')));  // without the name
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
