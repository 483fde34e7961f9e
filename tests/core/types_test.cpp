// Element types, borders and the search for the nearest name.
#include "omniconv/types.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "core/suggest.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

constexpr std::array all_types{DataType::u8,   DataType::u16,  DataType::s16, DataType::s32, DataType::f16,
                               DataType::bf16, DataType::tf32, DataType::f32, DataType::f64};

std::string border_error(std::string_view text) {
  return error_of([&] { parse_border(text); });
}

TEST(DataTypes, NamesParseBack) {
  const std::vector<std::string_view> names{"u8", "u16", "s16", "s32", "f16", "bf16", "tf32", "f32", "f64"};
  for (std::size_t i = 0; i < all_types.size(); ++i) {
    EXPECT_EQ(name(all_types[i]), names[i]);
    EXPECT_EQ(parse_data_type(names[i]), all_types[i]);
  }
  for (const std::string_view unknown : {"", "u", "U8", "u8 ", "s8", "u32", "f128", "float"})
    EXPECT_EQ(parse_data_type(unknown), std::nullopt) << unknown;
}

TEST(DataTypes, StoredSizes) {
  const std::vector<std::int64_t> bytes{1, 2, 2, 4, 2, 2, 4, 4, 8};
  for (std::size_t i = 0; i < all_types.size(); ++i) EXPECT_EQ(size_of(all_types[i]), bytes[i]) << name(all_types[i]);
}

TEST(DataTypes, RangesOfIntegersAreTheirStoredValues) {
  const auto check = [](DataType type, auto stored) {
    using Stored = decltype(stored);
    EXPECT_TRUE(is_integer(type));
    EXPECT_EQ(lowest_value(type), static_cast<double>(std::numeric_limits<Stored>::lowest()));
    EXPECT_EQ(highest_value(type), static_cast<double>(std::numeric_limits<Stored>::max()));
  };
  check(DataType::u8, std::uint8_t{});
  check(DataType::u16, std::uint16_t{});
  check(DataType::s16, std::int16_t{});
  check(DataType::s32, std::int32_t{});
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::tf32, DataType::f32, DataType::f64}) {
    EXPECT_FALSE(is_integer(type));
    EXPECT_EQ(lowest_value(type), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(highest_value(type), std::numeric_limits<double>::infinity());
  }
}

TEST(DataTypes, NumbersThatAreNoTypeAreRefused) {
  const auto type = static_cast<DataType>(9);
  EXPECT_THROW(name(type), Error);
  EXPECT_THROW(size_of(type), Error);
  EXPECT_THROW(name(static_cast<BorderMode>(6)), Error);
  EXPECT_THROW(to_text(Border{static_cast<BorderMode>(200), 0}), Error);
}

TEST(Borders, EveryModeParsesBack) {
  const std::vector<std::string_view> texts{"constant:0", "replicate", "reflect", "reflect101", "wrap", "valid"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Border border = parse_border(texts[i]);
    EXPECT_EQ(border.mode, static_cast<BorderMode>(i));
    EXPECT_EQ(border.value, 0);
    EXPECT_EQ(to_text(border), texts[i]);
    EXPECT_EQ(name(border.mode), texts[i].substr(0, texts[i].find(':')));
  }
}

TEST(Borders, ValuesOfConstant) {
  const auto value = [](std::string_view text) { return parse_border(text).value; };
  EXPECT_EQ(value("constant:255"), 255);
  EXPECT_EQ(value("constant:-3"), -3);
  EXPECT_EQ(value("constant:0.5"), 0.5);
  EXPECT_EQ(value("constant:-.25"), -0.25);
  EXPECT_EQ(value("constant:1e3"), 1000);
  EXPECT_EQ(value("constant:0.1"), 0.1);
  EXPECT_FALSE(std::signbit(value("constant:-0")));
  EXPECT_EQ(to_text(Border{BorderMode::constant, -0.0}), "constant:0");
  EXPECT_EQ(to_text(Border{BorderMode::constant, 0.1}), "constant:0.1");
  EXPECT_EQ(to_text(Border{BorderMode::constant, -2.5}), "constant:-2.5");
  // The text holds every bit of the value.
  for (const double exact : {1.0 / 3, 1e300, 5e-324, std::numeric_limits<double>::max(), 16777217.0})
    EXPECT_EQ(value(to_text(Border{BorderMode::constant, exact})), exact);
}

