// Matrix products of fp32 numbers by fp16 parts on matrix units that the instructions of a warp feed, through CUDA and
// OpenCL. Launches before make the parts.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <variant>

#include "devices/matrix_units.h"
#include "embedded/plane_products.kernel.h"
#include "operations/gemm/gpu_text.h"
#include "operations/gpu_limits.h"
#include "operations/split/numbers.h"
#include "operations/warp_units.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t pass_items = 256;
const split_gemm::Numbers numbers = split_gemm::numbers_of(DataType::f32);

struct Tile {
  std::int64_t m = 0, n = 0, k = 0, warp_m = 0, warp_n = 0, stages = 0, resident = 1;

  std::int64_t group() const { return 32 * (m / warp_m) * (n / warp_n); }
  std::int64_t local_bytes() const { return 2 * 2 * stages * (m + n) * k; }
};

// Those that the choice is among.
constexpr std::array<Tile, 5> tiles = {{{128, 64, 32, 32, 32, 2, 2},
                                        {64, 64, 32, 32, 32, 3, 3},
                                        {128, 128, 16, 64, 32, 3, 1},
                                        {32, 64, 32, 32, 16, 3, 4},
                                        {32, 32, 32, 16, 16, 2, 4}}};

std::span<const Tunable> tile_tunables() {
  static const std::vector<Tunable> all = {
      {"tile_m", {16, 32, 64, 128}}, {"tile_n", {16, 32, 64, 128}}, {"tile_k", {16, 32}},      {"warp_m", {16, 32, 64}},
      {"warp_n", {16, 32, 64}},      {"stages", {2, 3, 4}},         {"resident", {1, 2, 3, 4}}};
  return all;
}
Tuning tuning_of(const Tile& tile) {
  return {{"tile_m", tile.m},      {"tile_n", tile.n},      {"tile_k", tile.k},         {"warp_m", tile.warp_m},
          {"warp_n", tile.warp_n}, {"stages", tile.stages}, {"resident", tile.resident}};
}
Tile tile_of(const Tuning& tuning) {
  return {tuning.at("tile_m"), tuning.at("tile_n"), tuning.at("tile_k"),  tuning.at("warp_m"),
          tuning.at("warp_n"), tuning.at("stages"), tuning.at("resident")};
}

// An operand as it is stored: lines of so many elements, of so many matrices.
struct Stored {
  std::int64_t lines = 0, length = 0, matrices = 1;

  std::int64_t elements() const { return lines * length * matrices; }
  std::int64_t chunks() const {
    return checked_multiply(checked_multiply(lines, divide_up(length, 8), "a plane"), matrices, "a plane");
  }
  // Groups that look for the largest magnitude.
  std::int64_t groups() const {
    constexpr std::int64_t of_item = 64, most = 264;
    return std::clamp<std::int64_t>(divide_up(elements(), pass_items * of_item), 1, most);
  }
};
Stored stored_a(const GemmTask& task) {
  const GemmProblem& p = task.problem;
  return {p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, task.batch_a == 0 ? 1 : p.batch};
}
Stored stored_b(const GemmTask& task) {
  const GemmProblem& p = task.problem;
  return {p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, task.batch_b == 0 ? 1 : p.batch};
}
bool is_packed(const Stored& stored, std::int64_t ld, std::int64_t batch) {
  return ld == stored.length && (stored.matrices == 1 || batch == stored.lines * stored.length);
}

struct Workspace : split_gemm::Sections {
  explicit Workspace(const GemmTask& task)
      : a(stored_a(task)),
        b(stored_b(task)),
        maxima(take(a.groups() + b.groups(), 4)),
        largest(take(2, 4)),
        planes_a(take(2 * a.chunks(), 16)),
        planes_b(take(2 * b.chunks(), 16)) {}

  Stored a, b;
  std::int64_t maxima, largest, planes_a, planes_b;
};

// Why there is no such tile; empty if there is.
std::string tile_refusal(const Tile& tile, const devices::Device& device) {
  if (std::string reason = warps_refusal(tile); !reason.empty()) return reason;
  if (std::string reason = group_refusal(device, std::max(tile.group(), pass_items)); !reason.empty())
    return "tuning: " + reason;
  if (std::string reason = resident_refusal(tile); !reason.empty()) return reason;
  if (std::string reason = local_memory_refusal(device, tile.local_bytes()); !reason.empty())
    return "tuning: " + reason;
  return {};
}

