// The module for plain files, here TIFF and JPEG: it serves what is plain and nothing else, and no one can tell from a
// file or from what is read of it which module served.
#include <algorithm>

#include "handmade.h"
#include "plain_testing.h"

namespace omniconv::image {
namespace {

using namespace std::string_literals;

TEST_F(Plain, TypesChannelsAndCompressionsOfTiff) {
  using enum DataType;
  for (const DataType type : {u8, u16, s16, s32, f16, f32, f64})
    for (const std::int64_t c : {1, 2, 3, 4})
      for (const char* compression : {"none", "lzw", "zip"}) {
        Image image = random_image(37, 19, c, type, 3);
        if (c % 2 == 0) image.info.alpha_channel = static_cast<int>(c) - 1;
        image.info.associated_alpha = image.info.alpha_channel >= 0 && type == u16;
        OIIO::ImageSpec attributes;
        attributes.attribute("compression", compression);
        expect_both_alike(make("image.tif", image, attributes));
        EXPECT_TRUE(read_image(file("copy.tif")).pixels == image.pixels) << name(type) << c << compression;
      }
}

TEST_F(Plain, WhatIsWrittenWithoutAnInput) {
  for (const std::int64_t c : {1, 2, 3, 4, 5, 7}) {
    const Image image = random_image(70, 20, c, DataType::u8, 3);
    for (const std::string extension : {".tif", ".jpg"}) {
      if (extension == ".jpg" && c != 1 && c != 3) continue;
      for (const std::int64_t rows : {1, 31, 100}) {
        const auto writer = plain_module()->create(file("image" + extension), image.info, {});
        ASSERT_NE(writer, nullptr);
        const std::int64_t bytes = bytes_per_row(image.info);
        for (std::int64_t y = 0; y < 70; y += rows)
          writer->write_rows(y, std::min(rows, 70 - y), image.pixels.data() + y * bytes, bytes);
        writer->finish();
        const auto expected = full_->create(file("expected" + extension), image.info, {});
        expected->write_rows(0, 70, image.pixels.data(), bytes);
        expected->finish();
        EXPECT_TRUE(content_of(file("image" + extension)) == content_of(file("expected" + extension)))
            << c << extension;
      }
    }
  }
}

TEST_F(Plain, DescriptionsOfTiff) {
  const Image image = random_image(9, 8, 3, DataType::u8, 3);
  const std::string profile = color_profile();
  for (const bool has_unit : {false, true}) {
    OIIO::ImageSpec attributes;
    attributes.attribute("XResolution", 300.5f);
    attributes.attribute("YResolution", 150.25f);
    attributes.attribute("PixelAspectRatio", 0.5f);
    if (has_unit) attributes.attribute("ResolutionUnit", "cm");
    for (const char* text : {"DocumentName", "ImageDescription", "Make", "Model", "Software", "DateTime", "Artist",
                             "HostComputer", "Copyright"})
      attributes.attribute(text, "said of \xC3\xA4 "s + text + " ");
    attributes.attribute("ICCProfile", OIIO::TypeDesc(OIIO::TypeDesc::UINT8, static_cast<int>(profile.size())),
                         profile.data());
    expect_both_alike(make("image.tif", image, attributes));
    EXPECT_NE(read_file(file("copy.tif")).find("said of \xC3\xA4 HostComputer "), std::string::npos);
    EXPECT_NE(read_file(file("copy.tif")).find(profile), std::string::npos);
  }
}

TEST_F(Plain, DescriptionsOfJpeg) {
  const Image image = random_image(40, 24, 3, DataType::u8, 3);
  const std::string profile = color_profile();
  for (const char* subsampling : {"4:4:4", "4:2:2", "4:2:0"})
    for (const char* unit : {"", "in", "cm"})
      for (const bool has_profile : {false, true}) {
        OIIO::ImageSpec attributes;
        attributes.attribute("jpeg:subsampling", subsampling);
        if (*unit != '\0') {
          attributes.attribute("XResolution", 300.0f);
          attributes.attribute("YResolution", 200.0f);
          attributes.attribute("ResolutionUnit", unit);
        }
        if (has_profile)
          attributes.attribute("ICCProfile", OIIO::TypeDesc(OIIO::TypeDesc::UINT8, static_cast<int>(profile.size())),
                               profile.data());
        expect_both_alike(make("image.jpg", image, attributes));
        // What was written is plain, too, and stays as it is.
        expect_both_alike(file("copy.jpg"));
      }
  expect_both_alike(make("gray.jpg", random_image(40, 24, 1, DataType::u8, 3)));
  expect_both_alike(OMNICONV_SOURCE_DIR "/data/photo/raccoon.jpg");
}

// As handmade.h has them: 2 x 2 pixels of one byte, in Intel's order.
std::string gray_tiff(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& more) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> entries = {{256, 2}, {258, 8}, {259, 1}, {262, 1}, {277, 1}};
  for (const auto& [tag, value] : more) {
    std::erase_if(entries, [tag = tag](const auto& entry) { return entry.first == tag; });
    entries.emplace_back(tag, value);
  }
  return tiff(entries, "\1\2\3\4", 2);
}

TEST_F(Plain, TiffFilesThatAreNot) {
  EXPECT_TRUE(is_plain("gray.tif", gray_tiff({})));
  EXPECT_TRUE(is_plain("gray.tif", gray_tiff({{254, 0}, {266, 1}, {274, 1}, {284, 1}, {317, 1}, {339, 1}})));
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> other = {{254, 1},      // a reduced copy
                                                                      {256, 0},      // no columns
                                                                      {258, 4},      // half bytes
                                                                      {258, 32},     // unsigned, of 32 bits
                                                                      {259, 7},      // JPEG
                                                                      {259, 32773},  // PackBits
                                                                      {262, 0},      // white is zero
                                                                      {262, 3},      // a palette
                                                                      {266, 2},      // bits in reverse
                                                                      {274, 6},      // on its side
                                                                      {277, 5},      // more channels
                                                                      {284, 2},      // a plane for each
                                                                      {296, 2},      // a unit of nothing
                                                                      {317, 2},    // a prediction without a compression
                                                                      {338, 2},    // opacity without a channel
                                                                      {339, 3},    // half precision in a byte
                                                                      {700, 1},    // XMP
                                                                      {33723, 1},  // IPTC
                                                                      {34665, 8},  // Exif
                                                                      {42112, 1}};  // private
  for (const auto& [tag, value] : other)
    EXPECT_FALSE(is_plain("gray.tif", gray_tiff({{tag, value}}))) << tag << ' ' << value;
  // A code of LZW stands for 4096 bytes at most: two rows of these are 4 and 5 codes, of 4 bytes.
  EXPECT_TRUE(is_plain("gray.tif", gray_tiff({{256, 8192}, {259, 5}})));
  EXPECT_FALSE(is_plain("gray.tif", gray_tiff({{256, 10240}, {259, 5}})));
  EXPECT_TRUE(is_plain("gray.tif", gray_tiff({{259, 5}, {317, 2}})));
  EXPECT_FALSE(is_plain("gray.tif", gray_tiff({{259, 5}, {317, 3}})));  // a prediction of floats
  EXPECT_FALSE(
      is_plain("twice.tif", tiff({{256, 2}, {256, 2}, {258, 8}, {259, 1}, {262, 1}, {277, 1}}, "\1\2\3\4", 2)));
  EXPECT_FALSE(is_plain("bits.tif", bit_tiff(1)));
  EXPECT_FALSE(is_plain("bare.tif", bit_tiff(1, false)));
  EXPECT_FALSE(is_plain("cmyk.tif", cmyk_tiff()));
  EXPECT_FALSE(is_plain("lab.tif", lab_tiff()));
  EXPECT_FALSE(is_plain("palette.tif", palette_tiff()));
  const Image image = random_image(20, 16, 3, DataType::u8, 3);
  EXPECT_FALSE(is_plain(make("pages.tif", image, {}, 2)));
  EXPECT_EQ(plain_module()->open(make("page.tif", image), 2, any_memory), nullptr);
  OIIO::ImageSpec attributes;
  attributes.attribute("planarconfig", "separate");
  EXPECT_FALSE(is_plain(make("planes.tif", image, attributes)));
  attributes = {};
  attributes.attribute("Exif:FocalLength", 35.0f);
  EXPECT_FALSE(is_plain(make("exif.tif", image, attributes)));
  attributes = {};
  attributes.attribute("ImageDescription", "oiio:AverageColor=1,2,3");
  EXPECT_FALSE(is_plain(make("color.tif", image, attributes)));
  EXPECT_FALSE(is_plain("resolution.tif", gray_tiff({{282, 1}, {283, 1}})));
}

TEST_F(Plain, JpegFilesThatAreNot) {
  const Image image = random_image(20, 16, 3, DataType::u8, 3);
  const std::string content = read_file(make("image.jpg", image));
  ASSERT_TRUE(is_plain(file("image.jpg")));
  const auto with = [&](const std::string& marker, const std::string& what) {
    const std::string length = {static_cast<char>((what.size() + 2) >> 8), static_cast<char>(what.size() + 2)};
    return is_plain("marker.jpg", content.substr(0, 2) + "\xFF" + marker + length + what + content.substr(2));
  };
  EXPECT_FALSE(with("\xE1", "Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0\0"s));  // longer than the one without anything
  EXPECT_FALSE(with("\xE1", "http://ns.adobe.com/xap/1.0/\0<x/>"s));
  EXPECT_FALSE(with("\xE1", std::string(5000, 'x')));
  EXPECT_FALSE(with("\xE2", "MPF\0"s));
  EXPECT_FALSE(with("\xE2", "ICC_PROFILE\0\1\2half"s));
  EXPECT_FALSE(with("\xED", "Photoshop 3.0\0"s));
  EXPECT_FALSE(with("\xFE", "a comment"));
  EXPECT_TRUE(with("\xEF", "of a kind that no one reads"));
  OIIO::ImageSpec attributes;
  attributes.attribute("jpeg:progressive", 1);
  EXPECT_FALSE(is_plain(make("progressive.jpg", image, attributes)));
  EXPECT_FALSE(is_plain("cmyk.jpg", cmyk_jpeg()));
  attributes = {};
  attributes.attribute("Orientation", 6);
  EXPECT_FALSE(is_plain(make("side.jpg", image, attributes)));
}

TEST_F(Plain, WhatIsNotWritten) {
  const auto creates = [&](std::string_view name, auto change) {
    ImageInfo info = random_image(2, 2, 3, DataType::u8, 1).info;
    change(info);
    return plain_module()->create(file(name), info, {}) != nullptr;
  };
  EXPECT_TRUE(creates("a.jpg", [](ImageInfo&) {}));
  EXPECT_TRUE(creates("a.TIFF", [](ImageInfo&) {}));
  EXPECT_FALSE(creates("a.jpg", [](ImageInfo& info) { info.type = DataType::u16; }));
  EXPECT_FALSE(creates("a.jpg", [](ImageInfo& info) { info.orientation = 3; }));
  EXPECT_FALSE(creates("a.jpg", [](ImageInfo& info) { info.w = 65501; }));
  EXPECT_FALSE(creates("a.jpg", [](ImageInfo& info) { info.c = 2; }));
  EXPECT_FALSE(creates("a.tif", [](ImageInfo& info) { info.w = (1 << 20) + 1; }));
  EXPECT_FALSE(creates("a.tif", [](ImageInfo& info) { info.alpha_channel = 0; }));
  EXPECT_FALSE(creates("a.tif", [](ImageInfo& info) { info.h = 0; }));
  // What only the other module can keep.
  OIIO::ImageSpec attributes;
  attributes.attribute("ImageDescription", "a description");
  const ImageInfo described = open_image(make("text.tif", random_image(2, 2, 3, DataType::u8, 1), attributes))->info();
  EXPECT_FALSE(creates("a.jpg", [&](ImageInfo& info) { info.metadata = described.metadata; }));
  for (const char* name : {"a.jpg", "a.png"}) {
    write_image(file(name), read_image(file("text.tif")));
    EXPECT_EQ(OIIO::ImageInput::open(file(name))->spec().get_string_attribute("ImageDescription"), "a description");
  }
}

TEST_F(Plain, ByteOrdersTilesAndRowsInAnyOrder) {
  const Image image = random_image(50, 40, 3, DataType::u16, 4);
  OIIO::ImageSpec tiles, lzw;
  tiles.tile_width = tiles.tile_height = 32;
  tiles.attribute("compression", "zip");
  lzw.attribute("compression", "lzw");
  const std::vector<std::string> paths = {make("stored.tif", image), make("tiles.tif", image, tiles),
                                          make("lzw.tif", image, lzw),
                                          make("image.jpg", random_image(50, 40, 3, DataType::u8, 4))};
  for (const std::string& path : paths) {
    expect_both_alike(path);
    expect_rows_in_any_order(path, any_memory);
  }
}

// 2 x 1 pixels of two bytes each, the high byte first.
TEST_F(Plain, TheOtherByteOrder) {
  const auto entry = [](char tag, char type, char value) {
    const bool is_short = type == 3;
    return std::string("\1") + tag + '\0' + type + "\0\0\0\1"s + (is_short ? ""s : "\0\0"s) + '\0' + value +
           (is_short ? "\0\0"s : ""s);
  };
  const std::string directory = entry('\x00', 3, 2) + entry('\x01', 3, 1) + entry('\x02', 3, 16) + entry('\x03', 3, 1) +
                                entry('\x06', 3, 1) + entry('\x11', 4, 122) + entry('\x15', 3, 1) +
                                entry('\x16', 3, 1) + entry('\x17', 4, 4);
  write_file(file("image.tif"), "MM\0*\0\0\0\x08\0\x09"s + directory + "\0\0\0\0\1\2\3\4"s);
  expect_both_alike(file("image.tif"));
  EXPECT_EQ(values<std::uint16_t>(read_image(file("image.tif"))), (std::vector<std::uint16_t>{0x0102, 0x0304}));
}

// The other then says what is wrong, as it always did.
TEST_F(Plain, DamageThatCanBeSeenIsLeftToTheOther) {
  const Image image = random_image(36, 40, 3, DataType::u8, 1);
  // Its directory stands behind the pixels.
  const std::string tiff = read_file(make("whole.tif", image)), jpeg = read_file(make("whole.jpg", image));
  for (std::size_t length = 1; length < tiff.size(); length += 7)
    EXPECT_FALSE(is_plain("cut.tif", tiff.substr(0, length))) << length;
  for (std::size_t length = 1; length < 300; ++length)
    EXPECT_FALSE(is_plain("cut.jpg", jpeg.substr(0, length))) << length;
  // Pixels that are not there, in front of which the directory stands.
  EXPECT_TRUE(is_plain("gray.tif", gray_tiff({})));
  EXPECT_FALSE(is_plain("gray.tif", gray_tiff({}).substr(0, gray_tiff({}).size() - 1)));
}

}  // namespace
}  // namespace omniconv::image