TEST(Borders, BadValuesAreRefused) {
  EXPECT_EQ(border_error("constant"), "border 'constant': the value is missing: say constant:0");
  const std::string number = ": the value must be a decimal number, as in constant:0 or constant:-0.5";
  for (const std::string text : {"constant:", "constant:x", "constant:1x", "constant:1,5", "constant: 1", "constant:+1",
                                 "constant:0x10", "constant:1:2", "constant:--1"})
    EXPECT_EQ(border_error(text), "border '" + text + "'" + number);
  for (const std::string text : {"constant:nan", "constant:-nan", "constant:inf", "constant:-inf", "constant:infinity"})
    EXPECT_EQ(border_error(text), "border '" + text + "': the value must be finite");
  EXPECT_EQ(border_error("constant:1e999"), "border 'constant:1e999': the value must fit a double");
  EXPECT_EQ(border_error("constant:1e-999"), "border 'constant:1e-999': the value must fit a double");
  EXPECT_EQ(border_error("wrap:1"), "border 'wrap:1': wrap takes no value");
  EXPECT_EQ(border_error("valid:"), "border 'valid:': valid takes no value");
}

TEST(Borders, AmbiguousNamesSayWhatEachPeerMeans) {
  for (const std::string_view text : {"mirror", "Mirror", "symmetric", "SYMMETRIC", "mirror:1"}) {
    const std::string message = border_error(text);
    for (const std::string_view peer : {"OpenCV", "SciPy ndimage", "NumPy pad", "MATLAB", "ImageMagick", "libvips"})
      EXPECT_NE(message.find(peer), std::string::npos) << peer << " in " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_TRUE(message.ends_with("; say reflect (cba|abcd|dcb) or reflect101 (dcb|abcd|cba)")) << message;
  }
  EXPECT_TRUE(border_error("mirror").starts_with(
      "border 'mirror': ambiguous: SciPy ndimage's mirror does not repeat the edge (our reflect101), ImageMagick's and "
      "libvips's mirror repeats it (our reflect), "));
  EXPECT_TRUE(
      border_error("symmetric")
          .starts_with("border 'symmetric': ambiguous: NumPy pad's and MATLAB's symmetric repeats the edge (our "
                       "reflect), "));
}

TEST(Borders, UnknownNamesGetTheNearest) {
  EXPECT_EQ(border_error("replicat"), "border 'replicat': unknown, did you mean replicate?");
  EXPECT_EQ(border_error("Wrap"), "border 'Wrap': unknown, did you mean wrap?");
  EXPECT_EQ(border_error("reflect_101"), "border 'reflect_101': unknown, did you mean reflect101?");
  EXPECT_EQ(border_error("refelct"), "border 'refelct': unknown, did you mean reflect?");
  EXPECT_EQ(border_error("const:3"), "border 'const:3': unknown, did you mean constant?");
  const std::string all = "known are: constant, replicate, reflect, reflect101, wrap, valid";
  EXPECT_EQ(border_error("clamp"), "border 'clamp': unknown, " + all);
  EXPECT_EQ(border_error(""), "border '': unknown, " + all);
  EXPECT_EQ(border_error("a\nb\xFF"), "border 'a\\x0Ab\\xFF': unknown, " + all);
  EXPECT_EQ(border_error(std::string(100000, 'r')), "border '" + std::string(60, 'r') + "...': unknown, " + all);
}

TEST(Suggest, NearestFirstAtMostThree) {
  const std::vector<std::string_view> names{"gaussian", "sobel-x", "sobel-y", "sobel", "sharpen", "box"};
  EXPECT_EQ(suggest("sobel-z", names), "did you mean sobel-x, sobel-y or sobel?");
  EXPECT_EQ(suggest("sobl", names), "did you mean sobel?");
  EXPECT_EQ(suggest("SOBEL-X", names), "did you mean sobel-x, sobel-y or sobel?");
  EXPECT_EQ(suggest("guassian", names), "did you mean gaussian?");
  EXPECT_EQ(suggest("gau", names), "did you mean gaussian?");
  EXPECT_EQ(suggest("bxo", names), "did you mean box?");
  const std::vector<std::string_view> alike{"aab", "aac", "aad", "aae"};
  const std::vector<std::string_view> ids = {"filter2d/direct/cpu.1", "conv2d/direct/cpu.1", "gemm/packed/cpu.1"};
  EXPECT_EQ(suggest("direct/cpu.1", ids), "did you mean filter2d/direct/cpu.1 or conv2d/direct/cpu.1?");
  EXPECT_EQ(suggest("pack", ids), "did you mean gemm/packed/cpu.1?");
  EXPECT_EQ(suggest("cpu.1x", ids), "known are: filter2d/direct/cpu.1, conv2d/direct/cpu.1, gemm/packed/cpu.1");
  EXPECT_EQ(suggest("aaf", alike), "did you mean aab, aac or aad?");
  EXPECT_EQ(suggest("aa", std::span(alike).first(2)), "did you mean aab or aac?");
}

TEST(Suggest, NothingNearListsAll) {
  const std::vector<std::string_view> names{"x", "relu", "flip"};
  const std::string all = "known are: x, relu, flip";
  for (const std::string& unknown :
       {std::string(), std::string("y"), std::string("unknown"), std::string(1 << 20, 'x')})
    EXPECT_EQ(suggest(unknown, names), all);
}

}  // namespace
}  // namespace omniconv
