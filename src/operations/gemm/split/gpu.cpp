// Matrix products on the matrix units of compute capability 9.0, fp32 by parts of fp16.
#include <array>
#include <iterator>
#include <memory>
#include <vector>

#include "embedded/split_matrices.kernel.h"
#include "operations/gemm/gpu_text.h"
#include "operations/gemm/split/matrices.h"
#include "operations/split/products.h"

namespace omniconv::operations {
namespace split_gemm {
namespace {

Workspace workspace_for(const MatrixTask& task, const Numbers& numbers, const Tile& tile) {
  const std::int64_t sums = checked_multiply(task.tiles(tile.columns), tile_rows * tile.columns, "the parts of sums");
  return {task.a.elements(), task.b.elements(), numbers,
          tile.parts == 1 ? 0 : checked_multiply(sums, tile.parts, "the parts of sums")};
}

Tile tile_for(const GemmProblem& problem, const MatrixTask& task, const devices::Device& device,
              const SolverOptions& request) {
  const Numbers numbers = numbers_of(problem.type, request.relative_error);
  const std::int64_t least_columns = is_turned(problem, true) ? step_terms : 32;
  const auto cycles = [&](const Tile& tile) -> double {
    const bool is_wide = tile.columns > least_columns && tile.columns / 2 >= task.n;
    const std::int64_t tiles = task.tiles(tile.columns);
    // Tiles of 96 columns copy columns of convolutions alone.
    if (tile.is_raw || tile.columns == 96 || tile.columns < least_columns || (is_wide && request.tuning.empty()) ||
        (tile.parts > 1 && tile.parts * 2 > task.steps) || tiles > most_groups / tile.parts)
      return 0;
    const double of_tiles =
        cycles_of(tile, tiles, static_cast<double>(divide_up(task.steps, tile.parts)), numbers, device);
    if (tile.parts == 1) return of_tiles;
    // Parts are written and read, and what they make is written.
    const double sums = static_cast<double>(tiles * tile_rows * tile.columns);
    return of_tiles + launch_cycles + cycles_of_bytes(8.0 * static_cast<double>(tile.parts) * sums, device);
  };
  return best_tile(request, numbers, device, {.line = 2 * step_terms}, cycles,
                   [&](const Tile& tile) { return workspace_for(task, numbers, tile).bytes(); });
}

bool are_packed(const GemmProblem& problem, const MatrixTask& task) {
  return is_packed(task.a, lies_along(problem, false)) && is_packed(task.b, lies_along(problem, true));
}
// Where both operands are packed.
Sampling sampling_of(const GemmProblem& problem, const MatrixTask& task, const Numbers& numbers) {
  if (!are_packed(problem, task)) return {};
  return sampling_of(task.a.source_elements(), task.b.source_elements(), numbers);
}

// That the launches before the products move, where arrays begin at multiples of 16 bytes; and those of c that is added
// to.
double bytes_moved(const GemmTask& task, const MatrixTask& made, const Numbers& numbers) {
  const auto size = static_cast<double>(size_of(task.problem.type));
  const Sampling sampling = sampling_of(task.problem, made, numbers);
  double bytes = 0;
  for (const bool of_b : {false, true}) {
    const Matrix& matrix = of_b ? made.b : made.a;
    if (!numbers.are_scaled && can_be_copied(matrix)) continue;
    const double source = static_cast<double>(matrix.source_elements()) * size;
    bytes += source + (numbers.are_scaled ? source / static_cast<double>(of_b ? sampling.b : sampling.a) : 0) +
             static_cast<double>(matrix.elements() * 2 * numbers.planes());
  }
  return task.accumulate ? bytes + multiply_adds(task.problem) / static_cast<double>(task.problem.k) *
                                       static_cast<double>(size_of(task.output))
                         : bytes;
}

class Plan final : public GemmPlanBody, ProductLaunches {
 public:
  Plan(const GemmTask& product, const Numbers& numbers, devices::Device& device, const MatrixTask& made,
       const Tile& tile)
      : GemmPlanBody(product),
        ProductLaunches(product.problem.type, product.output, numbers, device, tile,
                        workspace_for(made, numbers, tile)),
        task_(made) {
    task_.cut(tile.columns, tile.parts);
    std::vector<devices::Definition> definitions =
        definitions_of(product.problem.type, product.output, numbers_, tile, 2 * step_terms,
                       is_turned(product.problem, false), is_turned(product.problem, true), sampled());
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("RAW", 0), add("TRANSPOSED_A", product.problem.transpose_a), add("TRANSPOSED_B", product.problem.transpose_b);
    add("BIAS", product.bias == BiasAlong::rows ? 1 : product.bias == BiasAlong::columns ? 2 : 0);
    add("ACCUMULATE", product.accumulate), add("RELU", product.relu);
    if (tile.parts == 1 && !product.accumulate && product.bias != BiasAlong::rows)
      boxes_ = map_of_output(made, product.output, tile);
    add("BOXED", boxes_.has_value());
    build(device, {}, split_matrices_kernel, definitions, task_.parts > 1);
  }
  double compile_seconds() const override { return ProductLaunches::compile_seconds(); }

  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    Product product{.a = arrays.a,
                    .b = arrays.b,
                    .out = arrays.c,
                    .bias = task().bias == BiasAlong::none ? arrays.a : arrays.bias,  // which is not read then
                    .workspace = arrays.workspace};
    if (boxes_ && is_aligned(arrays.c)) product.has_boxes = true, product.boxes = placed(*boxes_, arrays.c);
    const bool a_as_it_is = is_part_as_it_lies(false, arrays.a), b_as_it_is = is_part_as_it_lies(true, arrays.b);
    append_scan_of_both(sequence, product);
    append_parts(sequence, product, a_as_it_is ? 0 : task_.a.groups(), b_as_it_is ? 0 : task_.b.groups(), arrays.alpha);
    const OperandMaps a = maps_of_matrix(task_.a, arrays.a, a_as_it_is, product, workspace_.a,
                                         box_lines(task().problem, false, tile_rows)),
                      b = maps_of_matrix(task_.b, arrays.b, b_as_it_is, product, workspace_.b,
                                         box_lines(task().problem, true, tile_.columns));
    const std::int64_t quads = std::int64_t{task_.batch} * task_.m * divide_up(task_.n, 4);
    append_products(sequence, product, bytes_of_task(), a, b, task_.tiles(tile_.columns) * task_.parts,
                    task_.parts == 1 ? 0 : divide_up(quads, pass_group));
  }

