#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "image/formats/pnm/header.h"
#include "image/formats/pnm/pnm.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image {
namespace {

constexpr std::byte black{0}, white{255};

// Raw PBM: eight pixels a byte, the leftmost in the highest bit; rows begin at whole bytes.
class BitReader final : public ImageReader {
 public:
  BitReader(std::shared_ptr<const InputFile> file, const PnmHeader& header)
      : file_(std::move(file)), info_(header.info), data_offset_(header.data_offset) {
    info_.resident_bytes = packed_bytes();
  }

  const ImageInfo& info() const override { return info_; }

  void read_rows(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_->path());
    packed_.resize(static_cast<std::size_t>(packed_bytes()));
    for (std::int64_t i = 0; i < count; ++i) {
      file_->read_at(data_offset_ + (first + i) * packed_bytes(), packed_.data(), packed_bytes());
      std::byte* row = to + i * stride_bytes;
      for (std::int64_t x = 0; x < info_.w; ++x) {
        const auto bits = std::to_integer<unsigned>(packed_[static_cast<std::size_t>(x / 8)]);
        row[x] = (bits >> (7 - x % 8)) & 1u ? black : white;
      }
    }
  }

 private:
  std::int64_t packed_bytes() const { return (info_.w - 1) / 8 + 1; }

  std::shared_ptr<const InputFile> file_;
  ImageInfo info_;
  std::int64_t data_offset_;
  std::vector<std::byte> packed_;
};

// Plain files: samples as text, which can only be read in order.
class PlainReader final : public ImageReader {
 public:
  PlainReader(std::shared_ptr<const InputFile> file, const PnmHeader& header)
      : file_(std::move(file)), header_(header), bytes_(*file_, header.data_offset, buffer_bytes) {
    header_.info.resident_bytes = buffer_bytes;
  }

  const ImageInfo& info() const override { return header_.info; }

  void read_rows(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) override {
    check_rows(info(), first, count, file_->path());
    if (count == 0) return;
    if (first < next_row_ || inside_row_) {
      bytes_ = ByteReader(*file_, header_.data_offset, buffer_bytes);
      next_row_ = 0;
    }
    inside_row_ = true;
    // Rows that are passed over are read into the first row's place.
    for (; next_row_ < first; ++next_row_) read_row(to);
    for (std::int64_t i = 0; i < count; ++i, ++next_row_) read_row(to + i * stride_bytes);
    inside_row_ = false;
  }

 private:
  static constexpr std::int64_t buffer_bytes = 65536;

  static bool is_space(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  int next_visible() {
    int c = bytes_.next();
    while (is_space(c) || c == '#') {
      if (c == '#')
        while (c != '\n' && c != -1) c = bytes_.next();
      if (c != -1) c = bytes_.next();
    }
    return c;
  }

  [[noreturn]] void fail(int found, std::int64_t sample, std::string_view expected) const {
    if (found == -1)
      throw bad_input(fmt::format("{} is cut short: it ends in row {} of {}", file_->path(), next_row_, info().h));
    throw bad_input(fmt::format("{}: row {}, column {}: expected {}, found byte {}", file_->path(), next_row_,
                                sample / info().c, expected, found));
  }

  void read_row(std::byte* row) {
    const std::int64_t samples = info().w * info().c;
    for (std::int64_t i = 0; i < samples; ++i) {
      if (header_.is_bits()) {
        const int c = next_visible();
        if (c != '0' && c != '1') fail(c, i, "0 or 1");
        row[i] = c == '1' ? black : white;
      } else {
        const std::int64_t value = read_number(i);
        if (info().type == DataType::u8) {
          row[i] = static_cast<std::byte>(value);
        } else {
          const auto stored = static_cast<std::uint16_t>(value);
          std::memcpy(row + 2 * i, &stored, sizeof stored);
        }
      }
    }
  }

  std::int64_t read_number(std::int64_t sample) {
    int c = next_visible();
    if (c < '0' || c > '9') fail(c, sample, "a number");
    std::int64_t value = 0;
    for (; c >= '0' && c <= '9'; c = bytes_.next()) {
      value = value * 10 + (c - '0');
      if (value > header_.max_value)
        throw bad_input(fmt::format("{}: row {}, column {} has a value above {}, the highest that its header allows",
                                    file_->path(), next_row_, sample / info().c, header_.max_value));
    }
    if (c == '#')
      while (c != '\n' && c != -1) c = bytes_.next();
    // A number that ends with the file may have lost digits: the format asks for white space after each.
    if (c == -1)
      throw bad_input(
          fmt::format("{} may be cut short: its last number ends with the file; a plain image ends in white "
                      "space, so add a line end if it is whole",
                      file_->path()));
    if (!is_space(c)) fail(c, sample, "white space after a number");
    return value;
  }

  std::shared_ptr<const InputFile> file_;
  PnmHeader header_;
  ByteReader bytes_;
  std::int64_t next_row_ = 0;
  bool inside_row_ = false;  // after an error: where the next row begins is not known
};

// Where the image after one that ends at `end` begins, or -1.
std::int64_t next_image(const InputFile& file, std::int64_t end) {
  ByteReader bytes(file, end, 64);
  int c = bytes.next();
  while (c == ' ' || (c >= '\t' && c <= '\r')) c = bytes.next();
  if (c == -1) return -1;
  const std::int64_t begin = bytes.offset() - 1;
  if (!is_pnm(file.read_some(begin, 3)))
    throw bad_input(fmt::format("{}: {} bytes follow its last image; expected the end of the file or another image",
                                file.path(), file.size() - end));
  return begin;
}

void check_length(const InputFile& file, const PnmHeader& header) {
  const std::int64_t needed = header.data_end(file.path());
  if (file.size() < needed)
    throw bad_input(fmt::format("{} is cut short: {} x {} x {} pixels need at least {} bytes, the file has {}",
                                file.path(), header.info.h, header.info.w, header.info.c, needed, file.size()));
}

// How many images there are, as far as the page that is sought (0: to the end), whose header goes to `chosen`; that of
// the first where it is 0.
int find_page(const InputFile& file, int page, PnmHeader& chosen) {
  int pages = 0;
  for (std::int64_t begin = 0; begin >= 0;) {
    PnmHeader header = read_pnm_header(file, begin);
    check_length(file, header);
    ++pages;
    // A plain file holds one image, which any text may follow.
    begin = header.is_plain() ? -1 : next_image(file, header.data_end(file.path()));
    if (pages == std::max(page, 1)) chosen = std::move(header);
    if (pages == page) break;
  }
  return pages;
}

}  // namespace

int count_images_of_pnm(const InputFile& file) {
  PnmHeader first;
  return find_page(file, 0, first);
}

std::unique_ptr<ImageReader> open_pnm(std::shared_ptr<const InputFile> file, int page) {
  PnmHeader chosen;
  const int pages = find_page(*file, page, chosen);
  if (page == 0 && pages > 1)
    throw bad_input(fmt::format("{} holds {} images; choose one with --page N", file->path(), pages));
  if (page > pages || page < 0)
    throw bad_input(fmt::format("{} holds {} images; there is no page {}", file->path(), pages, page));

  if (chosen.is_plain()) return std::make_unique<PlainReader>(std::move(file), chosen);
  if (chosen.is_bits()) return std::make_unique<BitReader>(std::move(file), chosen);
  return make_raster_reader(std::move(file), chosen.info,
                            {.offset = chosen.data_offset, .swapped = chosen.swapped, .bottom_up = chosen.is_float()});
}

}  // namespace omniconv::image
