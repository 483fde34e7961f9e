#include "image/opacity_dropped.h"

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "core/convert.h"
#include "image/raster.h"

namespace omniconv::image {
namespace {

class ReaderWithoutOpacity final : public ImageReader {
 public:
  explicit ReaderWithoutOpacity(std::unique_ptr<ImageReader> reader)
      : reader_(std::move(reader)), info_(reader_->info()) {
    row_.resize(static_cast<std::size_t>(row_bytes(info_)));
    info_.c -= 1;
    info_.alpha_channel = -1;
    info_.associated_alpha = false;
    info_.resident_bytes += std::ssize(row_);
  }

  const ImageInfo& info() const override { return info_; }

  void read_rows(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) override {
    const auto size = static_cast<std::size_t>(size_of(info_.type)), channels = static_cast<std::size_t>(info_.c);
    const std::size_t before = static_cast<std::size_t>(reader_->info().alpha_channel) * size;  // bytes of colours
    const std::size_t after = channels * size - before;
    for (std::int64_t i = 0; i < count; ++i) {
      reader_->read_rows(first + i, 1, row_.data(), std::ssize(row_));
      const std::byte* from = row_.data();
      std::byte* out = to + i * stride_bytes;
      for (std::int64_t x = 0; x < info_.w; ++x) {
        std::memcpy(out, from, before);
        std::memcpy(out + before, from + before + size, after);
        from += before + size + after;
        out += before + after;
      }
    }
  }

 private:
  std::unique_ptr<ImageReader> reader_;
  ImageInfo info_;
  std::vector<std::byte> row_;
};

}  // namespace

bool is_opaque(ImageReader& reader) {
  const ImageInfo& info = reader.info();
  const double white = !is_integer(info.type) ? 1 : info.max_value > 0 ? info.max_value : highest_value(info.type);
  const std::int64_t size = size_of(info.type);
  std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(info)));
  for (std::int64_t y = 0; y < info.h; ++y) {
    reader.read_rows(y, 1, row.data(), std::ssize(row));
    for (std::int64_t x = 0; x < info.w; ++x)
      if (load_element(info.type, row.data() + (x * info.c + info.alpha_channel) * size) != white) return false;
  }
  return true;
}

std::unique_ptr<ImageReader> drop_opacity(std::unique_ptr<ImageReader> reader) {
  return std::make_unique<ReaderWithoutOpacity>(std::move(reader));
}

}  // namespace omniconv::image