// Cycles of a compute unit for all tiles: of a stage what its products take and the instructions of four schedulers,
// neither of which hides the other; but no less than those of a warp wait for each other, and for other warps.
double cycles_of(const GemmTask& task, const Tile& tile, const devices::Device& device) {
  constexpr double of_both = 1.5, schedulers = 4, alone = 5, beside = 1.5, of_tile = 1000, of_output = 0.34,
                   of_chunk = 6, rest = 50;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const GemmProblem& problem = task.problem;
  const double rate = unit_rates(device).matrix;
  const double sixteens = real(tile.k) / 16, rows = real(tile.warp_m) / 16, columns = real(tile.warp_n) / 8;
  const double chunks = real((tile.m + tile.n) * tile.k) / 4 / real(tile.group());  // that a work item copies
  const double of_warp =
      sixteens * (3 * rows * columns + 2 * (rows + columns / 2)) + 4 * rows * columns + of_chunk * chunks + rest;
  const double warps = real(tile.group()) / 32 / schedulers;  // of a scheduler
  const double of_stage = of_both * (3 * real(tile.m * tile.n * tile.k) / rate + of_warp * warps);
  const double stages = std::ceil(real(problem.k) / real(tile.k));
  const std::int64_t groups = tiles_of(problem, tile.m, tile.n) * problem.batch,
                     resident = resident_groups(device, tile.resident, tile.local_bytes());
  const auto of_round = [&](std::int64_t at_once) {
    const double sharing = real(at_once), others = std::max(sharing * warps - 1, 0.0);
    return stages * std::max(sharing * of_stage, of_warp * (alone + beside * others)) + of_tile +
           sharing * of_output * real(tile.m * tile.n);
  };
  return cycles_of_rounds(device, groups, resident, of_round);
}

double cost_of(const GemmTask& task, const Tile& tile, const devices::Device& device) {
  constexpr double launches = 3;
  if (!has_warp_units(device)) {
    constexpr double of_multiply_add = 64;  // by loops, which small tiles let compile sooner
    return launches * launch_cost(device) + of_multiply_add * multiply_adds(task.problem) +
           static_cast<double>(tile.m * tile.n);
  }
  constexpr double wait = 2.5;  // launches, for those before
  const auto elements = static_cast<double>(stored_a(task).elements() + stored_b(task).elements());
  const double products =
      cycles_of(task, tile, device) * unit_rates(device).plain * std::max(device.info().compute_units, 1);
  return launched(device, launches,
                  (launches + wait) * launch_cost(device) + byte_cost(device) * (4 + 4 + 4) * elements +
                      std::max(products, byte_cost(device) * least_bytes(task)));
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

class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& product, devices::Device& device, const Tile& tile)
      : GemmPlanBody(product),
        group_(tile.group()),
        tiles_(tiles_of(product.problem, tile.m, tile.n)),
        workspace_(product) {
    std::vector<devices::Definition> definitions = gemm_definitions(product);
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("TILE_M", tile.m), add("TILE_N", tile.n), add("TILE_K", tile.k), add("WARP_M", tile.warp_m);
    add("WARP_N", tile.warp_n), add("STAGES", tile.stages), add("RESIDENT", tile.resident);
    add("PRODUCTS", numbers.products), add("SCALED", 1), add("SAMPLED", 0);
    definitions.push_back({"PART", "TYPE_f16"});
    add("MATRIX_UNITS", has_warp_units(device) ? 1 : 0);
    add("A_ALONG_K", product.problem.transpose_a ? 0 : 1), add("B_ALONG_K", product.problem.transpose_b ? 1 : 0);
    add("GROUPS_A", workspace_.a.groups()), add("GROUPS_B", workspace_.b.groups());
    const auto add_long = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, fmt::format("{}L", value)});
    };
    add_long("MATRICES", product.problem.batch);
    add_long("MAXIMA", workspace_.maxima / 4), add_long("LARGEST", workspace_.largest / 4);
    add_long("PLANES_A", workspace_.planes_a / 16), add_long("PLANES_B", workspace_.planes_b / 16);
    // Of its own accord OpenCL's compiler takes the registers that it likes.
    const bool limits = device.kind() == devices::DeviceKind::cuda;
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::scales()) +
                                std::string(kernels::plain_sums()) + std::string(kernels::tf32_units()) +
                                std::string(kernels::warp_units()) + std::string(kernels::warp_tiles()) +
                                std::string(plane_products_kernel),
                            definitions, {.occupancy = {limits ? tile.resident : 0, tile.group()}});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    const devices::Buffer* const workspace = arrays.workspace.buffer.impl().get();
    const std::int64_t at = arrays.workspace.offset_bytes / 4;
    const devices::KernelArgument a = arrays.a.buffer.impl().get(), a_offset = arrays.a.offset_bytes / 4,
                                  b = arrays.b.buffer.impl().get(), b_offset = arrays.b.offset_bytes / 4;
    const devices::KernelArgument of_scan[] = {a, a_offset, b, b_offset, workspace, at};
    sequence.launch(program_, "find_largest",
                    {{(workspace_.a.groups() + workspace_.b.groups()) * pass_items, 1}, {pass_items, 1}}, of_scan,
                    {.overlaps = true});
    launch_groups(divide_up(workspace_.a.chunks() + workspace_.b.chunks(), pass_items), [&](std::int64_t first,
                                                                                            std::int64_t groups) {
      const devices::KernelArgument arguments[] = {a, a_offset, b, b_offset, workspace, workspace, at, first};
      sequence.launch(program_, "make_planes", {{groups * pass_items, 1}, {pass_items, 1}}, arguments,
                      {.overlaps = true});
    });
    launch_batches(task().problem.batch, tiles_, [&](std::int64_t first, std::int64_t batches) {
      sequence.launch(program_, "plane_products", {{tiles_ * batches * group_, 1}, {group_, 1}},
                      gemm_arguments(task(), arrays, workspace, workspace, at, first), {.overlaps = true});
    });
  }

 private:
  std::int64_t group_, tiles_;
  Workspace workspace_;
  std::shared_ptr<devices::Program> program_;
};

