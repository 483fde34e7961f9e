#include <OpenImageIO/filesystem.h>
#include <OpenImageIO/strutil.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "core/quoted.h"
#include "image/atomic_file.h"
#include "image/formats/codec_file.h"
#include "image/formats/oiio/libpng_silence.h"
#include "image/formats/oiio/oiio.h"
#include "image/formats/png_pixels.h"
#include "image/paged_output.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image::oiio {
namespace {

// What OpenImageIO takes for a file.
class FileProxy final : public OIIO::Filesystem::IOProxy {
 public:
  explicit FileProxy(CodecFile& file) : IOProxy("", Write), file_(file) {}

  const char* proxytype() const override { return "omniconv"; }
  std::size_t write(const void* buffer, std::size_t size) override {
    file_.put(buffer, size, m_pos);
    m_pos += static_cast<std::int64_t>(size);
    return size;
  }
  std::size_t pwrite(const void* buffer, std::size_t size, std::int64_t offset) override {
    file_.put(buffer, size, offset);
    return size;
  }
  std::size_t read(void* buffer, std::size_t size) override {
    const std::size_t got = file_.get(buffer, size, m_pos);
    m_pos += static_cast<std::int64_t>(got);
    return got;
  }
  std::size_t pread(void* buffer, std::size_t size, std::int64_t offset) override {
    return file_.get(buffer, size, offset);
  }
  std::size_t size() const override { return static_cast<std::size_t>(file_.size()); }

 private:
  CodecFile& file_;
};

// A digest of rows, to compare what was written with what can be read.
class RowDigest {
 public:
  void add(const std::byte* row, std::int64_t bytes) {
    const std::string_view text(reinterpret_cast<const char*>(row), static_cast<std::size_t>(bytes));
    value_ = value_ * 0x9E3779B97F4A7C15u + std::hash<std::string_view>{}(text);
  }
  bool operator==(const RowDigest&) const = default;

 private:
  std::uint64_t value_ = 0;
};

// The classic form of TIFF counts bytes in 32 bits. Half of that: the first page decides for all, others may be larger,
// and compression makes noise larger.
constexpr std::int64_t most_bytes_of_pages = std::int64_t{1} << 31;

// Pages are written by a path that reads them back, and by OpenImageIO, which has its own view of channels.
void check_page(const std::string& path, const ImageInfo& like, const WriteOptions& options) {
  if (options.pages == nullptr) return;
  if (options.compression == "jpeg" || like.type == DataType::f64)
    throw bad_input(fmt::format("{}: several pages are not written {}; choose another, or write one with --page N",
                                path, like.type == DataType::f64 ? "in f64" : "with the compression jpeg"));
  if (like.color_channels == 1 && like.c >= 3)
    throw bad_input(
        fmt::format("{}: several pages are not written with {} channels of which one is grey; write one "
                    "with --page N, or .npy",
                    path, like.c));
}

class Writer final : public ImageWriter {
 public:
  Writer(const std::string& path, const Format& format, const ImageInfo& like, const WriteOptions& options)
      : own_(options.pages == nullptr ? std::make_unique<AtomicFile>(path) : nullptr),
        pages_(options.pages),
        file_(pages_ == nullptr ? *own_ : pages_->file()),
        codec_file_(file_),
        proxy_(codec_file_),
        info_(like),
        format_(format),
        spec_(spec_of(format, like, options)) {
    output_.reset(OIIO::ImageOutput::create(std::string(format.plugin)).release());
    if (!output_ || !output_->supports("ioproxy"))
      throw environment_error(fmt::format("{}: this OpenImageIO cannot write {}", path, format.plugin));
    output_->threads(1);
    if (format.plugin == "tiff") prepare_tiff();
    if (!by_name_) output_->set_ioproxy(&proxy_);
    if (pages_ == nullptr) open_output();
    // OpenImageIO has written what stands before the pixels.
    if (format.plugin == "png")
      png_pixels_.emplace(row_bytes(like), like.c * size_of(like.type), size_of(like.type),
                          png_level(options.compression), options.threads,
                          [this](const void* bytes, std::size_t count) { proxy_.write(bytes, count); });
  }
  ~Writer() override {
    codec_file_.abandon();
    output_.reset();
  }

  std::int64_t resident_bytes() const override {
    return info_.h * row_bytes(info_) * format_.bytes_per_byte + (png_pixels_ ? png_pixels_->resident_bytes() : 0);
  }

  void write_rows(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) override {
    check_rows(info_, first, count, file_.path());
    check_next_row(first, rows_written_, file_.path());
    if (count == 0) return;
    if (pages_ != nullptr && rows_written_ == 0) open_output();
    check([&] {
      if (png_pixels_) {
        png_pixels_->write_rows(count, from, stride_bytes);
        return true;
      }
      return output_->write_scanlines(spec_.y + static_cast<int>(first), spec_.y + static_cast<int>(first + count), 0,
                                      spec_.format, from, OIIO::AutoStride, stride_bytes);
    });
    for (std::int64_t i = 0; by_name_ && i < count; ++i) written_.add(from + i * stride_bytes, row_bytes(info_));
    rows_written_ += count;
  }

