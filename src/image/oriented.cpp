#include "image/oriented.h"

#include <cstring>
#include <utility>
#include <vector>

#include "image/raster.h"

namespace omniconv::image {
namespace {

// Where the pixel (y, x) of an image of h x w, stored with an Exif orientation, stands when upright.
struct Place {
  std::int64_t y, x;
};
Place upright_place(int orientation, std::int64_t y, std::int64_t x, std::int64_t h, std::int64_t w) {
  switch (orientation) {
    case 2: return {y, w - 1 - x};          // mirrored
    case 3: return {h - 1 - y, w - 1 - x};  // turned by 180 degrees
    case 4: return {h - 1 - y, x};          // upside down
    case 5: return {x, y};                  // rows and columns exchanged
    case 6: return {x, h - 1 - y};          // to be turned clockwise
    case 7: return {w - 1 - x, h - 1 - y};
    case 8: return {w - 1 - x, y};  // to be turned counter-clockwise
    default: return {y, x};
  }
}

class UprightWriter final : public ImageWriter {
 public:
  UprightWriter(std::unique_ptr<ImageWriter> writer, const ImageInfo& stored, const std::string& path)
      : writer_(std::move(writer)), stored_(stored), upright_(upright(stored)), path_(path) {
    total_bytes_ = raster_bytes(stored_, path_);
  }

  std::int64_t resident_bytes() const override { return total_bytes_ + writer_->resident_bytes(); }

  void write_rows(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) override {
    check_rows(stored_, first, count, path_);
    check_next_row(first, rows_written_, path_);
    pixels_.resize(static_cast<std::size_t>(total_bytes_));
    const std::int64_t pixel_bytes = stored_.c * size_of(stored_.type);
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t x = 0; x < stored_.w; ++x) {
        const Place place = upright_place(stored_.orientation, first + i, x, stored_.h, stored_.w);
        std::memcpy(pixels_.data() + (place.y * upright_.w + place.x) * pixel_bytes,
                    from + i * stride_bytes + x * pixel_bytes, static_cast<std::size_t>(pixel_bytes));
      }
    rows_written_ += count;
  }

  void finish() override {
    check_complete(rows_written_, stored_.h, path_);
    writer_->write_rows(0, upright_.h, pixels_.data(), row_bytes(upright_));
    writer_->finish();
  }

 private:
  std::unique_ptr<ImageWriter> writer_;
  ImageInfo stored_, upright_;
  std::string path_;
  std::int64_t total_bytes_ = 0;
  std::vector<std::byte> pixels_;
  std::int64_t rows_written_ = 0;
};

}  // namespace

ImageInfo upright(const ImageInfo& stored) {
  ImageInfo result = stored;
  result.orientation = 1;
  if (stored.orientation >= 5 && stored.orientation <= 8) std::swap(result.h, result.w);
  return result;
}

std::unique_ptr<ImageWriter> make_upright_writer(std::unique_ptr<ImageWriter> upright_writer, const ImageInfo& stored,
                                                 const std::string& path) {
  return std::make_unique<UprightWriter>(std::move(upright_writer), stored, path);
}

}  // namespace omniconv::image
