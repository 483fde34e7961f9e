#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "image/atomic_file.h"
#include "image/formats/pnm/pnm.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image {
namespace {

// One bit a pixel, which can hold black and white and nothing between.
class BitWriter final : public ImageWriter {
 public:
  BitWriter(const std::string& path, const ImageInfo& info) : file_(path), info_(info) {}

  std::int64_t resident_bytes() const override { return packed_bytes(); }

  void write_rows(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_.path());
    check_next_row(first, rows_written_, file_.path());
    if (first == 0 && count > 0) begin();
    for (std::int64_t i = 0; i < count; ++i) {
      pack(from + i * stride_bytes, first + i);
      file_.write_at(position_, packed_.data(), packed_bytes());
      position_ += packed_bytes();
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
    const std::string header = fmt::format("P4\n{} {}\n", info_.w, info_.h);
    position_ = static_cast<std::int64_t>(header.size());
    file_.reserve(position_ + packed_bytes() * info_.h);
    file_.write_at(0, header.data(), position_);
  }

  std::int64_t packed_bytes() const { return (info_.w - 1) / 8 + 1; }

  void pack(const std::byte* row, std::int64_t index) {
    packed_.assign(static_cast<std::size_t>(packed_bytes()), std::byte{0});
    for (std::int64_t x = 0; x < info_.w; ++x) {
      const auto value = std::to_integer<int>(row[x]);
      if (value != 0 && value != 255)
        throw bad_input(fmt::format("{}: row {}, column {} has the value {}; .pbm holds only 0 and 255; write .pgm",
                                    file_.path(), index, x, value));
      if (value == 0) packed_[static_cast<std::size_t>(x / 8)] |= std::byte{0x80} >> (x % 8);
    }
  }

  AtomicFile file_;
  ImageInfo info_;
  std::vector<std::byte> packed_;
  std::int64_t position_ = 0, rows_written_ = 0;
};

// What each extension takes; 0 channels: any number.
struct PnmKind {
  std::string_view extension;
  std::int64_t channels, or_channels;
  bool floating;
};
constexpr PnmKind kinds[] = {{"pbm", 1, 1, false}, {"pgm", 1, 1, false}, {"ppm", 3, 3, false},
                             {"pnm", 1, 3, false}, {"pam", 0, 0, false}, {"pfm", 1, 3, true}};

const PnmKind* find_kind(std::string_view extension) {
  const auto* found = std::find_if(std::begin(kinds), std::end(kinds),
                                   [extension](const PnmKind& kind) { return kind.extension == extension; });
  return found == std::end(kinds) ? nullptr : found;
}

void check_kind(const PnmKind& kind, const std::string& path, const ImageInfo& info) {
  if (kind.floating && info.type != DataType::f32)
    throw bad_input(fmt::format("{}: .pfm cannot hold {}; it holds f32", path, name(info.type)));
  if (kind.extension == "pbm" && info.type != DataType::u8)
    throw bad_input(fmt::format("{}: .pbm cannot hold {}; it holds u8 of the values 0 and 255", path, name(info.type)));
  if (!kind.floating && info.type != DataType::u8 && info.type != DataType::u16)
    throw bad_input(fmt::format("{}: .{} cannot hold {}; it holds u8 and u16 (.pfm holds f32, .npy every type)", path,
                                kind.extension, name(info.type)));
  if (kind.channels != 0 && info.c != kind.channels && info.c != kind.or_channels)
    throw bad_input(fmt::format("{}: .{} cannot hold {} channels; it holds {}{} ({})", path, kind.extension, info.c,
                                kind.channels, kind.channels == kind.or_channels ? "" : " or 3",
                                kind.floating ? ".npy holds any number" : ".pam holds any number"));
}

std::string pam_tuple_type(const ImageInfo& like, int max_value) {
  const auto* metadata = dynamic_cast<const PamMetadata*>(like.metadata.get());
  // BLACKANDWHITE promises that 1 is the highest value, which a change of depth breaks.
  const bool has_lost_opacity =
      metadata != nullptr && metadata->tuple_type().ends_with("_ALPHA") && like.alpha_channel < 0;
  if (metadata != nullptr && !has_lost_opacity &&
      (max_value == 1 || !metadata->tuple_type().starts_with("BLACKANDWHITE")))
    return metadata->tuple_type();
  const bool alpha_last = like.alpha_channel >= 0 && like.alpha_channel == like.c - 1;
  if (like.alpha_channel >= 0 && !alpha_last) return "";
  const std::int64_t colors = like.c - (alpha_last ? 1 : 0);
  const std::string suffix = alpha_last ? "_ALPHA" : "";
  if (colors == 1) return (max_value == 1 ? "BLACKANDWHITE" : "GRAYSCALE") + suffix;
  return colors == 3 ? "RGB" + suffix : "";
}

}  // namespace

bool is_pnm_extension(std::string_view extension) {
  return find_kind(extension) != nullptr;
}

std::unique_ptr<ImageWriter> create_pnm(const std::string& path, std::string_view extension, const ImageInfo& like) {
  const PnmKind& kind = *find_kind(extension);
  check_kind(kind, path, like);
  raster_bytes(like, path);
  ImageInfo info = like;
  if (extension == "pbm") return std::make_unique<BitWriter>(path, info);

  const bool little_endian = std::endian::native == std::endian::little;
  if (extension == "pfm") {
    info.max_value = 0;
    const std::string header =
        fmt::format("{}\n{} {}\n{}\n", like.c == 3 ? "PF" : "Pf", like.w, like.h, little_endian ? "-1.0" : "1.0");
    return make_raster_writer(path, info, header, {.bottom_up = true});
  }

  // The highest value decides how many bytes a sample has; one that does not fit the type is not of this image.
  const int highest = like.type == DataType::u8 ? 255 : 65535;
  const int lowest = like.type == DataType::u8 ? 1 : 256;
  const bool keeps =
      like.max_value >= lowest && like.max_value < highest && like.max_value == std::floor(like.max_value);
  if (!keeps) info.max_value = 0;
  const int max_value = keeps ? static_cast<int>(like.max_value) : highest;
  std::string header;
  if (extension == "pam") {
    const std::string tuple_type = pam_tuple_type(like, max_value);
    header = fmt::format("P7\nWIDTH {}\nHEIGHT {}\nDEPTH {}\nMAXVAL {}\n", like.w, like.h, like.c, max_value);
    if (!tuple_type.empty()) header += fmt::format("TUPLTYPE {}\n", tuple_type);
    header += "ENDHDR\n";
  } else {
    header = fmt::format("P{}\n{} {}\n{}\n", like.c == 3 ? 6 : 5, like.w, like.h, max_value);
  }
  return make_raster_writer(path, info, header, {.swapped = like.type == DataType::u16 && little_endian});
}

}  // namespace omniconv::image
