// What solvers by products of parts launch alike, whatever the operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "devices/sequence.h"
#include "operations/split/numbers.h"

namespace omniconv::operations::split_gemm {

// Maxima, of parts of bf16 those of negated magnitudes too; the largest of them, what was met beyond these or the
// largest negated ones, what a text keeps behind, and whether tiles are made again; planes of the first operand and of
// the second, parts of sums. In bytes.
struct Workspace : Sections {
  Workspace(std::int64_t a_elements, std::int64_t b_elements, const Numbers& numbers, std::int64_t sums)
      : maxima(take((numbers.products == 6 ? 4 : 2) * split_gemm::maxima, 4)),
        largest(take(6, 4)),
        a(take(a_elements, 2 * numbers.planes())),
        b(take(b_elements, 2 * numbers.planes())),
        parts(take(sums, 4)) {}

  std::int64_t maxima, largest, a, b, parts;
};

// An operand that runs give prepared: maxima, where a workspace has them, too; the largest of them, a copy of the
// array, planes. In bytes.
struct PreparedOperand : Sections {
  PreparedOperand(std::int64_t count, std::int64_t element_bytes, std::int64_t plane_elements, const Numbers& numbers)
      : elements(count) {
    maxima = take(2 * split_gemm::maxima, 4), largest = take(64, 4);
    array = take(elements, element_bytes), planes = take(plane_elements, 2 * numbers.planes());
  }

  std::int64_t elements, maxima = 0, largest = 0, array = 0, planes = 0;
};

// Where an operand begins; and whether copies can read or store what lies there.
inline bool is_multiple_of(const Operand& operand, std::int64_t bytes) {
  const std::uintptr_t buffer = operand.buffer ? operand.buffer.impl()->place().address : 0,
                       address = buffer + static_cast<std::uintptr_t>(operand.offset_bytes);
  return address % static_cast<std::uintptr_t>(bytes) == 0;
}
inline bool is_aligned(const Operand& operand) {
  return is_multiple_of(operand, 16);
}

// A map of what lies there.
inline devices::TensorMap placed(devices::TensorMap map, const Operand& operand) {
  map.buffer = operand.buffer.impl().get(), map.offset_bytes = operand.offset_bytes;
  return map;
}

// What a run multiplies, and where its result goes.
struct Product {
  const Operand &a, &b, &out, &bias;
  Operand workspace;  // at a multiple of 16 bytes
  // Whether the output is stored as boxes; and it as copies store it, if they do.
  bool has_boxes = false;
  std::optional<devices::TensorMap> boxes = {};
};

// Of high parts, and of low ones; of three planes the second is of the middle ones, behind which in its outermost
// dimension the low ones follow.
using OperandMaps = std::array<devices::TensorMap, 2>;
inline OperandMaps maps_of_planes(const devices::TensorMap& map, const Numbers& numbers, std::int64_t elements) {
  OperandMaps maps = {map, map};
  if (numbers.planes() == 1) return maps;
  maps[1].offset_bytes += 2 * elements;
  maps[1].extents[static_cast<std::size_t>(map.rank - 1)] *= numbers.planes() - 1;
  return maps;
}

// So many groups that make parts of all numbers can meet (MAY_MEET of the text); 0: none.
std::int64_t most_meeting(const devices::Device& device, const Numbers& numbers, const Tile& tile);

class ProductLaunches {
 protected:
  // Of arrays of these types.
  ProductLaunches(DataType type, DataType output, const Numbers& numbers, const devices::Device& device,
                  const Tile& tile, const Workspace& workspace);
  // The two texts between parts.kernel and tile_products.kernel; whether `append_products` has launches behind the
  // tiles.
  void build(devices::Device& device, std::string_view planes_text, std::string_view tiles_text,
             std::span<const devices::Definition> definitions, bool has_launches_behind);

  // The largest magnitudes of so many elements of a and of b, or of samples, where numbers are scaled; and the
  // smallest.
  void append_scan(devices::Sequence& sequence, const Product& product, std::int64_t a_count, std::int64_t b_count,
                   const Sampling& sampling) const;
  // Sampled where SAMPLED of the text says so.
  void append_scan(devices::Sequence& sequence, const Product& product, std::int64_t a_count, std::int64_t b_count,
                   std::int64_t sampled) const {
    append_scan(sequence, product, a_count, b_count, sampled != 0 ? sampling_of(a_count, b_count) : Sampling{});
  }
  // make_parts by so many groups of pass_group, whose last argument says what for: behind a look, mended where samples
  // were looked at; or by groups that meet, and look too.
  enum class Parts : std::uint8_t { of_all, of_samples, of_groups_that_meet };
  void append_parts(devices::Sequence& sequence, std::span<const devices::KernelArgument> arguments,
                    std::int64_t groups, Parts parts) const;
  // All tiles; then add_parts by so many groups, if any. Of a raw first operand so many elements, of which samples were
  // looked at, else 0: where these did not do, tiles are made again. Overlaps what is before it, unless that is no
  // launch.
  void append_products(devices::Sequence& sequence, const Product& product, std::span<const std::byte> task,
                       const OperandMaps& a, const OperandMaps& b, std::int64_t tiles, std::int64_t adding_groups,
                       std::int64_t sampled_rows = 0, bool overlaps = true) const;
  // By a map without a buffer: of the operand itself, where it lies as copies read it; else of its planes of so many
  // elements, at a section of the workspace.
  OperandMaps maps_of(const devices::TensorMap& map, const Product& product, bool lies, const Operand& operand,
                      std::int64_t planes_at, std::int64_t elements) const;
  std::int64_t size() const { return size_; }
  // All programs are compiled side by side.
  double compile_seconds() const {
    return std::max({passes_->compile_seconds(), tiles_->compile_seconds(), behind_ ? behind_->compile_seconds() : 0});
  }

  Numbers numbers_;
  std::int64_t size_, output_size_;
  Tile tile_;
  Workspace workspace_;
  std::int64_t units_;
  // Of the launches before the tiles, of the tiles, and of the launches behind them, if there are any.
  std::shared_ptr<devices::Program> passes_, tiles_, behind_;
};

}  // namespace omniconv::operations::split_gemm
