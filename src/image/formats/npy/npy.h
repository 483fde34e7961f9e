// NumPy's .npy arrays: their header, and images in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "image/image.h"
#include "image/input_file.h"

namespace omniconv::image {

struct NpyHeader {
  DataType type = DataType::f32;    // u8, u16, s16, s32, f16, f32 or f64
  bool int64 = false;               // elements are signed 64-bit integers, whatever `type` says
  bool swapped = false;             // elements are not in this machine's byte order
  std::vector<std::int64_t> shape;  // of a C-order array; empty for a scalar
  std::size_t data_offset = 0;      // of the first element, from the beginning of the file

  // Throws when the product overflows.
  std::int64_t elements() const;
};

// The longest header that is read: a shape and a type need no more.
inline constexpr std::size_t npy_header_limit = 65536;

// "(2, 3)", or the first extents where a damaged header has thousands.
std::string shape_text(std::span<const std::int64_t> shape);

bool is_npy(std::span<const std::byte> content);

// `content` is the file, or at least its header. Versions 1.0, 2.0 and 3.0, C order. Throws bad_input, naming `source`
// and what was expected, for anything else.
//
// NumPy makes int64 of plain integers: `accept_int64` is for readers of small arrays, which convert them; type is then
// f64, of the same size.
NpyHeader parse_npy_header(std::span<const std::byte> content, std::string_view source, bool accept_int64 = false);

// Throws unless the elements that the header declares end exactly at `file_bytes`.
void check_npy_size(const NpyHeader& header, std::int64_t file_bytes, std::string_view source);

// A version 1.0 header for C order and this machine's byte order; the elements follow it. Throws for bf16 and tf32,
// which .npy has not.
std::string npy_header_text(DataType type, std::span<const std::int64_t> shape);

// Arrays of h x w or h x w x c.
std::unique_ptr<ImageReader> open_npy(std::shared_ptr<const InputFile> file);
std::unique_ptr<ImageWriter> create_npy(const std::string& path, const ImageInfo& like);

}  // namespace omniconv::image
