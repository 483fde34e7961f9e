// The header of one Netpbm image.
#pragma once

#include <cstdint>

#include "image/image.h"
#include "image/input_file.h"

namespace omniconv::image {

struct PnmHeader {
  char kind = '5';  // the letter after P: 1 to 7, F or f
  ImageInfo info;
  std::int64_t max_value = 1;    // as the header has it; 1 for bits
  std::int64_t data_offset = 0;  // of the first byte of pixels
  bool swapped = false;          // elements are not in this machine's byte order

  bool is_plain() const { return kind <= '3'; }
  bool is_bits() const { return kind == '1' || kind == '4'; }
  bool is_float() const { return kind == 'F' || kind == 'f'; }
  // Where the pixels end, or the least byte where they can (plain).
  std::int64_t data_end(std::string_view source) const;
};

PnmHeader read_pnm_header(const InputFile& file, std::int64_t offset);

}  // namespace omniconv::image
