// How pixels are stored, and what is kept beside them: compressions, qualities, profiles, channels' meanings.
#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <fstream>
#include <optional>

#include "files.h"
#include "handmade.h"
#include "image/formats/module.h"
#include "image/paged_output.h"
#include "omniconv/error.h"
#include "openimageio_testing.h"

namespace omniconv::image {
namespace {

using namespace std::string_literals;
using Bytes = std::vector<std::uint8_t>;

class Encodings : public ::testing::Test {
 protected:
  std::string file(std::string_view name) const { return folder_.file(name); }
  std::int64_t bytes_of(const std::string& name, const Image& image, const WriteOptions& options) const {
    write_image(file(name), image, image.info.h, options);
    return static_cast<std::int64_t>(std::filesystem::file_size(file(name)));
  }
  std::string attribute(const std::string& path, const char* name) const {
    const auto input = OIIO::ImageInput::open(path);
    return input ? std::string(input->spec().get_string_attribute(name)) : OIIO::geterror();
  }
  // `attributes` beside the pixels, written by OpenImageIO itself.
  std::string make(const std::string& name, const Image& image, const OIIO::ImageSpec& attributes) const {
    write_by_openimageio(file(name), image, spec_like(image.info, attributes));
    return file(name);
  }
  static OIIO::ImageSpec with_profile() {
    OIIO::ImageSpec spec;
    const std::string profile = color_profile();
    spec.attribute("ICCProfile", OIIO::TypeDesc(OIIO::TypeDesc::UINT8, static_cast<int>(profile.size())),
                   profile.data());
    return spec;
  }

  TemporaryFolder folder_;
};

// Such as a photograph: a ramp with a little noise, which codecs with loss do not keep.
Image photo(std::int64_t h, std::int64_t w, std::int64_t c) {
  Image image = random_image(h, w, c, DataType::u8, 5);
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] =
        static_cast<std::byte>((i * 200 / image.pixels.size()) + (std::to_integer<unsigned>(image.pixels[i]) & 15));
  return image;
}

TEST_F(Encodings, WebpWithoutLossKeepsEveryBit) {
  for (const std::int64_t c : {3, 4}) {
    Image image = random_image(23, 31, c, DataType::u8, 3);
    if (c == 4) image.info.alpha_channel = 3;
    write_image(file("image.webp"), image, 7, {.compression = "lossless"});
    const Image back = read_image(file("image.webp"), 0, 5);
    EXPECT_EQ(back.info.c, c);
    EXPECT_EQ(back.info.alpha_channel, c == 4 ? 3 : -1);
    EXPECT_FALSE(back.info.associated_alpha);
    EXPECT_TRUE(back.pixels == image.pixels) << c;
  }
}

TEST_F(Encodings, WebpWithLossKeepsOpacity) {
  Image image = photo(40, 48, 4);
  image.info.alpha_channel = 3;
  write_image(file("image.webp"), image);
  const Image back = read_image(file("image.webp"));
  ASSERT_EQ(back.pixels.size(), image.pixels.size());
  for (std::size_t i = 3; i < image.pixels.size(); i += 4) ASSERT_EQ(back.pixels[i], image.pixels[i]) << i;
  EXPECT_FALSE(back.pixels == image.pixels);
}

TEST_F(Encodings, FramesOfWebp) {
  std::vector<Image> images;
  std::vector<std::string> frames;
  for (const unsigned seed : {1u, 2u, 3u}) {
    images.push_back(random_image(6, 5, 4, DataType::u8, seed));
    images.back().info.alpha_channel = 3;
    // Of what cannot be seen a canvas keeps no colour.
    for (std::size_t i = 3; i < images.back().pixels.size(); i += 4) images.back().pixels[i] |= std::byte{1};
    write_image(file("frame.webp"), images.back(), 6, {.compression = "lossless"});
    frames.push_back(read_file(file("frame.webp")));
  }
  const std::string path = file("a.webp"), whole = webp_animation(5, 6, frames);
  write_file(path, whole);
  EXPECT_EQ(count_images(path), 3);
  EXPECT_EQ(count_images(file("frame.webp")), 1);
  for (const int page : {3, 1, 2}) {
    const Image read = read_image(path, page, 4);
    EXPECT_TRUE(read.pixels == images[static_cast<std::size_t>(page - 1)].pixels) << page;
    EXPECT_FALSE(read.info.associated_alpha);
  }
  EXPECT_EQ(error_of([&] { open_image(path); }), path + " holds 3 images; choose one with --page N");
  EXPECT_EQ(error_of([&] { open_image(path, 4); }), path + " holds 3 images; there is no page 4");
  // The file, the image and two canvases.
  const std::int64_t held = static_cast<std::int64_t>(whole.size()) + 30 * 4 + 30 * 8;
  EXPECT_EQ(open_image(path, 1)->info().resident_bytes, held);
  EXPECT_EQ(error_of([&] { open_image(path, 1, held - 1); }),
            path + ": decoding a webp file of this kind holds " + std::to_string(held) + " bytes, more than the " +
                std::to_string(held - 1) + " allowed; raise --max-memory");
  const auto count = image_module(path).count;
  EXPECT_EQ(count(path, static_cast<std::int64_t>(whole.size())), 3);
  EXPECT_NE(error_of([&] { count(path, static_cast<std::int64_t>(whole.size()) - 1); }).find("raise --max-memory"),
            std::string::npos);
  // What is damaged is refused in one line, or is another image.
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] ^= '\4';
    write_file(path, changed);
    try {
      read_image(path, 2);
    } catch (const Error& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with(path)) << error.what();
    }
    write_file(path, whole.substr(0, i));
    EXPECT_NE(error_of([&] { read_image(path, 3); }), "") << i;
  }
}

