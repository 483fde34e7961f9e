// The pixels of a PNG file, filtered and compressed by several threads at once. (libpng has one, and compressing takes
// most of the time that a PNG image takes.)
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace omniconv::image {

// zlib's level that a word of compressions_of("png"), or none, asks for; 6 is libpng's own.
inline int png_level(std::string_view compression) {
  return compression.empty() ? 6 : compression.front() - '0';
}

// Where the bytes of a file go, one after another.
using PngSink = std::function<void(const void* bytes, std::size_t count)>;
// A whole chunk with its checksum; `kind` has four letters.
void write_png_chunk(const PngSink& sink, std::string_view kind, std::string_view data);

// Writes the chunks IDAT and IEND: those of https://www.w3.org/TR/png-3/, holding one zlib stream (RFC 1950, 1951)
// whose pieces were compressed apart, as pigz does it: each knows the 32 KiB before it, and ends on a whole byte. A
// piece has as many rows whatever the number of threads, and however the rows come: the bytes depend on the image
// alone. The filter of a row is that of the smallest sum of absolute values, as the standard suggests and libpng does.
class PngPixels {
 public:
  // Rows of `row_bytes`, with `pixel_bytes` a pixel of samples of `sample_bytes` (1 or 2); zlib's `level` from 0 to 9.
  PngPixels(std::int64_t row_bytes, std::int64_t pixel_bytes, std::int64_t sample_bytes, int level, int threads,
            PngSink sink);
  ~PngPixels();
  PngPixels(const PngPixels&) = delete;
  PngPixels& operator=(const PngPixels&) = delete;

  // Samples in the machine's byte order.
  void write_rows(std::int64_t count, const std::byte* from, std::int64_t stride_bytes);
  void finish();
  std::int64_t resident_bytes() const;

 private:
  struct Piece;

  void take_rows(std::int64_t count, const std::byte* from, std::int64_t stride_bytes);
  void write_pieces(std::int64_t rows);
  void make_room(std::int64_t rows);
  void forget_rows(std::int64_t rows);
  void filter_rows(std::int64_t first, std::int64_t last);
  void compress(Piece& piece, std::int64_t first, std::int64_t last) const;

  std::int64_t row_bytes_, pixel_bytes_, sample_bytes_;
  int level_, threads_;
  PngSink sink_;
  std::int64_t piece_rows_ = 1;
  std::vector<std::unique_ptr<Piece>> pieces_;
  // As stored: the last row that was written and those taken since, each behind a pixel of zeros.
  std::vector<unsigned char> rows_;
  std::int64_t taken_ = 0;
  // The last 32 KiB that were compressed, then the rows in work, each behind the number of its filter.
  std::vector<unsigned char> filtered_;
  std::int64_t known_bytes_ = 0;  // of those 32 KiB
  uLong sum_ = 1;                 // of all that was compressed, as RFC 1950 has it
  bool begun_ = false;
};

}  // namespace omniconv::image
