// Whether a TIFF file is plain, from its directory: TIFF 6.0 (Adobe, 1992), its Technical Note 3 (floating-point
// predictor), and BigTIFF (https://www.awaresystems.be/imaging/tiff/bigtiff.html). Nothing that it says is believed
// before it is compared with the size of the file.
#include <tiff.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <string_view>

#include "image/formats/plain/plain.h"
#include "image/raster.h"

namespace omniconv::image::plain {
namespace {

constexpr std::int64_t largest_extent = 1 << 20;  // as OpenImageIO writes
constexpr std::int64_t most_channels = 1024;
constexpr std::uint64_t most_entries = 64;     // plain files have a dozen
constexpr std::int64_t most_expansion = 4096;  // a code of LZW, 12 bits, stands for 4096 bytes at most

struct Entry {
  std::uint32_t type = 0;
  std::int64_t count = 0, offset = 0;  // of its values in the file
};

std::int64_t bytes_of(std::uint32_t type) {
  switch (type) {
    case TIFF_BYTE:
    case TIFF_ASCII:
    case TIFF_UNDEFINED: return 1;
    case TIFF_SHORT: return 2;
    case TIFF_LONG: return 4;
    case TIFF_RATIONAL:
    case TIFF_LONG8: return 8;
    default: return 0;
  }
}

// Tags whose values are understood here, and those that say nothing which any reader or writer heeds.
bool is_understood(std::uint32_t tag) {
  static constexpr std::uint32_t tags[] = {
      TIFFTAG_IMAGEWIDTH,           TIFFTAG_IMAGELENGTH,    TIFFTAG_BITSPERSAMPLE,   TIFFTAG_COMPRESSION,
      TIFFTAG_PHOTOMETRIC,          TIFFTAG_STRIPOFFSETS,   TIFFTAG_SAMPLESPERPIXEL, TIFFTAG_ROWSPERSTRIP,
      TIFFTAG_STRIPBYTECOUNTS,      TIFFTAG_PREDICTOR,      TIFFTAG_TILEWIDTH,       TIFFTAG_TILELENGTH,
      TIFFTAG_TILEOFFSETS,          TIFFTAG_TILEBYTECOUNTS, TIFFTAG_EXTRASAMPLES,    TIFFTAG_SAMPLEFORMAT,
      TIFFTAG_XRESOLUTION,          TIFFTAG_YRESOLUTION,    TIFFTAG_RESOLUTIONUNIT,  TIFFTAG_ICCPROFILE,
      TIFFTAG_MINSAMPLEVALUE,       TIFFTAG_MAXSAMPLEVALUE, TIFFTAG_PAGENUMBER,      TIFFTAG_WHITEPOINT,
      TIFFTAG_PRIMARYCHROMATICITIES};
  return std::find(std::begin(tags), std::end(tags), tag) != std::end(tags);
}
// Must have the value that is the default, or be absent.
constexpr std::pair<std::uint32_t, std::int64_t> must_be[] = {{TIFFTAG_SUBFILETYPE, 0},
                                                              {TIFFTAG_FILLORDER, FILLORDER_MSB2LSB},
                                                              {TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT},
                                                              {TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG}};
constexpr std::uint32_t texts[] = {TIFFTAG_DOCUMENTNAME, TIFFTAG_IMAGEDESCRIPTION, TIFFTAG_MAKE,
                                   TIFFTAG_MODEL,        TIFFTAG_SOFTWARE,         TIFFTAG_DATETIME,
                                   TIFFTAG_ARTIST,       TIFFTAG_HOSTCOMPUTER,     TIFFTAG_COPYRIGHT};

class Directory {
 public:
  explicit Directory(const InputFile& file) : file_(file) {}

