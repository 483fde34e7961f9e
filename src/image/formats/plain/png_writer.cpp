#include <array>
#include <string_view>

#include "image/formats/big_endian.h"
#include "image/formats/codec_file.h"
#include "image/formats/plain/plain.h"
#include "image/formats/png_pixels.h"
#include "image/raster.h"

namespace omniconv::image::plain {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

// As OpenImageIO, and libpng, have it.
constexpr std::int64_t largest_extent = 1000000;

class PngWriter final : public ImageWriter {
 public:
  PngWriter(const std::string& path, const ImageInfo& like, const PlainMetadata* kept, const WriteOptions& options)
      : file_(path),
        codec_file_(file_),
        info_(like),
        sink_([this](const void* bytes, std::size_t count) { codec_file_.put(bytes, count, codec_file_.size()); }),
        pixels_(row_bytes(like), like.c * size_of(like.type), size_of(like.type), png_level(options.compression),
                options.threads, sink_) {
    put("\x89PNG\r\n\x1A\n");
    write_header();
    if (kept != nullptr)
      describe_as(*kept);
    else
      describe();
    codec_file_.check();
  }

  std::int64_t resident_bytes() const override { return pixels_.resident_bytes(); }

  void write_rows(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_.path());
    check_next_row(first, rows_written_, file_.path());
    if (count == 0) return;
    pixels_.write_rows(count, from, stride_bytes);
    codec_file_.check();
    rows_written_ += count;
  }

  void finish() override {
    check_complete(rows_written_, info_.h, file_.path());
    pixels_.finish();
    codec_file_.settle();
    file_.commit();
  }

 private:
  void put(std::string_view bytes) { sink_(bytes.data(), bytes.size()); }

  void write_header() {
    static constexpr std::array<char, 4> color_types = {0, 4, 2, 6};
    const char bits = info_.type == DataType::u16 ? 16 : 8;
    const char color = color_types[static_cast<std::size_t>(info_.c - 1)];
    write_png_chunk(sink_, "IHDR",
                    big_endian(static_cast<std::uint32_t>(info_.w)) + big_endian(static_cast<std::uint32_t>(info_.h)) +
                        bits + color + "\0\0\0"s);
  }

  // What the input said, word for word: also the colours, texts of one name, and those behind the pixels, that
  // OpenImageIO would lose, and none of its own.
  void describe_as(const PlainMetadata& kept) {
    put(kept.chunks);
    if (kept.type == info_.type) put(kept.background);
  }

  // As OpenImageIO writes: files are alike, whichever module wrote them.
  void describe() {
    if (is_srgb(info_)) {
      write_png_chunk(sink_, "gAMA", big_endian(45455));
      write_png_chunk(sink_, "sRGB", "\3");  // the intent: absolute colours
      std::string primaries;                 // white, red, green and blue: x and y of CIE 1931 in 1/100000
      for (const std::uint32_t value : {31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000})
        primaries += big_endian(value);
      write_png_chunk(sink_, "cHRM", primaries);
    }
    write_png_chunk(sink_, "oFFs", "\0\0\0\0\0\0\0\0\0"sv);
    if (is_srgb(info_)) write_png_chunk(sink_, "tEXt", "oiio:ColorSpace\0sRGB"sv);
  }

  AtomicFile file_;
  CodecFile codec_file_;
  ImageInfo info_;
  PngSink sink_;
  PngPixels pixels_;
  std::int64_t rows_written_ = 0;
};

}  // namespace

std::unique_ptr<ImageWriter> create_png(const std::string& path, const ImageInfo& like, const WriteOptions& options) {
  const bool fits = like.h >= 1 && like.h <= largest_extent && like.w >= 1 && like.w <= largest_extent && like.c >= 1 &&
                    like.c <= 4 && (like.type == DataType::u8 || like.type == DataType::u16) &&
                    (like.alpha_channel < 0 || like.alpha_channel == like.c - 1);
  bool keeps = false;
  const PlainMetadata* const kept = metadata_for(like, "png", keeps);
  if (!fits || !keeps || like.orientation != 1) return nullptr;
  return std::make_unique<PngWriter>(path, like, kept, options);
}

}  // namespace omniconv::image::plain
