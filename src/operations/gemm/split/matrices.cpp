#include "operations/gemm/split/matrices.h"

#include <fmt/format.h>

#include "core/checked.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations::split_gemm {
namespace {

constexpr std::int64_t band = 8;  // of the text

std::int32_t narrow(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

// Of so many rows and terms. `batch`: elements between matrices; 0: all use the same.
Matrix matrix_of(const GemmProblem& problem, bool of_b, std::int64_t rows, std::int64_t line, std::int64_t batch) {
  constexpr std::int64_t lines_along = 32, lines_across = 64;  // of a group of make_parts
  const bool turned = is_turned(problem, of_b);
  const std::int64_t lines = turned ? problem.k : rows, length = turned ? rows : problem.k;
  Matrix matrix;
  matrix.line = line, matrix.matrix = problem.batch > 1 ? batch : 0;
  matrix.matrices = matrix.matrix == 0 ? 1 : narrow(problem.batch);
  matrix.lines = narrow(lines), matrix.length = narrow(length), matrix.padded = narrow(round_up(length, step_terms));
  matrix.blocks = narrow(divide_up(lines, lies_along(problem, of_b) ? lines_along : lines_across));
  matrix.by_places = Divisor(matrix.padded / step_terms), matrix.by_blocks = Divisor(matrix.blocks);
  return matrix;
}

devices::TensorMap map_of(const Matrix& matrix, std::int64_t length, std::int64_t line, std::int64_t of_matrix,
                          std::int64_t box_lines) {
  return {.element = devices::TensorMap::Element::f16,
          .rank = 3,
          .extents = {length, matrix.lines, matrix.matrices},
          .strides_bytes = {line * 2, of_matrix * 2},
          .box = {step_terms, box_lines, 1},
          .swizzle = devices::TensorMap::Swizzle::bytes_128,
          .promotion = devices::TensorMap::Promotion::bytes_256};
}

}  // namespace

std::variant<MatrixTask, std::string> matrix_task(const GemmTask& task) {
  constexpr std::int64_t most = std::int64_t{1} << 30;  // that kernels count in 32 bits
  const GemmProblem& p = task.problem;
  for (const std::int64_t extent : {p.m, p.n, p.k, p.batch})
    if (extent >= most) return fmt::format("an extent of {} passes the {} that it counts", extent, most);
  MatrixTask made;
  made.a = matrix_of(p, false, p.m, task.lda, task.batch_a);
  made.b = matrix_of(p, true, p.n, task.ldb, task.batch_b);
  for (const Matrix* const operand : {&made.a, &made.b})
    if (operand->groups() > most_groups)
      return fmt::format("an operand has {} blocks of 64 terms, and a launch counts {}", operand->groups(),
                         most_groups);
  made.c_line = task.ldc, made.c_matrix = task.batch_c;
  made.batch = narrow(p.batch), made.m = narrow(p.m), made.n = narrow(p.n), made.terms = narrow(p.k);
  made.steps = narrow(divide_up(p.k, step_terms));
  return made;
}

std::int64_t MatrixTask::tiles(std::int64_t columns) const {
  return divide_up(m, tile_rows) * divide_up(n, columns) * batch;
}

void MatrixTask::cut(std::int64_t columns, std::int64_t in_parts) {
  tiles_m = narrow(divide_up(m, tile_rows)), tiles_n = narrow(divide_up(n, columns)), parts = narrow(in_parts);
  by_tiles = Divisor(std::int64_t{tiles_m} * tiles_n), by_parts = Divisor(parts), by_band = Divisor(band * tiles_n);
}

bool is_packed(const Matrix& matrix, bool along) {
  const std::int64_t length = along ? matrix.length : matrix.lines, lines = along ? matrix.lines : matrix.length;
  return (lines == 1 || matrix.line == length) && (matrix.matrices == 1 || matrix.matrix == lines * length);
}

bool has_quads(const Matrix& matrix) {
  return matrix.line % 4 == 0 && matrix.matrix % 4 == 0;
}

bool can_be_copied(const Matrix& matrix) {
  constexpr std::int64_t of_sixteen_bytes = 8;
  return matrix.line % of_sixteen_bytes == 0 && matrix.matrix % of_sixteen_bytes == 0;
}

devices::TensorMap map_of_planes(const Matrix& matrix, std::int64_t box_lines) {
  return map_of(matrix, matrix.padded, matrix.padded, std::int64_t{matrix.padded} * matrix.lines, box_lines);
}

devices::TensorMap map_of_operand(const Matrix& matrix, std::int64_t box_lines) {
  // One matrix has no next, and its distance is any.
  return map_of(matrix, matrix.length, matrix.line, matrix.matrices == 1 ? matrix.line : matrix.matrix, box_lines);
}

std::optional<devices::TensorMap> map_of_output(const MatrixTask& task, DataType output, const Tile& tile) {
  const BoxShape box = box_of(tile, output);
  const std::int64_t size = size_of(output), line = task.c_line * size,
                     matrix = task.batch == 1 ? line : task.c_matrix * size;
  // A copy that stores writes whole 16 bytes, so that it would reach beyond other rows' ends.
  if (task.n * size % 16 != 0 || line % 16 != 0 || matrix % 16 != 0 || matrix == 0) return {};
  return devices::TensorMap{.element = box_element(output),
                            .rank = 3,
                            .extents = {task.n, task.m, task.batch},
                            .strides_bytes = {line, matrix},
                            .box = {box.line_bytes / size, box.rows, 1},
                            .swizzle = swizzle_of(box.line_bytes)};
}

}  // namespace omniconv::operations::split_gemm
