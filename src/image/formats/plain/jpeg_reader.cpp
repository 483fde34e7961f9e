#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "image/formats/plain/jpeg_guard.h"
#include "image/formats/plain/plain.h"
#include "image/raster.h"
#include "omniconv/error.h"

// It uses macros of jpeglib.h.
#include <jerror.h>

namespace omniconv::image::plain {
namespace {

constexpr int exif_marker = JPEG_APP0 + 1, profile_marker = JPEG_APP0 + 2, photoshop_marker = JPEG_APP0 + 13;

// Where libjpeg takes a file's bytes from.
class JpegSource {
 public:
  explicit JpegSource(const InputFile& file) : file_(file) {
    manager_.self = this;
    manager_.base.init_source = [](j_decompress_ptr) {};
    manager_.base.fill_input_buffer = &fill;
    manager_.base.skip_input_data = &skip;
    manager_.base.resync_to_restart = &jpeg_resync_to_restart;
    manager_.base.term_source = [](j_decompress_ptr) {};
  }
  jpeg_source_mgr* manager() { return &manager_.base; }
  void rewind() {
    offset_ = 0;
    begin_ = end_ = 0;
    manager_.base.bytes_in_buffer = 0;
  }

 private:
  struct Manager {
    jpeg_source_mgr base{};
    JpegSource* self = nullptr;
  };
  static JpegSource& of(j_decompress_ptr codec) { return *reinterpret_cast<Manager*>(codec->src)->self; }

  // What cannot be read is missing.
  void read() noexcept {
    begin_ = end_ = 0;
    const auto there = std::clamp<std::int64_t>(file_.size() - offset_, 0, static_cast<std::int64_t>(buffer_.size()));
    try {
      file_.read_at(offset_, buffer_.data(), there);
    } catch (const std::exception&) {
      return;
    }
    offset_ += there;
    end_ = static_cast<std::size_t>(there);
  }
  // As libjpeg's own source does, an end is made up, and a warning given.
  static boolean fill(j_decompress_ptr codec) {
    JpegSource& source = of(codec);
    if (source.begin_ == source.end_) source.read();
    if (source.begin_ == source.end_) {
      WARNMS(codec, JWRN_JPEG_EOF);
      source.buffer_[0] = 0xFF;
      source.buffer_[1] = JPEG_EOI;
      source.end_ = 2;
    }
    codec->src->next_input_byte = source.buffer_.data() + source.begin_;
    codec->src->bytes_in_buffer = std::min(given_bytes, source.end_ - source.begin_);
    source.begin_ += codec->src->bytes_in_buffer;
    return TRUE;
  }
  static void skip(j_decompress_ptr codec, long bytes) {
    for (auto left = static_cast<std::size_t>(std::max(bytes, 0L)); left > 0;) {
      if (codec->src->bytes_in_buffer == 0) fill(codec);
      const std::size_t here = std::min(left, codec->src->bytes_in_buffer);
      codec->src->next_input_byte += here;
      codec->src->bytes_in_buffer -= here;
      left -= here;
    }
  }

  // Near the end of what it is given, libjpeg-turbo decodes with care and sees damage that it else passes over. So it
  // is given as much at a time as its own source of files gives.
  static constexpr std::size_t given_bytes = 4096;

  const InputFile& file_;
  std::int64_t offset_ = 0;
  Manager manager_;
  std::array<JOCTET, 1 << 16> buffer_{};
  std::size_t begin_ = 0, end_ = 0;  // of what was read and not yet given
};

class JpegReader final : public ImageReader {
 public:
  explicit JpegReader(std::shared_ptr<const InputFile> file) : file_(std::move(file)), source_(*file_) {
    codec_.err = guard_.handlers();
    is_made_ = guard_.guarded([this] { jpeg_create_decompress(&codec_); });
    codec_.src = source_.manager();
  }
  ~JpegReader() override {
    if (is_made_) jpeg_destroy_decompress(&codec_);
  }

  // False for what is not plain, or of which libjpeg complains.
  bool open() {
    if (!is_made_ || !read_header() || !is_plain() || !describe()) return false;
    return start();
  }

  const ImageInfo& info() const override { return info_; }

  void read_rows(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_->path());
    if (first < next_row_) {
      jpeg_abort_decompress(&codec_);
      source_.rewind();
      next_row_ = 0;
      check(read_header() && start());
    }
    for (; next_row_ < first && count > 0; ++next_row_) check(decode(1, to, 0));
    if (count > 0) check(decode(count, to, stride_bytes));
    if (count > 0) next_row_ = first + count;
  }

 private:
  bool read_header() {
    return guard_.guarded([this] {
      // Of these it is enough to know that they are there.
      jpeg_save_markers(&codec_, JPEG_COM, 1);
      jpeg_save_markers(&codec_, photoshop_marker, 1);
      jpeg_save_markers(&codec_, exif_marker, 256);
      jpeg_save_markers(&codec_, profile_marker, 0xFFFF);
      jpeg_read_header(&codec_, TRUE);
    });
  }
  bool start() {
    return guard_.guarded([this] { jpeg_start_decompress(&codec_); }) && guard_.complaint().empty();
  }

