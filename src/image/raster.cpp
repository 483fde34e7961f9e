#include "image/raster.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "image/atomic_file.h"
#include "omniconv/error.h"

namespace omniconv::image {
namespace {

void swap_bytes(std::byte* data, std::int64_t count, std::int64_t element_bytes) {
  const auto swap = [data, count]<typename Word>(Word word, auto swapped) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::byte* at = data + i * static_cast<std::int64_t>(sizeof word);
      std::memcpy(&word, at, sizeof word);
      word = swapped(word);
      std::memcpy(at, &word, sizeof word);
    }
  };
  switch (element_bytes) {
    case 2: return swap(std::uint16_t{}, [](std::uint16_t w) { return __builtin_bswap16(w); });
    case 4: return swap(std::uint32_t{}, [](std::uint32_t w) { return __builtin_bswap32(w); });
    case 8: return swap(std::uint64_t{}, [](std::uint64_t w) { return __builtin_bswap64(w); });
    default: return;
  }
}

template <typename Integer>
Integer largest(const std::byte* row, std::int64_t count) {
  Integer result = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Integer value = 0;
    std::memcpy(&value, row + i * static_cast<std::int64_t>(sizeof value), sizeof value);
    result = std::max(result, value);
  }
  return result;
}

template <typename Integer>
void clamp_above(std::byte* row, std::int64_t count, Integer limit) {
  for (std::int64_t i = 0; i < count; ++i) {
    Integer value = 0;
    std::byte* at = row + i * static_cast<std::int64_t>(sizeof value);
    std::memcpy(&value, at, sizeof value);
    value = std::min(value, limit);
    std::memcpy(at, &value, sizeof value);
  }
}

class RasterReader final : public ImageReader {
 public:
  RasterReader(std::shared_ptr<const InputFile> file, const ImageInfo& info, const RasterLayout& layout)
      : file_(std::move(file)), info_(info), layout_(layout) {}

  const ImageInfo& info() const override { return info_; }

  void read_rows(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_->path());
    const std::int64_t bytes = row_bytes(info_);
    if (stride_bytes == bytes && !layout_.bottom_up) {
      file_->read_at(layout_.offset + first * bytes, to, count * bytes);
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t stored = layout_.bottom_up ? info_.h - 1 - (first + i) : first + i;
        file_->read_at(layout_.offset + stored * bytes, to + i * stride_bytes, bytes);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) finish_row(to + i * stride_bytes, first + i);
  }

 private:
  void finish_row(std::byte* row, std::int64_t index) const {
    const std::int64_t elements = info_.w * info_.c;
    if (layout_.swapped) swap_bytes(row, elements, size_of(info_.type));
    if (info_.max_value == 0) return;
    const unsigned found =
        info_.type == DataType::u8 ? largest<std::uint8_t>(row, elements) : largest<std::uint16_t>(row, elements);
    if (found > info_.max_value)
      throw bad_input(fmt::format("{}: row {} has the value {}, but the header says that none is above {}",
                                  file_->path(), index, found, info_.max_value));
  }

  std::shared_ptr<const InputFile> file_;
  ImageInfo info_;
  RasterLayout layout_;
};

class RasterWriter final : public ImageWriter {
 public:
  RasterWriter(const std::string& path, const ImageInfo& info, std::string_view header, RasterLayout layout)
      : file_(path), info_(info), header_(header), layout_(layout) {
    layout_.offset = static_cast<std::int64_t>(header.size());
    whole_bytes_ = checked_add(layout_.offset, raster_bytes(info, path), path);
    // Whole rows, about a megabyte of them; one row at least.
    buffer_rows_ = std::clamp<std::int64_t>((std::int64_t{1} << 20) / row_bytes(info), 1, info.h);
  }

  std::int64_t resident_bytes() const override { return buffer_rows_ * row_bytes(info_); }

