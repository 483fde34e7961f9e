#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>

#include "kernel_testing.h"

namespace omniconv::image {
namespace {

using namespace std::string_view_literals;

TEST(KernelText, MatricesInEverySpelling) {
  const Weights2d expected = {0, -1.5, 0, 250, 5, 0.0625};
  for (const char* text : {"0 -1.5 0\n250 5 .0625\n", "\t0\t-1.5\t+0\r\n2.5e2 5 6.25e-2",
                           "# a mask\n\n 0 -1.5 0 # first\n\n250 5 0.0625#last", "0,-1.5,0\n250,5,0.0625\n",
                           "0 ; -1.5;0\r250; 5 ;0.0625\r",
                           "\xEF\xBB\xBF"
                           "0,\t-1.5, 0\n\n250,+5,0.0625\n\n",
                           "3x2: 0,-1.5,0, 250,5,0.0625", "# ImageMagick\n3x2:\n0 -1.5 0\n250 5 0.0625\n",
                           "3X2 :0,-1.5,0\n,250 , 5,0.0625"})
    expect_kernel(parse_kernel_file(text, "mask"), 2, 3, expected);
  expect_kernel(parse_kernel_file("7", "mask"), 1, 1, {7});
  expect_kernel(parse_kernel_file("1\n2\n", "mask"), 2, 1, {1, 2});
}

TEST(KernelText, LiteralsInImageMagicksForm) {
  expect_kernel(parse_kernel("3x3: 0,-1,0, -1,5,-1, 0,-1,0"), 3, 3, {0, -1, 0, -1, 5, -1, 0, -1, 0});
  expect_kernel(parse_kernel(" 2x1:1 2"), 1, 2, {1, 2});
  const Kernel placed = parse_kernel("4x2+3+1: 1,2,3,4 5,6,7,8");
  EXPECT_EQ(placed.r, 2);
  EXPECT_EQ(placed.s, 4);
  EXPECT_EQ(placed.anchor_x, 3);
  EXPECT_EQ(placed.anchor_y, 1);
  EXPECT_EQ(parse_kernel_file("2x1+0+0:1,2", "mask").anchor_x, 0);
}

TEST(KernelText, MalformedFilesGetLineAndColumn) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "mask.txt: holds no weights; at least one is needed"},
      {" \n\t\r\n# nothing\n", "mask.txt: holds no weights; at least one is needed"},
      {"1 2 3\n4 five 6\n", "mask.txt:2:3: found \"five\", expected a number"},
      {"1 2 3\r\n4 5\r\n", "mask.txt:2:4: found the end of the row after 2 weights, expected 3, as in the first row"},
      {"1 2\r3 4 5",
       "mask.txt:2:5: found weight 3 of the row, expected the end of the line: the first row has 2 weights"},
      {"1,2\n\n3,,4", "mask.txt:3:3: found \",\", expected a number"},
      {"1,2,\n3,4,", "mask.txt:1:5: found the end of the line, expected a number"},
      {"1,2\n,4", "mask.txt:2:1: found \",\", expected a number"},
      {"1,# two\n", "mask.txt:1:3: found a comment, expected a number"},
      {"1,", "mask.txt:1:3: found the end of the text, expected a number"},
      {"1 2,3", "mask.txt:1:4: found \",\", expected spaces or tabs between weights, as before in this text"},
      {"1,2 3", "mask.txt:1:5: found \"3\", expected \",\" between weights, as before in this text"},
      {"1,2\n3;4", "mask.txt:2:2: found \";\", expected \",\" between weights, as before in this text"},
      {"1;0,5",
       "mask.txt:1:4: found \",\", expected \";\" between weights, as before in this text; a decimal point is "
       "written \".\""},
      {"1 nan", "mask.txt:1:3: found \"nan\", expected a finite number"},
      {"1 -inf", "mask.txt:1:3: found \"-inf\", expected a finite number"},
      {"1e999", "mask.txt:1:1: found \"1e999\", expected a number that a double can hold"},
      {"1 +-2", "mask.txt:1:3: found \"+-2\", expected a number"},
      {"1 ++2", "mask.txt:1:3: found \"++2\", expected a number"},
      {"1 +", "mask.txt:1:3: found \"+\", expected a number"},
      {"\"1\",\"2\"", "mask.txt:1:1: found \"\"1\"\", expected a number"},
      {"\x89PNG\r\n\x1A\n", "mask.txt:1:1: found \"\\x89PNG\", expected a number"},
      {std::string("1 2\0", 4), "mask.txt:1:4: found \"\\x00\", expected a separator"},
      {"0 0\n0 -0\n", "mask.txt: all weights are zero; at least one must not be"},
      {"averylongwordthatisnonumberatall", "mask.txt:1:1: found \"averylongwordthatisnonum...\", expected a number"},
  };
  for (const auto& [content, message] : cases) EXPECT_EQ(file_error(content), message);
}

