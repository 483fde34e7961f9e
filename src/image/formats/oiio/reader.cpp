#include <OpenImageIO/tiffutils.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/quoted.h"
#include "image/formats/oiio/libpng_silence.h"
#include "image/formats/oiio/oiio.h"
#include "image/formats/png_chunks.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image::oiio {
namespace {

std::int64_t rows_per_strip(const OIIO::ImageSpec& spec) {
  return std::clamp<std::int64_t>(spec.get_int_attribute("tiff:RowsPerStrip", spec.height), 1, spec.height);
}

// What OpenImageIO's decoders were seen to hold while they read, where bytes_held_by_opening() does not know.
std::int64_t bytes_held_by_reading(const InputFile& file, const std::string& plugin, const OIIO::ImageSpec& spec) {
  const auto row = static_cast<std::int64_t>(spec.scanline_bytes(true));
  const std::int64_t image = row * spec.height;
  if (plugin == "targa" || (plugin == "png" && png_header(file).interlacing != 0)) return image;
  // A strip as stored, however many rows it has.
  if (plugin == "tiff" && spec.tile_width == 0) return std::min(file.size(), 2 * row * rows_per_strip(spec));
  if (plugin == "openexr") return row * std::min<std::int64_t>(spec.height, 256);
  return 0;
}

DataType type_of(const OIIO::ImageSpec& spec, const std::string& path) {
  for (const OIIO::TypeDesc& channel : spec.channelformats)
    if (channel.is_floating_point() != spec.format.is_floating_point())
      throw bad_input(
          fmt::format("{} mixes channels of integers and of floating-point numbers, which is not read", path));
  switch (spec.format.basetype) {
    case OIIO::TypeDesc::UINT8: return DataType::u8;
    case OIIO::TypeDesc::UINT16: return DataType::u16;
    case OIIO::TypeDesc::INT16: return DataType::s16;
    case OIIO::TypeDesc::INT32: return DataType::s32;
    case OIIO::TypeDesc::HALF: return DataType::f16;
    case OIIO::TypeDesc::FLOAT: return DataType::f32;
    case OIIO::TypeDesc::DOUBLE: return DataType::f64;
    default:
      throw bad_input(fmt::format("{} has elements of the type {}; read are u8, u16, s16, s32, f16, f32 and f64", path,
                                  spec.format.c_str()));
  }
}

// Refuses what OpenImageIO would turn into something else, and what is no flat image.
void check_kind(const OIIO::ImageSpec& spec, const std::string& path) {
  const std::string color = std::string(spec.get_string_attribute("jpeg:ColorSpace")) +
                            std::string(spec.get_string_attribute("tiff:ColorSpace"));
  if (color == "CMYK" || color == "YCbCrK" || color == "YCCK" || color == "color separated")
    throw bad_input(fmt::format("{} is a CMYK image, which is not filtered; convert it to RGB first", path));
  if (color == "CIELAB" || color == "ICCLAB" || color == "ITULAB")
    throw bad_input(fmt::format("{} is a L*a*b* image, which is not filtered; convert it to RGB first", path));
  if (spec.get_int_attribute("tiff:PhotometricInterpretation", 1) == 0 && spec.format != OIIO::TypeDesc::UINT8)
    throw bad_input(
        fmt::format("{} is a TIFF file of {} in which 0 is white, which is not read; rewrite it with 0 as black", path,
                    spec.format.c_str()));
  if (spec.deep) throw bad_input(fmt::format("{} is a deep image, which is not filtered; flatten it first", path));
  if (spec.depth > 1) throw bad_input(fmt::format("{} is a volume of {} slices, not an image", path, spec.depth));
}

bool is_associated(const OIIO::ImageSpec& spec, const std::string& plugin) {
  if (plugin == "openexr") return true;
  return plugin == "tiff" && spec.get_int_attribute("oiio:UnassociatedAlpha", 0) == 0;
}

class Reader final : public ImageReader {
 public:
  Reader(const std::string& path, std::string plugin, int page, std::int64_t max_resident_bytes)
      : file_(path), plugin_(std::move(plugin)), page_(page) {
    const std::int64_t held = bytes_held_by_opening(file_, plugin_);
    check_limit(path, plugin_, held, max_resident_bytes);
    if (plugin_ == "png") {
      check_png(file_);
      check_frames();
    }
    open();
    if (plugin_ == "png") add_exif_behind_pixels();
    check_kind(spec_, path);
    if (plugin_ == "tiff" && !tiff_says_bits_per_sample(file_, page_index()))
      throw bad_input(
          fmt::format("{} is a TIFF file that leaves out its BitsPerSample, which is not read; rewrite it with "
                      "another program",
                      path));
    describe(held);
    check_limit(path, plugin_, info_.resident_bytes, max_resident_bytes);
  }

  const ImageInfo& info() const override { return info_; }

  int count_pages() {
    int pages = 1;
    check([&] {
      while (may_have_pages() && input_->seek_subimage(pages, 0)) ++pages;
      input_->geterror();  // that there are no more
      return true;
    });
    return pages;
  }