  // False for what is no single directory of entries that are all understood and lie within the file.
  bool read() {
    const std::vector<std::byte> header = file_.read_some(0, 16);
    if (header.size() < 16) return false;
    little_ = header[0] == std::byte{'I'};
    const std::uint64_t version = number(header.data() + 2, 2);
    big_ = version == 43;
    if (!big_ && version != 42) return false;
    if (big_ && (number(header.data() + 4, 2) != 8 || number(header.data() + 6, 2) != 0)) return false;
    const int word = big_ ? 8 : 4, count_bytes = big_ ? 8 : 2, entry_bytes = big_ ? 20 : 12;
    const std::int64_t at = position(header.data() + (big_ ? 8 : 4), word);
    const std::vector<std::byte> count = file_.read_some(at, count_bytes);
    if (at < 8 || static_cast<int>(count.size()) < count_bytes) return false;
    const std::uint64_t entries = number(count.data(), count_bytes);
    if (entries == 0 || entries > most_entries) return false;
    const std::int64_t table = at + count_bytes, bytes = static_cast<std::int64_t>(entries) * entry_bytes;
    const std::vector<std::byte> all = file_.read_some(table, bytes + word);
    if (static_cast<std::int64_t>(all.size()) < bytes + word || number(all.data() + bytes, word) != 0) return false;
    std::uint32_t last_tag = 0;
    for (std::int64_t entry = 0; entry < bytes; entry += entry_bytes) {
      const auto tag = static_cast<std::uint32_t>(number(all.data() + entry, 2));
      if (tag <= last_tag || !add(tag, all.data() + entry, table + entry, word)) return false;
      last_tag = tag;
    }
    return true;
  }

  bool little_endian() const { return little_; }
  bool has(std::uint32_t tag) const { return entries_.contains(tag); }
  std::int64_t count(std::uint32_t tag) const { return has(tag) ? entries_.at(tag).count : 0; }
  std::uint32_t type(std::uint32_t tag) const { return has(tag) ? entries_.at(tag).type : 0; }

  std::string bytes(std::uint32_t tag) const {
    const Entry& entry = entries_.at(tag);
    std::string result(static_cast<std::size_t>(entry.count * bytes_of(entry.type)), '\0');
    file_.read_at(entry.offset, result.data(), static_cast<std::int64_t>(result.size()));
    return result;
  }
  // Whole numbers; none where the tag is absent or holds something else.
  std::vector<std::int64_t> numbers(std::uint32_t tag) const {
    const std::uint32_t kind = type(tag);
    if (kind != TIFF_SHORT && kind != TIFF_LONG && kind != TIFF_LONG8) return {};
    const std::string content = bytes(tag);
    const auto size = static_cast<std::size_t>(bytes_of(kind));
    std::vector<std::int64_t> result;
    result.reserve(content.size() / size);
    for (std::size_t i = 0; i < content.size(); i += size)
      result.push_back(position(reinterpret_cast<const std::byte*>(content.data()) + i, static_cast<int>(size)));
    return result;
  }
  // The one number of a tag, or what stands for it where it is absent; -1 for anything else.
  std::int64_t one(std::uint32_t tag, std::int64_t otherwise = -1) const {
    if (!has(tag)) return otherwise;
    const std::vector<std::int64_t> found = count(tag) == 1 ? numbers(tag) : std::vector<std::int64_t>();
    return found.size() == 1 ? found[0] : -1;
  }
  // The one number that a tag says `times` times; -1 for anything else.
  std::int64_t repeated(std::uint32_t tag, std::int64_t times, std::int64_t otherwise = -1) const {
    if (!has(tag)) return otherwise;
    if (count(tag) != times || times > 1024) return -1;
    const std::vector<std::int64_t> found = numbers(tag);
    const bool same = std::all_of(found.begin(), found.end(), [&](std::int64_t n) { return n == found[0]; });
    return !found.empty() && same ? found[0] : -1;
  }

