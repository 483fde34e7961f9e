// WebP files, decoded by libwebp, whole: https://developers.google.com/speed/webp/docs/riff_container.
#include <OpenImageIO/tiffutils.h>
#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "image/formats/oiio/oiio.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image::oiio {
namespace {

struct DecoderDeleter {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

Error damaged(const std::string& path) {
  return bad_input(fmt::format("{} is damaged or cut short: libwebp cannot decode it", path));
}

// The file in memory, and what its chunks say.
class WebpContent {
 public:
  WebpContent(const InputFile& file, std::int64_t max_resident_bytes) {
    check_limit(file.path(), "webp", file.size(), max_resident_bytes);
    bytes_ = file.read_some(0, file.size());
    data_ = {.bytes = reinterpret_cast<const std::uint8_t*>(bytes_.data()), .size = bytes_.size()};
    demuxer_.reset(WebPDemux(&data_));
    if (demuxer_ == nullptr || pages() < 1) throw damaged(file.path());
  }

  const WebPData& data() const { return data_; }
  std::uint32_t get(WebPFormatFeature feature) const { return WebPDemuxGetI(demuxer_.get(), feature); }
  int pages() const { return static_cast<int>(get(WEBP_FF_FRAME_COUNT)); }
  // Empty where there is none.
  std::string_view chunk(const char* name) const {
    WebPChunkIterator found;
    if (WebPDemuxGetChunk(demuxer_.get(), name, 1, &found) == 0) return {};
    const std::string_view bytes(reinterpret_cast<const char*>(found.chunk.bytes), found.chunk.size);
    WebPDemuxReleaseChunkIterator(&found);
    return bytes;  // of the file
  }

 private:
  std::vector<std::byte> bytes_;
  WebPData data_{};
  std::unique_ptr<WebPDemuxer, DecoderDeleter> demuxer_;
};

class WebpReader final : public ImageReader {
 public:
  WebpReader(const std::string& path, int page, std::int64_t max_resident_bytes)
      : file_(path), page_(page), content_(file_, max_resident_bytes) {
    if (page_ > pages() || (page_ == 0 && pages() > 1)) throw no_such_page(path, page_, pages());
    is_animated_ = pages() > 1 || (content_.get(WEBP_FF_FORMAT_FLAGS) & ANIMATION_FLAG) != 0;
    describe();
    check_limit(path, "webp", info_.resident_bytes, max_resident_bytes);
  }

  const ImageInfo& info() const override { return info_; }

  void read_rows(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_.path());
    if (pixels_.empty()) is_animated_ ? decode_frame() : decode();
    const std::int64_t bytes = row_bytes(info_);
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * stride_bytes, pixels_.data() + (first + i) * bytes, static_cast<std::size_t>(bytes));
  }

 private:
  int pages() const { return content_.pages(); }

  void describe() {
    bool has_opacity = (content_.get(WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG) != 0;
    info_.h = content_.get(WEBP_FF_CANVAS_HEIGHT);
    info_.w = content_.get(WEBP_FF_CANVAS_WIDTH);
    if (!is_animated_) {
      WebPBitstreamFeatures features;
      if (WebPGetFeatures(content_.data().bytes, content_.data().size, &features) != VP8_STATUS_OK)
        throw damaged(file_.path());
      // What the decoder will write, whatever the container says.
      info_.h = features.height;
      info_.w = features.width;
      has_opacity = features.has_alpha != 0;
    }
    info_.c = has_opacity ? 4 : 3;
    info_.alpha_channel = has_opacity ? 3 : -1;
    info_.format = "webp";
    const std::int64_t image = raster_bytes(info_, file_.path());
    // The file, the image, and the decoder's own: of an animation two canvases with opacity.
    info_.resident_bytes = file_.size() + image + (is_animated_ ? 8 : 1) * info_.h * info_.w;
    describe_picture();
  }

  void describe_picture() {
    OIIO::ImageSpec spec(static_cast<int>(info_.w), static_cast<int>(info_.h), static_cast<int>(info_.c),
                         OIIO::TypeDesc::UINT8);
    const std::string_view profile = content_.chunk("ICCP"), exif = content_.chunk("EXIF");
    if (!profile.empty() && profile.size() <= most_profile_bytes)
      spec.attribute("ICCProfile", OIIO::TypeDesc(OIIO::TypeDesc::UINT8, static_cast<int>(profile.size())),
                     profile.data());
    // Some programs write the marker that JPEG files have before it.
    constexpr std::string_view marker("Exif\0\0", 6);
    if (!exif.empty())
      OIIO::decode_exif(OIIO::string_view(exif.starts_with(marker) ? exif.substr(marker.size()) : exif), spec);
    info_.orientation = orientation_of(spec);
    info_.metadata = std::make_shared<SpecMetadata>("webp", spec);
  }

  void decode() {
    std::vector<std::byte> pixels(static_cast<std::size_t>(info_.h * row_bytes(info_)));
    auto* const to = reinterpret_cast<std::uint8_t*>(pixels.data());
    const int stride = static_cast<int>(row_bytes(info_));
    const auto decode_into = info_.c == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
    if (decode_into(content_.data().bytes, content_.data().size, to, pixels.size(), stride) == nullptr)
      throw damaged(file_.path());
    pixels_ = std::move(pixels);
  }

  // As it is shown: upon those before it.
  void decode_frame() {
    WebPAnimDecoderOptions options;
    if (WebPAnimDecoderOptionsInit(&options) == 0) throw damaged(file_.path());
    options.color_mode = MODE_RGBA;
    const std::unique_ptr<WebPAnimDecoder, DecoderDeleter> decoder(WebPAnimDecoderNew(&content_.data(), &options));
    std::uint8_t* canvas = nullptr;
    for (int page = 0; page < std::max(page_, 1); ++page) {
      int time = 0;
      if (decoder == nullptr || WebPAnimDecoderGetNext(decoder.get(), &canvas, &time) == 0) throw damaged(file_.path());
    }
    std::vector<std::byte> pixels(static_cast<std::size_t>(info_.h * row_bytes(info_)));
    const auto channels = static_cast<std::size_t>(info_.c);
    for (std::size_t i = 0, pixel = 0; i < pixels.size(); i += channels, ++pixel)
      std::memcpy(pixels.data() + i, canvas + 4 * pixel, channels);
    pixels_ = std::move(pixels);
  }

  static constexpr std::size_t most_profile_bytes = std::size_t{1} << 30;

  InputFile file_;
  int page_;
  WebpContent content_;
  std::vector<std::byte> pixels_;
  bool is_animated_ = false;
  ImageInfo info_;
};

}  // namespace

int count_frames_of_webp(const std::string& path, std::int64_t max_resident_bytes) {
  return WebpContent(InputFile(path), max_resident_bytes).pages();
}

std::unique_ptr<ImageReader> open_webp(const std::string& path, int page, std::int64_t max_resident_bytes) {
  return std::make_unique<WebpReader>(path, page, max_resident_bytes);
}

}  // namespace omniconv::image::oiio