TEST_F(Encodings, QualityOfJpegAndWebp) {
  const Image image = photo(64, 64, 3);
  for (const std::string name : {"a.jpg", "a.webp"}) {
    const std::int64_t low = bytes_of(name, image, {.quality = 20}), middle = bytes_of(name, image, {.quality = 60}),
                       high = bytes_of(name, image, {.quality = 95});
    EXPECT_LT(low, middle) << name;
    EXPECT_LT(middle, high) << name;
    EXPECT_EQ(bytes_of(name, image, {}), high) << name;
  }
}

// The module for all formats has its own JPEG encoder: that of files which are not plain.
TEST_F(Encodings, QualityOfDescribedJpeg) {
  Image image = photo(64, 64, 3);
  OIIO::ImageSpec attributes;
  attributes.attribute("ImageDescription", "a description");
  image.info.metadata = open_image(make("described.jpg", image, attributes))->info().metadata;
  const std::int64_t low = bytes_of("a.jpg", image, {.quality = 20}), high = bytes_of("a.jpg", image, {.quality = 95});
  EXPECT_LT(low, high);
  EXPECT_EQ(bytes_of("a.jpg", image, {}), high);
  EXPECT_EQ(attribute(file("a.jpg"), "ImageDescription"), "a description");
}

TEST_F(Encodings, LevelsOfPng) {
  const Image image = photo(64, 64, 3);
  std::vector<std::int64_t> sizes;
  for (char level = '0'; level <= '9'; ++level) {
    sizes.push_back(bytes_of("a.png", image, {.compression = std::string(1, level)}));
    EXPECT_TRUE(read_image(file("a.png")).pixels == image.pixels) << level;
  }
  EXPECT_GT(sizes[0], 64 * 64 * 3);  // as it is
  EXPECT_LT(sizes[9], sizes[1]);
  EXPECT_EQ(bytes_of("a.png", image, {}), sizes[6]);
}

TEST_F(Encodings, CompressionsOfTiff) {
  const Image image = photo(70, 33, 3);
  Image described = image;  // by what makes it no plain file
  described.info.orientation = 3;
  OIIO::ImageSpec attributes;
  attributes.attribute("Exif:DateTimeOriginal", "2001:02:03 04:05:06");
  described.info.metadata = open_image(make("described.jpg", image, attributes))->info().metadata;
  for (const Image* const source : {&image, static_cast<const Image*>(&described)})
    for (const char* compression : {"none", "lzw", "zip", "packbits", "jpeg"}) {
      write_image(file("a.tif"), *source, 9, {.compression = compression});
      EXPECT_EQ(attribute(file("a.tif"), "compression"), compression);
      EXPECT_EQ(read_image(file("a.tif")).pixels == image.pixels, compression != std::string("jpeg")) << compression;
    }
  for (const Image* const source : {&image, static_cast<const Image*>(&described)}) {
    write_image(file("a.tif"), *source);
    EXPECT_EQ(attribute(file("a.tif"), "compression"), "none");
    EXPECT_LT(bytes_of("a.tif", *source, {.quality = 20, .compression = "jpeg"}),
              bytes_of("a.tif", *source, {.compression = "jpeg"}));
  }
}

