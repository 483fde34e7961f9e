#include "image/formats/png_pixels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "image/formats/big_endian.h"

namespace omniconv::image {
namespace {

constexpr std::int64_t window_bytes = 32768;      // how far back deflate looks
constexpr std::int64_t piece_bytes = 256 * 1024;  // smaller pieces compress worse, larger ones keep fewer threads busy
constexpr int pieces_per_thread = 2;              // so that none waits long for the slowest
constexpr int memory_level = 8;                   // as libpng has it
constexpr std::int64_t state_bytes = 268 * 1024;  // what zlib holds for these two (its zconf.h)

void write_chunk(const PngSink& sink, std::string_view kind, const void* data, std::size_t bytes,
                 std::uint32_t checksum) {
  const std::string length = big_endian(static_cast<std::uint32_t>(bytes)), sum = big_endian(checksum);
  sink(length.data(), length.size());
  sink(kind.data(), kind.size());
  sink(data, bytes);
  sink(sum.data(), sum.size());
}

// The predictions of PNG's filters from the bytes to the left, above, and above the left one.
struct None {
  static int predict(int, int, int) { return 0; }
};
struct Left {
  static int predict(int left, int, int) { return left; }
};
struct Up {
  static int predict(int, int up, int) { return up; }
};
struct Average {
  static int predict(int left, int up, int) { return (left + up) / 2; }
};
struct Paeth {
  static int predict(int left, int up, int corner) {
    const int by_left = std::abs(up - corner), by_up = std::abs(left - corner),
              by_corner = std::abs(left + up - 2 * corner);
    const int other = by_up <= by_corner ? up : corner;
    return by_left <= std::min(by_up, by_corner) ? left : other;
  }
};

// A row as stored, and the one above it, each behind a pixel of zeros.
struct RowPair {
  const unsigned char *row, *above;
  std::int64_t bytes, pixel_bytes;
};

template <typename Filter>
unsigned char filtered(const RowPair& rows, std::int64_t i) {
  const std::int64_t left = i - rows.pixel_bytes;
  return static_cast<unsigned char>(rows.row[i] - Filter::predict(rows.row[left], rows.above[i], rows.above[left]));
}

template <typename Filter>
void apply(const RowPair& rows, unsigned char* to) {
  for (std::int64_t i = 0; i < rows.bytes; ++i) to[i] = filtered<Filter>(rows, i);
}

// The sum of the filtered bytes, taken as numbers from -128 to 127, without their signs.
template <typename Filter>
std::uint64_t cost(const RowPair& rows) {
  std::uint64_t sum = 0;
  for (std::int64_t begin = 0; begin < rows.bytes; begin += 1 << 16) {
    std::uint32_t part = 0;
    const std::int64_t end = std::min<std::int64_t>(begin + (1 << 16), rows.bytes);
    for (std::int64_t i = begin; i < end; ++i) {
      const int byte = filtered<Filter>(rows, i);
      part += static_cast<std::uint32_t>(std::min(byte, 256 - byte));
    }
    sum += part;
  }
  return sum;
}

// The filter's number, then the filtered bytes.
void filter_row(const RowPair& rows, unsigned char* to) {
  const std::array costs = {cost<None>(rows), cost<Left>(rows), cost<Up>(rows), cost<Average>(rows), cost<Paeth>(rows)};
  const auto best = std::min_element(costs.begin(), costs.end()) - costs.begin();
  to[0] = static_cast<unsigned char>(best);
  switch (best) {
    case 0: return apply<None>(rows, to + 1);
    case 1: return apply<Left>(rows, to + 1);
    case 2: return apply<Up>(rows, to + 1);
    case 3: return apply<Average>(rows, to + 1);
    default: return apply<Paeth>(rows, to + 1);
  }
}

// Calls task(i) for i from 0 to count, on as many threads, this one among them. Threads of its own: a
// piece takes a hundred times as long as a thread to start.
template <typename Task>
void on_threads(int threads, std::int64_t count, const Task& task) {
  const auto workers = static_cast<std::size_t>(std::min<std::int64_t>(threads, count));
  std::atomic<std::int64_t> next{0};
  std::vector<std::exception_ptr> failures(workers);
  const auto work = [&](std::size_t worker) {
    try {
      for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(i);
    } catch (...) {
      failures[worker] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t worker = 1; worker < workers; ++worker) others.emplace_back(work, worker);
    work(0);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

void write_png_chunk(const PngSink& sink, std::string_view kind, std::string_view data) {
  uLong sum = 0;
  for (const std::string_view part : {kind, data})
    if (!part.empty()) sum = crc32_z(sum, reinterpret_cast<const Bytef*>(part.data()), part.size());
  write_chunk(sink, kind, data.data(), data.size(), static_cast<std::uint32_t>(sum));
}

// What is compressed apart, and becomes one chunk.
struct PngPixels::Piece {
  explicit Piece(int level) {
    if (deflateInit2(&stream, level, Z_DEFLATED, -MAX_WBITS, memory_level, Z_FILTERED) != Z_OK) throw std::bad_alloc();
  }
  ~Piece() { deflateEnd(&stream); }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  z_stream stream{};
  std::vector<unsigned char> data;
  std::uint32_t checksum = 0;
  uLong sum = 1;
};

PngPixels::PngPixels(std::int64_t row_bytes, std::int64_t pixel_bytes, std::int64_t sample_bytes, int level,
                     int threads, PngSink sink)
    : row_bytes_(row_bytes),
      pixel_bytes_(pixel_bytes),
      sample_bytes_(sample_bytes),
      level_(level),
      threads_(std::max(threads, 1)),
      sink_(std::move(sink)) {
  piece_rows_ = std::max<std::int64_t>(piece_bytes / (row_bytes_ + 1), 1);
}

PngPixels::~PngPixels() = default;

std::int64_t PngPixels::resident_bytes() const {
  const std::int64_t piece = piece_rows_ * (row_bytes_ + 1 + pixel_bytes_);
  return window_bytes + row_bytes_ + threads_ * pieces_per_thread * (3 * piece + state_bytes);
}

void PngPixels::write_rows(std::int64_t count, const std::byte* from, std::int64_t stride_bytes) {
  if (pieces_.empty())
    for (int i = 0; i < threads_ * pieces_per_thread; ++i) pieces_.push_back(std::make_unique<Piece>(level_));
  const std::int64_t most_rows = piece_rows_ * static_cast<std::int64_t>(pieces_.size());
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t rows = std::min(most_rows - taken_, count - done);
    take_rows(rows, from + done * stride_bytes, stride_bytes);
    write_pieces(taken_ / piece_rows_ * piece_rows_);  // the rest waits for rows to come
    done += rows;
  }
}

void PngPixels::take_rows(std::int64_t count, const std::byte* from, std::int64_t stride_bytes) {
  const std::int64_t stride = pixel_bytes_ + row_bytes_;
  rows_.resize(static_cast<std::size_t>((1 + taken_ + count) * stride));
  for (std::int64_t y = 0; y < count; ++y) {
    unsigned char* const row = rows_.data() + (1 + taken_ + y) * stride + pixel_bytes_;
    std::memcpy(row, from + y * stride_bytes, static_cast<std::size_t>(row_bytes_));
    for (std::int64_t i = 0; sample_bytes_ == 2 && i < row_bytes_; i += 2) std::swap(row[i], row[i + 1]);
  }
  taken_ += count;
}

// The first of the rows taken; the last piece may have fewer rows than the others.
void PngPixels::write_pieces(std::int64_t rows) {
  if (rows == 0) return;
  make_room(rows);
  const std::int64_t pieces = (rows - 1) / piece_rows_ + 1;
  const auto for_each_piece = [&](const auto& work) {
    on_threads(threads_, pieces, [&](std::int64_t i) {
      work(*pieces_[static_cast<std::size_t>(i)], i * piece_rows_, std::min(rows, (i + 1) * piece_rows_));
    });
  };
  for_each_piece([this](Piece&, std::int64_t first, std::int64_t last) { filter_rows(first, last); });
  for_each_piece([this](Piece& piece, std::int64_t first, std::int64_t last) { compress(piece, first, last); });
  for (std::int64_t i = 0; i < pieces; ++i) {
    Piece& piece = *pieces_[static_cast<std::size_t>(i)];
    const std::int64_t piece_rows = std::min(piece_rows_, rows - i * piece_rows_);
    sum_ = adler32_combine(sum_, piece.sum, static_cast<z_off_t>(piece_rows * (row_bytes_ + 1)));
    write_chunk(sink_, "IDAT", piece.data.data(), piece.data.size(), piece.checksum);
  }
  begun_ = true;
  forget_rows(rows);
}

// For so many filtered rows, behind the 32 KiB that were filtered last.
void PngPixels::make_room(std::int64_t rows) {
  const auto there = static_cast<std::int64_t>(filtered_.size());
  known_bytes_ = std::min(there, window_bytes);
  std::copy(filtered_.end() - known_bytes_, filtered_.end(), filtered_.begin());
  filtered_.resize(static_cast<std::size_t>(known_bytes_ + rows * (row_bytes_ + 1)));
}

// All but the last of them, by which the next is filtered.
void PngPixels::forget_rows(std::int64_t rows) {
  const std::int64_t stride = pixel_bytes_ + row_bytes_;
  std::copy(rows_.begin() + rows * stride, rows_.end(), rows_.begin());
  taken_ -= rows;
  rows_.resize(static_cast<std::size_t>((1 + taken_) * stride));
}

void PngPixels::filter_rows(std::int64_t first, std::int64_t last) {
  const std::int64_t stride = pixel_bytes_ + row_bytes_;
  for (std::int64_t y = first; y < last; ++y) {
    const unsigned char* const above = rows_.data() + y * stride + pixel_bytes_;
    filter_row({.row = above + stride, .above = above, .bytes = row_bytes_, .pixel_bytes = pixel_bytes_},
               filtered_.data() + known_bytes_ + y * (row_bytes_ + 1));
  }
}

void PngPixels::compress(Piece& piece, std::int64_t first, std::int64_t last) const {
  const std::int64_t begin = known_bytes_ + first * (row_bytes_ + 1);
  const auto bytes = static_cast<uInt>((last - first) * (row_bytes_ + 1));
  const std::int64_t known = std::min(begin, window_bytes);
  const auto* const from = filtered_.data() + begin;
  deflateReset(&piece.stream);
  if (known > 0) deflateSetDictionary(&piece.stream, from - known, static_cast<uInt>(known));
  piece.data.clear();
  // The stream's own beginning: deflate, a window of 32 KiB, and the default level, which no reader heeds.
  if (first == 0 && !begun_) piece.data = {0x78, 0x9C};
  const std::size_t head = piece.data.size();
  piece.data.resize(head + deflateBound(&piece.stream, bytes) + 16);  // 16: the flush
  piece.stream.next_in = const_cast<unsigned char*>(from);
  piece.stream.avail_in = bytes;
  piece.stream.next_out = piece.data.data() + head;
  piece.stream.avail_out = static_cast<uInt>(piece.data.size() - head);
  // More room than deflateBound() promises for one call should never be needed.
  for (deflate(&piece.stream, Z_SYNC_FLUSH); piece.stream.avail_out == 0; deflate(&piece.stream, Z_SYNC_FLUSH)) {
    const std::size_t used = piece.data.size();
    piece.data.resize(2 * used);
    piece.stream.next_out = piece.data.data() + used;
    piece.stream.avail_out = static_cast<uInt>(used);
  }
  piece.data.resize(piece.data.size() - piece.stream.avail_out);
  piece.sum = adler32(1, from, bytes);
  piece.checksum = static_cast<std::uint32_t>(crc32(crc32(0, reinterpret_cast<const Bytef*>("IDAT"), 4),
                                                    piece.data.data(), static_cast<uInt>(piece.data.size())));
}

void PngPixels::finish() {
  write_pieces(taken_);
  // An empty last block, and the sum.
  const auto sum = big_endian(static_cast<std::uint32_t>(sum_));
  const char end[] = {3, 0};
  write_png_chunk(sink_, "IDAT", std::string(end, 2).append(reinterpret_cast<const char*>(sum.data()), sum.size()));
  write_png_chunk(sink_, "IEND", "");
}

}  // namespace omniconv::image
