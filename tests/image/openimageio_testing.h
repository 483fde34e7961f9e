// Files that OpenImageIO writes for the tests, with attributes and options that our own writers do not offer.
#pragma once

#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "image/image.h"

namespace omniconv::image {

// `attributes`, and tiles as it has them, for pixels like the image's.
inline OIIO::ImageSpec spec_like(const ImageInfo& info, const OIIO::ImageSpec& attributes) {
  static const std::map<DataType, OIIO::TypeDesc> types = {
      {DataType::u8, OIIO::TypeDesc::UINT8},  {DataType::u16, OIIO::TypeDesc::UINT16},
      {DataType::s16, OIIO::TypeDesc::INT16}, {DataType::s32, OIIO::TypeDesc::INT32},
      {DataType::f16, OIIO::TypeDesc::HALF},  {DataType::f32, OIIO::TypeDesc::FLOAT},
      {DataType::f64, OIIO::TypeDesc::DOUBLE}};
  OIIO::ImageSpec spec(static_cast<int>(info.w), static_cast<int>(info.h), static_cast<int>(info.c),
                       types.at(info.type));
  spec.extra_attribs = attributes.extra_attribs;
  spec.tile_width = attributes.tile_width;
  spec.tile_height = attributes.tile_height;
  return spec;
}

// The same image on each page.
inline void write_by_openimageio(const std::string& path, const Image& image, const OIIO::ImageSpec& spec,
                                 int pages = 1) {
  const auto output = OIIO::ImageOutput::create(path);
  ASSERT_TRUE(output) << OIIO::geterror();
  for (int page = 0; page < pages; ++page) {
    EXPECT_TRUE(output->open(path, spec, page == 0 ? OIIO::ImageOutput::Create : OIIO::ImageOutput::AppendSubimage))
        << output->geterror();
    EXPECT_TRUE(output->write_image(spec.format, image.pixels.data())) << output->geterror();
  }
  EXPECT_TRUE(output->close());
}

}  // namespace omniconv::image
