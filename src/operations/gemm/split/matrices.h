// How a matrix product is one of planes of parts: the extents that the kernel is given, and what its copies read. No
// device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "devices/tensor_map.h"
#include "operations/gemm/gemm.h"
#include "operations/split/numbers.h"

namespace omniconv::operations::split_gemm {

// matrix_t of split_matrices.kernel, where its members are explained.
struct Matrix {
  std::int64_t line = 0, matrix = 0;
  std::int32_t matrices = 1, lines = 0, length = 0, padded = 0;
  std::int32_t blocks = 0;
  Divisor by_places, by_blocks;

  // Of the planes, and of what is stored.
  std::int64_t elements() const { return std::int64_t{matrices} * lines * padded; }
  std::int64_t source_elements() const { return std::int64_t{matrices} * lines * length; }
  // Groups that make the planes.
  std::int64_t groups() const { return std::int64_t{matrices} * blocks * (padded / step_terms); }
};

// task_t of split_matrices.kernel.
struct MatrixTask {
  Matrix a, b;
  std::int64_t c_line = 0, c_matrix = 0;
  std::int32_t batch = 1, m = 0, n = 0, terms = 0, steps = 0, tiles_m = 0, tiles_n = 0, parts = 1;
  Divisor by_tiles, by_parts, by_band;

  // Of so many columns.
  std::int64_t tiles(std::int64_t columns) const;
  // With tiles of so many columns, and sums in so many parts.
  void cut(std::int64_t columns, std::int64_t in_parts);
};
// Or why there is none.
std::variant<MatrixTask, std::string> matrix_task(const GemmTask& task);

// Whether terms of an operand lie side by side.
inline bool has_terms_along(const GemmProblem& problem, bool of_b) {
  return of_b ? problem.transpose_b : !problem.transpose_a;
}
// Whether planes have rows side by side, where rows are stored so: all but those of few rows (columns of b) that are
// made into parts, which would take room for 64, and of b tiles as wide.
inline bool is_turned(const GemmProblem& problem, bool of_b) {
  if (has_terms_along(problem, of_b)) return false;
  return (of_b ? problem.n : problem.m) > step_terms / 2 || !numbers_of(problem.type).are_scaled;
}
// Whether planes' lines are stored lines.
inline bool lies_along(const GemmProblem& problem, bool of_b) {
  return has_terms_along(problem, of_b) || is_turned(problem, of_b);
}
// Whether nothing lies between the operand's elements: one run of them.
bool is_packed(const Matrix& matrix, bool along);
// Whether four elements lie at a multiple of their size wherever a stored line has as many, where the first do.
bool has_quads(const Matrix& matrix);
// Whether copies can read 16-bit elements of planes' lines as they are stored, from a multiple of 16 bytes on.
bool can_be_copied(const Matrix& matrix);

// What copies 64 places of so many lines: of planes; of the operand as it is stored. Without a buffer.
devices::TensorMap map_of_planes(const Matrix& matrix, std::int64_t box_lines);
devices::TensorMap map_of_operand(const Matrix& matrix, std::int64_t box_lines);
// What stores a tile's boxes of c; none, where copies have no such strides.
std::optional<devices::TensorMap> map_of_output(const MatrixTask& task, DataType output, const Tile& tile);
// Lines of a box for so many rows.
inline std::int64_t box_lines(const GemmProblem& problem, bool of_b, std::int64_t rows) {
  return is_turned(problem, of_b) ? step_terms : rows;
}

}  // namespace omniconv::operations::split_gemm
