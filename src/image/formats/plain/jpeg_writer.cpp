#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "image/formats/codec_file.h"
#include "image/formats/encoding.h"
#include "image/formats/icc_profile.h"
#include "image/formats/plain/jpeg_guard.h"
#include "image/formats/plain/plain.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image::plain {
namespace {

using namespace std::string_literals;

constexpr std::int64_t largest_extent = 65500;

std::string little_endian(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 255);
  return text;
}

// Where libjpeg brings a file's bytes to.
class JpegTarget {
 public:
  explicit JpegTarget(CodecFile& file) : file_(file) {
    manager_.self = this;
    manager_.base.init_destination = [](j_compress_ptr codec) { of(codec).clear(); };
    manager_.base.empty_output_buffer = [](j_compress_ptr codec) -> boolean {
      of(codec).bring(of(codec).buffer_.size());
      return TRUE;
    };
    manager_.base.term_destination = [](j_compress_ptr codec) {
      of(codec).bring(of(codec).buffer_.size() - codec->dest->free_in_buffer);
    };
  }
  jpeg_destination_mgr* manager() { return &manager_.base; }
  std::int64_t resident_bytes() const { return static_cast<std::int64_t>(buffer_.size()); }

 private:
  struct Manager {
    jpeg_destination_mgr base{};
    JpegTarget* self = nullptr;
  };
  static JpegTarget& of(j_compress_ptr codec) { return *reinterpret_cast<Manager*>(codec->dest)->self; }

  void clear() {
    manager_.base.next_output_byte = buffer_.data();
    manager_.base.free_in_buffer = buffer_.size();
  }
  void bring(std::size_t bytes) {
    file_.put(buffer_.data(), bytes, file_.size());
    clear();
  }

  CodecFile& file_;
  Manager manager_;
  std::array<JOCTET, 1 << 16> buffer_{};
};

class JpegWriter final : public ImageWriter {
 public:
  JpegWriter(const std::string& path, const ImageInfo& like, const PlainMetadata* kept, int quality)
      : file_(path), codec_file_(file_), target_(codec_file_), info_(like), quality_(quality) {
    codec_.err = guard_.handlers();
    is_made_ = guard_.guarded([this] { jpeg_create_compress(&codec_); });
    codec_.dest = target_.manager();
    if (kept != nullptr) {
      subsampling_ = kept->subsampling;
      resolution_ = kept->resolution;
      if (is_valid_profile(kept->profile, like.c)) profile_ = kept->profile;
    }
    exif_ = exif_block(is_srgb(like), resolution_);
    check(is_made_ && guard_.guarded([this] { begin(); }));
  }
  ~JpegWriter() override {
    if (is_made_) jpeg_destroy_compress(&codec_);
  }

  std::int64_t resident_bytes() const override { return target_.resident_bytes(); }

