#include "operations/batch/direct/rows.h"

#include <algorithm>
#include <cstdint>

namespace omniconv::kernels {
namespace {

// Columns [first, end) of a row come from inside of the image, column q from from[q], or from[-q] where it is mirrored.
struct Columns {
  std::int64_t first = 0, end = 0, begin = 0;
  bool mirrored = false;

  Columns(std::int64_t w, const operations::ImageDraw& draw) : mirrored(draw.mirrored) {
    const std::int64_t left = mirrored ? draw.columns : -draw.columns;  // that are outside, before the first
    first = std::clamp<std::int64_t>(left, 0, w), end = std::clamp<std::int64_t>(w + left, 0, w);
    begin = mirrored ? w - 1 + draw.columns : draw.columns;
  }
};

// A row of a channel, whose elements are `step` apart. Bits: an element, as it is stored.
template <typename Bits>
void make_row(const std::uint8_t* row, const Columns& columns, std::int64_t w, const Bits* table, std::int64_t step,
              Bits* to) {
  const std::int64_t first = row == nullptr ? w : columns.first, end = row == nullptr ? w : columns.end;
  for (std::int64_t q = 0; q < first; ++q) to[q * step] = table[0];
  if (row != nullptr && columns.mirrored)
    for (std::int64_t q = first; q < end; ++q) to[q * step] = table[row[columns.begin - q]];
  else if (row != nullptr)
    for (std::int64_t q = first; q < end; ++q) to[q * step] = table[row[columns.begin + q]];
  for (std::int64_t q = end; q < w; ++q) to[q * step] = table[0];
}

template <typename Bits>
void make(const BatchProblem& p, const std::byte* pixels, const operations::ImageDraw& draw, const std::byte* table,
          std::byte* y) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(pixels);
  const auto* const entries = reinterpret_cast<const Bits*>(table);
  auto* const to = reinterpret_cast<Bits*>(y);
  const Columns columns(p.w, draw);
  for (std::int64_t k = 0; k < p.c; ++k)
    for (std::int64_t row = 0; row < p.h; ++row) {
      const std::int64_t source = row + draw.rows;
      const std::uint8_t* const pixels_of_row =
          from != nullptr && source >= 0 && source < p.h ? from + (k * p.h + source) * p.w : nullptr;
      if (p.layout == Layout::nhwc)
        make_row(pixels_of_row, columns, p.w, entries + 256 * k, p.c, to + row * p.w * p.c + k);
      else
        make_row(pixels_of_row, columns, p.w, entries + 256 * k, 1, to + (k * p.h + row) * p.w);
    }
}

}  // namespace

void make_image(const BatchProblem& problem, const std::byte* pixels, const operations::ImageDraw& draw,
                const std::byte* table, std::byte* y) {
  switch (size_of(problem.type)) {
    case 2: return make<std::uint16_t>(problem, pixels, draw, table, y);
    case 4: return make<std::uint32_t>(problem, pixels, draw, table, y);
    default: return make<std::uint64_t>(problem, pixels, draw, table, y);
  }
}

}  // namespace omniconv::kernels
