#include "train/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <span>

#include "core/checked.h"
#include "core/convert.h"
#include "image/image.h"
#include "omniconv/error.h"

namespace omniconv::training {
namespace {

// Of a file that may say anything: pixels along a side, and bytes of a row and of what a decoder holds.
constexpr std::int64_t most_side = 1 << 20, most_bytes = 1 << 30;

// What each pixel of one axis takes of those before: the share of each that it covers where it is larger than they are,
// and the two beside its middle where it is smaller: triangles as wide as a new pixel, or as an old one where that is
// larger, so that no pixel is passed over.
struct Share {
  std::int64_t first = 0;
  std::vector<double> weights;

  std::int64_t end() const { return first + std::ssize(weights); }
};
std::vector<Share> shares(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  std::vector<Share> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const std::int64_t first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(middle - reach)) + 1),
                       last = std::min(from - 1, static_cast<std::int64_t>(std::ceil(middle + reach)) - 1);
    Share own{.first = first, .weights = {}};
    for (std::int64_t k = first; k <= last; ++k)
      own.weights.push_back(1 - std::fabs(static_cast<double>(k) - middle) / reach);
    const double sum = std::accumulate(own.weights.begin(), own.weights.end(), 0.0);
    for (double& weight : own.weights) weight /= sum;
    all.push_back(std::move(own));
  }
  return all;
}

// An image's rows, as colours from 0 to 1 of so many channels.
class Rows {
 public:
  Rows(const std::string& path, std::int64_t channels)
      : reader_(image::open_image(path, 0, most_bytes)), info_(reader_->info()), channels_(channels) {
    is_integer_ = info_.type == DataType::u8 || info_.type == DataType::u16;
    if (!is_integer_ && info_.type != DataType::f32 && info_.type != DataType::f16)
      throw bad_input(fmt::format("{}: its pixels are {}: u8, u16, f16 and f32 are taken", path, name(info_.type)));
    if (info_.h < 1 || info_.w < 1 || std::max(info_.h, info_.w) > most_side)
      throw bad_input(
          fmt::format("{}: it has {} x {} pixels: must be 1 to {} along each side", path, info_.h, info_.w, most_side));
    colours_ = info_.c == 2 || info_.c == 4 ? info_.c - 1 : info_.c;
    to_grey_ = channels == 1 && colours_ == 3;
    if (colours_ != channels && !to_grey_ && !(channels == 3 && colours_ == 1))
      throw bad_input(fmt::format("{} has {} channels, and the model takes {}", path, colours_, channels));
    const std::int64_t bytes =
        checked_multiply(checked_multiply(info_.w, info_.c, "a row's elements"), size_of(info_.type), "a row's bytes");
    if (bytes > most_bytes)
      throw bad_input(fmt::format("{}: its rows have {} bytes: at most {} are read", path, bytes, most_bytes));
    stored_.resize(static_cast<std::size_t>(bytes));
    const double of_type = info_.type == DataType::u8 ? 255 : 65535;
    white_ = !is_integer_ ? 1 : info_.max_value > 0 ? info_.max_value : of_type;
  }

  std::int64_t h() const { return info_.h; }
  std::int64_t w() const { return info_.w; }
  // Row p, channels x w.
  void read(std::int64_t p, std::span<double> to) {
    reader_->read_rows(p, 1, stored_.data(), std::ssize(stored_));
    for (std::int64_t q = 0; q < w(); ++q)
      for (std::int64_t k = 0; k < channels_; ++k)
        to[static_cast<std::size_t>(k * w() + q)] =
            to_grey_ ? 0.299 * at(q, 0) + 0.587 * at(q, 1) + 0.114 * at(q, 2) : at(q, std::min(k, colours_ - 1));
  }

 private:
  double at(std::int64_t q, std::int64_t k) const {
    return load_element(info_.type, stored_.data() + (q * info_.c + k) * size_of(info_.type)) / white_;
  }

  std::unique_ptr<image::ImageReader> reader_;
  image::ImageInfo info_;
  std::int64_t channels_, colours_ = 0;
  bool is_integer_ = false, to_grey_ = false;
  double white_ = 1;
  std::vector<std::byte> stored_;
};

std::uint8_t step_of(double colour) {
  const double step = std::nearbyint(colour * 255);
  return step > 0 ? static_cast<std::uint8_t>(std::min(step, 255.0)) : std::uint8_t{0};  // of NaN, too
}

}  // namespace

std::vector<std::uint8_t> read_picture(const std::string& path, const ModelShape& shape) {
  Rows rows(path, shape.channels);
  const std::vector<Share> down = shares(rows.h(), shape.height), across = shares(rows.w(), shape.width);
  std::vector<double> row(static_cast<std::size_t>(shape.channels * rows.w())),
      narrow(static_cast<std::size_t>(shape.channels * shape.width)),
      sums(static_cast<std::size_t>(shape.elements()), 0);
  std::size_t open = 0;  // the first new row that still takes of old ones
  for (std::int64_t p = 0; p < rows.h(); ++p) {
    rows.read(p, row);
    for (std::int64_t k = 0; k < shape.channels; ++k)
      for (std::int64_t q = 0; q < shape.width; ++q) {
        const Share& own = across[static_cast<std::size_t>(q)];
        const double* const from = row.data() + k * rows.w() + own.first;
        narrow[static_cast<std::size_t>(k * shape.width + q)] =
            std::inner_product(own.weights.begin(), own.weights.end(), from, 0.0);
      }
    while (open < down.size() && down[open].end() <= p) ++open;
    for (std::size_t i = open; i < down.size() && down[i].first <= p; ++i) {
      const double weight = down[i].weights[static_cast<std::size_t>(p - down[i].first)];
      for (std::int64_t k = 0; k < shape.channels; ++k)
        for (std::int64_t q = 0; q < shape.width; ++q)
          sums[static_cast<std::size_t>((k * shape.height + static_cast<std::int64_t>(i)) * shape.width + q)] +=
              weight * narrow[static_cast<std::size_t>(k * shape.width + q)];
    }
  }
  std::vector<std::uint8_t> pixels;
  std::transform(sums.begin(), sums.end(), std::back_inserter(pixels), step_of);
  return pixels;
}

}  // namespace omniconv::training