  void write_rows(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_.path());
    check_next_row(first, rows_written_, file_.path());
    if (first == 0 && count > 0) begin();
    const std::int64_t bytes = row_bytes(info_);
    const bool as_it_is = !layout_.swapped && info_.max_value == 0;
    if (as_it_is && stride_bytes == bytes && !layout_.bottom_up) {
      file_.write_at(layout_.offset + first * bytes, from, count * bytes);
    } else {
      buffer_.resize(static_cast<std::size_t>(buffer_rows_ * bytes));
      for (std::int64_t i = 0; i < count; i += buffer_rows_)
        write_block(first + i, std::min(buffer_rows_, count - i), from + i * stride_bytes, stride_bytes);
    }
    rows_written_ += count;
  }

  void finish() override {
    check_complete(rows_written_, info_.h, file_.path());
    file_.commit();
  }

 private:
  // Not before: a writer that is made to see what it would need takes no disk.
  void begin() {
    file_.reserve(whole_bytes_);
    file_.write_at(0, header_.data(), layout_.offset);
  }

  void write_block(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) {
    const std::int64_t bytes = row_bytes(info_);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t slot = layout_.bottom_up ? count - 1 - i : i;
      std::memcpy(buffer_.data() + slot * bytes, from + i * stride_bytes, static_cast<std::size_t>(bytes));
    }
    const std::int64_t elements = count * info_.w * info_.c;
    if (info_.max_value != 0 && info_.type == DataType::u8)
      clamp_above(buffer_.data(), elements, static_cast<std::uint8_t>(info_.max_value));
    if (info_.max_value != 0 && info_.type == DataType::u16)
      clamp_above(buffer_.data(), elements, static_cast<std::uint16_t>(info_.max_value));
    if (layout_.swapped) swap_bytes(buffer_.data(), elements, size_of(info_.type));
    const std::int64_t stored = layout_.bottom_up ? info_.h - first - count : first;
    file_.write_at(layout_.offset + stored * bytes, buffer_.data(), count * bytes);
  }

  AtomicFile file_;
  ImageInfo info_;
  std::string header_;
  RasterLayout layout_;
  std::int64_t whole_bytes_ = 0;
  std::int64_t buffer_rows_ = 1;
  std::vector<std::byte> buffer_;
  std::int64_t rows_written_ = 0;
};

}  // namespace

std::int64_t raster_bytes(const ImageInfo& info, std::string_view source) {
  if (info.h < 1 || info.w < 1 || info.c < 1)
    throw bad_input(fmt::format("{}: an image of {} rows, {} columns and {} channels has no pixels", source, info.h,
                                info.w, info.c));
  const std::string what = fmt::format("{}: the size of the image", source);
  return checked_multiply(checked_multiply(checked_multiply(info.w, info.c, what), size_of(info.type), what), info.h,
                          what);
}

void check_rows(const ImageInfo& info, std::int64_t first, std::int64_t count, std::string_view source) {
  if (first < 0 || count < 0 || first > info.h || count > info.h - first)
    throw bad_input(
        fmt::format("{}: rows {} to {} were asked for; it has {}", source, first, first + count - 1, info.h));
}

void check_next_row(std::int64_t first, std::int64_t written, std::string_view path) {
  if (first != written)
    throw bad_input(fmt::format("{}: row {} was written where row {} was due", path, first, written));
}

void check_complete(std::int64_t written, std::int64_t h, std::string_view path) {
  if (written != h) throw bad_input(fmt::format("{}: {} of {} rows were written", path, written, h));
}

std::unique_ptr<ImageReader> make_raster_reader(std::shared_ptr<const InputFile> file, const ImageInfo& info,
                                                const RasterLayout& layout) {
  const std::int64_t needed = checked_add(layout.offset, raster_bytes(info, file->path()), file->path());
  if (file->size() < needed)
    throw bad_input(fmt::format("{} is cut short: {} x {} x {} pixels of {} need {} bytes, the file has {}",
                                file->path(), info.h, info.w, info.c, name(info.type), needed, file->size()));
  return std::make_unique<RasterReader>(std::move(file), info, layout);
}

std::unique_ptr<ImageWriter> make_raster_writer(const std::string& path, const ImageInfo& info, std::string_view header,
                                                RasterLayout layout) {
  raster_bytes(info, path);
  return std::make_unique<RasterWriter>(path, info, header, layout);
}

}  // namespace omniconv::image