// What was lost once is not lost again.
TEST_F(Encodings, TiffCompressedWithLossIsWrittenWithout) {
  OIIO::ImageSpec attributes;
  attributes.attribute("compression", "jpeg:80");
  const Image read = read_image(make("lossy.tif", photo(64, 48, 3), attributes));
  write_image(file("copy.tif"), read);
  EXPECT_EQ(attribute(file("copy.tif"), "compression"), "zip");
  EXPECT_TRUE(read_image(file("copy.tif")).pixels == read.pixels);
}

TEST_F(Encodings, WhatAFormatHasNotIsRefused) {
  const Image image = photo(40, 40, 3), deep = random_image(40, 40, 3, DataType::u16, 3);
  const auto refusal = [&](const std::string& name, const Image& what, const WriteOptions& options) {
    std::string message = error_of([&] { write_image(file(name), what, 40, options); });
    EXPECT_TRUE(message.starts_with(file(name) + ": ")) << message;
    return message.substr(std::min(message.size(), file(name).size() + 2));
  };
  EXPECT_EQ(refusal("a.jp2", image, {.compression = "zip"}),
            ".jp2 has no choice of compressions; .tif, .png and .webp have");
  EXPECT_EQ(refusal("a.tif", image, {.compression = "zpi"}),
            "unknown compression 'zpi': .tif has none, lzw, zip, packbits, jpeg");
  EXPECT_EQ(refusal("a.png", image, {.compression = "10"}),
            "unknown compression '10': .png has 0, 1, 2, 3, 4, 5, 6, 7, 8, 9");
  EXPECT_EQ(refusal("a.webp", image, {.compression = "zip"}), "unknown compression 'zip': .webp has lossless");
  const std::string quality =
      "a quality is of .jpg, of .webp with loss, and of .tif with the compression jpeg; leave it out";
  EXPECT_EQ(refusal("a.png", image, {.quality = 90}), quality);
  EXPECT_EQ(refusal("a.npy", image, {.quality = 90}), quality);
  EXPECT_EQ(refusal("a.tif", image, {.quality = 90}), quality);
  EXPECT_EQ(refusal("a.webp", image, {.quality = 90, .compression = "lossless"}), quality);
  EXPECT_EQ(refusal("a.jpg", image, {.quality = 101}), "the quality is 101: it must be from 1 to 100");
  EXPECT_EQ(refusal("a.tif", deep, {.compression = "jpeg"}),
            "the compression jpeg holds u8 with 1 or 3 channels, and this is u16 with 3; choose another");
  Image grey = image;
  grey.info.color_channels = 1;
  EXPECT_EQ(refusal("a.tif", grey, {.compression = "jpeg"}),
            "the compression jpeg takes 3 channels for colours, and of these one is grey and the others are none; "
            "choose another");
  EXPECT_TRUE(folder_.names().empty());
}

// The most that the process holds while it writes, beside the pixels; nothing where the system does not say.
std::optional<std::int64_t> bytes_held_by_writing(const std::string& path, const Image& image,
                                                  const WriteOptions& options) {
  const auto status = [](const std::string& name) {
    const std::string all = read_file("/proc/self/status");
    const std::size_t at = all.find(name + ":");
    return at == std::string::npos ? std::int64_t{0} : std::stoll(all.substr(at + name.size() + 1)) * 1024;
  };
  write_image(path, random_image(16, 16, image.info.c, DataType::u8, 3), 16, options);  // loads the module
  ::malloc_trim(0);
  if (!(std::ofstream("/proc/self/clear_refs") << "5" << std::flush)) return std::nullopt;
  const std::int64_t before = status("VmRSS");
  write_image(path, image, image.info.h, options);
  return status("VmHWM") - before;
}

