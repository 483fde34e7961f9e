// Arrays of numbers of any rank in .npy files: what convolutions read and write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "omniconv/types.h"

namespace omniconv::image {

// What an array must be to be read.
struct NpyWanted {
  std::string name, axes;  // "x", "n, c, h, w": for messages
  DataType type = DataType::f32;
  std::vector<std::int64_t> shape;
};

// The type in which elements stand in files: f32 of bf16 and tf32, which .npy has not.
DataType file_type(DataType type);

// The shape that a file's header says; not of the standard input, which could not be read again.
std::vector<std::int64_t> npy_shape(const std::string& path);

// The elements as `wanted.type` stores them: bf16 rounded from f32 to nearest even, the others as they are. The file is
// in C order and this machine's byte order. "-" is the standard input. Throws bad_input, saying what was expected and
// what was found, before memory is taken for an array that is not the wanted one.
std::vector<std::byte> read_npy_array(const std::string& path, const NpyWanted& wanted);

// The reverse: the file's header and elements. `data` becomes the elements as the file has them.
std::string npy_file_header(DataType type, std::span<const std::int64_t> shape, std::vector<std::byte>& data);

}  // namespace omniconv::image
