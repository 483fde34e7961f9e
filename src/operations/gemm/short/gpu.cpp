// Matrix products of few terms on OpenCL and CUDA devices: what they take is the stores of their results.
#include <algorithm>
#include <cmath>
#include <optional>

#include "embedded/short_sums.kernel.h"
#include "operations/gemm/gpu_text.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t most_kept = 128;  // terms of b in a work item's registers

struct Tile {
  std::int64_t items = 0, columns = 0;  // of a group, and of a work item
  std::int64_t m = 0;                   // rows of a group
  std::int64_t resident = 0;            // groups on a compute unit by their registers
  double cost = 0;                      // in multiply-adds at the device's peak, but for the launch

  std::int64_t n() const { return items * columns; }
  std::int64_t local_bytes(std::int64_t terms) const { return 4 * terms * (m + 4); }
};

std::span<const Tunable> tile_tunables() {
  static const std::vector<Tunable> all = {{"items", {128, 64, 256, 32}},
                                           {"columns", {4, 1}},
                                           {"tile_m", {64, 4, 8, 16, 32, 128, 256}},
                                           {"resident", {4, 1, 2, 3, 6, 8, 12, 16}}};
  return all;
}

Tuning tuning_of(const Tile& tile) {
  return {{"items", tile.items}, {"columns", tile.columns}, {"tile_m", tile.m}, {"resident", tile.resident}};
}

// Registers beside b's terms, as compiled for compute capability 9.0.
std::int64_t resident_for(std::int64_t items, std::int64_t columns, std::int64_t terms) {
  constexpr std::int64_t others = 56, registers = 65536, most_items = 2048;
  const std::int64_t fit = std::min(registers / (items * (columns * terms + others)), most_items / items);
  std::int64_t resident = 1;
  for (const std::int64_t value : {2, 3, 4, 6, 8, 12, 16})
    if (value <= fit) resident = value;
  return resident;
}

// A compute unit's cycles for its groups, of four rows and a term the multiply-adds and a vector from local memory; but
// no less than a work item takes alone. Stores go on beside these. One wait for all that is read, of which the second
// cache serves what several groups read. Predicted, not measured.
double cost_of(const GemmTask& task, const Tile& tile, const devices::Device& device) {
  constexpr double wait_cost = 3e7, multiply_adds_a_cycle = 128, vector_cycles = 1.5, cached_byte = 0.3,
                   not_beside = 0.25;
  const GemmProblem& problem = task.problem;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double units = std::max(device.info().compute_units, 1), terms = real(problem.k), columns = real(tile.columns);
  const double warps = real(tile.items) / 32, quads = real(tile.m) / 4, tiles_m = real(divide_up(problem.m, tile.m)),
               tiles_n = real(divide_up(problem.n, tile.n())), groups = tiles_m * tiles_n * real(problem.batch);
  const double of_rows = terms * (columns + vector_cycles) + 4 * (columns == 1 ? 2 : columns) + 4;
  const double fetches = terms * (columns == 1 ? 1 : 2) + 2 * terms * real(tile.m) / real(tile.items);
  const double cycles = std::ceil(groups / units) * warps * (quads * of_rows + fetches),
               alone = quads * (terms * 4 * columns + 40);
  // Few warps of a compute unit leave cycles in which none goes on, as in `tiled`.
  const double together = std::min(std::min(std::ceil(groups / units), real(tile.resident)) * warps, 16.0);
  const double slower = (together + 3) / together * 16 / 19;
  const double compute = std::max(cycles * slower, alone) * multiply_adds_a_cycle * units;
  const double again = 4 * terms * real(problem.batch) * (tiles_n * real(problem.m) + tiles_m * real(problem.n));
  const double moved = byte_cost(device) * (least_bytes(task) * slower + cached_byte * again);
  return wait_cost + std::max(compute, moved) + not_beside * std::min(compute, moved);
}