// Noise, which takes the encoder the most.
TEST_F(Encodings, WebpSaysWhatItsEncoderHolds) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer holds memory of its own";
#endif
  for (const std::int64_t c : {3, 4})
    for (const WriteOptions& options :
         {WriteOptions{.threads = 2}, {.threads = 2, .quality = 100}, {.threads = 2, .compression = "lossless"}}) {
      Image image = random_image(700, 700, c, DataType::u8, 5);
      if (c == 4) image.info.alpha_channel = 3;
      const auto held = bytes_held_by_writing(file("a.webp"), image, options);
      if (!held) GTEST_SKIP() << "the system does not reset the most memory held";
      EXPECT_GE(create_image(file("a.webp"), image.info, options)->resident_bytes(), *held)
          << c << " channels, quality " << options.quality << ' ' << options.compression;
    }
}

// Where the pages might not fit into the classic form, which counts in 32 bits, all are of BigTIFF.
TEST_F(Encodings, PagesOfMoreThanFourGigabytes) {
  const Image image = photo(256, 256, 1);
  for (const int pages : {1 << 15, (1 << 15) + 1}) {
    PagedOutput output(file("a.tif"), pages);
    for (int page = 1; page <= 2; ++page) write_image(file("a.tif"), image, 256, {.pages = &output});
    const std::string& path = output.file().temporary_path();
    EXPECT_EQ(read_file(path).substr(0, 4), pages == 1 << 15 ? "II*\0"s : "II+\0"s);
    EXPECT_TRUE(read_image(path, 2).pixels == image.pixels);
    EXPECT_EQ(count_images(path), 2);
  }
}

TEST_F(Encodings, CompressionOfGreyWithManyChannelsIsKept) {
  for (const char* compression : {"none", "lzw", "zip", "packbits"})
    for (const int orientation : {1, 3}) {  // 3 is no plain file
      Image image = photo(70, 33, 4);
      image.info.color_channels = 1;
      image.info.orientation = orientation;
      write_image(file("a.tif"), image, 70, {.compression = compression});
      write_image(file("copy.tif"), read_image(file("a.tif")));
      EXPECT_EQ(attribute(file("copy.tif"), "compression"), compression) << orientation;
      EXPECT_EQ(read_image(file("copy.tif")).info.color_channels, 1);
    }
}

// ImageMagick 6 writes it there.
TEST_F(Encodings, ExifOfPngBehindThePixels) {
  const auto exif = [](const std::string& maker, std::uint32_t orientation) {
    return png_chunk("eXIf", "II*\0"s + little_endian(8, 4) + little_endian(2, 2) +     //
                                 little_endian(0x10F, 2) + little_endian(2, 2) +        // Make, a text
                                 little_endian(4, 4) + maker + '\0' +                   //
                                 little_endian(0x112, 2) + little_endian(3, 2) +        // orientation, a short
                                 little_endian(1, 4) + little_endian(orientation, 4) +  //
                                 little_endian(0, 4));
  };
  const std::string path = file("a.png"), rows = "\0\5\7"s;
  const auto written = [&](const std::string& before, const std::string& behind) {
    std::string content = png(2, 1, 8, 0, 0, rows, before);
    content.insert(content.size() - 12, behind);
    write_file(path, content);
    const Image image = read_image(path);
    EXPECT_EQ(values<std::uint8_t>(image), (Bytes{5, 7}));
    write_image(file("copy.jpg"), image);
    EXPECT_EQ(read_image(file("copy.jpg")).info.orientation, image.info.orientation);
    return attribute(file("copy.jpg"), "Make") + std::to_string(image.info.orientation);
  };
  EXPECT_EQ(written(exif("abc", 6), ""), "abc6");
  EXPECT_EQ(written("", exif("abc", 6)), "abc6");
  EXPECT_EQ(written(exif("abc", 6), exif("xyz", 8)), "abc6");
  EXPECT_EQ(written("", png_chunk("eXIf", "")), "1");
  EXPECT_EQ(written("", png_chunk("eXIf", exif("abc", 6).substr(8, 20))), "1");
}