// Why the solver cannot serve; empty if it can.
std::string refusal_of(const GemmTask& task, const devices::Device& device) {
  if (std::string reason = gemm_gpu_refusal(task, device); !reason.empty()) return reason;
  if (task.problem.type != DataType::f32) return fmt::format("multiplies f32, not {}", name(task.problem.type));
  if (std::string reason = warp_units_refusal(device); !reason.empty()) return reason;
  if (!is_packed(stored_a(task), task.lda, task.batch_a) || !is_packed(stored_b(task), task.ldb, task.batch_b))
    return "takes matrices without others' elements between their lines";
  constexpr std::int64_t most = std::int64_t{1} << 30;  // places of 32 bits in the text
  if (const std::int64_t longest = std::max({task.problem.m, task.problem.n, task.problem.k}); longest > most)
    return fmt::format("has extents of {} at most, not {}", most, longest);
  return {};
}

class PlanesGpu final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/planes/gpu.1"; }
  Answer offer(const GemmTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = refusal_of(task, *device); !reason.empty()) return reason;
    const auto chosen = choose_tile(task, *device, request);
    if (const std::string* const reason = std::get_if<std::string>(&chosen)) return *reason;
    const Tile tile = std::get<Tile>(chosen);
    if (const std::int64_t groups = tiles_of(task.problem, tile.m, tile.n); groups > most_groups)
      return fmt::format("a launch has at most {} groups, not {}", most_groups, groups);
    const std::int64_t workspace_bytes = Workspace(task).bytes(), most_bytes = device->info().max_buffer_bytes;
    if (workspace_bytes > most_bytes)
      return fmt::format("takes {} bytes of workspace, and a buffer has {} at most", workspace_bytes, most_bytes);
    // Behind a stage's first high products stand those of its other sixteen, three each.
    const split_gemm::Cutting cutting{
        .of_instruction = has_warp_units(*device) ? devices::cut_of_sixteen(device->facts().matrix_units) : 8,
        .instructions = 3 * static_cast<double>(tile.k / 16) - 2};
    const auto stages = static_cast<double>(divide_up(task.problem.k, tile.k));
    return Offer{
        .cost = {cost_of(task, tile, *device)},
        .bound = split_gemm::bound_of(numbers, stages, 1, static_cast<double>(task.problem.k), cutting),
        .workspace_bytes = workspace_bytes,
        .uses_only_fma = false,
        .tuning = tuning_of(tile),
        .plan = [=] { return std::make_shared<Plan>(task, *device, tile); },
    };
  }
  std::span<const Tunable> tunables() const override { return tile_tunables(); }
};

}  // namespace

const GemmSolver& gemm_planes_gpu() {
  static const PlanesGpu solver;
  return solver;
}

}  // namespace omniconv::operations
