// What a PNG file says beside its pixels, and what of it a copy says again.
#include <algorithm>
#include <array>

#include "image/formats/plain/plain.h"
#include "image/formats/png_chunks.h"
#include "omniconv/error.h"

namespace omniconv::image::plain {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t most_bytes = 1 << 20;  // of all that is kept
// OpenImageIO's own word for what the chunks of colour say.
constexpr std::string_view color_space = "oiio:ColorSpace\0"sv;

template <std::size_t count>
bool is_in(const std::array<std::string_view, count>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Those of the standard and ImageMagick's. OpenImageIO takes some others for what describes the pixels.
bool is_plain_text(std::string_view data) {
  static constexpr std::array<std::string_view, 14> keywords = {
      "Title",   "Author", "Description", "Copyright",  "Creation Time", "Software",    "Disclaimer",
      "Warning", "Source", "Comment",     "Collection", "date:create",   "date:modify", "date:timestamp"};
  const std::size_t end = data.find('\0');
  return end != std::string_view::npos && is_in(keywords, data.substr(0, end)) &&
         data.find('\0', end + 1) == std::string_view::npos;
}

// Two bytes of a year, then a byte each.
bool is_time(std::string_view data) {
  const auto byte = [data](std::size_t i) { return static_cast<int>(static_cast<unsigned char>(data[i])); };
  return data.size() == 7 && byte(2) >= 1 && byte(2) <= 12 && byte(3) >= 1 && byte(3) <= 31 && byte(4) <= 23 &&
         byte(5) <= 59 && byte(6) <= 60;
}

class Content {
 public:
  // False for a chunk that only the other module can treat, or would treat in another way.
  bool add(const InputFile& file, const PngChunk& chunk) {
    static constexpr std::array<std::string_view, 8> kept = {"gAMA", "cHRM", "sRGB", "iCCP",
                                                             "pHYs", "bKGD", "tIME", "tEXt"};
    // The place on a canvas and the bits that samples had once are untrue of filtered pixels.
    static constexpr std::array<std::string_view, 2> dropped = {"oFFs", "sBIT"};
    if (chunk.kind == "IHDR") return true;
    if (chunk.kind == "IDAT" || chunk.kind == "IEND") return is_behind_pixels_ = true;
    if (chunk.length + chunks_.size() > most_bytes) return false;
    if (!is_behind_pixels_ && is_in(dropped, chunk.kind)) return true;
    if (!is_in(kept, chunk.kind)) return false;
    std::string whole(chunk.length + std::size_t{12}, '\0');
    file.read_at(chunk.begin, whole.data(), static_cast<std::int64_t>(whole.size()));
    return take(chunk.kind, std::move(whole));
  }

  std::shared_ptr<PlainMetadata> metadata() && {
    auto made = std::make_shared<PlainMetadata>();
    made->format = "png";
    made->chunks = std::move(chunks_);
    made->background = std::move(background_);
    // OpenImageIO takes pixels for sRGB that are said to be so, whatever else describes their colours.
    made->says_more = says_more_ || (describes_color_ && !is_srgb_);
    return made;
  }

 private:
  // libpng understands those before the pixels, or complains.
  bool take(std::string_view kind, std::string whole) {
    const std::string_view data = std::string_view(whole).substr(8, whole.size() - 12);
    if (kind == "tEXt" && data.starts_with(color_space)) {
      says_more_ = says_more_ || data.substr(color_space.size()) != "sRGB";
      return true;
    }
    if (kind == "tEXt" && !is_plain_text(data)) return false;
    if (kind == "tIME" && (has_time_ || !is_time(data))) return false;
    if (kind != "tEXt" && kind != "tIME" && is_behind_pixels_) return false;
    if (kind == "bKGD") {
      background_ = std::move(whole);
      return true;
    }
    has_time_ = has_time_ || kind == "tIME";
    is_srgb_ = is_srgb_ || kind == "sRGB";
    describes_color_ = describes_color_ || kind == "gAMA" || kind == "cHRM";
    says_more_ = says_more_ || kind == "iCCP" || kind == "pHYs" || kind == "tIME" || kind == "tEXt";
    chunks_ += whole;
    return true;
  }

  std::string chunks_, background_;
  bool is_behind_pixels_ = false, has_time_ = false, is_srgb_ = false, describes_color_ = false, says_more_ = false;
};

}  // namespace

std::shared_ptr<PlainMetadata> plain_png(const InputFile& file) {
  try {
    static constexpr std::array<std::int64_t, 7> channels = {1, 0, 3, 0, 2, 0, 4};  // of each colour type
    const PngHeader header = png_header(file);
    const bool has_color = header.color < 7 && channels[static_cast<std::size_t>(header.color)] > 0;
    if (!has_color || (header.bits != 8 && header.bits != 16) || header.interlacing != 0) return nullptr;
    Content content;
    PngChunks chunks(file);
    while (const auto chunk = chunks.next())
      if (!content.add(file, *chunk)) return nullptr;
    auto metadata = std::move(content).metadata();
    metadata->path = file.path();
    metadata->channels = channels[static_cast<std::size_t>(header.color)];
    metadata->type = header.bits == 16 ? DataType::u16 : DataType::u8;
    return metadata;
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace omniconv::image::plain