TEST_F(Encodings, ProfilesGoToEveryFormatThatHoldsThem) {
  const Image image = photo(40, 48, 3);
  std::vector<std::string> sources = {make("a.jpg", image, with_profile()), make("a.tif", image, with_profile()),
                                      make("a.png", image, with_profile())};
  for (const std::string name : {"a.webp", "a.jp2"}) {
    write_image(file(name), read_image(sources[0]));
    sources.push_back(file(name));
  }
  for (const std::string& source : sources)
    for (const char* extension : {".jpg", ".tif", ".png", ".webp", ".jp2"}) {
      write_image(file("copy"s + extension), read_image(source));
      // Each of them gives it on to a TIFF file, in which it stands as it is.
      write_image(file("last.tif"), read_image(file("copy"s + extension)));
      EXPECT_NE(read_file(file("last.tif")).find(color_profile()), std::string::npos) << source << extension;
    }
}

TEST_F(Encodings, ExifOfWebp) {
  OIIO::ImageSpec attributes;
  attributes.attribute("Exif:DateTimeOriginal", "2001:02:03 04:05:06");
  attributes.attribute("Exif:FocalLength", 35.0f);
  attributes.attribute("Orientation", 6);
  attributes.attribute("Copyright", "an owner");
  const Image image = read_image(make("a.jpg", photo(40, 48, 3), attributes));
  write_image(file("a.webp"), image);
  const Image back = read_image(file("a.webp"));
  EXPECT_EQ(back.info.orientation, 1);  // its pixels were turned
  EXPECT_EQ(back.info.h, 48);
  write_image(file("copy.jpg"), back);
  EXPECT_EQ(attribute(file("copy.jpg"), "Exif:DateTimeOriginal"), "2001:02:03 04:05:06");
  EXPECT_EQ(attribute(file("copy.jpg"), "Copyright"), "an owner");
  EXPECT_EQ(OIIO::ImageInput::open(file("copy.jpg"))->spec().get_float_attribute("Exif:FocalLength"), 35.0f);
}

// The table of docs/cli.md.
TEST_F(Encodings, WhatGoesWithThePixels) {
  OIIO::ImageSpec attributes = with_profile();
  attributes.attribute("Exif:DateTimeOriginal", "2001:02:03 04:05:06");
  attributes.attribute("Exif:FocalLength", 35.0f);
  attributes.attribute("GPS:LatitudeRef", "N");
  const float latitude[3] = {1, 2, 3};
  attributes.attribute("GPS:Latitude", OIIO::TypeDesc(OIIO::TypeDesc::FLOAT, 3), latitude);
  attributes.attribute("Keywords", "a; b");  // of IPTC
  attributes.attribute("ImageDescription", "a description");
  attributes.attribute("Artist", "an author");
  attributes.attribute("Copyright", "an owner");
  attributes.attribute("Software", "a program");
  attributes.attribute("DateTime", "2002:02:03 04:05:06");
  attributes.attribute("XResolution", 300.0f);
  attributes.attribute("YResolution", 300.0f);
  attributes.attribute("ResolutionUnit", "in");
  attributes.attribute("Orientation", 6);
  const Image source = read_image(make("a.jpg", photo(40, 48, 3), attributes));
  Image half = random_image(40, 48, 3, DataType::f16, 3);
  half.info.metadata = source.info.metadata;
  half.info.orientation = 6;
  const std::vector<std::string> texts = {"ImageDescription", "Artist", "Copyright", "Software", "DateTime"};
  struct Kept {
    std::string extension;
    std::vector<std::string> names;
    bool description, orientation;
  };
  const std::vector<Kept> table = {
      {".jpg",
       {"ICCProfile", "Exif:DateTimeOriginal", "Exif:FocalLength", "GPS:Latitude", "Keywords", "XResolution"},
       true,
       true},
      {".tif", {"ICCProfile", "Exif:DateTimeOriginal", "Exif:FocalLength", "XResolution"}, true, true},
      {".png", {"ICCProfile", "Exif:DateTimeOriginal", "Keywords", "XResolution"}, true, false},
      {".webp",
       {"ICCProfile", "Exif:DateTimeOriginal", "Exif:FocalLength", "GPS:Latitude", "XResolution"},
       true,
       false},
      {".jp2", {"ICCProfile"}, false, false},
      {".exr", {"Exif:DateTimeOriginal", "Exif:FocalLength", "GPS:Latitude", "Keywords", "XResolution"}, true, true},
      {".bmp", {}, false, false},
  };
  for (const Kept& kept : table) {
    std::string path = file("copy" + kept.extension);
    write_image(path, kept.extension == ".exr" ? half : source);
    EXPECT_EQ(read_image(path).info.orientation, kept.orientation ? 6 : 1) << kept.extension;
    if (kept.extension == ".webp") {  // of which OpenImageIO reads nothing
      write_image(file("last.jpg"), read_image(path));
      path = file("last.jpg");
    }
    const auto input = OIIO::ImageInput::open(path);
    ASSERT_TRUE(input) << path;
    std::vector<std::string> found;
    for (const char* name :
         {"ICCProfile", "Exif:DateTimeOriginal", "Exif:FocalLength", "GPS:Latitude", "Keywords", "XResolution"})
      if (input->spec().find_attribute(name) != nullptr) found.emplace_back(name);
    EXPECT_EQ(found, kept.names) << kept.extension;
    for (const std::string& name : texts)
      EXPECT_EQ(input->spec().get_string_attribute(name) == attributes.get_string_attribute(name), kept.description)
          << kept.extension << name;
  }
}

