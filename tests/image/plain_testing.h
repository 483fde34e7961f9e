// What the tests of the module for plain files share: files of OpenImageIO's, and what both modules make of them.
#pragma once

#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "files.h"
#include "image/formats/module.h"
#include "openimageio_testing.h"

namespace omniconv::image {

inline constexpr std::int64_t any_memory = std::numeric_limits<std::int64_t>::max();

inline Image read_rows_of(ImageReader& reader) {
  Image image{reader.info(), {}};
  const std::int64_t bytes = bytes_per_row(image.info);
  image.pixels.resize(static_cast<std::size_t>(image.info.h * bytes));
  reader.read_rows(0, image.info.h, image.pixels.data(), bytes);
  return image;
}

class Plain : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(plain_module(), nullptr);
    full_ = &image_module("a test");
  }
  std::string file(std::string_view name) const { return folder_.file(name); }

  std::string make(std::string_view name, const Image& image, const OIIO::ImageSpec& attributes = {},
                   int pages = 1) const {
    OIIO::ImageSpec spec = spec_like(image.info, attributes);
    spec.alpha_channel = image.info.alpha_channel;
    if (!image.info.associated_alpha) spec.attribute("oiio:UnassociatedAlpha", 1);
    if (image.info.type == DataType::f16) spec.attribute("tiff:half", 1);
    if (!spec.extra_attribs.contains("compression")) spec.attribute("compression", "none");
    write_by_openimageio(file(name), image, spec, pages);
    return file(name);
  }
  bool is_plain(const std::string& path) const {
    try {
      return plain_module()->open(path, 0, any_memory) != nullptr;
    } catch (const std::exception& error) {
      ADD_FAILURE() << path << ": " << error.what();
      return false;
    }
  }
  bool is_plain(std::string_view name, std::string_view content) const {
    write_file(file(name), content);
    return is_plain(file(name));
  }

  static void expect_same(const Image& found, const Image& expected, const std::string& what) {
    EXPECT_EQ(found.info.h, expected.info.h) << what;
    EXPECT_EQ(found.info.w, expected.info.w) << what;
    EXPECT_EQ(found.info.c, expected.info.c) << what;
    EXPECT_EQ(found.info.type, expected.info.type) << what;
    EXPECT_EQ(found.info.format, expected.info.format) << what;
    EXPECT_EQ(found.info.alpha_channel, expected.info.alpha_channel) << what;
    EXPECT_EQ(found.info.associated_alpha, expected.info.associated_alpha) << what;
    EXPECT_EQ(found.info.orientation, expected.info.orientation) << what;
    // Of a TIFF file OpenImageIO holds more than the small module, which reads some strips as they are.
    if (found.info.format != "tiff") {
      EXPECT_EQ(found.info.resident_bytes, expected.info.resident_bytes) << what;
    }
    EXPECT_TRUE(found.pixels == expected.pixels) << what;
  }
  // The bytes of a JPEG or PNG file; of a TIFF file everything but the moment of writing.
  static std::string content_of(const std::string& path) {
    if (!path.ends_with(".tif")) return read_file(path);
    const auto input = OIIO::ImageInput::open(path);
    if (!input) return OIIO::geterror();
    OIIO::ImageSpec spec = input->spec();
    spec.erase_attribute("DateTime");
    const Image image = read_image(path);
    return spec.serialize(OIIO::ImageSpec::SerialText, OIIO::ImageSpec::SerialDetailedHuman) +
           std::string(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size());
  }
  // Both modules read the file to the same pixels, and write a copy with the same content, in every format; but for
  // PNG from PNG, of which the small one keeps more.
  void expect_both_alike(const std::string& path) const {
    auto reader = plain_module()->open(path, 0, any_memory);
    ASSERT_NE(reader, nullptr) << path;
    const Image image = read_rows_of(*reader), expected = read_rows_of(*full_->open(path, 0, any_memory));
    expect_same(image, expected, path);
    const bool is_photo =
        image.info.type == DataType::u8 && image.info.alpha_channel < 0 && image.info.c != 2 && image.info.c != 4;
    const bool fits_png = size_of(image.info.type) <= 2 && image.info.type != DataType::f16 &&
                          image.info.type != DataType::s16 && image.info.format != "png" && image.info.c <= 4 &&
                          !image.info.associated_alpha;
    for (const std::string extension : {".tif", ".jpg", ".png"}) {
      if ((extension == ".jpg" && !is_photo) || (extension == ".png" && !fits_png)) continue;
      write_image(file("copy" + extension), image);
      const auto writer = full_->create(file("expected" + extension), expected.info, {});
      writer->write_rows(0, image.info.h, expected.pixels.data(), bytes_per_row(image.info));
      writer->finish();
      EXPECT_TRUE(content_of(file("copy" + extension)) == content_of(file("expected" + extension)))
          << path << extension;
    }
  }

  // Rows that are asked for in no order are those of the whole image, which has 50.
  static void expect_rows_in_any_order(const std::string& path, std::int64_t max_resident_bytes) {
    const auto reader = plain_module()->open(path, 0, max_resident_bytes);
    ASSERT_NE(reader, nullptr) << path;
    const Image whole = read_image(path);
    const std::int64_t bytes = bytes_per_row(whole.info);
    std::vector<std::byte> rows(static_cast<std::size_t>(2 * bytes + 2 * 64));
    for (const std::int64_t y : {48, 0, 20, 10, 12, 10, 31, 48, 47}) {
      reader->read_rows(y, 2, rows.data(), bytes + 64);
      for (const std::int64_t i : {0, 1})
        EXPECT_EQ(std::memcmp(rows.data() + i * (bytes + 64), whole.pixels.data() + (y + i) * bytes,
                              static_cast<std::size_t>(bytes)),
                  0)
            << path << ' ' << y;
    }
  }

  TemporaryFolder folder_;
  const Module* full_ = nullptr;
};

}  // namespace omniconv::image
