#include <gtest/gtest.h>

#include "files.h"

namespace omniconv::image {
namespace {

using namespace std::string_literals;
using Bytes = std::vector<std::uint8_t>;
using Words = std::vector<std::uint16_t>;

class Pnm : public ::testing::Test {
 protected:
  std::string put(std::string_view content) {
    write_file(path_, content);
    return path_;
  }
  std::string error(std::string_view content, int page = 0) {
    put(content);
    const std::string message = error_of([&] { read_image(path_, page); });
    EXPECT_TRUE(message.find(path_) != std::string::npos) << message;
    return message;
  }
  // What `image` becomes when written to a file of this name.
  std::string written(std::string_view name, const Image& image, std::int64_t rows = 1) {
    write_image(folder_.file(name), image, rows);
    return read_file(folder_.file(name));
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("image");
};

Image u8_image(std::int64_t h, std::int64_t w, std::int64_t c, const Bytes& bytes) {
  Image image;
  image.info.h = h;
  image.info.w = w;
  image.info.c = c;
  for (const std::uint8_t byte : bytes) image.pixels.push_back(std::byte{byte});
  return image;
}

Image u16_image(std::int64_t h, std::int64_t w, std::int64_t c, const Words& words) {
  Image image;
  image.info.h = h;
  image.info.w = w;
  image.info.c = c;
  image.info.type = DataType::u16;
  image.pixels.resize(words.size() * 2);
  std::memcpy(image.pixels.data(), words.data(), image.pixels.size());
  return image;
}

TEST_F(Pnm, PlainBits) {
  const Image image = read_image(put("P1\n# a comment\n3 2 # another\n1 0 1\n0#third\n10\n"));
  EXPECT_EQ(image.info.h, 2);
  EXPECT_EQ(image.info.w, 3);
  EXPECT_EQ(image.info.c, 1);
  EXPECT_EQ(image.info.type, DataType::u8);
  EXPECT_EQ(image.info.max_value, 0);
  EXPECT_EQ(image.info.format, "pnm");
  EXPECT_EQ(values<std::uint8_t>(image), (Bytes{0, 255, 0, 255, 0, 255}));
}

TEST_F(Pnm, RawBits) {
  // Ten pixels a row take two bytes; the last six bits have no meaning.
  const Image image = read_image(put("P4 10 2\n\xA5\x7F\x00\x80"s));
  EXPECT_EQ(values<std::uint8_t>(image), (Bytes{0,   255, 0,   255, 255, 0,   255, 0,   255, 0,  //
                                                255, 255, 255, 255, 255, 255, 255, 255, 0,   255}));
  // Eight take one, and no more.
  EXPECT_EQ(values<std::uint8_t>(read_image(put("P4 8 1\n\x0F"s))), (Bytes{255, 255, 255, 255, 0, 0, 0, 0}));
}

TEST_F(Pnm, CommentsMayStandRightBehindNumbers) {
  const Image image = read_image(put("P5\n2#columns\n1#rows\n#of bytes\n255#the pixels follow\nab"));
  EXPECT_EQ(values<std::uint8_t>(image), (Bytes{'a', 'b'}));
}

TEST_F(Pnm, PlainGray) {
  const Image image = read_image(put("P2\n2 2 100\n0 50\n100 7\nany text"));
  EXPECT_EQ(image.info.type, DataType::u8);
  EXPECT_EQ(image.info.max_value, 100);
  EXPECT_EQ(values<std::uint8_t>(image), (Bytes{0, 50, 100, 7}));
}

TEST_F(Pnm, PlainColorSixteenBits) {
  const Image image = read_image(put("P3 1 2 1000 1 2 3 1000 0 999\n"));
  EXPECT_EQ(image.info.type, DataType::u16);
  EXPECT_EQ(image.info.c, 3);
  EXPECT_EQ(image.info.max_value, 1000);
  EXPECT_EQ(values<std::uint16_t>(image), (Words{1, 2, 3, 1000, 0, 999}));
}

TEST_F(Pnm, PlainRowsInAnyOrder) {
  const auto reader = open_image(put("P2\n1 4 9\n1\n2\n3\n4\n"));
  std::byte row{};
  for (const std::int64_t y : {3, 0, 2, 2, 1}) {
    reader->read_rows(y, 1, &row, 1);
    EXPECT_EQ(std::to_integer<int>(row), y + 1);
  }
}

TEST_F(Pnm, ADamagedPlainRowStaysDamaged) {
  const auto reader = open_image(put("P2\n1 4 9\n1\n2\nx 3\n4\n"));
  std::byte row{};
  for (const std::int64_t y : {2, 2, 3})
    EXPECT_EQ(error_of([&] { reader->read_rows(y, 1, &row, 1); }),
              path_ + ": row 2, column 0: expected a number, found byte 120");
  reader->read_rows(1, 1, &row, 1);
  EXPECT_EQ(std::to_integer<int>(row), 2);
}

TEST_F(Pnm, RawGrayAndColor) {
  const Image gray = read_image(put("P5#comment\n2 2\n255\nabcd"));
  EXPECT_EQ(values<std::uint8_t>(gray), (Bytes{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(gray.info.max_value, 0);
  const Image color = read_image(put("P6 1 2 255\nabcdef"));
  EXPECT_EQ(color.info.c, 3);
  EXPECT_EQ(values<std::uint8_t>(color), (Bytes{'a', 'b', 'c', 'd', 'e', 'f'}));
}

TEST_F(Pnm, TheFirstByteOfPixelsMayLookLikeWhiteSpaceOrComment) {
  EXPECT_EQ(values<std::uint8_t>(read_image(put("P5 2 1 255\n#\n"))), (Bytes{'#', '\n'}));
}

TEST_F(Pnm, SixteenBitsAreBigEndian) {
  const Image image = read_image(put("P5 2 1 65535\n\x01\x02\xFF\x00"s));
  EXPECT_EQ(image.info.type, DataType::u16);
  EXPECT_EQ(image.info.max_value, 0);
  EXPECT_EQ(values<std::uint16_t>(image), (Words{0x0102, 0xFF00}));
}

TEST_F(Pnm, StridesLeaveTheGapAlone) {
  const auto reader = open_image(put("P5 2 2 255\nabcd"));
  std::string rows = "______";
  reader->read_rows(0, 2, reinterpret_cast<std::byte*>(rows.data()), 3);
  EXPECT_EQ(rows, "ab_cd_");
}

TEST_F(Pnm, Pages) {
  put("P5 1 1 255\naP6 1 1 255\nbcd\nP4 1 1\n\x80"s);
  EXPECT_EQ(error_of([&] { open_image(path_); }), path_ + " holds 3 images; choose one with --page N");
  EXPECT_EQ(values<std::uint8_t>(read_image(path_, 1)), Bytes{'a'});
  EXPECT_EQ(values<std::uint8_t>(read_image(path_, 2)), (Bytes{'b', 'c', 'd'}));
  EXPECT_EQ(values<std::uint8_t>(read_image(path_, 3)), Bytes{0});
  EXPECT_EQ(error_of([&] { open_image(path_, 4); }), path_ + " holds 3 images; there is no page 4");
  EXPECT_EQ(error_of([&] { open_image(path_, -1); }), path_ + ": page -1; pages count from 1");
}

TEST_F(Pnm, Pam) {
  const Image image = read_image(
      put("P7\n# comment\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 300\nTUPLTYPE RGB_ALPHA\nENDHDR\n\0\1\0\2\0\3\1\x2C"s));
  EXPECT_EQ(image.info.format, "pam");
  EXPECT_EQ(image.info.c, 4);
  EXPECT_EQ(image.info.alpha_channel, 3);
  EXPECT_EQ(image.info.max_value, 300);
  EXPECT_EQ(values<std::uint16_t>(image), (Words{1, 2, 3, 300}));
  const Image plain = read_image(put("P7\nDEPTH 2\nMAXVAL 255\nHEIGHT 1\nWIDTH 1\nENDHDR\nab"));
  EXPECT_EQ(plain.info.alpha_channel, -1);
}

TEST_F(Pnm, FloatRowsAreStoredFromTheBottom) {
  const std::string one = "\x00\x00\x80\x3F"s, two = "\x00\x00\x00\x40"s;
  const Image little = read_image(put("Pf\n1 2\n-1.0\n" + one + two));
  EXPECT_EQ(little.info.type, DataType::f32);
  EXPECT_EQ(little.info.format, "pfm");
  EXPECT_EQ(values<float>(little), (std::vector<float>{2, 1}));
  const Image big = read_image(put("PF\n1 1\n1\n\x3F\x80\0\0\x40\0\0\0\0\0\0\0"s));
  EXPECT_EQ(values<float>(big), (std::vector<float>{1, 2, 0}));
}

TEST_F(Pnm, BadHeaders) {
  EXPECT_EQ(error("P5 0 1 255\n"), path_ + ": its header has '0' for the width; expected a whole number from 1");
  EXPECT_EQ(error("P5 -3 1 255\n"), path_ + ": its header has '-3' for the width; expected a whole number from 1");
  EXPECT_EQ(error("P5 1 2x 255\n"), path_ + ": its header has '2x' for the height; expected a whole number from 1");
  EXPECT_EQ(error("P5 1 99999999999999999999 255\n"),
            path_ + ": its header has '99999999999999999999' for the height; expected a whole number from 1");
  EXPECT_EQ(error("P5 1 1 0\n"), path_ + ": its header has '0' for the highest value; expected a whole number from 1");
  EXPECT_EQ(error("P5 1 1 65536\n"), path_ + ": its header has 65536 for the highest value; it can be 1 to 65535");
  EXPECT_EQ(error("P5 1 1"), path_ + " is cut short within its header");
  EXPECT_EQ(error("P5 1 " + std::string(100, '1')), path_ + ": its header has a word of more than 64 letters");
  EXPECT_EQ(error("Pf 1 1 abc\n1234"),
            path_ + ": its header has 'abc' for the scale; expected a number, negative for little-endian");
  EXPECT_NE(error("P6 4000000000000000000 4000000000000000000 255\n").find("is too large"), std::string::npos);
  EXPECT_NE(error("P4 4000000000000000000 4000000000000000000\n").find("is too large"), std::string::npos);
}

TEST_F(Pnm, BadPamHeaders) {
  EXPECT_EQ(error("P7 332\n1 1 255\nabcd"), path_ + ": expected the end of the line after P7");
  EXPECT_EQ(error("P7\nWIDTH 1\nHEIGHT 1\nMAXVAL 1\nENDHDR\na"), path_ + ": its header has no DEPTH");
  EXPECT_EQ(error("P7\nWIDTH 1\nWIDTH 1\nENDHDR\na"), path_ + ": its header has WIDTH twice");
  EXPECT_EQ(error("P7\nWIDTH one\nENDHDR\na"),
            path_ + ": its header has 'one' for the WIDTH; expected a whole number from 1");
  EXPECT_EQ(error("P7\nBREADTH 1\nENDHDR\na"),
            path_ + ": its header has the line 'BREADTH 1'; expected WIDTH, HEIGHT, DEPTH, MAXVAL, TUPLTYPE or ENDHDR");
  EXPECT_EQ(error("P7\nTUPLTYPE " + std::string(1025, 'A') + "\nENDHDR\na"),
            path_ + ": its tuple type has more than 1024 letters");
}

TEST_F(Pnm, BadPixels) {
  EXPECT_EQ(error("P5 10 10 255\nabc"),
            path_ + " is cut short: 10 x 10 x 1 pixels need at least 113 bytes, the file has 16");
  EXPECT_EQ(error("P2 1000 1000 255\n1 2"),
            path_ + " is cut short: 1000 x 1000 x 1 pixels need at least 2000017 bytes, the file has 20");
  EXPECT_EQ(error("P5 1 2 10\n\x05\x0B"),
            path_ + ": row 1 has the value 11, but the header says that none is above 10");
  EXPECT_EQ(error("P2 2 1 10\n5 11\n"),
            path_ + ": row 0, column 1 has a value above 10, the highest that its header allows");
  EXPECT_EQ(error("P2 2 1 10\n5 x \n"), path_ + ": row 0, column 1: expected a number, found byte 120");
  EXPECT_EQ(error("P2 2 1 10\n5 1x\n"),
            path_ + ": row 0, column 1: expected white space after a number, found byte 120");
  EXPECT_EQ(error("P2 1 2 10\n5 # 6\n"), path_ + " is cut short: it ends in row 1 of 2");
  EXPECT_NE(error("P2 1 2 10\n10 6").find("ends with the file"), std::string::npos);
  EXPECT_EQ(error("P1 2 1\n12\n"), path_ + ": row 0, column 1: expected 0 or 1, found byte 50");
  EXPECT_EQ(error("P5 1 1 255\nabc"),
            path_ + ": 2 bytes follow its last image; expected the end of the file or another image");
}

TEST_F(Pnm, Writes) {
  EXPECT_EQ(written("a.pgm", u8_image(2, 2, 1, {'a', 'b', 'c', 'd'})), "P5\n2 2\n255\nabcd");
  EXPECT_EQ(written("a.PNM", u8_image(1, 1, 3, {'a', 'b', 'c'})), "P6\n1 1\n255\nabc");
  EXPECT_EQ(written("a.pgm", u16_image(1, 2, 1, {0x0102, 0xFF00})), "P5\n2 1\n65535\n\x01\x02\xFF\x00"s);
  EXPECT_EQ(written("a.pbm", u8_image(2, 9, 1,
                                      {0, 255, 255, 255, 255, 255, 255, 255, 0,  //
                                       255, 255, 255, 255, 255, 255, 255, 0, 255})),
            "P4\n9 2\n\x80\x80\x01\x00"s);
  EXPECT_EQ(written("a.pam", u8_image(1, 1, 2, {'a', 'b'})), "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nENDHDR\nab");
  Image alpha = u8_image(1, 1, 4, {'a', 'b', 'c', 'd'});
  alpha.info.alpha_channel = 3;
  EXPECT_EQ(written("a.pam", alpha), "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\nabcd");
}

TEST_F(Pnm, TheHighestValueIsKeptAndClampsWhatIsAbove) {
  Image image = u8_image(2, 2, 1, {0, 99, 100, 101});
  image.info.max_value = 100;
  EXPECT_EQ(written("a.pgm", image), "P5\n2 2\n100\n\0\x63\x64\x64"s);
  image = u16_image(1, 2, 1, {1023, 1024});
  image.info.max_value = 1023;
  EXPECT_EQ(written("a.pgm", image), "P5\n2 1\n1023\n\x03\xFF\x03\xFF"s);
  // A u16 file begins at 256; a u8 one ends at 255.
  for (const double of_bytes : {100, 255}) {
    image.info.max_value = of_bytes;
    EXPECT_EQ(written("a.pgm", image), "P5\n2 1\n65535\n\x03\xFF\x04\x00"s);
  }
}

// Colours that are multiplied are written as they are, rounded, and none above the file's highest value.
TEST_F(Pnm, OpacityIsDividedOutByTheHighestValue) {
  Image image = u8_image(1, 4, 2, {30, 50, 2, 3, 80, 50, 7, 0});
  image.info.max_value = 100;
  image.info.alpha_channel = 1;
  image.info.associated_alpha = true;
  write_image(folder_.file("a.pam"), image);
  EXPECT_EQ(values<std::uint8_t>(read_image(folder_.file("a.pam"))), (Bytes{60, 50, 67, 3, 100, 50, 7, 0}));
}

TEST_F(Pnm, RefusesWhatTheFormatCannotHold) {
  const auto refusal = [&](std::string_view name, std::int64_t c, DataType type) {
    Image image = random_image(1, 1, c, type, 1);
    const std::string path = folder_.file(name);
    std::string message = error_of([&] { create_image(path, image.info); });
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    return message.substr(path.size() + 2);
  };
  EXPECT_EQ(refusal("a.pgm", 1, DataType::f32),
            ".pgm cannot hold f32; it holds u8 and u16 (.pfm holds f32, .npy every type)");
  EXPECT_EQ(refusal("a.pam", 1, DataType::s16),
            ".pam cannot hold s16; it holds u8 and u16 (.pfm holds f32, .npy every type)");
  EXPECT_EQ(refusal("a.pgm", 3, DataType::u8), ".pgm cannot hold 3 channels; it holds 1 (.pam holds any number)");
  EXPECT_EQ(refusal("a.pnm", 4, DataType::u8), ".pnm cannot hold 4 channels; it holds 1 or 3 (.pam holds any number)");
  EXPECT_EQ(refusal("a.pfm", 1, DataType::u8), ".pfm cannot hold u8; it holds f32");
  EXPECT_EQ(refusal("a.pfm", 2, DataType::f32), ".pfm cannot hold 2 channels; it holds 1 or 3 (.npy holds any number)");
  EXPECT_EQ(refusal("a.pbm", 1, DataType::u16), ".pbm cannot hold u16; it holds u8 of the values 0 and 255");
  const std::string path = folder_.file("a.pbm");
  EXPECT_EQ(error_of([&] {
              write_image(path, u8_image(1, 2, 1, {255, 7}));
            }),
            path + ": row 0, column 1 has the value 7; .pbm holds only 0 and 255; write .pgm");
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(Pnm, RoundTrips) {
  for (const std::int64_t rows : {1, 3, 100}) {
    for (const std::int64_t c : {1, 2, 3, 4, 7})
      for (const DataType type : {DataType::u8, DataType::u16}) {
        const Image image = random_image(11, 13, c, type, static_cast<unsigned>(c));
        write_image(folder_.file("a.pam"), image, rows);
        const Image back = read_image(folder_.file("a.pam"), 0, rows + 1);
        EXPECT_EQ(back.info.type, type);
        EXPECT_EQ(back.pixels, image.pixels);
      }
    const Image image = random_image(11, 13, 3, DataType::f32, 1);
    write_image(folder_.file("a.pfm"), image, rows);
    EXPECT_EQ(read_image(folder_.file("a.pfm"), 0, rows + 1).pixels, image.pixels);
  }
}

TEST_F(Pnm, TupleTypesAreKept) {
  const std::string cmyk = "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE CMYK\nENDHDR\nabcd";
  EXPECT_EQ(written("b.pam", read_image(put(cmyk))), cmyk);
  const std::string bits = "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE\nENDHDR\n\1";
  EXPECT_EQ(written("b.pam", read_image(put(bits))), bits);
  // As long as it may be, and in parts, of which one is empty.
  const std::string head = "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\n", longest(1022, 'A');
  EXPECT_EQ(written("b.pam", read_image(put(head + "TUPLTYPE " + longest + "\nTUPLTYPE\nTUPLTYPE B\nENDHDR\nabcd"))),
            head + "TUPLTYPE " + longest + " B\nENDHDR\nabcd");
}

TEST_F(Pnm, RowsOutOfOrderAreRefused) {
  const Image image = u8_image(2, 1, 1, {1, 2});
  const auto writer = create_image(path_ + ".pgm", image.info);
  EXPECT_EQ(error_of([&] { writer->write_rows(1, 1, image.pixels.data(), 1); }),
            path_ + ".pgm: row 1 was written where row 0 was due");
  writer->write_rows(0, 1, image.pixels.data(), 1);
  EXPECT_EQ(error_of([&] { writer->write_rows(1, 2, image.pixels.data(), 1); }),
            path_ + ".pgm: rows 1 to 2 were asked for; it has 2");
  EXPECT_EQ(error_of([&] { writer->finish(); }), path_ + ".pgm: 1 of 2 rows were written");
}

}  // namespace
}  // namespace omniconv::image