  void write_rows(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_.path());
    check_next_row(first, rows_written_, file_.path());
    check(guard_.guarded([&] {
      for (std::int64_t done = 0; done < count;) {
        // libjpeg reads through pointers through which it could write.
        std::array<JSAMPROW, 16> rows{};
        const std::int64_t given = std::min<std::int64_t>(count - done, 16);
        for (std::int64_t i = 0; i < given; ++i)
          rows[static_cast<std::size_t>(i)] =
              reinterpret_cast<JSAMPROW>(const_cast<std::byte*>(from + (done + i) * stride_bytes));
        done += jpeg_write_scanlines(&codec_, rows.data(), static_cast<JDIMENSION>(given));
      }
    }));
    rows_written_ += count;
  }

  void finish() override {
    check_complete(rows_written_, info_.h, file_.path());
    check(guard_.guarded([this] { jpeg_finish_compress(&codec_); }));
    codec_file_.settle();
    file_.commit();
  }

 private:
  // Under the guard.
  void begin() {
    codec_.image_width = static_cast<JDIMENSION>(info_.w);
    codec_.image_height = static_cast<JDIMENSION>(info_.h);
    codec_.input_components = static_cast<int>(info_.c);
    codec_.in_color_space = info_.c == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&codec_);
    jpeg_set_quality(&codec_, quality_, TRUE);
    for (int i = 0; i < codec_.num_components; ++i)
      codec_.comp_info[i].h_samp_factor = codec_.comp_info[i].v_samp_factor = 1;
    codec_.comp_info[0].h_samp_factor = subsampling_.across;
    codec_.comp_info[0].v_samp_factor = subsampling_.down;
    if (resolution_) {
      codec_.density_unit = resolution_->unit == Unit::inch ? 1 : 2;
      codec_.X_density = static_cast<UINT16>(resolution_->x);
      codec_.Y_density = static_cast<UINT16>(resolution_->y);
    }
    jpeg_start_compress(&codec_, TRUE);
    jpeg_write_marker(&codec_, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif_.data()),
                      static_cast<unsigned int>(exif_.size()));
    if (!profile_.empty())
      jpeg_write_icc_profile(&codec_, reinterpret_cast<const JOCTET*>(profile_.data()),
                             static_cast<unsigned int>(profile_.size()));
  }

  void check(bool success) const {
    codec_file_.check();
    if (success) return;
    const std::string complaint = guard_.complaint();
    throw bad_input(
        fmt::format("cannot write {}: {}", file_.path(), complaint.empty() ? "its encoder failed" : complaint));
  }

  AtomicFile file_;
  CodecFile codec_file_;
  JpegGuard guard_;
  JpegTarget target_;
  jpeg_compress_struct codec_{};
  bool is_made_ = false;
  ImageInfo info_;
  int quality_;
  Subsampling subsampling_;
  std::optional<Resolution> resolution_;
  std::string profile_, exif_;
  std::int64_t rows_written_ = 0;
};

}  // namespace

// A TIFF file of one directory, which may name a second (Exif 2.3, 4.6.3).
std::string exif_block(bool is_srgb, const std::optional<Resolution>& resolution) {
  const std::string no_other = little_endian(0, 4);
  const auto entry = [](std::uint32_t tag, std::uint32_t type, std::uint32_t count, const std::string& value) {
    return little_endian(tag, 2) + little_endian(type, 2) + little_endian(count, 4) + value;
  };
  std::string values, entries, colors;
  if (resolution) {
    for (const float value : {resolution->x, resolution->y})
      values += little_endian(static_cast<std::uint32_t>(value), 4) + little_endian(1, 4);
    entries = entry(0x11A, 5, 1, little_endian(8, 4)) + entry(0x11B, 5, 1, little_endian(16, 4));
  }
  const auto first = static_cast<std::uint32_t>(8 + values.size());
  if (is_srgb) {
    const auto second = static_cast<std::uint32_t>(first + 2 + entries.size() + 12 + 4);
    entries += entry(0x8769, 4, 1, little_endian(second, 4));
    colors = little_endian(4, 2) + entry(0x9000, 7, 4, "0230") +  // version
             entry(0x9101, 7, 4, "\1\2\3\0"s) +                   // components: Y Cb Cr
             entry(0xA000, 7, 4, "0100") +                        // version of FlashPix
             entry(0xA001, 3, 1, little_endian(1, 4)) + no_other;
  }
  const auto count = static_cast<std::uint32_t>(entries.size() / 12);
  return "Exif\0\0II*\0"s + little_endian(first, 4) + values + little_endian(count, 2) + entries + no_other + colors;
}

std::unique_ptr<ImageWriter> create_jpeg(const std::string& path, const ImageInfo& like, const WriteOptions& options) {
  const bool fits = like.h >= 1 && like.h <= largest_extent && like.w >= 1 && like.w <= largest_extent &&
                    (like.c == 1 || like.c == 3) && like.type == DataType::u8 && like.alpha_channel < 0;
  bool keeps = false;
  const PlainMetadata* const kept = metadata_for(like, "jpeg", keeps);
  if (!fits || !keeps || like.orientation != 1) return nullptr;
  return std::make_unique<JpegWriter>(path, like, kept, quality_of(options));
}

}  // namespace omniconv::image::plain
