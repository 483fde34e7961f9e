// The CPU's row kernels of box filters: sums down the columns of the image, kept up to date row by row, and sums of
// those along the row. Chosen at run time for the processor's instruction set; the bits are the same on all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "operations/filter2d/vector/rows.h"

namespace omniconv::kernels {

// Integers add up in unsigned types, where wrapping round is harmless as long as the true sum fits: u16 and u32 hold
// sums down columns, u64 whatever they cannot. Negative sums are two's complements.

// columns[e] += entering[e] - leaving[e] for stored elements e in [0, n); a null `leaving` stands for zeros.
// `upcoming`, if not null, is the row of the same elements that enters next.
void slide_columns(DataType type, const std::byte* entering, const std::byte* leaving, std::int64_t n,
                   std::uint16_t* columns);  // u8 alone
void slide_columns(DataType type, const std::byte* entering, const std::byte* leaving, std::int64_t n,
                   std::uint32_t* columns);  // u8, u16, s16
void slide_columns(DataType type, const std::byte* entering, const std::byte* leaving, std::int64_t n,
                   std::uint64_t* columns);  // every integer type

// Sums of 16 bits to bytes: ((sum + add) * multiplier >> 16) >> shift, saturated. Only where that is what Finish says
// of every sum that may occur.
struct ByteQuotient {
  std::uint16_t add = 0, multiplier = 0;
  int shift = 0;
};

// Sums of s column sums, `step` apart: element e is that of columns[e + k * step], k in [0, s).
template <typename Column>
struct BoxRow {
  const Column* columns;  // [-step, n + (s - 1) * step + box_slack) may be read
  std::int64_t s, step, n;
  bool narrow;                             // no sum is above 65535
  const ByteQuotient* quotient = nullptr;  // for narrow sums to bytes, where there is one
  Column* scratch;                         // box_scratch(step) of them
  const std::byte* upcoming = nullptr;     // stored elements that enter next, n or more, or null
  std::int64_t upcoming_size = 0;          // bytes of one
  bool stream = false;                     // results go past the caches; the caller ends with stream_fence()
};
inline constexpr std::int64_t box_slack = 64;
inline constexpr std::int64_t box_scratch(std::int64_t step) {
  return 2 * step;
}

// Finishes them as n stored elements; `finish.times_weight` is set, its arithmetic is fp32.
void box_row(const BoxRow<std::uint16_t>& arguments, const Finish& finish, std::byte* to);
void box_row(const BoxRow<std::uint32_t>& arguments, const Finish& finish, std::byte* to);
void box_row(const BoxRow<std::uint64_t>& arguments, const Finish& finish, std::byte* to);

}  // namespace omniconv::kernels
