#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include "image/formats/codec_file.h"
#include "image/formats/encoding.h"
#include "image/formats/icc_profile.h"
#include "image/formats/plain/plain.h"
#include "image/formats/plain/tiff_handle.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image::plain {
namespace {

// As OpenImageIO writes: files are alike, whichever module wrote them.
constexpr std::int64_t rows_per_strip = 32, largest_extent = 1 << 20, most_channels = 1024;
constexpr int zip_quality = 6;
// From here on the classic form might not count all bytes.
constexpr std::int64_t big_tiff_bytes = std::int64_t{4000} << 20;

class OutputBytes final : public TiffBytes {
 public:
  explicit OutputBytes(CodecFile& file) : file_(file) {}
  std::int64_t read(void* to, std::int64_t bytes, std::int64_t offset) noexcept override {
    return static_cast<std::int64_t>(file_.get(to, static_cast<std::size_t>(bytes), offset));
  }
  std::int64_t write(const void* from, std::int64_t bytes, std::int64_t offset) noexcept override {
    file_.put(from, static_cast<std::size_t>(bytes), offset);
    return bytes;
  }
  std::int64_t size() const noexcept override { return file_.size(); }

 private:
  CodecFile& file_;
};

int sample_format(DataType type) {
  switch (type) {
    case DataType::u8:
    case DataType::u16: return SAMPLEFORMAT_UINT;
    case DataType::s16:
    case DataType::s32: return SAMPLEFORMAT_INT;
    default: return SAMPLEFORMAT_IEEEFP;
  }
}

bool holds(DataType type) {
  switch (type) {
    case DataType::u8:
    case DataType::u16:
    case DataType::s16:
    case DataType::s32:
    case DataType::f16:
    case DataType::f32:
    case DataType::f64: return true;
    default: return false;
  }
}

std::string time_of_writing() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y:%m:%d %H:%M:%S", &local);
  return text;
}

std::int64_t colors_of(const ImageInfo& info) {
  if (info.color_channels > 0) return info.color_channels;
  return info.c >= 3 ? 3 : 1;
}

// libtiff's number; none for what the other module writes.
std::optional<int> compression_of(const std::string& word) {
  if (word == "none") return COMPRESSION_NONE;
  if (word == "lzw") return COMPRESSION_LZW;
  if (word == "zip") return COMPRESSION_ADOBE_DEFLATE;
  if (word == "packbits") return COMPRESSION_PACKBITS;
  return std::nullopt;
}

class TiffWriter final : public ImageWriter {
 public:
  TiffWriter(const std::string& path, const ImageInfo& like, const PlainMetadata* kept, int compression)
      : file_(path), codec_file_(file_), bytes_(codec_file_), info_(like), compression_(compression) {
    const bool is_big = raster_bytes(like, path) > big_tiff_bytes;
    tiff_.emplace(bytes_, path, is_big ? "w8" : "w");
    check(tiff_->get() != nullptr);
    describe_pixels();
    describe_channels();
    describe_compression();
    describe_picture(kept);
    check(true);
  }
  ~TiffWriter() override { codec_file_.abandon(); }

  std::int64_t resident_bytes() const override { return 0; }

