#include <fmt/format.h>

#include <bit>
#include <utility>

#include "image/formats/plain/plain.h"
#include "image/formats/plain/png_guard.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image::plain {
namespace {

class PngReader final : public ImageReader {
 public:
  explicit PngReader(std::shared_ptr<const InputFile> file) : file_(std::move(file)) {}
  ~PngReader() override { forget(); }

  // False for what libpng refuses, or of which it complains: a profile that is_valid_profile() would refuse, too.
  bool open(std::shared_ptr<const PlainMetadata> metadata) {
    if (!start() || guard_.has_warned()) return false;
    info_.h = png_get_image_height(png_, header_);
    info_.w = png_get_image_width(png_, header_);
    info_.c = png_get_channels(png_, header_);
    info_.type = png_get_bit_depth(png_, header_) == 16 ? DataType::u16 : DataType::u8;
    info_.format = "png";
    if (info_.c % 2 == 0) info_.alpha_channel = static_cast<int>(info_.c) - 1;
    info_.metadata = std::move(metadata);
    return true;
  }

  const ImageInfo& info() const override { return info_; }

  void read_rows(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_->path());
    if (count == 0) return;
    if (first < next_row_) check(start());
    check(guard_.guarded([&] {
      for (; next_row_ < first; ++next_row_) png_read_row(png_, nullptr, nullptr);
      for (; next_row_ < first + count; ++next_row_)
        png_read_row(png_, reinterpret_cast<png_bytep>(to + (next_row_ - first) * stride_bytes), nullptr);
    }));
  }

 private:
  // What cannot be read is missing.
  static void read(png_structp png, png_bytep to, std::size_t bytes) {
    if (!static_cast<PngReader*>(png_get_io_ptr(png))->has_read(to, bytes)) png_error(png, "Read Error");
  }
  bool has_read(void* to, std::size_t bytes) noexcept {
    try {
      file_->read_at(offset_, to, static_cast<std::int64_t>(bytes));
    } catch (const std::exception&) {
      return false;
    }
    offset_ += static_cast<std::int64_t>(bytes);
    return true;
  }

  // From the beginning of the file to the first row.
  bool start() {
    forget();
    offset_ = next_row_ = 0;
    return guard_.guarded([this] {
      png_ = guard_.make();
      if (png_ != nullptr) header_ = png_create_info_struct(png_);
      if (header_ == nullptr) return;
      png_set_read_fn(png_, this, &read);
      png_read_info(png_, header_);
      if constexpr (std::endian::native == std::endian::little)
        if (png_get_bit_depth(png_, header_) == 16) png_set_swap(png_);
      png_read_update_info(png_, header_);
    }) && header_ != nullptr;
  }

  void forget() {
    if (png_ != nullptr) png_destroy_read_struct(&png_, &header_, nullptr);
  }

  void check(bool success) {
    if (success) return;
    next_row_ = info_.h;  // what follows begins again
    const std::string complaint = guard_.complaint();
    throw bad_input(fmt::format("{} is damaged or cut short: PNG read error: {}", file_->path(),
                                complaint.empty() ? "out of memory" : complaint));
  }

  std::shared_ptr<const InputFile> file_;
  PngGuard guard_;
  png_structp png_ = nullptr;
  png_infop header_ = nullptr;
  ImageInfo info_;
  std::int64_t offset_ = 0, next_row_ = 0;
};

}  // namespace

std::unique_ptr<ImageReader> open_png(std::shared_ptr<const InputFile> file) {
  auto metadata = plain_png(*file);
  if (metadata == nullptr) return nullptr;
  auto reader = std::make_unique<PngReader>(std::move(file));
  if (!reader->open(std::move(metadata))) return nullptr;
  return reader;
}

}  // namespace omniconv::image::plain
