#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/quoted.h"
#include "image/formats/plain/plain.h"
#include "image/formats/plain/tiff_handle.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image::plain {
namespace {

class InputBytes final : public TiffBytes {
 public:
  explicit InputBytes(const InputFile& file) : file_(file) {}
  std::int64_t read(void* to, std::int64_t bytes, std::int64_t offset) noexcept override {
    try {
      const std::int64_t there = std::clamp<std::int64_t>(file_.size() - offset, 0, bytes);
      file_.read_at(offset, to, there);
      return there;
    } catch (const std::exception&) {  // libtiff then says what it could not read
      return 0;
    }
  }
  std::int64_t write(const void*, std::int64_t, std::int64_t) noexcept override { return 0; }
  std::int64_t size() const noexcept override { return file_.size(); }

 private:
  const InputFile& file_;
};

class TiffReader final : public ImageReader {
 public:
  TiffReader(std::shared_ptr<const InputFile> file, TiffPage page)
      : file_(std::move(file)), page_(std::move(page)), bytes_(*file_) {
    if (!is_stored_as_in_memory()) tiff_.emplace(bytes_, file_->path(), "rm");
    page_.info.resident_bytes = held_bytes();
  }

  const ImageInfo& info() const override { return page_.info; }
  // libtiff understands the file's directory as it was understood here.
  bool is_open() {
    return !tiff_ || (tiff_->get() != nullptr && tiff_->take_error().empty() &&
                      TIFFScanlineSize64(tiff_->get()) == static_cast<std::uint64_t>(row_bytes(page_.info)));
  }

  void read_rows(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) override {
    check_rows(page_.info, first, count, file_->path());
    for (std::int64_t y = first; y < first + count;) {
      const std::int64_t end = std::min(first + count, (y / page_.block_height + 1) * page_.block_height);
      std::byte* const rows = to + (y - first) * stride_bytes;
      if (!tiff_)
        read_as_stored(y, end, rows, stride_bytes);
      else if (page_.tile_width > 0)
        read_tiles(y, end, rows, stride_bytes);
      else
        decode_strip(y, end, rows, stride_bytes);
      y = end;
    }
  }

 private:
  bool is_stored_as_in_memory() const {
    return page_.compression == COMPRESSION_NONE && !page_.swapped && page_.tile_width == 0;
  }
  // As for other TIFF files: a row of tiles, or a strip as stored; a damaged strip may be larger than its pixels.
  std::int64_t held_bytes() const {
    const std::int64_t rows = page_.block_height * row_bytes(page_.info);
    if (!tiff_) return 0;
    if (page_.tile_width > 0) return rows;
    return std::max(page_.largest_block, std::min(file_->size(), 2 * rows));
  }

  // Rows [y, end) lie in one strip.
  void read_as_stored(std::int64_t y, std::int64_t end, std::byte* to, std::int64_t stride_bytes) const {
    const std::int64_t bytes = row_bytes(page_.info), strip = y / page_.block_height;
    const std::int64_t offset =
        page_.offsets[static_cast<std::size_t>(strip)] + (y - strip * page_.block_height) * bytes;
    if (stride_bytes == bytes) return file_->read_at(offset, to, (end - y) * bytes);
    for (std::int64_t i = 0; i < end - y; ++i) file_->read_at(offset + i * bytes, to + i * stride_bytes, bytes);
  }

  // libtiff goes forward within a strip by decoding, and back by beginning again, of itself; it does not skip.
  void decode_strip(std::int64_t y, std::int64_t end, std::byte* to, std::int64_t stride_bytes) {
    const std::int64_t begin = y / page_.block_height * page_.block_height;
    if (next_row_ > y || next_row_ < begin) next_row_ = begin;
    row_.resize(static_cast<std::size_t>(row_bytes(page_.info)));
    for (; next_row_ < end; ++next_row_) {
      std::byte* const row = next_row_ < y ? row_.data() : to + (next_row_ - y) * stride_bytes;
      check(TIFFReadScanline(tiff_->get(), row, static_cast<std::uint32_t>(next_row_)) == 1);
    }
  }

  void read_tiles(std::int64_t y, std::int64_t end, std::byte* to, std::int64_t stride_bytes) {
    const std::int64_t band = y / page_.block_height, bytes = row_bytes(page_.info);
    if (band != band_) load_band(band);
    for (std::int64_t i = 0; i < end - y; ++i)
      std::memcpy(to + i * stride_bytes, rows_of_band_.data() + (y + i - band * page_.block_height) * bytes,
                  static_cast<std::size_t>(bytes));
  }

  void load_band(std::int64_t band) {
    band_ = -1;
    const ImageInfo& info = page_.info;
    const std::int64_t pixel = info.c * size_of(info.type), tile_row = page_.tile_width * pixel;
    tile_.resize(static_cast<std::size_t>(page_.block_height * tile_row));
    rows_of_band_.resize(static_cast<std::size_t>(page_.block_height * row_bytes(info)));
    const std::int64_t across = (info.w - 1) / page_.tile_width + 1;
    for (std::int64_t i = 0; i < across; ++i) {
      const auto size = static_cast<tmsize_t>(tile_.size());
      check(TIFFReadEncodedTile(tiff_->get(), static_cast<std::uint32_t>(band * across + i), tile_.data(), size) ==
            size);
      const std::int64_t columns = std::min(page_.tile_width, info.w - i * page_.tile_width);
      for (std::int64_t row = 0; row < page_.block_height; ++row)
        std::memcpy(rows_of_band_.data() + row * row_bytes(info) + i * tile_row, tile_.data() + row * tile_row,
                    static_cast<std::size_t>(columns * pixel));
    }
    band_ = band;
  }

  void check(bool success) {
    std::string reason = tiff_->take_error();
    if (success && reason.empty()) return;
    next_row_ = -1;
    if (reason.empty()) reason = "its decoder failed";
    throw bad_input(fmt::format("{} is damaged or cut short: {}", file_->path(), reason));
  }

  std::shared_ptr<const InputFile> file_;
  TiffPage page_;
  InputBytes bytes_;
  std::optional<TiffHandle> tiff_;
  std::int64_t next_row_ = -1;  // that libtiff would decode
  std::int64_t band_ = -1;      // the row of tiles that rows_of_band_ holds
  std::vector<std::byte> row_, tile_, rows_of_band_;
};

}  // namespace

std::unique_ptr<ImageReader> open_tiff(std::shared_ptr<const InputFile> file, std::int64_t max_resident_bytes) {
  auto page = plain_tiff(*file);
  if (!page) return nullptr;
  auto reader = std::make_unique<TiffReader>(std::move(file), *std::move(page));
  if (!reader->is_open() || reader->info().resident_bytes > max_resident_bytes) return nullptr;
  return reader;
}

}  // namespace omniconv::image::plain