TEST(KernelText, MalformedImageMagickFormsGetLineAndColumn) {
  const std::string form = " (WIDTHxHEIGHT[+X+Y]: weights)";
  const std::pair<std::string, std::string> cases[] = {
      {"3x2: 1 2 3\n4 5\n",
       "mask.txt:3:1: found the end of the text after 5 weights, expected 6 weights (3 columns, 2 rows)"},
      {"2x1: 1,2,3", "mask.txt:1:9: found \",\", expected the end after 2 weights (2 columns, 1 rows)"},
      {"2x1: 1,2 3", "mask.txt:1:10: found \"3\", expected the end after 2 weights (2 columns, 1 rows)"},
      {"2x1: 1,,2", "mask.txt:1:8: found \",\", expected a number"},
      {"2x1: 1:2", "mask.txt:1:7: found \":\", expected \",\" or a space between weights"},
      {"2x1: ,1", "mask.txt:1:6: found \",\", expected a number"},
      {"2x1: 1 x", "mask.txt:1:8: found \"x\", expected a number"},
      {"2x1", "mask.txt:1:4: found the end of the text, expected \":\" and the weights" + form},
      {"2x:1", "mask.txt:1:3: found \":\", expected the kernel's height, a whole number from 1 to 4096" + form},
      {"2x-3:1", "mask.txt:1:3: found \"-3\", expected the kernel's height, a whole number from 1 to 4096" + form},
      {"3: 1,2", "mask.txt:1:2: found \":\", expected \"x\" and the kernel's height" + form},
      {"0x3: 1", "mask.txt:1:1: found \"0\", expected the kernel's width, a whole number from 1 to 4096" + form},
      {"4097x1: 1", "mask.txt:1:1: found \"4097\", expected the kernel's width, a whole number from 1 to 4096" + form},
      {"3x99999999999999999999: 1",
       "mask.txt:1:3: found \"99999999999999999999\", expected the kernel's height, a whole number from 1 to 4096" +
           form},
      {"2x1+2+0: 1,2", "mask.txt:1:5: found \"2\", expected the anchor's column, a whole number from 0 to 1" + form},
      {"2x1+0+1: 1,2", "mask.txt:1:7: found \"1\", expected the anchor's row, a whole number from 0 to 0" + form},
      {"2x1+0: 1,2", "mask.txt:1:6: found \":\", expected \"+\" and the anchor's row" + form},
      {"2x1-0-0: 1,2", "mask.txt:1:4: found \"-0-0\", expected \":\" and the weights" + form},
      {"3x1@: 1,2,3",
       "mask.txt:1:4: found \"@\", expected \":\": ImageMagick's lists of turned kernels are not supported"},
      {"2x1: 1,2; 1x1: 3",
       "mask.txt:1:9: found \";\", expected one kernel: ImageMagick's lists of kernels are not supported"},
      {"2x1: 1;2", "mask.txt:1:7: found \";\", expected one kernel: ImageMagick's lists of kernels are not supported"},
      {"2x1: NaN,1",
       "mask.txt:1:6: found \"NaN\", expected a number: ImageMagick's nan and - leave a pixel out of the kernel's "
       "shape, "
       "which is not supported; write 0 where a weight of 0 is meant"},
      {"2x1: 1 -",
       "mask.txt:1:8: found \"-\", expected a number: ImageMagick's nan and - leave a pixel out of the kernel's shape, "
       "which is not supported; write 0 where a weight of 0 is meant"},
      {"2x1: inf,1", "mask.txt:1:6: found \"inf\", expected a finite number"},
      {"2x1: 0,0", "mask.txt: all weights are zero; at least one must not be"},
      {"gaussian:5", "mask.txt:1:1: found \"gaussian\", expected the kernel's width" + form},
  };
  for (const auto& [content, message] : cases) EXPECT_EQ(file_error(content), message);
  EXPECT_EQ(kernel_error("0,-1,0,-1,5,-1,0,-1,0"),
            "the kernel's text:1:1: found \"0\", expected the kernel's width, a whole number from 1 to 4096" + form);
  EXPECT_EQ(kernel_error("-1 2"), "the kernel's text:1:1: found \"-1\", expected the kernel's width" + form);
  EXPECT_EQ(kernel_error("1x1: 0"), "the kernel's text: all weights are zero; at least one must not be");
}