// Exif goes by a path that reads back what it wrote, which does not do for these.
TEST_F(Encodings, TiffThatCannotHoldExifIsWrittenWithout) {
  OIIO::ImageSpec attributes;
  attributes.attribute("Exif:DateTimeOriginal", "2001:02:03 04:05:06");
  Image image = random_image(33, 8, 3, DataType::f64, 3);
  image.info.metadata = open_image(make("a.jpg", photo(33, 8, 3), attributes))->info().metadata;
  write_image(file("a.tif"), image);
  EXPECT_TRUE(read_image(file("a.tif")).pixels == image.pixels);
  EXPECT_EQ(attribute(file("a.tif"), "Exif:DateTimeOriginal"), "");
}

TEST_F(Encodings, AnimationsAreNamed) {
  const std::string frames = png_chunk("acTL", big_endian(12) + big_endian(0));
  const std::string path = file("a.png");
  write_file(path, png(2, 1, 8, 0, 0, "\0\5\7"s, frames));
  const std::string named =
      path + " is an animated PNG of 12 frames, of which only the first is read; choose it with --page 1";
  EXPECT_EQ(error_of([&] { open_image(path); }), named);
  EXPECT_EQ(error_of([&] { open_image(path, 2); }), named);
  EXPECT_EQ(values<std::uint8_t>(read_image(path, 1)), (Bytes{5, 7}));
  write_file(path, png(2, 1, 8, 0, 0, "\0\5\7"s, png_chunk("acTL", big_endian(1) + big_endian(0))));
  EXPECT_EQ(values<std::uint8_t>(read_image(path)), (Bytes{5, 7}));
}

TEST_F(Encodings, ChannelsOfTiffKeepTheirMeaning) {
  for (const int colors : {1, 3})
    for (const int alpha : {-1, 5})
      for (const int orientation : {1, 3}) {  // 3 is no plain file
        Image image = random_image(40, 20, 7, DataType::u16, 3);
        image.info.color_channels = colors;
        image.info.alpha_channel = alpha;
        image.info.orientation = orientation;
        write_image(file("a.tif"), image);
        const Image read = read_image(file("a.tif"));
        write_image(file("copy.tif"), read);
        const auto input = OIIO::ImageInput::open(file("copy.tif"));
        ASSERT_TRUE(input);
        EXPECT_EQ(input->spec().get_int_attribute("tiff:PhotometricInterpretation"), colors == 1 ? 1 : 2);
        EXPECT_EQ(input->spec().nchannels, 7);
        const Image back = read_image(file("copy.tif"));
        EXPECT_EQ(back.info.color_channels, colors);
        EXPECT_EQ(back.info.alpha_channel, alpha);
        EXPECT_EQ(back.info.orientation, orientation);
        EXPECT_TRUE(back.pixels == image.pixels) << colors << alpha << orientation;
      }
}

}  // namespace
}  // namespace omniconv::image