std::variant<Tile, std::string> tile_of(const GemmTask& task, const Tuning& tuning, const devices::Device& device) {
  constexpr std::int64_t most_items = 2048;
  Tile tile{.items = tuning.at("items"),
            .columns = tuning.at("columns"),
            .m = tuning.at("tile_m"),
            .resident = tuning.at("resident")};
  const std::int64_t terms = task.problem.k;
  if (tile.columns * terms > most_kept)
    return fmt::format("tuning columns={}: a work item keeps {} terms at most, and these have {} each", tile.columns,
                       most_kept, terms);
  if (tile.resident * tile.items > most_items)
    return fmt::format("tuning resident={}: at most {} groups of {} work items have registers on a compute unit",
                       tile.resident, most_items / tile.items, tile.items);
  if (std::string reason = group_refusal(device, tile.items); !reason.empty()) return "tuning: " + reason;
  if (const std::int64_t bytes = tile.local_bytes(terms); bytes > device.info().local_memory_bytes)
    return fmt::format("tuning tile_m={}: its rows take {} bytes of local memory, and the device has {}", tile.m, bytes,
                       device.info().local_memory_bytes);
  if (tiles_of(task.problem, tile.m, tile.n()) > most_groups)
    return fmt::format("tuning: a launch has at most {} tiles", most_groups);
  tile.cost = cost_of(task, tile, device);
  return tile;
}

std::variant<Tile, std::string> choose_tile(const GemmTask& task, const devices::Device& device,
                                            const SolverOptions& request) {
  if (!request.tuning.empty()) return tile_of(task, Tuning::parse(request.tuning), device);
  const std::span<const Tunable> domain = tile_tunables();
  std::optional<Tile> best;
  std::string refusal;
  for (const std::int64_t items : domain[0].values)
    for (const std::int64_t columns : domain[1].values)
      for (const std::int64_t rows : domain[2].values) {
        const Tuning tuning = {{"items", items},
                               {"columns", columns},
                               {"tile_m", rows},
                               {"resident", resident_for(items, columns, task.problem.k)}};
        const auto tile = tile_of(task, tuning, device);
        if (const std::string* const reason = std::get_if<std::string>(&tile)) {
          if (refusal.empty()) refusal = *reason;
        } else if (!best || std::get<Tile>(tile).cost < best->cost) {
          best = std::get<Tile>(tile);
        }
      }
  if (!best) return refusal;
  return *best;
}

class Plan final : public GemmPlanBody {
 public:
  Plan(const GemmTask& product, devices::Device& device, const Tile& tile)
      : GemmPlanBody(product), group_(tile.items), tiles_(tiles_of(product.problem, tile.m, tile.n())) {
    std::vector<devices::Definition> definitions = gemm_definitions(product);
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("GROUP", tile.items), add("COLUMNS", tile.columns), add("TILE_M", tile.m), add("RESIDENT", tile.resident);
    // README.md says what a limit costs through OpenCL.
    program_ =
        device.build(std::string(kernels::gemm_elements()) + std::string(short_sums_kernel), definitions,
                     {.occupancy = {device.kind() == devices::DeviceKind::cuda ? tile.resident : 0, tile.items}});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const GemmArrays& arrays) const override {
    launch_batches(task().problem.batch, tiles_, [&](std::int64_t first, std::int64_t batches) {
      sequence.launch(program_, "short_sums", {{tiles_ * batches * group_, 1}, {group_, 1}},
                      gemm_arguments(task(), arrays, first), {.overlaps = true});
    });
  }

 private:
  std::int64_t group_, tiles_;
  std::shared_ptr<devices::Program> program_;
};

class ShortGpu final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/short/gpu.1"; }
  Answer offer(const GemmTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = gemm_gpu_refusal(task, *device); !reason.empty()) return reason;
    if (task.problem.k > most_kept)
      return fmt::format("sums have {} terms at most, which work items keep, not {}", most_kept, task.problem.k);
    const auto chosen = choose_tile(task, *device, request);
    if (const std::string* const reason = std::get_if<std::string>(&chosen)) return *reason;
    const Tile tile = std::get<Tile>(chosen);
    constexpr double cpu_multiply_add = 15;  // PoCL: work items take turns at a barrier
    const double cost = device->info().is_gpu ? tile.cost : cpu_multiply_add * multiply_adds(task.problem);
    return Offer{
        .cost = {launched(*device, 1, launch_cost(*device) + cost)},
        .bound = gemm_bound(task, static_cast<double>(task.problem.k)),
        .tuning = tuning_of(tile),
        .plan = [=] { return std::make_shared<Plan>(task, *device, tile); },
    };
  }
  std::span<const Tunable> tunables() const override { return tile_tunables(); }
};

}  // namespace

const GemmSolver& gemm_short_gpu() {
  static const ShortGpu solver;
  return solver;
}

}  // namespace omniconv::operations
