// Matrix products of fp32 numbers on the matrix units of NVIDIA's GPUs from compute capability 8.0 on, through CUDA and
// OpenCL, in one launch: numbers are split where they are multiplied.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <variant>

#include "devices/matrix_units.h"
#include "embedded/mma_products.kernel.h"
#include "operations/gemm/gpu_text.h"
#include "operations/gpu_limits.h"
#include "operations/warp_units.h"

namespace omniconv::operations {
namespace {

struct Tile {
  std::int64_t m = 0, n = 0, k = 0, warp_m = 0, warp_n = 0, slices = 1, stages = 0, resident = 1;

  std::int64_t group() const { return 32 * (m / warp_m) * (n / warp_n) * slices; }
  std::int64_t local_bytes() const { return 4 * stages * (m + n) * k; }
};

// Those that the choice is among.
constexpr std::array<Tile, 5> tiles = {{{64, 64, 32, 32, 32, 1, 2, 2},
                                        {128, 64, 32, 64, 32, 1, 2, 1},
                                        {32, 64, 32, 32, 32, 2, 3, 3},
                                        {32, 32, 32, 32, 32, 4, 4, 4},
                                        {32, 32, 64, 32, 32, 8, 3, 1}}};

std::span<const Tunable> tile_tunables() {
  static const std::vector<Tunable> all = {
      {"tile_m", {32, 64, 128}},   {"tile_n", {32, 64, 128}}, {"tile_k", {16, 32, 64}}, {"warp_m", {16, 32, 64}},
      {"warp_n", {8, 16, 32, 64}}, {"slices", {1, 2, 4, 8}},  {"stages", {2, 3, 4}},    {"resident", {1, 2, 3, 4}}};
  return all;
}
Tuning tuning_of(const Tile& tile) {
  return {{"tile_m", tile.m},      {"tile_n", tile.n},      {"tile_k", tile.k},      {"warp_m", tile.warp_m},
          {"warp_n", tile.warp_n}, {"slices", tile.slices}, {"stages", tile.stages}, {"resident", tile.resident}};
}
Tile tile_of(const Tuning& tuning) {
  return {tuning.at("tile_m"), tuning.at("tile_n"), tuning.at("tile_k"), tuning.at("warp_m"),
          tuning.at("warp_n"), tuning.at("slices"), tuning.at("stages"), tuning.at("resident")};
}

int products_of(DataType type) {
  return type == DataType::tf32 ? 1 : 3;
}

// Why there is no such tile; empty if there is.
std::string tile_refusal(const Tile& tile, const devices::Device& device) {
  if (std::string reason = warps_refusal(tile); !reason.empty()) return reason;
  constexpr std::int64_t least_products = 8;
  if (tile.k / tile.slices < least_products)
    return fmt::format("tuning slices={}: at most {} of {} products, {} at least each", tile.slices,
                       tile.k / least_products, tile.k, least_products);
  if ((tile.slices - 1) * tile.m * tile.n * 4 > tile.local_bytes())
    return fmt::format("tuning slices={}: their sums must find room in the {} bytes of the stages", tile.slices,
                       tile.local_bytes());
  if (std::string reason = group_refusal(device, tile.group()); !reason.empty()) return "tuning: " + reason;
  if (std::string reason = resident_refusal(tile); !reason.empty()) return reason;
  if (std::string reason = local_memory_refusal(device, tile.local_bytes()); !reason.empty())
    return "tuning: " + reason;
  return {};
}

// Cycles of a compute unit for all tiles: of a stage what its products take, or the instructions of four schedulers,
// which are issued in some of their cycles; but no less than those of a warp wait for each other, and for other warps.
double cycles_of(const GemmTask& task, const Tile& tile, const devices::Device& device) {
  constexpr double of_products = 1.1, of_instructions = 2.3, schedulers = 4, alone = 4.1, beside = 1.5, of_tile = 1000,
                   of_output = 0.34, rest = 60;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const GemmProblem& problem = task.problem;
  const int capability = device.facts().compute_capability;
  // Multiply-adds of TF32 that the units do in a cycle by the instructions of warps: as measured, as NVIDIA states
  // them.
  const double rate = capability == 90 ? 422 : capability == 80 ? 512 : 128;
  const double products = products_of(problem.type), rows = real(tile.warp_m) / 8, columns = real(tile.warp_n) / 8;
  const double of_eight = rows / 2 * columns * products + 2 * (rows + columns) * 3 +
                          rows * (problem.transpose_a ? 2 : 1) + columns * (problem.transpose_b ? 1 : 2);
  const double of_warp = real(tile.k) / 8 / real(tile.slices) * of_eight + rows * columns * 2 + rest;
  const double warps = real(tile.group()) / 32 / schedulers;  // of a scheduler
  const double across = problem.transpose_a ? 1.15 : 1;       // rows of a product that lie side by side
  const double of_stage =
      std::max(of_products * real(tile.m * tile.n * tile.k) * products / rate, of_instructions * of_warp * warps);
  const double stages = std::ceil(real(problem.k) / real(tile.k));
  const std::int64_t groups = tiles_of(problem, tile.m, tile.n) * problem.batch,
                     resident = resident_groups(device, tile.resident, tile.local_bytes());
  const auto of_round = [&](std::int64_t at_once) {
    const double sharing = real(at_once), others = std::max(sharing * warps - 1, 0.0);
    return stages * across * std::max(sharing * of_stage, of_warp * (alone + beside * others)) + of_tile +
           sharing * of_output * real(tile.m * tile.n);
  };
  return cycles_of_rounds(device, groups, resident, of_round);
}

double cost_of(const GemmTask& task, const Tile& tile, const devices::Device& device) {
  if (!has_warp_units(device)) {
    constexpr double of_multiply_add = 64;  // by loops, which small tiles let compile sooner
    return launch_cost(device) + of_multiply_add * multiply_adds(task.problem) + static_cast<double>(tile.m * tile.n);
  }
  // Where launches overlap others take less than they say: `tiled` for few rows 9 microseconds of an H200, and not 15.
  const double beside_others = device.facts().has_overlap ? 1.5 : 1;
  const double products =
      cycles_of(task, tile, device) * unit_rates(device).plain * std::max(device.info().compute_units, 1);
  return launched(device, 1,
                  launch_cost(device) + beside_others * std::max(products, byte_cost(device) * least_bytes(task)));
}

std::variant<Tile, std::string> choose_tile(const GemmTask& task, const devices::Device& device,
                                            const SolverOptions& request) {
  if (!request.tuning.empty()) {
    const Tile tile = tile_of(Tuning::parse(request.tuning));
    if (std::string reason = tile_refusal(tile, device); !reason.empty()) return reason;
    return tile;
  }
  return cheapest_tile(
      std::span<const Tile>(tiles), [&](const Tile& tile) { return tile_refusal(tile, device); },
      [&](const Tile& tile) { return cost_of(task, tile, device); });
}

// README.md derives it. Eight products are cut no more than sixteen are.
ErrorBound bound_of(const GemmTask& task, const Tile& tile, const devices::Device& device) {
  const double of_instruction = has_warp_units(device) ? devices::cut_of_sixteen(device.facts().matrix_units) : 12;
  const auto eights = static_cast<double>(tile.k / 8 / tile.slices),
             stages = std::ceil(static_cast<double>(task.problem.k) / static_cast<double>(tile.k));
  const bool is_split = products_of(task.problem.type) == 3;
  const double instructions = is_split ? 3 * eights - 2 : eights, rest = is_split ? 12 : 2 + 0x1p13;
  return {.chain = stages + static_cast<double>(tile.slices),
          .constant = rest + of_instruction * instructions,
          .absolute = static_cast<double>(task.problem.k) * 0x1p-38};
}

class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& product, devices::Device& device, const Tile& tile)
      : GemmPlanBody(product), group_(tile.group()), tiles_(tiles_of(product.problem, tile.m, tile.n)) {
    std::vector<devices::Definition> definitions = gemm_definitions(product);
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("TILE_M", tile.m), add("TILE_N", tile.n), add("TILE_K", tile.k), add("WARP_M", tile.warp_m);
    add("WARP_N", tile.warp_n), add("SLICES", tile.slices), add("STAGES", tile.stages), add("RESIDENT", tile.resident);
    add("PRODUCTS", products_of(product.problem.type)), add("MATRIX_UNITS", has_warp_units(device) ? 1 : 0);
    add("A_ALONG_K", product.problem.transpose_a ? 0 : 1), add("B_ALONG_K", product.problem.transpose_b ? 1 : 0);
    // Of its own accord OpenCL's compiler takes the registers that it likes.
    const bool limits = device.kind() == devices::DeviceKind::cuda;
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::plain_sums()) +
                                std::string(kernels::tf32_units()) + std::string(mma_products_kernel),
                            definitions, {.occupancy = {limits ? tile.resident : 0, tile.group()}});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    launch_batches(task().problem.batch, tiles_, [&](std::int64_t first, std::int64_t batches) {
      sequence.launch(program_, "mma_products", {{tiles_ * batches * group_, 1}, {group_, 1}},
                      gemm_arguments(task(), arrays, first), {.overlaps = true});
    });
  }

 private:
  std::int64_t group_, tiles_;
  std::shared_ptr<devices::Program> program_;
};