  void read_rows(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, path());
    if (count == 0) return;
    // OpenImageIO would go back by itself, but some of its readers then forget what they were asked for.
    if (first < next_row_) open();
    if (block_height_ > 0)
      read_through_blocks(first, count, to, stride_bytes);
    else
      check([&] {
        return input_->read_scanlines(page_index(), 0, spec_.y + static_cast<int>(first),
                                      spec_.y + static_cast<int>(first + count), 0, 0, spec_.nchannels, stored_type(),
                                      to, OIIO::AutoStride, stride_bytes);
      });
    next_row_ = first + count;
  }

 private:
  const std::string& path() const { return file_.path(); }
  int page_index() const { return std::max(page_, 1) - 1; }
  // What to ask for: elements as they are stored, where all channels have one type. Asked for a type by its name, be it
  // the stored one, OpenImageIO 2.4 takes 64 MiB for each call and converts what it read into them.
  OIIO::TypeDesc stored_type() const {
    return spec_.channelformats.empty() ? OIIO::TypeDesc(OIIO::TypeDesc::UNKNOWN) : spec_.format;
  }

  // A damaged file may be "read successfully" with an error noted, and make a reader throw what no one expects.
  template <typename Call>
  void check(Call call) const {
    const LibpngSilence silence(plugin_);
    std::string reason = "its decoder failed";
    try {
      const bool success = call();
      if (success && !input_->has_error()) return;
      if (input_->has_error()) reason = one_line(input_->geterror());
    } catch (const std::exception& exception) {
      reason = exception.what();
    }
    throw bad_input(fmt::format("{} is damaged or cut short: {}", path(), reason));
  }

  void open() {
    open_first_page();
    choose_page();
    next_row_ = 0;
    block_ = -1;
  }

  void open_first_page() {
    input_.reset(OIIO::ImageInput::create(plugin_).release());
    if (!input_)
      throw environment_error(fmt::format("{} is a {} file, which this OpenImageIO cannot read: {}", path(), plugin_,
                                          one_line(OIIO::geterror())));
    input_->threads(1);
    OIIO::ImageSpec wishes;
    wishes.attribute("oiio:UnassociatedAlpha", 1);
    check([&] { return input_->open(path(), spec_, wishes); });
  }

  // With page 0, only one page may be there.
  void choose_page() {
    if (page_ <= 1 && (page_ == 1 || pages_checked_ || !may_have_pages())) return;
    int pages = 1;
    check([&] {
      while (pages != page_ && input_->seek_subimage(pages, 0)) ++pages;
      if (pages != page_) input_->geterror();
      return true;
    });
    if (pages == page_) {
      spec_ = input_->spec();
      return;
    }
    if (page_ > 1 || pages > 1) throw no_such_page(path(), page_, pages);
    // A search that failed leaves some readers unable to go on.
    pages_checked_ = true;
    open_first_page();
  }

  bool may_have_pages() const { return plugin_ == "tiff" || plugin_ == "openexr" || plugin_ == "gif"; }

  // Where OpenImageIO does not look for it.
  void add_exif_behind_pixels() {
    const std::string exif = exif_behind_pixels(file_);
    if (!exif.empty()) OIIO::decode_exif(OIIO::string_view(exif), spec_);
  }

  // libpng reads the first.
  void check_frames() const {
    const std::int64_t frames = frames_of_png(file_);
    if (frames > 1 && page_ != 1)
      throw bad_input(
          fmt::format("{} is an animated PNG of {} frames, of which only the first is read; choose it with --page 1",
                      path(), frames));
  }

  void describe(std::int64_t held_by_opening) {
    info_.h = spec_.height;
    info_.w = spec_.width;
    info_.c = spec_.nchannels;
    info_.type = type_of(spec_, path());
    info_.format = plugin_;
    raster_bytes(info_, path());
    // GIF's reader gives a channel that is not there.
    if (spec_.alpha_channel >= 0) info_.alpha_channel = std::min(spec_.alpha_channel, spec_.nchannels - 1);
    info_.associated_alpha = info_.alpha_channel >= 0 && is_associated(spec_, plugin_);
    info_.orientation = orientation_of(spec_);
    const bool planes = spec_.get_string_attribute("planarconfig") == "separate" && info_.c > 1;
    if (spec_.tile_width > 0) {
      block_height_ = spec_.tile_height;
    } else if (plugin_ == "tiff" && (planes || info_.type == DataType::f64)) {
      block_height_ = rows_per_strip(spec_);
    }
    if (plugin_ == "tiff" && info_.type == DataType::f64) check_strips_of_doubles(planes);
    info_.resident_bytes =
        held_by_opening + bytes_held_by_reading(file_, plugin_, spec_) + block_height_ * row_bytes(info_);
    info_.metadata = std::make_shared<SpecMetadata>(plugin_, spec_);
    if (plugin_ == "tiff") describe_tiff();
  }

  void describe_tiff() {
    static constexpr std::array<std::string_view, 4> lossless = {"none", "lzw", "zip", "packbits"};
    const std::string compression = spec_.get_string_attribute("compression");
    const bool keeps_every_bit = std::find(lossless.begin(), lossless.end(), compression) != lossless.end();
    info_.compression = keeps_every_bit ? compression : "zip";
    info_.color_channels = color_channels();
  }