  // In one scan, which is decoded row by row, and of colours that are decoded to themselves.
  bool is_plain() const {
    const bool gray = codec_.num_components == 1 && codec_.jpeg_color_space == JCS_GRAYSCALE;
    const bool color =
        codec_.num_components == 3 && (codec_.jpeg_color_space == JCS_YCbCr || codec_.jpeg_color_space == JCS_RGB);
    return (gray || color) && codec_.data_precision == 8 && codec_.progressive_mode == FALSE &&
           codec_.arith_code == FALSE && codec_.comps_in_scan == codec_.num_components && codec_.comp_info != nullptr &&
           guard_.complaint().empty();
  }

  bool describe() {
    auto metadata = std::make_shared<PlainMetadata>();
    metadata->path = file_->path();
    metadata->format = info_.format = "jpeg";
    info_.h = codec_.image_height;
    info_.w = codec_.image_width;
    info_.c = metadata->channels = codec_.num_components;
    info_.type = DataType::u8;
    if (!keep_subsampling(*metadata) || !keep_resolution(*metadata) || !keep_markers(*metadata)) return false;
    info_.metadata = std::move(metadata);
    return true;
  }

  bool keep_subsampling(PlainMetadata& metadata) const {
    if (info_.c == 1) return true;
    const auto is = [this](int i, int across, int down) {
      return codec_.comp_info[i].h_samp_factor == across && codec_.comp_info[i].v_samp_factor == down;
    };
    metadata.subsampling = {codec_.comp_info[0].h_samp_factor, codec_.comp_info[0].v_samp_factor};
    return is(1, 1, 1) && is(2, 1, 1) && (is(0, 1, 1) || is(0, 2, 1) || is(0, 2, 2));
  }

  bool keep_resolution(PlainMetadata& metadata) const {
    const float x = codec_.X_density, y = codec_.Y_density;
    if (x == 1 && y == 1 && codec_.density_unit == 0) return true;
    if (x <= 1 || y <= 1 || (codec_.density_unit != 1 && codec_.density_unit != 2)) return false;
    metadata.resolution = Resolution{.x = x, .y = y, .unit = codec_.density_unit == 1 ? Unit::inch : Unit::centimetre};
    return true;
  }

  // Of Exif, only what OpenImageIO and the other writer here write by themselves.
  bool keep_markers(PlainMetadata& metadata) {
    bool has_profile = false;
    for (jpeg_saved_marker_ptr marker = codec_.marker_list; marker != nullptr; marker = marker->next) {
      if (marker->marker == profile_marker) {
        has_profile = true;
        continue;
      }
      if (marker->marker != exif_marker || marker->data_length != marker->original_length) return false;
      const std::string_view content(reinterpret_cast<const char*>(marker->data), marker->data_length);
      metadata.has_exif = content == exif_block(true, metadata.resolution);
      if (!metadata.has_exif && content != exif_block(false, metadata.resolution) && content != exif_block(false, {}))
        return false;
    }
    return !has_profile || keep_profile(metadata);
  }

  bool keep_profile(PlainMetadata& metadata) {
    JOCTET* data = nullptr;
    unsigned int size = 0;
    const bool read = guard_.guarded([&] { jpeg_read_icc_profile(&codec_, &data, &size); });
    const std::unique_ptr<JOCTET, decltype(&std::free)> owned(data, &std::free);
    if (!read || data == nullptr || size == 0) return false;
    metadata.profile.assign(reinterpret_cast<const char*>(data), size);
    return true;
  }

  // False when libjpeg gave up.
  bool decode(std::int64_t count, std::byte* to, std::int64_t stride_bytes) {
    return guard_.guarded([&] {
      for (std::int64_t done = 0; done < count;) {
        std::array<JSAMPROW, 16> rows{};
        const std::int64_t wanted = std::min<std::int64_t>(count - done, 16);
        for (std::int64_t i = 0; i < wanted; ++i)
          rows[static_cast<std::size_t>(i)] = reinterpret_cast<JSAMPROW>(to + (done + i) * stride_bytes);
        done += jpeg_read_scanlines(&codec_, rows.data(), static_cast<JDIMENSION>(wanted));
      }
    });
  }

  void check(bool success) {
    const std::string complaint = guard_.complaint();
    if (success && complaint.empty()) return;
    next_row_ = info_.h;  // what follows begins again
    throw bad_input(fmt::format("{} is damaged or cut short: {}", file_->path(),
                                complaint.empty() ? "its decoder failed" : complaint));
  }

  std::shared_ptr<const InputFile> file_;
  JpegGuard guard_;
  JpegSource source_;
  jpeg_decompress_struct codec_{};
  bool is_made_ = false;
  ImageInfo info_;
  std::int64_t next_row_ = 0;
};

}  // namespace

std::unique_ptr<ImageReader> open_jpeg(std::shared_ptr<const InputFile> file) {
  auto reader = std::make_unique<JpegReader>(std::move(file));
  if (!reader->open()) return nullptr;
  return reader;
}

}  // namespace omniconv::image::plain