  void write_rows(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_.path());
    check_next_row(first, rows_written_, file_.path());
    const std::int64_t bytes = row_bytes(info_);
    for (std::int64_t done = 0; done < count;) {
      const std::byte* const rows = from + done * stride_bytes;
      const std::int64_t begin = rows_written_ / rows_per_strip * rows_per_strip;
      const std::int64_t whole = std::min(rows_per_strip, info_.h - begin);
      if (rows_written_ == begin && count - done >= whole && stride_bytes == bytes &&
          compression_ == COMPRESSION_NONE) {
        write_strip(rows, whole, begin / rows_per_strip);
        done += whole;
        rows_written_ += whole;
        continue;
      }
      const std::int64_t taken = std::min(begin + whole - rows_written_, count - done);
      strip_.resize(static_cast<std::size_t>(rows_per_strip * bytes));
      for (std::int64_t i = 0; i < taken; ++i)
        std::memcpy(strip_.data() + (rows_written_ - begin + i) * bytes, rows + i * stride_bytes,
                    static_cast<std::size_t>(bytes));
      done += taken;
      rows_written_ += taken;
      if (rows_written_ == begin + whole) write_strip(strip_.data(), whole, begin / rows_per_strip);
    }
  }

  void finish() override {
    check_complete(rows_written_, info_.h, file_.path());
    check(TIFFFlush(tiff_->get()) == 1);
    tiff_->close();
    check(true);
    codec_file_.settle();
    file_.commit();
  }

 private:
  template <typename... Values>
  void set(std::uint32_t tag, Values... values) {
    check(TIFFSetField(tiff_->get(), tag, values...) == 1);
  }

  void describe_pixels() {
    set(TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(info_.w));
    set(TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(info_.h));
    set(TIFFTAG_ROWSPERSTRIP, static_cast<std::uint32_t>(rows_per_strip));
    set(TIFFTAG_SAMPLESPERPIXEL, static_cast<int>(info_.c));
    set(TIFFTAG_ORIENTATION, info_.orientation);
    set(TIFFTAG_BITSPERSAMPLE, static_cast<int>(8 * size_of(info_.type)));
    set(TIFFTAG_SAMPLEFORMAT, sample_format(info_.type));
    set(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  }

  void describe_channels() {
    const std::int64_t colors = colors_of(info_);
    set(TIFFTAG_PHOTOMETRIC, colors == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    if (info_.c == colors) return;
    std::vector<std::uint16_t> extra(static_cast<std::size_t>(info_.c - colors), EXTRASAMPLE_UNSPECIFIED);
    if (info_.alpha_channel >= 0)
      extra[static_cast<std::size_t>(info_.alpha_channel - colors)] =
          info_.associated_alpha ? EXTRASAMPLE_ASSOCALPHA : EXTRASAMPLE_UNASSALPHA;
    set(TIFFTAG_EXTRASAMPLES, static_cast<int>(extra.size()), extra.data());
  }

  void describe_compression() {
    set(TIFFTAG_COMPRESSION, compression_);
    if (compression_ == COMPRESSION_NONE || compression_ == COMPRESSION_PACKBITS) return;
    if (sample_format(info_.type) == SAMPLEFORMAT_IEEEFP)
      set(TIFFTAG_PREDICTOR, PREDICTOR_FLOATINGPOINT);
    else if (size_of(info_.type) <= 2)
      set(TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
    if (compression_ == COMPRESSION_ADOBE_DEFLATE) set(TIFFTAG_ZIPQUALITY, zip_quality);
  }

  void describe_picture(const PlainMetadata* kept) {
    bool is_dated = false;
    if (kept != nullptr) {
      for (const auto& [tag, text] : kept->texts) {
        set(tag, text.c_str());
        is_dated = is_dated || tag == TIFFTAG_DATETIME;
      }
      if (is_valid_profile(kept->profile, info_.c))
        set(TIFFTAG_ICCPROFILE, static_cast<std::uint32_t>(kept->profile.size()), kept->profile.data());
      if (const auto& resolution = kept->resolution) {
        set(TIFFTAG_XRESOLUTION, static_cast<double>(resolution->x));
        set(TIFFTAG_YRESOLUTION, static_cast<double>(resolution->y));
        if (resolution->unit != Unit::unsaid) set(TIFFTAG_RESOLUTIONUNIT, static_cast<int>(resolution->unit));
      }
    }
    if (!is_dated) set(TIFFTAG_DATETIME, time_of_writing().c_str());
  }

  void write_strip(const std::byte* rows, std::int64_t count, std::int64_t strip) {
    // libtiff takes what it does not change by a pointer through which it could.
    void* const data = const_cast<std::byte*>(rows);
    const auto size = static_cast<tmsize_t>(count * row_bytes(info_));
    const auto number = static_cast<std::uint32_t>(strip);
    if (compression_ == COMPRESSION_NONE)
      check(TIFFWriteRawStrip(tiff_->get(), number, data, size) == size);
    else
      check(TIFFWriteEncodedStrip(tiff_->get(), number, data, size) == size);
  }

  void check(bool success) {
    codec_file_.check();
    const std::string reason = tiff_->take_error();
    if (!success)
      throw bad_input(fmt::format("cannot write {}: {}", file_.path(), reason.empty() ? "its encoder failed" : reason));
  }

  AtomicFile file_;
  CodecFile codec_file_;
  OutputBytes bytes_;
  ImageInfo info_;
  std::optional<TiffHandle> tiff_;
  int compression_;
  std::int64_t rows_written_ = 0;
  std::vector<std::byte> strip_;
};

}  // namespace

std::unique_ptr<ImageWriter> create_tiff(const std::string& path, const ImageInfo& like, const WriteOptions& options) {
  const bool fits = like.h >= 1 && like.h <= largest_extent && like.w >= 1 && like.w <= largest_extent && like.c >= 1 &&
                    like.c <= most_channels;
  const bool is_opacity_extra =
      like.alpha_channel < 0 || (like.alpha_channel >= colors_of(like) && like.alpha_channel < like.c);
  bool keeps = false;
  const PlainMetadata* const kept = metadata_for(like, "tiff", keeps);
  // The other module takes three channels or more for colours.
  keeps = keeps || (like.color_channels == 1 && like.c >= 3);
  if (!fits || !is_opacity_extra || !keeps || !holds(like.type) || like.orientation < 1 || like.orientation > 8)
    return nullptr;
  const std::optional<int> compression = compression_of(tiff_compression(like, options));
  if (!compression) return nullptr;
  return std::make_unique<TiffWriter>(path, like, kept, *compression);
}

}  // namespace omniconv::image::plain