 private:
  std::uint64_t number(const std::byte* bytes, int count) const {
    std::uint64_t result = 0;
    for (int i = 0; i < count; ++i)
      result = result << 8 | std::to_integer<std::uint64_t>(bytes[little_ ? count - 1 - i : i]);
    return result;
  }
  // Beyond every file where it does not fit.
  std::int64_t position(const std::byte* bytes, int count) const {
    const std::uint64_t found = number(bytes, count), most = std::uint64_t{1} << 62;
    return static_cast<std::int64_t>(std::min(found, most));
  }

  bool add(std::uint32_t tag, const std::byte* entry, std::int64_t at, int word) {
    const bool is_text = std::find(std::begin(texts), std::end(texts), tag) != std::end(texts);
    const bool is_fixed =
        std::any_of(std::begin(must_be), std::end(must_be), [tag](auto& p) { return p.first == tag; });
    if (!is_text && !is_fixed && !is_understood(tag)) return false;
    Entry found{
        .type = static_cast<std::uint32_t>(number(entry + 2, 2)), .count = position(entry + 4, word), .offset = 0};
    const std::int64_t size = bytes_of(found.type);
    if (size == 0 || found.count < 1 || found.count > file_.size() / size) return false;
    if (is_text && found.type != TIFF_ASCII) return false;
    const bool is_here = found.count * size <= word;
    found.offset = is_here ? at + 4 + word : position(entry + 4 + word, word);
    if (found.offset > file_.size() - found.count * size) return false;
    entries_[tag] = found;
    return true;
  }