 private:
  std::span<const std::byte> bytes_of_task() const { return std::as_bytes(std::span(&task_, 1)); }
  bool along(bool of_b) const { return lies_along(task().problem, of_b); }
  const Matrix& matrix(bool of_b) const { return of_b ? task_.b : task_.a; }

  // Whether copies read the operand itself, whose elements are the parts.
  bool is_part_as_it_lies(bool of_b, const Operand& operand) const {
    return !numbers_.are_scaled && can_be_copied(matrix(of_b)) && is_aligned(operand);
  }
  std::int32_t has_whole_quads(bool of_b, const Operand& operand) const {
    return has_quads(matrix(of_b)) && is_multiple_of(operand, 4 * size()) ? 1 : 0;
  }

  OperandMaps maps_of_matrix(const Matrix& matrix, const Operand& operand, bool as_it_is, const Product& product,
                             std::int64_t planes_at, std::int64_t lines) const {
    return maps_of(as_it_is ? map_of_operand(matrix, lines) : map_of_planes(matrix, lines), product, as_it_is, operand,
                   planes_at, matrix.elements());
  }

  // Of the launches that read the operands, the first ones.
  std::vector<devices::KernelArgument> operand_arguments(const Product& product) const {
    return {bytes_of_task(),
            product.a.buffer.impl().get(),
            product.a.offset_bytes / size(),
            has_whole_quads(false, product.a),
            product.b.buffer.impl().get(),
            product.b.offset_bytes / size(),
            has_whole_quads(true, product.b),
            product.workspace.buffer.impl().get(),
            (product.workspace.offset_bytes + workspace_.maxima) / 4};
  }

