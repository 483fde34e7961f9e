#include "image/formats/npy/npy.h"

#include <gtest/gtest.h>

#include <span>

#include "files.h"

namespace omniconv::image {
namespace {

using namespace std::string_literals;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A file of version 1.0 whose header is `dictionary`.
std::string npy(std::string_view dictionary, std::string_view data = "") {
  std::string file = "\x93NUMPY\1\0"s;
  file += static_cast<char>(dictionary.size() & 255);
  file += static_cast<char>(dictionary.size() >> 8);
  return file + std::string(dictionary) + std::string(data);
}

std::string dictionary(std::string_view type, std::string_view shape) {
  return "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': " + std::string(shape) + ", }\n";
}

class Npy : public ::testing::Test {
 protected:
  std::string refusal(const std::string& content) {
    write_file(path_, content);
    std::string message = error_of([&] { read_image(path_); });
    EXPECT_TRUE(message.starts_with(path_)) << message;
    return message.substr(path_.size());
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("array.npy");
};

TEST_F(Npy, Header) {
  const std::string file = npy(dictionary("<f8", "(3, 4, 5)"));
  const NpyHeader header = parse_npy_header(bytes_of(file), "x");
  EXPECT_EQ(header.type, DataType::f64);
  EXPECT_FALSE(header.swapped);
  EXPECT_EQ(header.shape, (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(header.data_offset, file.size());
  EXPECT_EQ(header.elements(), 60);
  EXPECT_EQ(parse_npy_header(bytes_of(npy(dictionary("<f4", "()"))), "x").shape, std::vector<std::int64_t>{});
  EXPECT_EQ(parse_npy_header(bytes_of(npy(dictionary("<f4", "(7,)"))), "x").shape, std::vector<std::int64_t>{7});
  EXPECT_TRUE(parse_npy_header(bytes_of(npy(dictionary(">f4", "(7,)"))), "x").swapped);
  EXPECT_FALSE(parse_npy_header(bytes_of(npy(dictionary(">u1", "(7,)"))), "x").swapped);
}

TEST_F(Npy, KeysInAnyOrderAndEitherQuote) {
  const NpyHeader header =
      parse_npy_header(bytes_of(npy("{\"shape\":(1,2),'fortran_order':False,'descr':\"<i2\"}")), "x");
  EXPECT_EQ(header.type, DataType::s16);
  EXPECT_EQ(header.shape, (std::vector<std::int64_t>{1, 2}));
}

TEST_F(Npy, LongHeadersOfVersionsTwoAndThree) {
  for (const char version : {'\2', '\3'}) {
    const std::string text = dictionary("|u1", "(1, 2)");
    std::string file = "\x93NUMPY"s + version + "\0"s;
    file += static_cast<char>(text.size());
    file += "\0\0\0"s;
    write_file(path_, file + text + "ab");
    EXPECT_EQ(values<char>(read_image(path_)), (std::vector<char>{'a', 'b'}));
  }
}

TEST_F(Npy, WhatIsWrittenIsWhatNumpyWrites) {
  const std::int64_t shape[] = {2, 3};
  const std::string header = npy_header_text(DataType::f32, shape);
  EXPECT_EQ(header, npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" + std::string(58, ' ') + "\n"));
  EXPECT_EQ(header.size(), 128u);
  const std::int64_t one[] = {5};
  EXPECT_NE(npy_header_text(DataType::u8, one).find("'|u1', 'fortran_order': False, 'shape': (5,), }"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { npy_header_text(DataType::bf16, one); }), ".npy has no type bf16; write f32");
}

TEST_F(Npy, EveryTypeRoundTrips) {
  for (const DataType type :
       {DataType::u8, DataType::u16, DataType::s16, DataType::s32, DataType::f16, DataType::f32, DataType::f64})
    for (const std::int64_t c : {1, 2, 3}) {
      const Image image = random_image(7, 5, c, type, 3);
      write_image(path_, image, 2);
      const Image back = read_image(path_, 0, 3);
      EXPECT_EQ(back.info.type, type);
      EXPECT_EQ(back.info.c, c);
      EXPECT_EQ(back.info.format, "npy");
      EXPECT_EQ(back.pixels, image.pixels);
    }
}

TEST_F(Npy, OtherByteOrder) {
  write_file(path_, npy(dictionary(">u2", "(1, 2)"), "\1\2\3\4"));
  EXPECT_EQ(values<std::uint16_t>(read_image(path_)), (std::vector<std::uint16_t>{0x0102, 0x0304}));
  write_file(path_, npy(dictionary(">f4", "(1, 1)"), "\x3F\x80\0\0"s));
  EXPECT_EQ(values<float>(read_image(path_)), std::vector<float>{1});
  write_file(path_, npy(dictionary(">f8", "(1, 1)"), "\x3F\xF0\0\0\0\0\0\0"s));
  EXPECT_EQ(values<double>(read_image(path_)), std::vector<double>{1});
}

TEST_F(Npy, ShapesAreKept) {
  for (const char* shape : {"(2, 1)", "(2, 1, 1)", "(1, 1, 2)"}) {
    write_file(path_, npy(dictionary("|u1", shape), "ab"));
    const std::string copy = folder_.file("copy.npy");
    write_image(copy, read_image(path_));
    EXPECT_NE(read_file(copy).find("'shape': "s + shape + ", }"), std::string::npos);
  }
}

TEST_F(Npy, Refusals) {
  const std::string types =
      "; read are |u1, <u2, <i2, <i4, <f2, <f4 and <f8, of either byte order; convert it with .astype() in NumPy";
  EXPECT_EQ(refusal(npy(dictionary("|i1", "(1, 1)"), "a")), ": its elements are '|i1'" + types);
  EXPECT_EQ(refusal(npy(dictionary("<i8", "(1, 1)"), "12345678")), ": its elements are '<i8'" + types);
  EXPECT_EQ(refusal(npy(dictionary("<c8", "(1, 1)"), "12345678")), ": its elements are '<c8'" + types);
  EXPECT_EQ(refusal(npy(dictionary("|f4", "(1, 1)"), "1234")), ": its elements are '|f4'" + types);
  EXPECT_EQ(refusal(npy(dictionary("", "(1, 1)"), "1234")), ": its elements are ''" + types);
  EXPECT_EQ(refusal(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 1), }", "1234")),
            ": an array of records; read are |u1, <u2, <i2, <i4, <f2, <f4 and <f8, of either byte order");
  EXPECT_EQ(refusal(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "1234")),
            ": an array in Fortran order; save it in C order, numpy.save(name, numpy.ascontiguousarray(array))");
  EXPECT_EQ(refusal(npy(dictionary("|u1", "(1, 2)"), "a")),
            " is cut short: the shape (1, 2) of u8 needs a file of 72 bytes, this one has 71");
  EXPECT_EQ(refusal(npy(dictionary("|u1", "(1, 2)"), "abc")),
            " goes on after its array: the shape (1, 2) of u8 needs a file of 72 bytes, this one has 73");
  EXPECT_EQ(refusal(npy(dictionary("|u1", "(2,)"), "ab")),
            ": an array of shape (2,); an image is (rows, columns) or (rows, columns, channels)");
  EXPECT_EQ(
      refusal(npy(dictionary("|u1", "(1, 2, 3, 4, 5, 6, 7, 8, 9)"), "ab")),
      ": an array of shape (1, 2, 3, 4, 5, 6, 7, 8, ...); an image is (rows, columns) or (rows, columns, channels)");
  EXPECT_EQ(refusal(npy(dictionary("|u1", "(2, 0)"))), ": an image of 2 rows, 0 columns and 1 channels has no pixels");
  EXPECT_NE(refusal(npy(dictionary("|u1", "(4000000000, 4000000000, 4000000000)"))).find("is too large"),
            std::string::npos);
  EXPECT_NE(refusal(npy(dictionary("|u1", "(99999999999999999999, 1)"))).find("an extent of the shape below 2^63"),
            std::string::npos);
}

TEST_F(Npy, DamagedHeaders) {
  const auto refused = [&](std::string_view text) { return refusal(npy(text)); };
  EXPECT_EQ(refused("x"), ": its .npy header is damaged at character 1: expected '{'");
  EXPECT_EQ(refused("{'descr' '<f4'}"), ": its .npy header is damaged at character 10: expected ':'");
  EXPECT_EQ(refused("{'descr': <f4}"), ": its .npy header is damaged at character 11: expected a quoted string");
  EXPECT_EQ(refused("{'descr': '<f4}"), ": its .npy header is damaged at character 11: expected a string that ends");
  EXPECT_EQ(refused("{'fortran_order': 1}"), ": its .npy header is damaged at character 19: expected True or False");
  EXPECT_EQ(refused("{'shape': (1, -1)}"),
            ": its .npy header is damaged at character 15: expected an extent of the "
            "shape, a whole number that is not negative");
  EXPECT_EQ(refused("{'shape': (1)}"),
            ": its .npy header is damaged at character 13: expected ',' after the one extent of the shape");
  EXPECT_EQ(refused("{'shape': (1 1)}"),
            ": its .npy header is damaged at character 14: expected ',' after the one extent of the shape");
  EXPECT_EQ(refused("{'shape': (1, 2 3)}"), ": its .npy header is damaged at character 17: expected ')'");
  EXPECT_EQ(refused("{'order': False}"),
            ": its .npy header is damaged at character 10: expected each of the keys "
            "'descr', 'fortran_order' and 'shape' once, not 'order'");
  EXPECT_EQ(refused("{'descr': '<f4', 'shape': (1, 1)}"),
            ": its .npy header is damaged at character 34: expected the "
            "keys 'descr', 'fortran_order' and 'shape'");
  EXPECT_EQ(refused("{} {}"),
            ": its .npy header is damaged at character 4: expected nothing but white space after '}'");
  EXPECT_EQ(refusal("\x93NUMPY\4\0ab"s), ": .npy version 4.0; read are 1.0, 2.0 and 3.0");
  EXPECT_EQ(refusal("\x93NUMPY\1\1ab"s), ": .npy version 1.1; read are 1.0, 2.0 and 3.0");
  EXPECT_EQ(refusal("\x93NUMPY\1\0\xFF\0{"s), " is cut short within its .npy header: 11 bytes of 265");
  EXPECT_EQ(refusal("\x93NUMPY\2\0\xFF\xFF\xFF\xFF{"s),
            ": its .npy header claims 4294967295 bytes; an array of numbers needs at most 65536");
  EXPECT_EQ(refusal("\x93NUMPY\2\0ab"s), " is cut short within its .npy header");
  EXPECT_EQ(error_of([] { parse_npy_header(bytes_of("P5 1 1 255\n"), "x"); }),
            "x is no .npy array: it does not begin with the bytes 93 4E 55 4D 50 59");
}

TEST_F(Npy, OnePageOnly) {
  write_image(path_, random_image(1, 1, 1, DataType::u8, 1));
  EXPECT_EQ(read_image(path_, 1).info.h, 1);
  EXPECT_EQ(error_of([&] { open_image(path_, 2); }), path_ + " holds one array; there is no page 2");
}

TEST_F(Npy, TypesThatItHasNot) {
  ImageInfo info = random_image(1, 1, 1, DataType::f32, 1).info;
  info.type = DataType::tf32;
  EXPECT_EQ(error_of([&] { create_image(path_, info); }), ".npy has no type tf32; write f32");
}

}  // namespace
}  // namespace omniconv::image
