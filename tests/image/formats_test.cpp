// Formats that need the image module: what is read, what is written, and what is refused.
#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <array>
#include <cmath>
#include <map>

#include "files.h"
#include "handmade.h"
#include "image/formats/module.h"
#include "openimageio_testing.h"

namespace omniconv::image {
namespace {

using namespace std::string_literals;
using Bytes = std::vector<std::uint8_t>;

class Formats : public ::testing::Test {
 protected:
  std::string file(std::string_view name) const { return folder_.file(name); }
  std::string put(std::string_view name, std::string_view content) const {
    write_file(file(name), content);
    return file(name);
  }
  // With attributes and options that our own writer does not offer.
  std::string write_with_openimageio(std::string_view name, const Image& image, const OIIO::ImageSpec& attributes,
                                     int pages = 1) const {
    write_by_openimageio(file(name), image, spec_like(image.info, attributes), pages);
    return file(name);
  }
  std::string refusal(const std::string& path, int page = 0) const {
    std::string message = error_of([&] { read_image(path, page); });
    EXPECT_TRUE(message.starts_with(path)) << message;
    return message.substr(path.size());
  }

  TemporaryFolder folder_;
};

Image smooth_image(std::int64_t h, std::int64_t w, std::int64_t c) {
  Image image = random_image(h, w, c, DataType::u8, 1);
  for (std::int64_t y = 0; y < h; ++y)
    for (std::int64_t x = 0; x < w; ++x)
      for (std::int64_t i = 0; i < c; ++i)
        image.pixels[static_cast<std::size_t>((y * w + x) * c + i)] =
            static_cast<std::byte>(i == 3 ? 255 : (x + y * (i + 1)) % 256);
  return image;
}

// What each format holds exactly.
struct Holds {
  const char* extension;
  std::vector<DataType> types;
  std::vector<std::int64_t> channels;
};
const std::vector<Holds>& exact_formats() {
  using enum DataType;
  static const std::vector<Holds> all = {{"png", {u8, u16}, {1, 2, 3, 4}},
                                         {"tif", {u8, u16, s16, s32, f16, f32, f64}, {1, 2, 3, 4, 5, 7}},
                                         {"exr", {f16, f32}, {1, 2, 3, 4, 5, 12}},
                                         {"bmp", {u8}, {1, 3, 4}},
                                         {"tga", {u8}, {1, 3, 4}},
                                         {"jp2", {u8, u16}, {1, 3, 4}}};
  return all;
}

// OpenImageIO takes 64 MiB for each call, which an address sanitizer marks byte by byte: fewer calls there.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t rows_at_once[] = {4, 10, 100};
#else
constexpr std::int64_t rows_at_once[] = {1, 10, 100};
#endif

TEST_F(Formats, ExactFormatsKeepEveryBit) {
  for (const Holds& format : exact_formats())
    for (const DataType type : format.types)
      for (const std::int64_t c : format.channels) {
        const Image image = random_image(37, 33, c, type, 5);
        const std::string path = file("image."s + format.extension);
        write_image(path, image, 8);
        for (const std::int64_t rows : rows_at_once) {
          const Image back = read_image(path, 0, rows);
          EXPECT_EQ(back.info.type, type) << path << ' ' << c;
          EXPECT_EQ(back.info.c, c) << path;
          EXPECT_TRUE(back.pixels == image.pixels) << path << ' ' << name(type) << ' ' << c;
        }
      }
}

TEST_F(Formats, OpacityIsNotMultipliedIn) {
  Image image = random_image(32, 33, 4, DataType::u8, 2);
  image.info.alpha_channel = 3;
  for (const char* extension : {"png", "tif", "bmp", "tga", "jp2"}) {
    write_image(file("image."s + extension), image);
    const Image back = read_image(file("image."s + extension));
    EXPECT_EQ(back.info.alpha_channel, 3) << extension;
    EXPECT_FALSE(back.info.associated_alpha) << extension;
    EXPECT_TRUE(back.pixels == image.pixels) << extension;
  }
  image = random_image(9, 8, 4, DataType::f32, 2);
  image.info.alpha_channel = 3;
  EXPECT_NE(error_of([&] { write_image(file("image.exr"), image); }).find("holds colours multiplied by opacity"),
            std::string::npos);
  image.info.associated_alpha = true;
  for (const char* extension : {"exr", "tif"}) {
    write_image(file("image."s + extension), image);
    const Image back = read_image(file("image."s + extension));
    EXPECT_TRUE(back.info.associated_alpha) << extension;
    EXPECT_TRUE(back.pixels == image.pixels) << extension;
  }
}

TEST_F(Formats, OpacityIsDividedOutWhereTheFormatKeepsItApart) {
  Image image = random_image(1, 3, 4, DataType::u8, 2);
  image.info.alpha_channel = 3;
  image.info.associated_alpha = true;
  const Bytes associated = {10, 20, 30, 255, 10, 50, 100, 100, 7, 8, 9, 0};
  std::memcpy(image.pixels.data(), associated.data(), associated.size());
  // 10 * 255 / 100 = 25.5 and 50 * 255 / 100 = 127.5 round up.
  const Bytes apart = {10, 20, 30, 255, 26, 128, 255, 100, 7, 8, 9, 0};
  for (const char* extension : {"png", "tga", "pam"}) {
    write_image(file("image."s + extension), image);
    EXPECT_EQ(values<std::uint8_t>(read_image(file("image."s + extension))), apart) << extension;
  }
}

TEST_F(Formats, LossyFormatsAreClose) {
  // A ramp of a few values a pixel survives these within a handful of steps.
  const Image image = smooth_image(40, 48, 3);
  for (const char* extension : {"jpg", "webp"}) {
    write_image(file("image."s + extension), image, 7);
    const Image back = read_image(file("image."s + extension), 0, 9);
    ASSERT_EQ(back.pixels.size(), image.pixels.size());
    double sum = 0;
    for (std::size_t i = 0; i < image.pixels.size(); ++i)
      sum += std::abs(std::to_integer<int>(back.pixels[i]) - std::to_integer<int>(image.pixels[i]));
    EXPECT_LT(sum / static_cast<double>(image.pixels.size()), 8) << extension;
  }
  Image light = random_image(5, 9, 3, DataType::f32, 3);
  for (std::size_t i = 0; i < light.pixels.size(); i += 12) {
    const float color[3] = {1.5f, 0.75f, 3.0f};  // exact with eight bits below one exponent
    std::memcpy(&light.pixels[i], color, 12);
  }
  write_image(file("image.hdr"), light);
  EXPECT_TRUE(read_image(file("image.hdr")).pixels == light.pixels);
}

TEST_F(Formats, RefusesWhatTheFormatCannotHold) {
  const auto refused = [&](std::string_view name, std::int64_t c, DataType type, int alpha = -1) {
    Image image = random_image(2, 2, c, type, 1);
    image.info.alpha_channel = alpha;
    std::string message = error_of([&] { create_image(file(name), image.info); });
    EXPECT_TRUE(folder_.names().empty());
    EXPECT_TRUE(message.starts_with(file(name) + ": ")) << message;
    return message.substr(file(name).size() + 2);
  };
  using enum DataType;
  EXPECT_EQ(refused("a.png", 3, f32), ".png cannot hold f32; it holds u8, u16");
  EXPECT_EQ(refused("a.jpg", 3, u16), ".jpg cannot hold u16; it holds u8");
  EXPECT_EQ(refused("a.jpeg", 1, f64), ".jpg cannot hold f64; it holds u8");
  EXPECT_EQ(refused("a.exr", 3, u8), ".exr cannot hold u8; it holds f16, f32");
  EXPECT_EQ(refused("a.hdr", 3, f16), ".hdr cannot hold f16; it holds f32");
  EXPECT_EQ(refused("a.webp", 3, u16), ".webp cannot hold u16; it holds u8");
  EXPECT_EQ(refused("a.bmp", 3, u16), ".bmp cannot hold u16; it holds u8");
  EXPECT_EQ(refused("a.tga", 3, s16), ".tga cannot hold s16; it holds u8");
  EXPECT_EQ(refused("a.jp2", 3, s32), ".jp2 cannot hold s32; it holds u8, u16");
  EXPECT_EQ(refused("a.png", 5, u8),
            ".png cannot hold 5 channels; it holds 1, 2, 3, 4 (.tif and .npy hold any number)");
  EXPECT_EQ(refused("a.jpg", 2, u8), ".jpg cannot hold 2 channels; it holds 1, 3 (.tif and .npy hold any number)");
  EXPECT_EQ(refused("a.jpg", 4, u8, 3),
            ".jpg is written without opacity, and channel 3 of 4 is opacity; write .png or .tif");
  EXPECT_EQ(refused("a.gif", 3, u8),
            "the format .gif is not written; written are .png, .jpg, .tif, .exr, .webp, .bmp, .tga, .jp2, .hdr, .pgm, "
            ".ppm, .pnm, .pbm, .pam, .pfm and .npy");
  EXPECT_EQ(refused("a.jp2", 3, u8), ".jp2 is not written for 2 x 2 pixels; at least 32 either way");
  ImageInfo wide = random_image(1, 1, 3, u8, 1).info;
  wide.w = 70000;
  EXPECT_EQ(error_of([&] { create_image(file("a.jpg"), wide); }),
            file("a.jpg") + ": .jpg cannot hold 1 x 70000 pixels; at most 65500 either way");
  // Their files count bytes in 32 bits; OpenImageIO would write numbers that are wrong.
  wide.h = wide.w = 40000;
  for (const std::string extension : {"bmp", "tga"})
    EXPECT_EQ(error_of([&] { create_image(file("a." + extension), wide); }),
              file("a." + extension) + ": ." + extension +
                  " cannot hold 40000 x 40000 x 3 pixels of 4800000000 bytes; at most 4294901760; write .tif or .png");
}

TEST_F(Formats, TiledFiles) {
  const Image image = random_image(70, 45, 3, DataType::u16, 4);
  OIIO::ImageSpec tiles;
  tiles.tile_width = tiles.tile_height = 16;
  const std::string path = write_with_openimageio("tiles.tif", image, tiles);
  for (const std::int64_t rows : {1, 16, 17, 70}) EXPECT_TRUE(read_image(path, 0, rows).pixels == image.pixels) << rows;
  EXPECT_EQ(open_image(path)->info().resident_bytes, 45 * 3 * 2 * 16);
}

// Read as the type that holds both, in rows and in tiles.
TEST_F(Formats, ChannelsOfTwoTypes) {
  Image image = random_image(70, 45, 3, DataType::f32, 4);
  for (std::size_t at = 0; at < image.pixels.size(); at += sizeof(float)) {
    const float value = static_cast<float>(at / sizeof(float) * 7 % 2000) - 1000;  // which half precision holds
    std::memcpy(&image.pixels[at], &value, sizeof value);
  }
  for (const int tile : {0, 16}) {
    OIIO::ImageSpec spec(45, 70, 3, OIIO::TypeDesc::FLOAT);
    spec.channelformats = {OIIO::TypeDesc::HALF, OIIO::TypeDesc::FLOAT, OIIO::TypeDesc::HALF};
    spec.tile_width = spec.tile_height = tile;
    const auto output = OIIO::ImageOutput::create("a.exr");
    ASSERT_TRUE(output->open(file("a.exr"), spec)) << output->geterror();
    ASSERT_TRUE(output->write_image(OIIO::TypeDesc::FLOAT, image.pixels.data())) << output->geterror();
    ASSERT_TRUE(output->close());
    for (const std::int64_t rows : {1, 17, 70}) {
      const Image found = read_image(file("a.exr"), 0, rows);
      EXPECT_EQ(found.info.type, DataType::f32);
      EXPECT_TRUE(found.pixels == image.pixels) << "tiles of " << tile << ", " << rows << " rows at a time";
    }
  }
}

TEST_F(Formats, RowsInAnyOrder) {
  const Image image = random_image(50, 40, 3, DataType::u8, 4);
  for (const char* extension : {"png", "tif", "bmp", "tga", "jp2"}) {
    write_image(file("image."s + extension), image);
    const auto reader = open_image(file("image."s + extension));
    std::vector<std::byte> row(120);
    for (const std::int64_t y : {49, 0, 20, 10, 11, 10, 48}) {
      reader->read_rows(y, 1, row.data(), 120);
      EXPECT_EQ(std::memcmp(row.data(), &image.pixels[static_cast<std::size_t>(y) * 120], 120), 0) << extension << y;
    }
  }
  // Opacity must not be multiplied in after going back, either.
  Image clear = random_image(6, 5, 4, DataType::u8, 4);
  clear.info.alpha_channel = 3;
  write_image(file("clear.png"), clear);
  const auto reader = open_image(file("clear.png"));
  std::vector<std::byte> row(20);
  for (const std::int64_t y : {5, 0, 3}) {
    reader->read_rows(y, 1, row.data(), 20);
    EXPECT_EQ(std::memcmp(row.data(), &clear.pixels[static_cast<std::size_t>(y) * 20], 20), 0);
  }
}

TEST_F(Formats, Pages) {
  const Image image = random_image(8, 8, 3, DataType::u8, 4);
  const std::string path = write_with_openimageio("pages.tif", image, {}, 3);
  EXPECT_EQ(refusal(path), " holds 3 images; choose one with --page N");
  EXPECT_TRUE(read_image(path, 3).pixels == image.pixels);
  EXPECT_EQ(refusal(path, 4), " holds 3 images; there is no page 4");
  write_image(file("one.png"), image);
  EXPECT_EQ(refusal(file("one.png"), 2), " holds 1 image; there is no page 2");
  const std::string movie = write_with_openimageio("movie.gif", smooth_image(16, 16, 3), {}, 2);
  EXPECT_EQ(refusal(movie), " holds 2 images; choose one with --page N");
  EXPECT_EQ(read_image(movie, 2).info.c, 4);
  EXPECT_EQ(read_image(movie, 2).info.alpha_channel, 3);
}

TEST_F(Formats, PalettesBecomeColors) {
  const Bytes expected = {0, 0, 255, 10, 20, 30, 10, 20, 30, 0, 0, 255};
  const std::array<std::string, 3> files = {put("palette.png", palette_png()), put("palette.bmp", palette_bmp()),
                                            put("palette.tif", palette_tiff())};
  for (const std::string& path : files) {
    const Image image = read_image(path);
    EXPECT_EQ(image.info.c, 3) << path;
    EXPECT_EQ(image.info.type, DataType::u8) << path;
    EXPECT_EQ(values<std::uint8_t>(image), expected) << path;
    // What is written is no palette image any more.
    write_image(file("copy.png"), image);
    EXPECT_EQ(values<std::uint8_t>(read_image(file("copy.png"))), expected) << path;
  }
}

TEST_F(Formats, BitsBecomeBlackAndWhite) {
  const Bytes expected = {255, 0, 255, 255, 0, 0, 255, 0};
  for (const std::string& path :
       {put("bits.png", bit_png()), put("bits.tif", bit_tiff(1)), put("inverse.tif", bit_tiff(0))}) {
    const Image image = read_image(path);
    EXPECT_EQ(image.info.type, DataType::u8) << path;
    EXPECT_EQ(image.info.c, 1) << path;
    EXPECT_EQ(values<std::uint8_t>(image), expected) << path;
    Image gray = image;
    gray.pixels[0] = std::byte{100};
    write_image(file("copy.tif"), gray);
    EXPECT_TRUE(read_image(file("copy.tif")).pixels == gray.pixels) << path;
  }
  EXPECT_EQ(refusal(put("bare.tif", bit_tiff(1, false))),
            " is a TIFF file that leaves out its BitsPerSample, which is not read; rewrite it with another program");
}

TEST_F(Formats, ColorsThatAreNotFiltered) {
  EXPECT_EQ(refusal(put("cmyk.tif", cmyk_tiff())), " is a CMYK image, which is not filtered; convert it to RGB first");
  EXPECT_EQ(refusal(put("cmyk.jpg", cmyk_jpeg())), " is a CMYK image, which is not filtered; convert it to RGB first");
  EXPECT_EQ(refusal(put("lab.tif", lab_tiff())), " is a L*a*b* image, which is not filtered; convert it to RGB first");
}

TEST_F(Formats, FilesOfAnotherKind) {
  EXPECT_EQ(refusal(put("text.png", "This is text, whatever its name.\n")), " is not an image: its content is text");
  EXPECT_TRUE(
      refusal(put("noise.png", "\x01\x02\x03\x04\x05\x06"s)).starts_with(" is not an image of a known format; "));
  EXPECT_EQ(refusal(put("photo.nef", bit_tiff(1))), " is a camera's raw file; develop it to TIFF first");
  // The content decides, not the name.
  const Image image = random_image(4, 4, 3, DataType::u8, 1);
  write_image(file("real.png"), image);
  std::filesystem::rename(file("real.png"), file("real.jpg"));
  EXPECT_EQ(read_image(file("real.jpg")).info.format, "png");
  EXPECT_TRUE(read_image(file("real.jpg")).pixels == image.pixels);
}

TEST_F(Formats, CutFilesAreRefused) {
  std::vector<std::string> paths;
  const Image image = smooth_image(40, 48, 3);
  for (const char* extension : {"png", "jpg", "tif", "bmp", "tga", "webp", "jp2"}) {
    paths.push_back(file("image."s + extension));
    write_image(paths.back(), image);
  }
  Image light = random_image(40, 48, 3, DataType::f32, 1);
  for (const char* extension : {"exr", "hdr"}) {
    paths.push_back(file("image."s + extension));
    write_image(paths.back(), light);
  }
  OIIO::ImageSpec progressive, tiles;
  progressive.attribute("jpeg:progressive", 1);
  tiles.tile_width = tiles.tile_height = 16;
  paths.push_back(write_with_openimageio("progressive.jpg", image, progressive));
  paths.push_back(write_with_openimageio("tiles.tif", image, tiles));
  paths.push_back(write_with_openimageio("image.gif", image, {}));
  for (const std::string& path : paths) {
    const std::string content = read_file(path);
    const Image whole = read_image(path);
    int refused = 0, cuts = 0;
    for (std::size_t length = 1; length < content.size(); length += 1 + content.size() / 97, ++cuts) {
      write_file(path, content.substr(0, length));
      try {
        // Nothing but an end that no pixel needs may be missing.
        EXPECT_TRUE(read_image(path).pixels == whole.pixels)
            << path << " cut to " << length << " of " << content.size();
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
        ++refused;
      }
    }
    EXPECT_GE(refused, cuts * 9 / 10) << path;
  }
}

TEST_F(Formats, WholeDecodersSayWhatTheyHold) {
  const Image image = smooth_image(64, 48, 3);
  const std::int64_t pixels = 64 * 48;
  OIIO::ImageSpec progressive;
  progressive.attribute("jpeg:progressive", 1);
  progressive.attribute("jpeg:subsampling", "4:4:4");
  write_with_openimageio("progressive.jpg", image, progressive);
  write_with_openimageio("image.gif", image, {});
  for (const char* extension : {"jpg", "png", "webp", "jp2", "tga"}) write_image(file("image."s + extension), image);
  write_file(file("interlaced.png"), interlaced_png());
  // Two bytes for each coefficient; four for each pixel of a canvas; four for each sample.
  const std::map<std::string, std::int64_t> least = {{"progressive.jpg", pixels * 3 * 2}, {"image.gif", pixels * 4},
                                                     {"image.jp2", pixels * 3 * 4},       {"image.webp", pixels * 3},
                                                     {"image.tga", pixels * 3},           {"interlaced.png", 4 * 3}};
  for (const auto& [name, bytes] : least) {
    const std::int64_t held = open_image(file(name))->info().resident_bytes;
    EXPECT_GE(held, bytes) << name;
    EXPECT_LE(held, bytes * 4 + 100000) << name;
    EXPECT_NO_THROW(open_image(file(name), 0, held)) << name;
    const std::string message = error_of([&] { open_image(file(name), 0, held - 1); });
    EXPECT_NE(message.find("holds " + std::to_string(held) + " bytes, more than the " + std::to_string(held - 1) +
                           " allowed"),
              std::string::npos)
        << message;
  }
  EXPECT_NE(error_of([&] { image_module("a test").count(file("image.gif"), pixels * 4 - 1); }).find("--max-memory"),
            std::string::npos);
  for (const char* streamed : {"image.jpg", "image.png"})
    EXPECT_EQ(open_image(file(streamed))->info().resident_bytes, 0);
  EXPECT_EQ(values<std::uint8_t>(read_image(file("interlaced.png"))), (Bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST_F(Formats, OrientationIsKeptOrCarriedOut) {
  Image image = smooth_image(2, 3, 3);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::byte>(i * 13 % 256);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    image.info.orientation = orientation;
    write_image(file("image.npy"), image);  // turns pixels
    const Image turned = read_image(file("image.npy"));
    for (const char* extension : {"png", "bmp", "tga"}) {
      write_image(file("image."s + extension), image);
      const Image back = read_image(file("image."s + extension));
      EXPECT_EQ(back.info.orientation, 1) << extension;
      EXPECT_EQ(back.info.h, turned.info.h) << extension;
      EXPECT_TRUE(back.pixels == turned.pixels) << extension << orientation;
    }
    for (const char* extension : {"tif", "jpg"}) {
      write_image(file("image."s + extension), image);
      EXPECT_EQ(read_image(file("image."s + extension)).info.orientation, orientation) << extension;
      EXPECT_EQ(read_image(file("image."s + extension)).info.h, 2) << extension;
    }
    // An orientation that came with the description of the input must not survive the turn.
    write_image(file("again.png"), read_image(file("image.tif")));
    EXPECT_EQ(read_image(file("again.png")).info.orientation, 1);
    EXPECT_TRUE(read_image(file("again.png")).pixels == turned.pixels);
  }
}

TEST_F(Formats, MetadataIsKept) {
  OIIO::ImageSpec attributes;
  const std::string profile = color_profile();
  attributes.attribute("ICCProfile", OIIO::TypeDesc(OIIO::TypeDesc::UINT8, static_cast<int>(profile.size())),
                       profile.data());
  attributes.attribute("XResolution", 300.0f);
  attributes.attribute("YResolution", 300.0f);
  attributes.attribute("ResolutionUnit", "in");
  attributes.attribute("ImageDescription", "a description");
  attributes.attribute("Make", "a maker");
  attributes.attribute("Exif:DateTimeOriginal", "2001:02:03 04:05:06");
  attributes.attribute("Exif:FocalLength", 35.0f);
  attributes.attribute("Exif:ColorSpace", 1);
  const std::string path = write_with_openimageio("image.jpg", smooth_image(16, 16, 3), attributes);
  for (const char* extension : {"jpg", "tif", "png"}) {
    const std::string copy = file("copy."s + extension);
    write_image(copy, read_image(path));
    const auto input = OIIO::ImageInput::open(copy);
    ASSERT_TRUE(input);
    const OIIO::ImageSpec& spec = input->spec();
    EXPECT_NEAR(spec.get_float_attribute("XResolution"), 300, 0.01) << extension;  // PNG counts whole pixels a metre
    EXPECT_EQ(spec.get_string_attribute("ImageDescription"), "a description") << extension;
    EXPECT_EQ(spec.get_string_attribute("Make"), "a maker") << extension;
    EXPECT_EQ(spec.get_string_attribute("Exif:DateTimeOriginal"), "2001:02:03 04:05:06") << extension;
    const OIIO::ParamValue* kept = spec.find_attribute("ICCProfile");
    ASSERT_NE(kept, nullptr) << extension;
    EXPECT_EQ(std::string(static_cast<const char*>(kept->data()), kept->datasize()), profile) << extension;
    if (extension != "png"s) {
      EXPECT_EQ(spec.get_float_attribute("Exif:FocalLength"), 35.0f) << extension;
    }
  }
}

TEST_F(Formats, DamagedProfilesAreDropped) {
  std::string profile = color_profile();
  profile[3] = '\7';
  OIIO::ImageSpec attributes;
  attributes.attribute("ICCProfile", OIIO::TypeDesc(OIIO::TypeDesc::UINT8, static_cast<int>(profile.size())),
                       profile.data());
  const std::string path = write_with_openimageio("image.jpg", smooth_image(16, 16, 3), attributes);
  const Image image = read_image(path);
  write_image(file("copy.png"), image);
  EXPECT_TRUE(read_image(file("copy.png")).pixels == image.pixels);
}

TEST_F(Formats, CompressionOfTiffIsKept) {
  for (const char* compression : {"none", "lzw", "zip", "packbits"}) {
    OIIO::ImageSpec attributes;
    attributes.attribute("compression", compression);
    const std::string path = write_with_openimageio("image.tif", smooth_image(16, 16, 3), attributes);
    write_image(file("copy.tif"), read_image(path));
    EXPECT_EQ(OIIO::ImageInput::open(file("copy.tif"))->spec().get_string_attribute("compression"), compression);
  }
}

TEST_F(Formats, MetadataThatWouldHarmIsDropped) {
  // A text where libtiff expects a number, and a number where it would follow a pointer.
  OIIO::ImageSpec attributes;
  attributes.attribute("Exif:SpectralSensitivity", 2);
  attributes.attribute("Exif:Flash", "bright");
  attributes.attribute("Exif:ImageHistory", "made by a test");
  attributes.attribute("oiio:dither", 1);
  attributes.attribute("compression", "zip");
  Image image = random_image(4, 4, 3, DataType::f16, 1);
  OIIO::ImageSpec spec(4, 4, 3, OIIO::TypeDesc::HALF);
  spec.extra_attribs = attributes.extra_attribs;
  const auto output = OIIO::ImageOutput::create(file("image.exr"));
  ASSERT_TRUE(output->open(file("image.exr"), spec));
  ASSERT_TRUE(output->write_image(OIIO::TypeDesc::HALF, image.pixels.data()));
  output->close();
  const Image back = read_image(file("image.exr"));
  write_image(file("copy.tif"), back);
  EXPECT_TRUE(read_image(file("copy.tif")).pixels == image.pixels);
}

TEST_F(Formats, TheOutputMayBeTheInput) {
  for (const char* extension : {"png", "tif", "bmp"}) {
    const std::string path = file("image."s + extension);
    Image image = random_image(30, 20, 3, DataType::u8, 6);
    write_image(path, image);
    const auto reader = open_image(path);
    const auto writer = create_image(path, reader->info());
    std::vector<std::byte> row(60);
    for (std::int64_t y = 0; y < 30; ++y) {
      reader->read_rows(y, 1, row.data(), 60);
      for (std::byte& pixel : row) pixel = ~pixel;
      writer->write_rows(y, 1, row.data(), 60);
    }
    writer->finish();
    for (std::byte& pixel : image.pixels) pixel = ~pixel;
    EXPECT_TRUE(read_image(path).pixels == image.pixels) << extension;
    EXPECT_EQ(folder_.names().size(), 1u);
    std::filesystem::remove(path);
  }
}

TEST_F(Formats, AnUnfinishedWriterLeavesNothing) {
  // Not JPEG 2000, of which OpenImageIO then leaks the pixels.
  for (const char* extension : {"png", "jpg", "tif", "webp", "bmp", "tga"}) {
    const Image image = random_image(40, 32, 3, DataType::u8, 6);
    {
      const auto writer = create_image(file("image."s + extension), image.info);
      writer->write_rows(0, 20, image.pixels.data(), 96);
    }
    EXPECT_TRUE(folder_.names().empty()) << extension;
  }
}

// Every size of disk up to the one that suffices, in pages: the file is whole or it is not there.
TEST_F(Formats, AFullDiskLeavesTheOldFile) {
  if (::mount("omniconv-test", folder_.path().c_str(), "tmpfs", 0, "size=4k") != 0)
    GTEST_SKIP() << "mounting a small file system needs the superuser";
  ::umount(folder_.path().c_str());
  const TemporaryFolder roomy;
  OIIO::ImageSpec exif;
  exif.attribute("Exif:FocalLength", 35.0f);
  write_with_openimageio("exif.jpg", random_image(90, 80, 3, DataType::u8, 8), exif);
  const Image with_exif = read_image(file("exif.jpg"));
  const auto try_all_sizes = [&](const std::string& name, const Image& image) {
    write_image(roomy.file(name), image);
    const Image whole = read_image(roomy.file(name));
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(roomy.file(name)));
    int refused = 0;
    for (std::int64_t pages = 2;; ++pages) {
      ASSERT_LE(pages, size / 4096 + 8) << name << " never fits";
      ASSERT_EQ(::mount("omniconv-test", folder_.path().c_str(), "tmpfs", 0,
                        ("size=" + std::to_string(pages * 4096)).c_str()),
                0);
      write_file(file(name), "old");
      bool fits = false;
      try {
        write_image(file(name), image, 16);
        fits = true;
      } catch (const Error& error) {
        ++refused;
        EXPECT_TRUE(std::string(error.what()).starts_with("cannot write " + file(name))) << error.what();
        EXPECT_EQ(read_file(file(name)), "old") << name << ' ' << pages;
      }
      EXPECT_EQ(folder_.names().size(), 1u) << name << ' ' << pages;
      if (fits) {
        const Image back = read_image(file(name));
        EXPECT_TRUE(back.pixels == whole.pixels) << name << ' ' << pages;
      }
      ::umount(folder_.path().c_str());
      if (fits) break;
    }
    EXPECT_GT(refused, 0) << name;
  };
  const Image image = random_image(90, 80, 3, DataType::u8, 8);
  for (const char* extension : {"png", "jpg", "tif", "webp", "bmp", "tga", "jp2", "ppm", "pam", "npy"})
    try_all_sizes("image."s + extension, image);
  const Image light = random_image(45, 40, 3, DataType::f32, 8);
  for (const char* extension : {"exr", "hdr", "pfm"}) try_all_sizes("image."s + extension, light);
  try_all_sizes("exif.tif", with_exif);
}

TEST_F(Formats, ColoursOfWebPAreThoseOfTheFile) {
  // 8 x 6 pixels of (200, 100, 50) and half opacity, without loss, as OpenCV writes them.
  const unsigned char pixel[] = {200, 100, 50, 128};
  const std::string content(
      "\x52\x49\x46\x46\x22\x00\x00\x00\x57\x45\x42\x50\x56\x50\x38\x4c\x16\x00\x00\x00\x2f\x07\x40\x01\x10\x07"
      "\x50\xb2\x22\x57\xa6\x80\x01\x80\x20\xfc\x6f\x9b\x88\xe8\x7f\x08",
      42);
  write_file(file("image.webp"), content);
  const Image read = read_image(file("image.webp"));
  EXPECT_EQ(read.info.alpha_channel, 3);
  EXPECT_FALSE(read.info.associated_alpha);
  for (std::size_t i = 0; i < read.pixels.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(read.pixels[i]), pixel[i % 4]) << i;
}

TEST_F(Formats, DoublesInTilesAndPlanes) {
  const Image image = random_image(20, 40, 3, DataType::f64, 3);
  const std::string path = file("image.tif");
  const auto write = [&](int tile, const char* planes) {
    OIIO::ImageSpec spec(40, 20, 3, OIIO::TypeDesc::DOUBLE);
    spec.tile_width = spec.tile_height = tile;
    spec.attribute("planarconfig", planes);
    spec.attribute("Orientation", 3);
    const auto output = OIIO::ImageOutput::create(path);
    EXPECT_TRUE(output->open(path, spec) && output->write_image(spec.format, image.pixels.data()) && output->close());
    return refusal(path);
  };
  const std::string rest =
      ", which is not read; rewrite it as .npy, or with channels interleaved in strips of several rows";
  EXPECT_EQ(write(16, "contig"),
            " is a TIFF file of f64 in tiles and with a compression or descriptions that are not plain" + rest);
  EXPECT_EQ(write(0, "separate"), " is a TIFF file of f64 with a plane for each channel" + rest);
}

// What OpenImageIO would turn into something else is refused.
TEST_F(Formats, DoublesInStripsOfOneRow) {
  Image image = random_image(1, 40, 5, DataType::f64, 3);
  image.info.orientation = 3;  // which is not plain
  const std::string path = file("image.tif");
  write_image(path, image);
  EXPECT_EQ(error_of([&] { read_image(path); }),
            path +
                " is a TIFF file of f64 with a strip of one row and with a compression or descriptions that are not "
                "plain, which is not read; rewrite it as .npy, or with channels interleaved in strips of several rows");
  image = random_image(64, 40, 5, DataType::f64, 3);
  image.info.orientation = 3;
  write_image(path, image);
  EXPECT_TRUE(read_image(path).pixels == image.pixels);
  // Plain ones are read, and their descriptions go with them whatever is written.
  image = random_image(1, 40, 3, DataType::f64, 3);
  write_image(path, image);
  const Image read = read_image(path);
  EXPECT_TRUE(read.pixels == image.pixels);
  Image bytes = random_image(1, 40, 3, DataType::u8, 3);
  bytes.info.metadata = read.info.metadata;
  for (const char* name : {"copy.png", "copy.webp", "copy.jpg"}) {
    write_image(file(name), bytes);
    EXPECT_EQ(read_image(file(name)).info.w, 40) << name;
  }
}

TEST_F(Formats, WhiteAsZero) {
  write_image(file("image.tif"), random_image(6, 8, 1, DataType::u16, 3));
  std::string content = read_file(file("image.tif"));
  const std::string black_as_zero("\x06\x01\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00", 12);
  const std::size_t at = content.find(black_as_zero);
  ASSERT_NE(at, std::string::npos);
  content[at + 8] = 0;
  write_file(file("image.tif"), content);
  EXPECT_NE(error_of([&] { read_image(file("image.tif")); }).find("in which 0 is white"), std::string::npos);
}

}  // namespace
}  // namespace omniconv::image