  // Elements that lie between an operand's are not looked at.
  void append_scan_of_both(devices::Sequence& sequence, const Product& product) const {
    if (!numbers_.are_scaled) return;
    if (are_packed(task().problem, task_))
      return append_scan(sequence, product, task_.a.source_elements(), task_.b.source_elements(), sampled());
    const std::vector<devices::KernelArgument> arguments = operand_arguments(product);
    sequence.launch(passes_, "find_largest_of_lines", {{2 * maxima * pass_group, 1}, {pass_group, 1}}, arguments);
  }

  // One group at the least, which keeps alpha.
  void append_parts(devices::Sequence& sequence, const Product& product, std::int64_t a_groups, std::int64_t b_groups,
                    const Scalar& alpha) const {
    const std::int64_t workspace = product.workspace.offset_bytes;
    std::vector<devices::KernelArgument> arguments = operand_arguments(product);
    const devices::KernelArgument behind[] = {(workspace + workspace_.largest) / 4,
                                              (workspace + workspace_.a) / 2,
                                              task_.a.elements(),
                                              (workspace + workspace_.b) / 2,
                                              task_.b.elements(),
                                              static_cast<std::int32_t>(a_groups),
                                              static_cast<std::int32_t>(b_groups),
                                              alpha};
    arguments.insert(arguments.end(), std::begin(behind), std::end(behind));
    ProductLaunches::append_parts(sequence, arguments, std::max<std::int64_t>(a_groups + b_groups, 1),
                                  sampled() != 0 ? Parts::of_samples : Parts::of_all);
  }

  // SAMPLED of the text.
  std::int64_t sampled() const { return sampling_of(task().problem, task_, numbers_).bits(); }

  MatrixTask task_;
  std::optional<devices::TensorMap> boxes_;  // of c, without its buffer
};

}  // namespace
}  // namespace split_gemm

namespace {

class SplitGpu final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/split/gpu.1"; }
  Answer offer(const GemmTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    using namespace split_gemm;
    if (std::string reason = gemm_gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = tensor_refusal(*device); !reason.empty()) return reason;
    if (std::string reason = group_refusal(*device, most_product_group); !reason.empty()) return reason;
    const auto made = matrix_task(task);
    if (const auto* const reason = std::get_if<std::string>(&made)) return *reason;
    const MatrixTask& product = std::get<MatrixTask>(made);
    const Numbers numbers = numbers_of(task.problem.type, request.relative_error);
    if (const std::int64_t least = product.tiles(128); least > most_groups)
      return fmt::format("has {} tiles, and a launch counts {}", least, most_groups);
    const Tile tile = tile_for(task.problem, product, *device, request);
    if (tile.columns == 0)
      return fmt::format("tuning {}: tiles, parts of sums and shared windows do not go together so", request.tuning);
    const std::int64_t workspace_bytes = workspace_for(product, numbers, tile).bytes(),
                       most_bytes = device->info().max_buffer_bytes;
    if (workspace_bytes > most_bytes)
      return fmt::format("takes {} bytes of workspace, and a buffer has {} at most", workspace_bytes, most_bytes);
    const double bytes = bytes_moved(task, product, numbers);
    // Tiles of 32 columns add low products to a step's high ones.
    const auto steps = static_cast<double>(divide_up(product.steps, tile.parts) + (tile.columns == 32 ? 1 : 0));
    return Offer{
        .cost = {cost_of_cycles(2 * launch_cycles + others_wait + tile.cycles + cycles_of_bytes(bytes, *device),
                                *device)},
        .bound = bound_of(numbers, steps, static_cast<double>(tile.parts), static_cast<double>(task.problem.k),
                          cutting_of(*device)),
        .workspace_bytes = workspace_bytes,
        .uses_only_fma = false,
        .tuning = tuning_of(tile),
        .plan = [=] { return std::make_shared<Plan>(task, numbers, *device, product, tile); },
    };
  }
  std::span<const Tunable> tunables() const override { return split_gemm::tile_tunables(); }
};

}  // namespace

const GemmSolver& gemm_split_gpu() {
  static const SplitGpu solver;
  return solver;
}

}  // namespace omniconv::operations
