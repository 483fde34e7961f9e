// Sums with shortcuts on the CPU: a plane of the result (nchw) or the channels of a pixel (nhwc) at a time, to which
// what lies in the other array is added as a whole; what lies apart there, or has gaps, is gathered first.
#include <algorithm>
#include <array>
#include <cstring>

#include "operations/add/add.h"
#include "operations/add/direct/elements.h"
#include "operations/add/host_plan.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t most_gathered = 512;  // elements

// -0, which changes no sum, in an element's lowest bytes.
std::array<std::byte, 8> negative_zero(std::int64_t size) {
  std::array<std::byte, 8> bytes{};
  bytes[static_cast<std::size_t>(size - 1)] = std::byte{0x80};
  return bytes;
}

template <std::int64_t size>
void fill(std::int64_t count, std::byte* to) {
  const std::array<std::byte, 8> none = negative_zero(size);
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * size, none.data(), size);
}

// Elements of the result's line from `column` on to those of another line at `other`, of size `size`.
template <std::int64_t size>
void gather(const AddShape& shape, const std::byte* other, std::int64_t column, std::int64_t count, std::byte* to) {
  if (!shape.backward) {
    for (std::int64_t i = 0; i < count; ++i, to += size)
      std::memcpy(to, other + (column + i) * shape.stride * size, size);
    return;
  }
  fill<size>(count, to);
  const std::int64_t first = (column + shape.stride - 1) / shape.stride;
  for (std::int64_t from = first; from * shape.stride < column + count; ++from)
    std::memcpy(to + (from * shape.stride - column) * size, other + from * size, size);
}

class Lines {
 public:
  Lines(const AddProblem& problem, const AddPiece& piece)
      : problem_(problem), shape_(problem), piece_(piece), size_(size_of(problem.type)) {}

  void add() const {
    if (shape_.is_plain()) return with(piece_.first, piece_.other + piece_.first * size_, piece_.elements);
    const std::int64_t length = shape_.nhwc ? shape_.result.channels : shape_.result.rows * shape_.result.columns,
                       last = piece_.first + piece_.elements;
    for (std::int64_t at = piece_.first; at < last;) {
      const std::int64_t line = at / length, begin = at % length, count = std::min(length - begin, last - at);
      shape_.nhwc ? channels(line, at, begin, count) : plane(line, at, begin, count);
      at += count;
    }
  }

 private:
  // Of elements of the result from `at` on.
  void with(std::int64_t at, const std::byte* other, std::int64_t count) const {
    kernels::add_elements(problem_.type, problem_.relu, piece_.base + at * size_, other, piece_.result + at * size_,
                          count);
  }
  void without(std::int64_t at, std::int64_t count) const {
    if (problem_.relu)
      with(at, nullptr, count);
    else if (piece_.result != piece_.base)
      std::memcpy(piece_.result + at * size_, piece_.base + at * size_, static_cast<std::size_t>(count * size_));
  }

  // The channels [begin, begin + count) of a pixel.
  void channels(std::int64_t pixel, std::int64_t at, std::int64_t begin, std::int64_t count) const {
    const std::int64_t column = shape_.other_line(pixel % shape_.result.columns),
                       row = shape_.other_line(pixel / shape_.result.columns % shape_.result.rows),
                       image = pixel / shape_.result.columns / shape_.result.rows;
    if (row == AddShape::none || column == AddShape::none) return without(at, count);
    // Those that have one in the other array.
    const std::int64_t shift = shape_.backward ? shape_.before : -shape_.before;
    const std::int64_t from = std::clamp<std::int64_t>(-shift, begin, begin + count),
                       to = std::clamp(shape_.other.channels - shift, from, begin + count);
    if (from > begin) without(at, from - begin);
    if (to > from) {
      const std::int64_t other_pixel = (image * shape_.other.rows + row) * shape_.other.columns + column;
      with(at + from - begin, piece_.other + (other_pixel * shape_.other.channels + from + shift) * size_, to - from);
    }
    if (begin + count > to) without(at + to - begin, begin + count - to);
  }

  // Elements [begin, begin + count) of a channel's plane.
  void plane(std::int64_t line, std::int64_t at, std::int64_t begin, std::int64_t count) const {
    const std::int64_t channel = shape_.other_channel(line % shape_.result.channels),
                       image = line / shape_.result.channels;
    if (channel == AddShape::none) return without(at, count);
    const std::byte* const other =
        piece_.other + (image * shape_.other.channels + channel) * shape_.other.rows * shape_.other.columns * size_;
    if (shape_.stride == 1) return with(at, other + begin * size_, count);
    for (std::int64_t i = 0; i < count; i += most_gathered) {
      const std::int64_t some = std::min(most_gathered, count - i);
      alignas(64) std::byte gathered[most_gathered * 8];
      if (size_ == 2) gather_rows<2>(other, begin + i, some, gathered);
      if (size_ == 4) gather_rows<4>(other, begin + i, some, gathered);
      if (size_ == 8) gather_rows<8>(other, begin + i, some, gathered);
      with(at + i, gathered, some);
    }
  }

  // What lies in the other plane for the plane's elements from `first` on.
  template <std::int64_t size>
  void gather_rows(const std::byte* other, std::int64_t first, std::int64_t count, std::byte* to) const {
    std::int64_t row = first / shape_.result.columns, column = first % shape_.result.columns;
    while (count > 0) {
      const std::int64_t some = std::min(shape_.result.columns - column, count), other_row = shape_.other_line(row);
      if (other_row == AddShape::none)
        fill<size>(some, to);
      else
        gather<size>(shape_, other + other_row * shape_.other.columns * size, column, some, to);
      to += some * size, count -= some, ++row, column = 0;
    }
  }

  const AddProblem& problem_;
  AddShape shape_;
  AddPiece piece_;
  std::int64_t size_;
};

class DirectCpu final : public AddSolver {
 public:
  std::string_view id() const override { return "add/direct/cpu.1"; }
  Answer offer(const AddProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    // What is gathered is looked up by itself.
    const double element = AddShape(problem).is_plain() || problem.stride == 1 ? 2 : 12;
    return Offer{
        .cost = {std::max(byte_cost(*device) * least_bytes(problem),
                          element * static_cast<double>(elements_of_result(problem)))},
        .bound = add_bound(problem),
        .plan =
            [=] {
              return add_on_host(problem, device,
                                 [](const AddProblem& p, const AddPiece& piece) { Lines(p, piece).add(); });
            },
    };
  }
};

}  // namespace

const AddSolver& add_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