TEST(KernelText, SidesHaveALimit) {
  std::string row, column;
  for (int i = 0; i < 4097; ++i) row += "1 ", column += "1\n";
  EXPECT_EQ(file_error(row), "mask.txt:1:8193: found weight 4097 of a row, expected at most 4096 columns");
  EXPECT_EQ(file_error(column), "mask.txt:4097:1: found row 4097, expected at most 4096 rows");
  EXPECT_EQ(parse_kernel_file(row.substr(2), "mask").s, 4096);
  EXPECT_EQ(parse_kernel_file(column.substr(2), "mask").r, 4096);
}

// A .npy file, version 1.0.
template <typename T>
std::string npy(const std::string& type, const std::string& shape, const std::vector<T>& values, bool swapped = false) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118, ' ');
  header.back() = '\n';
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(118) + '\0' + header;
  for (const T& value : values) {
    std::array<char, sizeof(T)> element;
    std::memcpy(element.data(), &value, sizeof(T));
    if (swapped) std::reverse(element.begin(), element.end());
    bytes.append(element.data(), element.size());
  }
  return bytes;
}

TEST(KernelArrays, NpyOfEveryType) {
  const Weights2d expected = {0, 1, 2, 250, 5, 6};
  const auto parsed = [](const std::string& bytes) { return parse_kernel_file(bytes, "mask.npy"); };
  expect_kernel(parsed(npy<double>("<f8", "(2, 3)", {0, 1, 2, 250, 5, 6})), 2, 3, expected);
  expect_kernel(parsed(npy<float>("<f4", "(2, 3)", {0, 1, 2, 250, 5, 6})), 2, 3, expected);
  expect_kernel(parsed(npy<float>(">f4", "(2, 3)", {0, 1, 2, 250, 5, 6}, true)), 2, 3, expected);
  expect_kernel(parsed(npy<std::uint8_t>("|u1", "(2, 3)", {0, 1, 2, 250, 5, 6})), 2, 3, expected);
  expect_kernel(parsed(npy<std::uint16_t>("<u2", "(2, 3)", {0, 1, 2, 250, 5, 6})), 2, 3, expected);
  expect_kernel(parsed(npy<std::int64_t>("<i8", "(2, 3)", {0, 1, 2, 250, 5, -6})), 2, 3, {0, 1, 2, 250, 5, -6});
  expect_kernel(parsed(npy<std::int64_t>(">i8", "(2, 3)", {0, 1, 2, 250, 5, -6}, true)), 2, 3, {0, 1, 2, 250, 5, -6});
  expect_kernel(parsed(npy<std::int16_t>("<i2", "(2, 3)", {0, 1, 2, 250, 5, -6})), 2, 3, {0, 1, 2, 250, 5, -6});
  expect_kernel(parsed(npy<std::int32_t>(">i4", "(2, 3)", {0, 1, 2, 250, 5, 6}, true)), 2, 3, expected);
  expect_kernel(parsed(npy<std::uint16_t>("<f2", "(1, 2)", {0x3C00, 0xB800})), 1, 2, {1, -0.5});
}

TEST(KernelArrays, NpyThatIsNoKernelIsRefused) {
  const auto error = [](const std::string& bytes) { return file_error(bytes); };
  EXPECT_EQ(error(npy<double>("<f8", "(3,)", {1, 2, 3})),
            "mask.txt: an array of 1 dimensions; a kernel is an array of 2, rows and columns");
  EXPECT_EQ(error(npy<double>("<f8", "(1, 1, 1)", {1})),
            "mask.txt: an array of 3 dimensions; a kernel is an array of 2, rows and columns");
  EXPECT_EQ(error(npy<double>("<f8", "(0, 5)", {})),
            "mask.txt: the kernel is 0 x 5; it must have 1 to 4096 rows and columns");
  EXPECT_EQ(error(npy<std::uint8_t>("|u1", "(1, 4097)", std::vector<std::uint8_t>(4097, 1))),
            "mask.txt: the kernel is 1 x 4097; it must have 1 to 4096 rows and columns");
  EXPECT_EQ(error(npy<double>("<f8", "(1, 2)", {1, NAN})),
            "mask.txt: the weight in row 1, column 2 is nan; weights must be finite");
  EXPECT_EQ(error(npy<double>("<f8", "(2, 1)", {0, 0})), "mask.txt: all weights are zero; at least one must not be");
  EXPECT_NE(error(npy<double>("<f8", "(2, 2)", {1, 2, 3})).find("mask.txt is cut short"), std::string::npos);
  EXPECT_NE(error(npy<double>("<f8", "(4000000000, 4000000000)", {1})), "nothing was thrown");
  EXPECT_NE(error(npy<double>("<c8", "(1, 1)", {1})).find("its elements are '<c8'"), std::string::npos);
}

class KernelFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

 private:
  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "omniconv_kernel_files";
};

TEST_F(KernelFiles, AreReadByContent) {
  expect_kernel(parse_kernel("@" + write("a.dat", "1 2\n3 4\n")), 2, 2, {1, 2, 3, 4});
  expect_kernel(parse_kernel("@" + write("b.dat", npy<float>("<f4", "(1, 2)", {1, 2}))), 1, 2, {1, 2});
}

TEST_F(KernelFiles, ThatCannotServeAreRefused) {
  EXPECT_EQ(kernel_error("@"), "kernel \"@\": a file name must follow \"@\"");
  EXPECT_EQ(kernel_error("@" + path("missing.txt")),
            "cannot read " + path("missing.txt") + ": No such file or directory");
  EXPECT_EQ(kernel_error("@" + path("")), path("") + " is a folder; name a file in it");
  EXPECT_EQ(kernel_error("@" + write("bad.txt", "1 2\n3 x\n")),
            path("bad.txt") + ":2:3: found \"x\", expected a number");
  const std::string huge = write("huge.txt", "1");
  std::filesystem::resize_file(huge, largest_kernel_file + 1);
  EXPECT_EQ(kernel_error("@" + huge), huge + ": a kernel file of 67108865 bytes; at most 67108864 are read");
}

// Whatever the bytes: a kernel that keeps its promises, or an Error.
void expect_kernel_or_error(const std::string& content) {
  try {
    const Kernel kernel = parse_kernel_file(content, "hostile");
    ASSERT_EQ(std::ssize(kernel.weights), kernel.r * kernel.s);
    validate(kernel, "hostile");
    EXPECT_EQ(kernel.anchor_y.has_value(), kernel.anchor_x.has_value());
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find_first_of("\r\n\0"sv), std::string::npos);
  }
}

TEST(HostileInput, RandomBytesParseOrThrow) {
  std::mt19937_64 engine(20240607);
  constexpr std::string_view alphabet = "0123456789+-.,;:xXeE#\n\r\t naif@<>\0\xFF\x93"sv;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string content(engine() % 48, ' ');
    const bool any = trial % 4 == 0;
    for (char& byte : content) byte = any ? static_cast<char>(engine() & 255) : alphabet[engine() % alphabet.size()];
    expect_kernel_or_error(content);
    if (content.find('@') == std::string::npos) {
      try {
        parse_kernel(content);
      } catch (const Error&) {
      }
    }
  }
}

TEST(HostileInput, MutatedFilesParseOrThrow) {
  const std::string originals[] = {
      "0 -1 0\n-1 5 -1\n0 -1 0\n",
      "# mask\r\n0.5;1e3;-7\r\n1;2;3\r\n",
      "3x2+1+0: 1,2,3\n 4,5,6 # end\n",
      npy<float>("<f4", "(2, 3)", {0, 1, 2, 250, 5, 6}),
      npy<std::int16_t>(">i2", "(3, 1)", {1, 2, 3}, true),
  };
  std::mt19937_64 engine(20240608);
  for (const std::string& original : originals) {
    expect_kernel_or_error(original);
    for (int trial = 0; trial < 5000; ++trial) {
      std::string content = original;
      for (std::uint64_t edits = 1 + engine() % 4; edits > 0 && !content.empty(); --edits) {
        const std::size_t place = engine() % content.size();
        switch (engine() % 5) {
          case 0: content[place] = static_cast<char>(engine() & 255); break;
          case 1: content[place] ^= static_cast<char>(1 << engine() % 8); break;
          case 2: content.erase(place, 1 + engine() % 8); break;
          case 3: content.insert(place, content.substr(engine() % content.size(), 1 + engine() % 16)); break;
          case 4: content.resize(place); break;
        }
      }
      expect_kernel_or_error(content);
    }
  }
}

TEST(HostileInput, RandomArgumentsParseOrThrow) {
  std::mt19937_64 engine(20240609);
  constexpr std::string_view arguments[] = {"",      "0",    "1",   "2",  "3",   " 5 ", "31",  "-1", "1e-9", "1e-160",
                                            "1e300", "2000", "3.5", "45", "nan", "x",   "+ 1", ":",  "1.4",  "-0"};
  for (int trial = 0; trial < 2000; ++trial) {
    const auto& description = named_kernels()[engine() % named_kernels().size()];
    std::string text(description.usage.substr(0, description.usage.find(':')));
    for (std::uint64_t count = engine() % 5, i = 0; i < count; ++i)
      text.append(i == 0 ? ":" : ",").append(arguments[engine() % std::size(arguments)]);
    try {
      validate(parse_kernel(text), text);
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace omniconv::image