  void finish() override {
    check_complete(rows_written_, info_.h, file_.path());
    if (png_pixels_) {
      png_pixels_->finish();
      codec_file_.settle();
      // OpenImageIO knows of no pixels, and would end the file once more.
      codec_file_.abandon();
    } else {
      check([&] { return output_->close(); });
    }
    output_.reset();
    if (!png_pixels_) codec_file_.settle();
    if (by_name_) read_back();
    if (format_.plugin == "jpeg2000" && !profile_of(spec_).empty()) add_profile();
    if (pages_ != nullptr)
      pages_->finish_page();
    else
      file_.commit();
  }

 private:
  // A page of several is begun with its first row: what only plans leaves the file as it is.
  void open_output() {
    const bool is_first = pages_ == nullptr || pages_->finished() == 0;
    check([&] {
      return output_->open(by_name_ ? file_.temporary_path() : file_.path(), spec_,
                           is_first ? OIIO::ImageOutput::Create : OIIO::ImageOutput::AppendSubimage);
    });
    // It would convert to a type that it likes better.
    if (output_->spec().format != spec_.format)
      throw bad_input(fmt::format("{}: this OpenImageIO writes {} as {}", file_.path(), spec_.format.c_str(),
                                  output_->spec().format.c_str()));
  }

  // An Exif directory and a second page need what OpenImageIO does not do through a proxy: going back to the first
  // directory. Then it writes by name, where libtiff's last errors are lost; so the file is read back before it is
  // believed, which in turn needs a compression that keeps every bit, and elements that are read in all strips. Other
  // files have no Exif, nor do pages, whose Exif would all be the first one's.
  void prepare_tiff() {
    const bool has_pages = pages_ != nullptr;
    const bool is_exact = !OIIO::Strutil::starts_with(spec_.get_string_attribute("compression"), "jpeg");
    by_name_ = has_pages || (has_exif(spec_) && is_exact && info_.type != DataType::f64);
    if (!by_name_ || has_pages) spec_.attribute("tiff:write_exif", 0);
    if (has_pages && raster_bytes(info_, file_.path()) > most_bytes_of_pages / pages_->pages())
      spec_.attribute("tiff:bigtiff", 1);
  }

  // Of a compressed file; its pixels were in memory a moment before.
  void add_profile() {
    std::string content(static_cast<std::size_t>(file_.size()), '\0');
    file_.read_at(0, content.data(), file_.size());
    content = with_profile(content, profile_of(spec_));
    file_.write_at(0, content.data(), static_cast<std::int64_t>(content.size()));
  }

  void read_back() {
    file_.adopt();
    RowDigest read;
    try {
      const auto reader = open(file_.temporary_path(), pages_ == nullptr ? 1 : pages_->finished() + 1,
                               std::numeric_limits<std::int64_t>::max());
      const ImageInfo& found = reader->info();
      // The directory of the pixels is written once more when that of Exif is there.
      const auto* const described = dynamic_cast<const SpecMetadata*>(found.metadata.get());
      if (found.h == info_.h && found.w == info_.w && found.c == info_.c && found.type == info_.type &&
          (pages_ != nullptr || (described != nullptr && has_exif(described->spec())))) {
        std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(info_)));
        for (std::int64_t y = 0; y < info_.h; ++y) {
          reader->read_rows(y, 1, row.data(), row_bytes(info_));
          read.add(row.data(), row_bytes(info_));
        }
      }
    } catch (const Error&) {
      read = RowDigest();
    }
    if (!(read == written_))
      throw bad_input(
          fmt::format("cannot write {}: what was written does not read back; is the disk full?", file_.path()));
  }

  template <typename Call>
  void check(Call call) {
    const LibpngSilence silence(format_.plugin);
    std::string reason = "its encoder failed";
    try {
      const bool success = call();
      codec_file_.check();
      if (success && !output_->has_error()) return;
      if (output_->has_error()) reason = one_line(output_->geterror());
    } catch (const Error&) {
      throw;
    } catch (const std::exception& exception) {
      reason = exception.what();
    }
    throw bad_input(fmt::format("cannot write {}: {}", file_.path(), reason));
  }

  std::unique_ptr<AtomicFile> own_;
  PagedOutput* pages_;
  AtomicFile& file_;
  CodecFile codec_file_;
  FileProxy proxy_;
  ImageInfo info_;
  const Format& format_;
  OIIO::ImageSpec spec_;
  bool by_name_ = false;
  RowDigest written_;
  std::optional<PngPixels> png_pixels_;
  std::unique_ptr<OIIO::ImageOutput, SilentDelete> output_;
  std::int64_t rows_written_ = 0;
};

}  // namespace

std::unique_ptr<ImageWriter> create(const std::string& path, const ImageInfo& like, const WriteOptions& options) {
  const Format& format = format_of(path);
  check_format(format, path, like, options);
  check_page(path, like, options);
  raster_bytes(like, path);
  if (format.plugin == "webp") return create_webp(path, format, like, options);
  return std::make_unique<Writer>(path, format, like, options);
}

}  // namespace omniconv::image::oiio
