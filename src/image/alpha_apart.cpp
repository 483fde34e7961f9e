#include "image/alpha_apart.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "image/raster.h"

namespace omniconv::image {
namespace {

template <typename Integer>
void divide_row(std::byte* row, const ImageInfo& info, std::uint64_t white) {
  const auto load = [row](std::int64_t i) {
    Integer value = 0;
    std::memcpy(&value, row + i * static_cast<std::int64_t>(sizeof value), sizeof value);
    return static_cast<std::uint64_t>(value);
  };
  for (std::int64_t pixel = 0; pixel < info.w * info.c; pixel += info.c) {
    const std::uint64_t opacity = load(pixel + info.alpha_channel);
    if (opacity == 0) continue;
    for (std::int64_t i = 0; i < info.c; ++i) {
      if (i == info.alpha_channel) continue;
      const auto color = static_cast<Integer>(std::min(white, (load(pixel + i) * white + opacity / 2) / opacity));
      std::memcpy(row + (pixel + i) * static_cast<std::int64_t>(sizeof color), &color, sizeof color);
    }
  }
}

class AlphaApartWriter final : public ImageWriter {
 public:
  AlphaApartWriter(std::unique_ptr<ImageWriter> writer, const ImageInfo& info)
      : writer_(std::move(writer)), info_(info) {
    white_ = static_cast<std::uint64_t>(info.max_value != 0 ? info.max_value : highest_value(info.type));
  }

  std::int64_t resident_bytes() const override { return writer_->resident_bytes() + row_bytes(info_); }

  void write_rows(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) override {
    row_.resize(static_cast<std::size_t>(row_bytes(info_)));
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(row_.data(), from + i * stride_bytes, row_.size());
      if (info_.type == DataType::u8)
        divide_row<std::uint8_t>(row_.data(), info_, white_);
      else
        divide_row<std::uint16_t>(row_.data(), info_, white_);
      writer_->write_rows(first + i, 1, row_.data(), row_bytes(info_));
    }
  }

  void finish() override { writer_->finish(); }

 private:
  std::unique_ptr<ImageWriter> writer_;
  ImageInfo info_;
  std::uint64_t white_ = 255;
  std::vector<std::byte> row_;
};

}  // namespace

std::unique_ptr<ImageWriter> make_alpha_apart_writer(std::unique_ptr<ImageWriter> writer, const ImageInfo& associated) {
  return std::make_unique<AlphaApartWriter>(std::move(writer), associated);
}

}  // namespace omniconv::image