  const InputFile& file_;
  bool little_ = true, big_ = false;
  std::map<std::uint32_t, Entry> entries_;
};

std::optional<DataType> type_of(std::int64_t bits, std::int64_t format) {
  if (format == SAMPLEFORMAT_UINT && bits == 8) return DataType::u8;
  if (format == SAMPLEFORMAT_UINT && bits == 16) return DataType::u16;
  if (format == SAMPLEFORMAT_INT && bits == 16) return DataType::s16;
  if (format == SAMPLEFORMAT_INT && bits == 32) return DataType::s32;
  if (format == SAMPLEFORMAT_IEEEFP && bits == 16) return DataType::f16;
  if (format == SAMPLEFORMAT_IEEEFP && bits == 32) return DataType::f32;
  if (format == SAMPLEFORMAT_IEEEFP && bits == 64) return DataType::f64;
  return std::nullopt;
}

// Those beyond the colours, of which one may be opacity.
bool describe_extra_channels(const Directory& directory, ImageInfo& info) {
  const std::int64_t count = info.c - info.color_channels;
  if (directory.count(TIFFTAG_EXTRASAMPLES) != count) return false;
  if (count == 0) return true;
  const std::vector<std::int64_t> meanings = directory.numbers(TIFFTAG_EXTRASAMPLES);
  for (std::size_t i = 0; i < meanings.size(); ++i) {
    const std::int64_t meaning = meanings[i];
    if (meaning == EXTRASAMPLE_UNSPECIFIED) continue;
    const bool is_opacity = meaning == EXTRASAMPLE_ASSOCALPHA || meaning == EXTRASAMPLE_UNASSALPHA;
    if (!is_opacity || info.alpha_channel >= 0) return false;
    info.alpha_channel = info.color_channels + static_cast<int>(i);
    info.associated_alpha = meaning == EXTRASAMPLE_ASSOCALPHA;
  }
  return !meanings.empty();
}

// Extents, type and channels.
bool describe(const Directory& directory, ImageInfo& info) {
  info.format = "tiff";
  info.h = directory.one(TIFFTAG_IMAGELENGTH);
  info.w = directory.one(TIFFTAG_IMAGEWIDTH);
  info.c = directory.one(TIFFTAG_SAMPLESPERPIXEL, 1);
  if (info.h < 1 || info.h > largest_extent || info.w < 1 || info.w > largest_extent || info.c < 1 ||
      info.c > most_channels)
    return false;
  const auto type = type_of(directory.repeated(TIFFTAG_BITSPERSAMPLE, info.c),
                            directory.repeated(TIFFTAG_SAMPLEFORMAT, info.c, SAMPLEFORMAT_UINT));
  if (!type) return false;
  info.type = *type;
  const std::int64_t photometric = directory.one(TIFFTAG_PHOTOMETRIC);
  if (photometric != PHOTOMETRIC_RGB && photometric != PHOTOMETRIC_MINISBLACK) return false;
  info.color_channels = photometric == PHOTOMETRIC_RGB ? 3 : 1;
  return info.color_channels <= info.c && describe_extra_channels(directory, info);
}

// How pixels lie, and that each block of them is in the file.
bool place_blocks(const Directory& directory, std::int64_t file_bytes, TiffPage& page) {
  const ImageInfo& info = page.info;
  const bool tiled = directory.has(TIFFTAG_TILEWIDTH) || directory.has(TIFFTAG_TILELENGTH);
  if (tiled == (directory.has(TIFFTAG_STRIPOFFSETS) || directory.has(TIFFTAG_ROWSPERSTRIP))) return false;
  std::int64_t across = 1;
  if (tiled) {
    page.tile_width = directory.one(TIFFTAG_TILEWIDTH);
    page.block_height = directory.one(TIFFTAG_TILELENGTH);
    // As TIFF wants them, and none that would hold more than the rows that it covers.
    if (page.tile_width < 16 || page.tile_width % 16 != 0 || page.tile_width - 16 >= info.w) return false;
    if (page.block_height < 16 || page.block_height % 16 != 0 || page.block_height - 16 >= info.h) return false;
    across = (info.w - 1) / page.tile_width + 1;
  } else {
    page.block_height = directory.one(TIFFTAG_ROWSPERSTRIP, info.h);
    if (page.block_height < 1) return false;
    page.block_height = std::min(page.block_height, info.h);
  }
  const std::int64_t blocks = across * ((info.h - 1) / page.block_height + 1);
  const std::uint32_t offsets = tiled ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS;
  const std::uint32_t byte_counts = tiled ? TIFFTAG_TILEBYTECOUNTS : TIFFTAG_STRIPBYTECOUNTS;
  if (directory.count(offsets) != blocks || directory.count(byte_counts) != blocks) return false;
  page.offsets = directory.numbers(offsets);
  const std::vector<std::int64_t> sizes = directory.numbers(byte_counts);
  if (page.offsets.empty() || sizes.empty()) return false;
  const std::int64_t pixel_bytes = info.c * size_of(info.type);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t size = sizes[static_cast<std::size_t>(block)];
    const std::int64_t offset = page.offsets[static_cast<std::size_t>(block)];
    const std::int64_t rows =
        tiled ? page.block_height : std::min(page.block_height, info.h - block * page.block_height);
    const std::int64_t needed = rows * (tiled ? page.tile_width : info.w) * pixel_bytes;
    if (offset < 8 || size < 1 || size > file_bytes || offset > file_bytes - size) return false;
    // No compression makes more of a byte: memory is set aside only for pixels that may be there.
    if (size < (page.compression == COMPRESSION_NONE ? needed : needed / most_expansion)) return false;
    page.largest_block = std::max(page.largest_block, size);
  }
  return true;
}

bool choose_compression(const Directory& directory, TiffPage& page) {
  page.compression =
      static_cast<int>(std::min<std::int64_t>(directory.one(TIFFTAG_COMPRESSION, COMPRESSION_NONE), 65535));
  if (page.compression == COMPRESSION_DEFLATE) page.compression = COMPRESSION_ADOBE_DEFLATE;
  page.predictor = static_cast<int>(std::min<std::int64_t>(directory.one(TIFFTAG_PREDICTOR, PREDICTOR_NONE), 65535));
  if (page.compression == COMPRESSION_NONE) return page.predictor == PREDICTOR_NONE;
  const bool is_floating =
      page.info.type == DataType::f16 || page.info.type == DataType::f32 || page.info.type == DataType::f64;
  return (page.compression == COMPRESSION_LZW || page.compression == COMPRESSION_ADOBE_DEFLATE) &&
         (page.predictor == PREDICTOR_NONE || page.predictor == PREDICTOR_HORIZONTAL ||
          (page.predictor == PREDICTOR_FLOATINGPOINT && is_floating));
}

// As compressions_of() has it.
const char* word_of_compression(int compression) {
  if (compression == COMPRESSION_NONE) return "none";
  return compression == COMPRESSION_LZW ? "lzw" : "zip";
}

bool keep_texts(const Directory& directory, PlainMetadata& metadata) {
  for (const std::uint32_t tag : texts) {
    if (!directory.has(tag)) continue;
    std::string text = directory.bytes(tag);
    const std::size_t length = text.size() - 1;
    // OpenImageIO keeps numbers of its own in a description.
    if (length == 0 || text.find('\0') != length || text.find("oiio:") != std::string::npos ||
        text.find("SHA-1=") != std::string::npos)
      return false;
    text.pop_back();
    metadata.texts.emplace_back(tag, std::move(text));
  }
  return true;
}

bool keep_resolution(const Directory& directory, PlainMetadata& metadata) {
  const std::int64_t unit = directory.one(TIFFTAG_RESOLUTIONUNIT, 0);
  if (unit < 0 || unit > RESUNIT_CENTIMETER) return false;
  const bool has_x = directory.has(TIFFTAG_XRESOLUTION), has_y = directory.has(TIFFTAG_YRESOLUTION);
  if (!has_x && !has_y) return unit == 0;
  const auto value = [&directory](std::uint32_t tag) -> float {
    if (directory.type(tag) != TIFF_RATIONAL || directory.count(tag) != 1) return 0;
    std::string bytes = directory.bytes(tag);
    if (directory.little_endian() != (std::endian::native == std::endian::little)) {
      std::reverse(bytes.begin(), bytes.begin() + 4);
      std::reverse(bytes.begin() + 4, bytes.end());
    }
    std::uint32_t over = 0, under = 0;
    std::memcpy(&over, bytes.data(), 4);
    std::memcpy(&under, bytes.data() + 4, 4);
    return under == 0 ? 0 : static_cast<float>(static_cast<double>(over) / under);
  };
  if (!has_x || !has_y) return false;
  const float x = value(TIFFTAG_XRESOLUTION), y = value(TIFFTAG_YRESOLUTION);
  // Others are mended by OpenImageIO when it writes them.
  if (!(x >= 1) || !(y >= 1) || y / x * x != y) return false;
  metadata.resolution = Resolution{.x = x, .y = y, .unit = static_cast<Unit>(unit)};
  return true;
}

}  // namespace

std::optional<TiffPage> plain_tiff(const InputFile& file) {
  Directory directory(file);
  if (!directory.read()) return std::nullopt;
  for (const auto& [tag, value] : must_be)
    if (directory.one(tag, value) != value) return std::nullopt;
  TiffPage page;
  if (!describe(directory, page.info) || !choose_compression(directory, page)) return std::nullopt;
  if (!place_blocks(directory, file.size(), page)) return std::nullopt;
  page.info.compression = word_of_compression(page.compression);
  page.swapped = directory.little_endian() != (std::endian::native == std::endian::little);
  auto metadata = std::make_shared<PlainMetadata>();
  metadata->path = file.path();
  metadata->format = page.info.format;
  metadata->channels = page.info.c;
  if (!keep_texts(directory, *metadata) || !keep_resolution(directory, *metadata)) return std::nullopt;
  if (directory.has(TIFFTAG_ICCPROFILE)) {
    if (directory.type(TIFFTAG_ICCPROFILE) != TIFF_UNDEFINED) return std::nullopt;
    metadata->profile = directory.bytes(TIFFTAG_ICCPROFILE);
  }
  page.info.metadata = std::move(metadata);
  return page;
}

}  // namespace omniconv::image::plain
