#include <OpenImageIO/tiffutils.h>
#include <fmt/format.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "image/atomic_file.h"
#include "image/formats/encoding.h"
#include "image/formats/oiio/oiio.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image::oiio {
namespace {

struct MuxDeleter {
  void operator()(WebPMux* mux) const { WebPMuxDelete(mux); }
};

// What libwebp 1.2.4 holds, with the image, the encoded file, and a copy of it with descriptions: the highest seen with
// noise, random colours of a table and photographs, of 2 x 16000 to 2500 x 2500 pixels, rounded up.
struct Held {
  std::int64_t bytes, bytes_per_pixel;
};
constexpr std::int64_t mebibyte = 1 << 20;
constexpr Held held_without_loss = {32 * mebibyte, 48};
constexpr Held held_with_loss = {8 * mebibyte, 36};
constexpr Held held_with_loss_and_opacity = {8 * mebibyte, 72};  // which is encoded beside the colours

// Memory that libwebp fills.
template <typename Type, void (*initialise)(Type*), void (*clear)(Type*)>
class Filled {
 public:
  Filled() { initialise(&value_); }
  ~Filled() { clear(&value_); }
  Filled(const Filled&) = delete;
  Filled& operator=(const Filled&) = delete;
  Type* get() { return &value_; }

 private:
  Type value_;
};

class WebpWriter final : public ImageWriter {
 public:
  WebpWriter(const std::string& path, const Format& format, const ImageInfo& like, const WriteOptions& options)
      : file_(path), info_(like), spec_(spec_of(format, like, options)) {
    const auto quality = static_cast<float>(quality_of(options));
    is_made_ = WebPConfigPreset(&config_, WEBP_PRESET_DEFAULT, quality) != 0 && WebPPictureInit(&picture_) != 0;
    if (options.compression == "lossless") is_made_ = is_made_ && WebPConfigLosslessPreset(&config_, 6) != 0;
    config_.exact = 1;  // colours under full transparency, too
    config_.thread_level = options.threads > 1 ? 1 : 0;
    picture_.use_argb = 1;
    picture_.width = static_cast<int>(like.w);
    picture_.height = static_cast<int>(like.h);
    if (!is_made_) throw bad_input(fmt::format("cannot write {}: libwebp is of another version", path));
  }
  ~WebpWriter() override { WebPPictureFree(&picture_); }
  WebpWriter(const WebpWriter&) = delete;
  WebpWriter& operator=(const WebpWriter&) = delete;

  std::int64_t resident_bytes() const override {
    const Held& held = config_.lossless != 0 ? held_without_loss
                       : info_.c == 4        ? held_with_loss_and_opacity
                                             : held_with_loss;
    return held.bytes + info_.h * info_.w * held.bytes_per_pixel;
  }

  void write_rows(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_.path());
    check_next_row(first, rows_written_, file_.path());
    if (picture_.argb == nullptr && WebPPictureAlloc(&picture_) == 0) throw failed();
    for (std::int64_t y = 0; y < count; ++y) {
      const auto* pixel = reinterpret_cast<const std::uint8_t*>(from + y * stride_bytes);
      std::uint32_t* const to = picture_.argb + (first + y) * picture_.argb_stride;
      for (std::int64_t x = 0; x < info_.w; ++x, pixel += info_.c)
        to[x] = static_cast<std::uint32_t>(info_.c == 4 ? pixel[3] : 255) << 24 |
                static_cast<std::uint32_t>(pixel[0]) << 16 | static_cast<std::uint32_t>(pixel[1]) << 8 | pixel[2];
    }
    rows_written_ += count;
  }

  void finish() override {
    check_complete(rows_written_, info_.h, file_.path());
    Filled<WebPMemoryWriter, WebPMemoryWriterInit, WebPMemoryWriterClear> encoded;
    picture_.writer = WebPMemoryWrite;
    picture_.custom_ptr = encoded.get();
    if (WebPEncode(&config_, &picture_) == 0) throw failed();
    const std::string_view image(reinterpret_cast<const char*>(encoded.get()->mem), encoded.get()->size);
    write_described(image);
    file_.commit();
  }

 private:
  Error failed() const {
    return bad_input(fmt::format("cannot write {}: libwebp's encoder failed with its error {}", file_.path(),
                                 static_cast<int>(picture_.error_code)));
  }

  // The colour profile and Exif in chunks of their own.
  void write_described(std::string_view image) {
    std::vector<char> exif;
    if (has_description()) OIIO::encode_exif(spec_, exif);
    const std::string_view profile = profile_of(spec_);
    if (exif.empty() && profile.empty()) return write(image);
    const std::unique_ptr<WebPMux, MuxDeleter> mux(WebPMuxNew());
    const WebPData picture = data_of(image), colors = data_of(profile), camera = data_of({exif.data(), exif.size()});
    const bool is_set = mux != nullptr && WebPMuxSetImage(mux.get(), &picture, 0) == WEBP_MUX_OK &&
                        (profile.empty() || WebPMuxSetChunk(mux.get(), "ICCP", &colors, 0) == WEBP_MUX_OK) &&
                        (exif.empty() || WebPMuxSetChunk(mux.get(), "EXIF", &camera, 0) == WEBP_MUX_OK);
    Filled<WebPData, WebPDataInit, WebPDataClear> whole;
    if (!is_set || WebPMuxAssemble(mux.get(), whole.get()) != WEBP_MUX_OK) throw failed();
    write({reinterpret_cast<const char*>(whole.get()->bytes), whole.get()->size});
  }

  // Beside a profile and what is said to OpenImageIO alone.
  bool has_description() const {
    return std::any_of(spec_.extra_attribs.begin(), spec_.extra_attribs.end(), [](const OIIO::ParamValue& attribute) {
      return attribute.name() != "ICCProfile" && !attribute.name().string().starts_with("oiio:");
    });
  }

  static WebPData data_of(std::string_view bytes) {
    return {.bytes = reinterpret_cast<const std::uint8_t*>(bytes.data()), .size = bytes.size()};
  }

  void write(std::string_view content) { file_.write_at(0, content.data(), static_cast<std::int64_t>(content.size())); }

  AtomicFile file_;
  ImageInfo info_;
  OIIO::ImageSpec spec_;
  WebPConfig config_{};
  WebPPicture picture_{};
  bool is_made_ = false;
  std::int64_t rows_written_ = 0;
};

}  // namespace

std::unique_ptr<ImageWriter> create_webp(const std::string& path, const Format& format, const ImageInfo& like,
                                         const WriteOptions& options) {
  return std::make_unique<WebpWriter>(path, format, like, options);
}

}  // namespace omniconv::image::oiio
