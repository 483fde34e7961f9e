// Which formats are written, what they hold, and what of an input's description goes with the pixels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "image/formats/encoding.h"
#include "image/formats/extension.h"
#include "image/formats/icc_profile.h"
#include "image/formats/oiio/oiio.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image::oiio {
namespace {

const std::vector<Format>& formats() {
  using enum DataType;
  static const std::vector<Format> all = {
      {"png", {"png"}, {u8, u16}, {1, 2, 3, 4}, Alpha::apart, false, 0, 0, false, 0},
      // The compressed image is held until its end; it is smaller than the pixels.
      {"jpeg", {"jpg", "jpeg", "jpe", "jif", "jfif"}, {u8}, {1, 3}, Alpha::none, true, 0, 65500, false, 1},
      {"tiff", {"tif", "tiff"}, {u8, u16, s16, s32, f16, f32, f64}, {}, Alpha::either, true, 0, 0, false, 0},
      {"openexr", {"exr"}, {f16, f32}, {}, Alpha::multiplied, true, 0, 0, false, 0},
      // Its writer knows what libwebp holds.
      {"webp", {"webp"}, {u8}, {3, 4}, Alpha::apart, false, 0, 16383, false, 0},
      {"bmp", {"bmp", "dib"}, {u8}, {1, 3, 4}, Alpha::apart, false, 0, 0, true, 0},
      {"targa", {"tga"}, {u8}, {1, 3, 4}, Alpha::apart, false, 0, 65535, true, 0},
      // Its six resolutions need 2^5 pixels.
      {"jpeg2000", {"jp2"}, {u8, u16}, {1, 3, 4}, Alpha::apart, false, 32, 0, false, 8},
      {"hdr", {"hdr", "rgbe"}, {f32}, {3}, Alpha::none, false, 0, 0, false, 0},
  };
  return all;
}

// Describes how the input was stored, tells OpenImageIO what to do, or is what filtering has made untrue.
bool describes_storage(std::string_view name) {
  if (name.starts_with("oiio:")) return name != "oiio:ColorSpace" && name != "oiio:Gamma";
  static constexpr std::array<std::string_view, 11> prefixes = {
      "ICCProfile:", "thumbnail_", "openexr:", "png:", "gif:", "webp:", "bmp:", "heif:", "jpeg2000:", "raw:", "tiff:"};
  static constexpr std::array<std::string_view, 13> names = {
      "compression",      "Compression",          "CompressionQuality",  "Orientation",      "planarconfig",
      "textureformat",    "jpeg:ColorSpace",      "jpeg:subsampling",    "jpeg:progressive", "targa:version",
      "targa:alpha_type", "Exif:PixelXDimension", "Exif:PixelYDimension"};
  return std::any_of(prefixes.begin(), prefixes.end(), [name](std::string_view p) { return name.starts_with(p); }) ||
         std::find(names.begin(), names.end(), name) != names.end();
}

// The tags that OpenImageIO writes into a TIFF file's Exif directory and libtiff takes, each as the one type that does
// not crash it: found one by one. Others are lost.
bool is_exif_of_tiff(const OIIO::ParamValue& attribute) {
  static constexpr std::array<std::string_view, 16> texts = {
      "SpectralSensitivity", "DateTimeOriginal",   "DateTimeDigitized",
      "OffsetTime",          "OffsetTimeOriginal", "OffsetTimeDigitized",
      "SubsecTime",          "SubsecTimeOriginal", "SubsecTimeDigitized",
      "RelatedSoundFile",    "ImageUniqueID",      "CameraOwnerName",
      "BodySerialNumber",    "LensMake",           "LensModel",
      "LensSerialNumber"};
  static constexpr std::array<std::string_view, 20> integers = {"ExposureProgram",
                                                                "MeteringMode",
                                                                "LightSource",
                                                                "Flash",
                                                                "ColorSpace",
                                                                "FocalPlaneResolutionUnit",
                                                                "SensingMethod",
                                                                "CustomRendered",
                                                                "ExposureMode",
                                                                "WhiteBalance",
                                                                "FocalLengthIn35mmFilm",
                                                                "SceneCaptureType",
                                                                "Contrast",
                                                                "Saturation",
                                                                "Sharpness",
                                                                "SubjectDistanceRange",
                                                                "SensitivityType",
                                                                "StandardOutputSensitivity",
                                                                "RecommendedExposureIndex",
                                                                "ISOSpeed"};
  static constexpr std::array<std::string_view, 21> reals = {"ExposureTime",
                                                             "FNumber",
                                                             "CompressedBitsPerPixel",
                                                             "ShutterSpeedValue",
                                                             "ApertureValue",
                                                             "BrightnessValue",
                                                             "ExposureBiasValue",
                                                             "MaxApertureValue",
                                                             "SubjectDistance",
                                                             "FocalLength",
                                                             "FlashEnergy",
                                                             "FocalPlaneXResolution",
                                                             "FocalPlaneYResolution",
                                                             "ExposureIndex",
                                                             "DigitalZoomRatio",
                                                             "Gamma",
                                                             "Humidity",
                                                             "Pressure",
                                                             "WaterDepth",
                                                             "Acceleration",
                                                             "CameraElevationAngle"};
  std::string_view name = attribute.name().string();
  if (name.starts_with("Exif:")) name.remove_prefix(5);
  const auto is_in = [name](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (attribute.type() == OIIO::TypeDesc::STRING) return is_in(texts);
  if (attribute.type() == OIIO::TypeDesc::INT) return is_in(integers);
  return attribute.type() == OIIO::TypeDesc::FLOAT && is_in(reals);
}

std::string_view bytes_of(const OIIO::ParamValue& attribute) {
  return {static_cast<const char*>(attribute.data()), static_cast<std::size_t>(attribute.datasize())};
}

bool is_exif(const OIIO::ParamValue& attribute) {
  const std::string_view name = attribute.name().string();
  return name.starts_with("Exif:") || name == "ExposureTime" || name == "FNumber";
}

void choose_compression(OIIO::ImageSpec& spec, const Format& format, const ImageInfo& like,
                        const WriteOptions& options) {
  const int quality = quality_of(options);
  if (format.plugin == "jpeg") spec.attribute("Compression", fmt::format("jpeg:{}", quality));
  if (format.plugin != "tiff") return;
  const std::string compression = tiff_compression(like, options);
  spec.attribute("compression", compression == "jpeg" ? fmt::format("jpeg:{}", quality) : compression);
}

void keep_metadata(OIIO::ImageSpec& spec, const Format& format, const ImageInfo& like) {
  const auto* metadata = dynamic_cast<const SpecMetadata*>(like.metadata.get());
  if (metadata == nullptr) return;
  const OIIO::ImageSpec& from = metadata->spec();
  for (const OIIO::ParamValue& attribute : from.extra_attribs)
    if (!describes_storage(attribute.name().string()) &&
        (attribute.name() != "ICCProfile" || is_valid_profile(bytes_of(attribute), like.c)) &&
        (format.plugin != "tiff" || !is_exif(attribute) || is_exif_of_tiff(attribute)) &&
        // OpenEXR has no arrays of integers, and OpenImageIO tells the terminal so.
        (format.plugin != "openexr" || attribute.type().arraylen == 0 ||
         attribute.type().basetype == OIIO::TypeDesc::FLOAT))
      spec.extra_attribs.push_back(attribute);
  if (metadata->plugin() != format.plugin) return;
  if (const std::string compression = from.get_string_attribute("compression");
      format.plugin == "openexr" && !compression.empty())
    spec.attribute("compression", compression);
  if (format.plugin == "openexr" && from.nchannels == spec.nchannels) {
    spec.channelnames = from.channelnames;
    // The place of the pixels within the picture, where filtering has not changed their extents.
    if (from.width == spec.width && from.height == spec.height) {
      spec.x = from.x;
      spec.y = from.y;
      spec.full_x = from.full_x;
      spec.full_y = from.full_y;
      spec.full_width = from.full_width;
      spec.full_height = from.full_height;
    }
  }
  if (format.plugin == "jpeg" && from.extra_attribs.contains("jpeg:subsampling"))
    spec.attribute("jpeg:subsampling", from.get_string_attribute("jpeg:subsampling"));
}

OIIO::TypeDesc element_of(DataType type) {
  switch (type) {
    case DataType::u8: return OIIO::TypeDesc::UINT8;
    case DataType::u16: return OIIO::TypeDesc::UINT16;
    case DataType::s16: return OIIO::TypeDesc::INT16;
    case DataType::s32: return OIIO::TypeDesc::INT32;
    case DataType::f16: return OIIO::TypeDesc::HALF;
    case DataType::f64: return OIIO::TypeDesc::DOUBLE;
    default: return OIIO::TypeDesc::FLOAT;
  }
}

// OpenEXR sorts channels by name, and knows opacity by the name A.
void name_channels(OIIO::ImageSpec& spec, const ImageInfo& like) {
  if (like.c == 1) {
    spec.channelnames = {"Y"};
  } else if (like.c == 2) {
    spec.channelnames = {"Y", like.alpha_channel == 1 ? "A" : "Z"};
  } else if (like.c > 4) {
    for (int i = 0; i < spec.nchannels; ++i)
      spec.channelnames[static_cast<std::size_t>(i)] = fmt::format("channel{:05d}", i);
    if (like.alpha_channel >= 0) spec.channelnames[static_cast<std::size_t>(like.alpha_channel)] = "A";
  }
}

}  // namespace

const Format& format_of(const std::string& path) {
  const std::string extension = extension_of(path);
  std::vector<std::string_view> known;
  for (const Format& format : formats()) {
    known.push_back(format.extensions.front());
    for (const std::string_view candidate : format.extensions)
      if (extension == candidate) return format;
  }
  throw bad_input(
      fmt::format("{}: the format .{} is not written; written are .{}, .pgm, .ppm, .pnm, .pbm, .pam, .pfm and "
                  ".npy",
                  path, extension, fmt::join(known, ", .")));
}

FormatTraits traits(const std::string& path) {
  const Format& format = format_of(path);
  return {.orientation = format.orientation,
          .alpha_apart = format.alpha == Alpha::apart,
          .opacity = format.alpha != Alpha::none};
}

void check_format(const Format& format, const std::string& path, const ImageInfo& info, const WriteOptions& options) {
  const std::string_view extension = format.extensions.front();
  if (std::find(format.types.begin(), format.types.end(), info.type) == format.types.end()) {
    std::vector<std::string_view> types;
    for (const DataType type : format.types) types.push_back(name(type));
    throw bad_input(
        fmt::format("{}: .{} cannot hold {}; it holds {}", path, extension, name(info.type), fmt::join(types, ", ")));
  }
  if (info.alpha_channel >= 0 && format.alpha == Alpha::none)
    throw bad_input(
        fmt::format("{}: .{} is written without opacity, and channel {} of {} is opacity; write .png or .tif", path,
                    extension, info.alpha_channel, info.c));
  const auto& channels = format.channels;
  if (!channels.empty() && std::find(channels.begin(), channels.end(), info.c) == channels.end())
    throw bad_input(fmt::format("{}: .{} cannot hold {} channels; it holds {} (.tif and .npy hold any number)", path,
                                extension, info.c, fmt::join(channels, ", ")));
  if (info.alpha_channel >= 0 && format.alpha == Alpha::apart && info.alpha_channel != info.c - 1)
    throw bad_input(fmt::format("{}: .{} keeps opacity in the last channel, not in channel {} of {}; write .tif", path,
                                extension, info.alpha_channel, info.c));
  if (info.alpha_channel >= 0 && !info.associated_alpha && format.alpha == Alpha::multiplied)
    throw bad_input(
        fmt::format("{}: .{} holds colours multiplied by opacity, and these are not; write .tif", path, extension));
  if (format.max_extent > 0 && (info.h > format.max_extent || info.w > format.max_extent))
    throw bad_input(fmt::format("{}: .{} cannot hold {} x {} pixels; at most {} either way", path, extension, info.h,
                                info.w, format.max_extent));
  // A little less than 2^32, for headers.
  constexpr std::int64_t most_bytes = (std::int64_t{1} << 32) - (1 << 16);
  if (format.counts_in_32_bits && raster_bytes(info, path) > most_bytes)
    throw bad_input(fmt::format("{}: .{} cannot hold {} x {} x {} pixels of {} bytes; at most {}; write .tif or .png",
                                path, extension, info.h, info.w, info.c, raster_bytes(info, path), most_bytes));
  if (options.compression == "jpeg" && (info.type != DataType::u8 || (info.c != 1 && info.c != 3)))
    throw bad_input(
        fmt::format("{}: the compression jpeg holds u8 with 1 or 3 channels, and this is {} with {}; choose another",
                    path, name(info.type), info.c));
  if (options.compression == "jpeg" && info.color_channels == 1 && info.c == 3)
    throw bad_input(fmt::format(
        "{}: the compression jpeg takes 3 channels for colours, and of these one is grey and the others are "
        "none; choose another",
        path));
  if (std::min(info.h, info.w) < format.min_extent)
    throw bad_input(fmt::format("{}: .{} is not written for {} x {} pixels; at least {} either way", path, extension,
                                info.h, info.w, format.min_extent));
  if (info.h > std::numeric_limits<int>::max() || info.w > std::numeric_limits<int>::max() || info.c > 1024)
    throw bad_input(
        fmt::format("{}: .{} cannot hold {} x {} x {}; write .npy", path, extension, info.h, info.w, info.c));
}

OIIO::ImageSpec spec_of(const Format& format, const ImageInfo& like, const WriteOptions& options) {
  OIIO::ImageSpec spec(static_cast<int>(like.w), static_cast<int>(like.h), static_cast<int>(like.c),
                       element_of(like.type));
  // OpenImageIO's own default says that a fourth channel is opacity.
  spec.alpha_channel = like.alpha_channel;
  if (like.alpha_channel < 0 && format.alpha == Alpha::apart && (like.c == 2 || like.c == 4))
    spec.alpha_channel = static_cast<int>(like.c) - 1;
  if (format.plugin == "openexr") name_channels(spec, like);
  keep_metadata(spec, format, like);
  // Pixels are written as they are, whatever opacity is.
  if (!like.associated_alpha) spec.attribute("oiio:UnassociatedAlpha", 1);
  if (format.orientation && like.orientation != 1) spec.attribute("Orientation", like.orientation);
  choose_compression(spec, format, like, options);
  if (format.plugin == "jpeg" && !spec.extra_attribs.contains("jpeg:subsampling"))
    spec.attribute("jpeg:subsampling", "4:4:4");
  if (format.plugin == "tiff") {
    if (like.type == DataType::f16) spec.attribute("tiff:half", 1);
    // Of itself it says only that pixels are sRGB, as they mostly are, but it costs an Exif directory.
    if (!has_exif(spec)) spec.erase_attribute("oiio:ColorSpace");
  }
  return spec;
}

std::string_view profile_of(const OIIO::ImageSpec& spec) {
  const OIIO::ParamValue* const kept = spec.find_attribute("ICCProfile");
  return kept == nullptr ? std::string_view() : bytes_of(*kept);
}

bool has_exif(const OIIO::ImageSpec& spec) {
  return std::any_of(spec.extra_attribs.begin(), spec.extra_attribs.end(), is_exif);
}

}  // namespace omniconv::image::oiio