  int color_channels() const {
    switch (spec_.get_int_attribute("tiff:PhotometricInterpretation", -1)) {
      case 0:  // white is 0
      case 1: return 1;
      case 2: return 3;
      default: return 0;
    }
  }

  // OpenImageIO 2.4 gives zeros for tiles of f64, and for strips of one row. Those of plain files do not come here.
  void check_strips_of_doubles(bool planes) const {
    const char* unread = nullptr;
    if (planes)
      unread = "with a plane for each channel";
    else if (spec_.tile_width > 0)
      unread = "in tiles and with a compression or descriptions that are not plain";
    else if (block_height_ == 1 || info_.h % block_height_ == 1)
      unread = "with a strip of one row and with a compression or descriptions that are not plain";
    if (unread != nullptr)
      throw bad_input(
          fmt::format("{} is a TIFF file of f64 {}, which is not read; rewrite it as .npy, or with channels "
                      "interleaved in strips of several rows",
                      path(), unread));
  }

  // Tiles are decoded a whole row of them at a time. So are strips of f64, of which OpenImageIO 2.4 gives zeros for a
  // part, and those of one channel each, which it cannot enter in their middle where they are compressed.
  void read_through_blocks(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) {
    const std::int64_t bytes = row_bytes(info_);
    for (std::int64_t y = first; y < first + count; ++y) {
      const std::int64_t block = y / block_height_;
      if (block != block_) load_block(block);
      std::memcpy(to + (y - first) * stride_bytes, rows_of_block_.data() + (y - block * block_height_) * bytes,
                  static_cast<std::size_t>(bytes));
    }
  }

  void load_block(std::int64_t block) {
    block_ = -1;
    rows_of_block_.resize(static_cast<std::size_t>(block_height_ * row_bytes(info_)));
    const int begin = spec_.y + static_cast<int>(block * block_height_);
    const int end = spec_.y + static_cast<int>(std::min(info_.h, (block + 1) * block_height_));
    check([&] {
      if (spec_.tile_width > 0)
        return input_->read_tiles(page_index(), 0, spec_.x, spec_.x + spec_.width, begin, end, 0, 1, 0, spec_.nchannels,
                                  stored_type(), rows_of_block_.data());
      return input_->read_scanlines(page_index(), 0, begin, end, 0, 0, spec_.nchannels, stored_type(),
                                    rows_of_block_.data());
    });
    block_ = block;
  }

  InputFile file_;
  std::string plugin_;
  int page_;
  std::unique_ptr<OIIO::ImageInput, SilentDelete> input_;
  OIIO::ImageSpec spec_;
  ImageInfo info_;
  bool pages_checked_ = false;
  std::int64_t next_row_ = 0;
  std::int64_t block_height_ = 0;  // rows that are decoded together, or 0
  std::int64_t block_ = -1;        // which of them rows_of_block_ holds
  std::vector<std::byte> rows_of_block_;
};

}  // namespace

int orientation_of(const OIIO::ImageSpec& spec) {
  const int orientation = spec.get_int_attribute("Orientation", 1);
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

void check_limit(const std::string& path, std::string_view plugin, std::int64_t bytes, std::int64_t limit) {
  if (bytes > limit)
    throw bad_input(
        fmt::format("{}: decoding a {} file of this kind holds {} bytes, more than the {} allowed; raise --max-memory",
                    path, plugin, bytes, limit));
}

Error no_such_page(const std::string& path, int page, int pages) {
  if (page == 0) return bad_input(fmt::format("{} holds {} images; choose one with --page N", path, pages));
  return bad_input(fmt::format("{} holds {} image{}; there is no page {}", path, pages, pages == 1 ? "" : "s", page));
}

std::unique_ptr<ImageReader> open(const std::string& path, int page, std::int64_t max_resident_bytes) {
  const std::string plugin = plugin_of(InputFile(path));
  if (plugin == "webp") return open_webp(path, page, max_resident_bytes);
  return std::make_unique<Reader>(path, plugin, page, max_resident_bytes);
}

int count(const std::string& path, std::int64_t max_resident_bytes) {
  const std::string plugin = plugin_of(InputFile(path));
  if (plugin == "webp") return count_frames_of_webp(path, max_resident_bytes);
  const int page = plugin == "png" ? 0 : 1;  // an animated one is refused
  return Reader(path, plugin, page, max_resident_bytes).count_pages();
}

std::shared_ptr<const Metadata> describe(const std::string& path) {
  const std::string plugin = plugin_of(InputFile(path));
  const std::unique_ptr<OIIO::ImageInput, SilentDelete> input(OIIO::ImageInput::create(plugin).release());
  OIIO::ImageSpec spec, wishes;
  wishes.attribute("oiio:UnassociatedAlpha", 1);
  if (!input || !input->open(path, spec, wishes))
    throw bad_input(
        fmt::format("{} is damaged or cut short: {}", path, one_line(input ? input->geterror() : OIIO::geterror())));
  return std::make_shared<SpecMetadata>(plugin, spec);
}

}  // namespace omniconv::image::oiio