class MmaGpu final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/mma/gpu.1"; }
  Answer offer(const GemmTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = gemm_gpu_refusal(task, *device); !reason.empty()) return reason;
    if (task.problem.type != DataType::f32 && task.problem.type != DataType::tf32)
      return fmt::format("multiplies f32 and tf32, not {}", name(task.problem.type));
    if (std::string reason = warp_units_refusal(*device); !reason.empty()) return reason;
    constexpr std::int64_t most = std::int64_t{1} << 30;  // places of 32 bits in the text
    if (const std::int64_t longest = std::max({task.problem.m, task.problem.n, task.problem.k}); longest > most)
      return fmt::format("has extents of {} at most, not {}", most, longest);
    const auto chosen = choose_tile(task, *device, request);
    if (const std::string* const reason = std::get_if<std::string>(&chosen)) return *reason;
    const Tile tile = std::get<Tile>(chosen);
    if (const std::int64_t groups = tiles_of(task.problem, tile.m, tile.n); groups > most_groups)
      return fmt::format("a launch has at most {} groups, not {}", most_groups, groups);
    return Offer{
        .cost = {cost_of(task, tile, *device)},
        .bound = bound_of(task, tile, *device),
        .uses_only_fma = false,
        .tuning = tuning_of(tile),
        .plan = [=] { return std::make_shared<Plan>(task, *device, tile); },
    };
  }
  std::span<const Tunable> tunables() const override { return tile_tunables(); }
};

}  // namespace

const GemmSolver& gemm_mma_gpu() {
  static const MmaGpu solver;
  return solver;
}

}  // namespace omniconv::operations
