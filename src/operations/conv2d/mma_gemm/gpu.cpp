// Convolution as products of tiles on matrix units that the instructions of a warp feed, through CUDA and OpenCL.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "embedded/implicit_positions.kernel.h"
#include "embedded/implicit_sums.kernel.h"
#include "embedded/implicit_weights.kernel.h"
#include "embedded/mma_filters.kernel.h"
#include "embedded/mma_parts.kernel.h"
#include "embedded/mma_pixels.kernel.h"
#include "operations/conv2d/implicit_gemm/definitions.h"
#include "operations/gemm/gpu_text.h"
#include "operations/split/numbers.h"

namespace omniconv::operations {
namespace {

using implicit_gemm::PixelProduct;
using implicit_gemm::turn_group;
using split_gemm::Numbers;
using split_gemm::numbers_of;
using split_gemm::Sections;

constexpr std::int64_t scan_group = 256;

// Of rows by columns; of products a stage; of a warp; and groups that share a compute unit.
struct WarpTile {
  std::int64_t m = 0, n = 0, k = 0, warp_m = 0, warp_n = 0, resident = 1, parts = 1, merged = 0;

  std::int64_t warps() const { return m / warp_m * (n / warp_n); }
  std::int64_t group() const { return 32 * warps(); }
  std::int64_t local_bytes(const Numbers& numbers) const { return 2 * (m + n) * k * 2 * numbers.planes(); }
};

constexpr std::array<std::int64_t, 12> part_counts = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
std::span<const Tunable> warp_tunables() {
  static const std::vector<Tunable> all = {{"tile_m", {16, 32, 64, 128}},
                                           {"tile_n", {16, 32, 64, 128}},
                                           {"tile_k", {16, 32}},
                                           {"warp_m", {16, 32, 64}},
                                           {"warp_n", {16, 32, 64}},
                                           {"resident", {1, 2, 3, 4}},
                                           {"parts", {part_counts.begin(), part_counts.end()}},
                                           {"merged", {0, 1}}};
  return all;
}
Tuning tuning_of(const WarpTile& tile) {
  return {{"tile_m", tile.m},      {"tile_n", tile.n},          {"tile_k", tile.k},    {"warp_m", tile.warp_m},
          {"warp_n", tile.warp_n}, {"resident", tile.resident}, {"parts", tile.parts}, {"merged", tile.merged}};
}
WarpTile tile_of(const Tuning& tuning) {
  return {tuning.at("tile_m"), tuning.at("tile_n"),   tuning.at("tile_k"), tuning.at("warp_m"),
          tuning.at("warp_n"), tuning.at("resident"), tuning.at("parts"),  tuning.at("merged")};
}
// Those that the choice is among.
constexpr std::array<WarpTile, 9> warp_tiles = {{{128, 64, 32, 32, 32, 2},
                                                 {128, 128, 16, 64, 32, 1},
                                                 {64, 128, 32, 32, 32, 2},
                                                 {64, 64, 32, 32, 32, 3},
                                                 {32, 128, 32, 32, 32, 3},
                                                 {128, 32, 32, 32, 32, 3},
                                                 {16, 128, 32, 16, 32, 3},
                                                 {128, 16, 32, 32, 16, 3},
                                                 {32, 64, 16, 32, 16, 4}}};

// Multiply-adds of 16-bit numbers that a compute unit's matrix units do in a cycle when a warp's instructions feed
// them, and of fp32 numbers that its multiply-add units do. Of 9.0 as measured; of others as NVIDIA states them, with
// the slower figure where boards of a capability differ.
struct UnitRates {
  double matrix, plain;
};
UnitRates rates_of(int capability) {
  if (capability == 80) return {1024, 64};
  if (capability == 90) return {1270, 128};
  return {256, 128};
}

bool has_units(const devices::Device& device) {
  return device.facts().compute_capability >= 80;
}

// Bits that the units keep beyond fp32's when they add up an instruction's products: conv2d/split_gemm/README.md.
split_gemm::Cutting cutting_of(const devices::Device& device, const WarpTile& tile) {
  const double of_instruction = device.facts().compute_capability == 90 ? 5 : 10;
  const auto sixteens = static_cast<double>(tile.k / 16);
  // Behind the first high products stand those of the stage's other sixteens, three each.
  return {.of_instruction = of_instruction, .instructions = 3 * sixteens - 2};
}

// Groups that look for the largest of so many elements.
std::int64_t scan_groups(std::int64_t elements) {
  constexpr std::int64_t of_item = 64, most = 264;
  return std::clamp<std::int64_t>(divide_up(elements, scan_group * of_item), 1, most);
}

PixelProduct pixels_of(const Conv2dProblem& problem, const WarpTile& tile) {
  return PixelProduct(problem, {.fills = true, .merges = tile.merged != 0});
}

// What a pass multiplies and makes, as one product for each of a batch: groups of channels, and classes of pixels.
struct Work {
  Work(const Conv2dProblem& problem, const WarpTile& tile) {
    const Conv2dElements elements = elements_of(problem);
    const Conv2dShape g(problem);
    if (problem.pass == Pass::backward_filter) {
      first = elements.y, second = elements.x, out = elements.w;
      m = g.k_group, n = g.c_group * g.r * g.s, k = g.n * g.p * g.q, batch = g.groups;
      return;
    }
    const bool data = problem.pass == Pass::backward_data;
    const PixelProduct product = pixels_of(problem, tile);
    first = data ? elements.y : elements.x, second = elements.w, out = data ? elements.x : elements.y;
    m = product.out_rows, n = product.positions(), batch = product.groups * product.classes();
    if (product.nhwc) std::swap(m, n);
  }

  std::int64_t first = 0, second = 0, out = 0;  // elements of the operands and of the result
  std::int64_t m = 0, n = 0, k = 0, batch = 1;  // k of filters alone
};

// Samples of the operands are enough, where a second launch may make the result again. By loops they are of small
// arrays too, so that tests have them.
split_gemm::Sampling sampling_of(const Conv2dProblem& problem, const devices::Device& device, const Work& work) {
  if (!numbers_of(problem.type).are_scaled || problem.accumulate) return {};
  // Filters are looked at as a whole.
  const std::int64_t second = problem.pass == Pass::backward_filter ? work.second : 0;
  if (has_units(device)) return split_gemm::sampling_of(work.first, second);
  constexpr std::int64_t least = 1 << 13, every = 7;
  return {.a = work.first < least ? 1 : every, .b = second < least ? 1 : every};
}

// Stages of the longest sum, before it is cut into parts.
std::int64_t stages_of(const Conv2dProblem& problem, const WarpTile& tile) {
  if (problem.pass == Pass::backward_filter) return divide_up(Work(problem, tile).k, tile.k);
  return pixels_of(problem, tile).panel_rows(tile.k) / tile.k;
}
// Pixels of a part of filters' sums.
std::int64_t part_pixels(const Conv2dProblem& problem, const WarpTile& tile) {
  return problem.pass == Pass::backward_filter ? divide_up(stages_of(problem, tile), tile.parts) * tile.k : 0;
}

struct Workspace : Sections {
  Workspace(const Conv2dProblem& problem, const WarpTile& tile) {
    const Numbers numbers = numbers_of(problem.type);
    const Work work(problem, tile);
    if (numbers.are_scaled) maxima = take(scan_groups(work.first) + scan_groups(work.second), 4), largest = take(4, 4);
    if (problem.pass != Pass::backward_filter) {
      const PixelProduct product = pixels_of(problem, tile);
      panel_chunks = checked_multiply(
          checked_multiply(product.groups, product.panel_rows(tile.k) / 8, "the filters"),
          checked_multiply(product.panel_pitch(tile.m, tile.n), numbers.planes(), "the filters"), "the filters");
      panel = take(panel_chunks, 16);
    }
    if (tile.parts > 1) parts = take(checked_multiply(tile.parts, round_up(work.out, 4), "the parts"), 4);
  }

  std::int64_t maxima = 0, largest = 0, panel = 0, parts = 0, panel_chunks = 0;
};

std::int64_t groups_of(const Conv2dProblem& problem, const WarpTile& tile) {
  const Work work(problem, tile);
  const std::int64_t tiles = checked_multiply(divide_up(work.m, tile.m), divide_up(work.n, tile.n), "the tiles");
  return checked_multiply(checked_multiply(tiles, work.batch, "the tiles"), tile.parts, "the tiles");
}

double cost_of(const Conv2dProblem& problem, const devices::Device& device, const WarpTile& tile) {
  if (!has_units(device)) {
    constexpr double of_multiply_add = 64;  // by loops, which small tiles let compile sooner
    return launch_cost(device) + of_multiply_add * multiply_adds(problem) + static_cast<double>(tile.m * tile.n);
  }
  const Numbers numbers = numbers_of(problem.type);
  const Conv2dShape g(problem);
  const UnitRates rates = rates_of(device.facts().compute_capability);
  const double units = device.info().compute_units;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  // What a stage takes: its products, and what warps read of it from local memory, 128 bytes a cycle. They hide each
  // other in part, as the prototype's 107 TFLOP/s on an H200 say. What comes element by element takes as long again.
  const double products = number(tile.m * tile.n * tile.k * numbers.products) / rates.matrix,
               reads = number(tile.warps() * (tile.warp_m + tile.warp_n) * tile.k * 2 * numbers.planes()) / 128;
  constexpr double of_products = 1.25, of_reads = 0.75, of_tile = 4000, of_elements = 2;
  const bool filter = problem.pass == Pass::backward_filter;
  double stages = number(stages_of(problem, tile)) / number(tile.parts), factor = 1;
  if (!filter) stages /= number(pixels_of(problem, tile).classes());
  if (filter && !implicit_gemm::reads_channels_at_once(g)) factor = of_elements;
  const double of_group =
      stages * factor * (of_products * products + of_reads * reads) + of_tile / number(tile.resident);
  const double cycles = std::ceil(number(groups_of(problem, tile)) / units) * of_group;
  const Workspace workspace(problem, tile);
  const Work work(problem, tile);
  double bytes = number(2 * 16 * workspace.panel_chunks);
  const split_gemm::Sampling sampling = sampling_of(problem, device, work);
  if (numbers.are_scaled) bytes += number((work.first / sampling.a + work.second / sampling.b) * size_of(problem.type));
  if (tile.parts > 1) bytes += number(2 * 4 * tile.parts * work.out);
  const double launches = (filter ? 1 : 2) + (numbers.are_scaled ? 1 : 0) + (filter && numbers.are_scaled ? 1 : 0) +
                          (sampling.bits() != 0 ? 1 : 0) + (tile.parts > 1 ? 1 : 0);
  constexpr double unmeasured = 100;  // on a GPU: until it is, only who asks for the solver gets it
  return unmeasured * (launches * launch_cost(device) + cycles * rates.plain * units + byte_cost(device) * bytes);
}

// Why there is no such tile; empty if there is.
std::string tile_refusal(const Conv2dProblem& problem, const devices::Device& device, const WarpTile& tile) {
  const Conv2dShape g(problem);
  if (tile.m % tile.warp_m != 0)
    return fmt::format("tuning tile_m={}: must be a multiple of warp_m, {}", tile.m, tile.warp_m);
  if (tile.n % tile.warp_n != 0)
    return fmt::format("tuning tile_n={}: must be a multiple of warp_n, {}", tile.n, tile.warp_n);
  constexpr std::int64_t most_sums = 64, most_items = 2048;
  if (tile.warp_m * tile.warp_n > 32 * most_sums)
    return fmt::format("tuning warp_m={} warp_n={}: their product must be at most {}, since a work item holds {} sums",
                       tile.warp_m, tile.warp_n, 32 * most_sums, most_sums);
  if (tile.resident * tile.group() > most_items)
    return fmt::format("tuning resident={}: at most {} groups of {} work items share a compute unit", tile.resident,
                       most_items / tile.group(), tile.group());
  if (tile.merged != 0 && problem.pass != Pass::backward_data)
    return "tuning merged=1: classes of pixels are there backward of the data alone";
  // Under nchw a work item fetches four or a multiple of eight products of one pixel.
  const bool filter = problem.pass == Pass::backward_filter;
  const std::int64_t fetches = tile.n * tile.k / tile.group();
  if (!filter && !g.nhwc && (tile.n > tile.group() || (fetches != 4 && fetches % 8 != 0) || fetches == 0))
    return fmt::format("tuning tile_n={} tile_k={}: groups of {} work items do not fetch so many products of a pixel",
                       tile.n, tile.k, tile.group());
  if (std::string reason = group_refusal(device, tile.group()); !reason.empty()) return "tuning: " + reason;
  // The columns of a tile of weights have their places there too.
  const std::int64_t local_bytes = tile.local_bytes(numbers_of(problem.type)) + (filter ? 8 * tile.n : 0);
  if (std::string reason = local_memory_refusal(device, local_bytes); !reason.empty()) return "tuning: " + reason;
  const std::int64_t stages = stages_of(problem, tile) / (filter ? 1 : pixels_of(problem, tile).classes());
  if (tile.parts > 1 && (stages < tile.parts || divide_up(stages, divide_up(stages, tile.parts)) != tile.parts))
    return fmt::format("tuning parts={}: {} stages of {} products are not so many parts", tile.parts, stages, tile.k);
  if (groups_of(problem, tile) > most_groups)
    return fmt::format("a launch has at most {} groups, not {}", most_groups, groups_of(problem, tile));
  return {};
}

// The cheapest, or exactly the request's tuning; or why there is none.
std::variant<WarpTile, std::string> choose_tile(const Conv2dProblem& problem, const devices::Device& device,
                                                const SolverOptions& request) {
  const std::int64_t limit = request.max_workspace_bytes;
  const auto bytes_of = [&](const WarpTile& tile) { return Workspace(problem, tile).bytes(); };
  if (!request.tuning.empty()) {
    const WarpTile tile = tile_of(Tuning::parse(request.tuning));
    if (std::string reason = tile_refusal(problem, device, tile); !reason.empty()) return reason;
    if (limit >= 0 && tile.parts > 1 && bytes_of(tile) > limit)
      return fmt::format("tuning parts={}: the workspace would be {} bytes, and the limit is {}", tile.parts,
                         bytes_of(tile), limit);
    return tile;
  }
  std::optional<WarpTile> best;
  double least = 0;
  for (const WarpTile& each : warp_tiles)
    for_each_tuning(std::vector<Tunable>(warp_tunables().end() - 2, warp_tunables().end()), [&](const Tuning& cut) {
      WarpTile tile = each;
      tile.parts = cut.at("parts"), tile.merged = cut.at("merged");
      if (!tile_refusal(problem, device, tile).empty()) return;
      if (limit >= 0 && tile.parts > 1 && bytes_of(tile) > limit) return;
      const double cost = cost_of(problem, device, tile);
      if (!best || cost < least) best = tile, least = cost;
    });
  if (!best) return std::string("the device takes none of its tiles, or they would be more groups than a launch has");
  return *best;
}

std::vector<devices::Definition> definitions_of(const Conv2dProblem& problem, const devices::Device& device,
                                                const WarpTile& tile) {
  const Numbers numbers = numbers_of(problem.type);
  const Conv2dShape g(problem);
  const bool filter = problem.pass == Pass::backward_filter;
  std::vector<devices::Definition> all =
      implicit_gemm::product_definitions(problem, {tile.m, tile.n, tile.k, tile.parts, part_pixels(problem, tile)},
                                         {.fills = true, .merges = tile.merged != 0});
  const auto add = [&](const char* symbol, std::int64_t value) { all.push_back({symbol, std::to_string(value)}); };
  add("WARP_M", tile.warp_m), add("WARP_N", tile.warp_n), add("RESIDENT", tile.resident);
  add("PRODUCTS", numbers.products), add("SCALED", numbers.are_scaled ? 1 : 0), add("PRODUCTS_TOGETHER", 1);
  add("SAMPLED", sampling_of(problem, device, Work(problem, tile)).bits());
  add("A_ALONG_K", filter && g.nhwc ? 0 : 1);
  add("B_ALONG_K", filter && implicit_gemm::reads_channels_at_once(g) ? 0 : 1);
  add("MATRIX_UNITS", has_units(device) ? 1 : 0);
  all.push_back({"PART", fmt::format("TYPE_{}", name(numbers.part))});
  return all;
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const WarpTile& tile)
      : Conv2dPlanBody(problem),
        tile_(tile),
        workspace_(problem, tile),
        sampling_(sampling_of(problem, device, Work(problem, tile))) {
    const bool filter = problem.pass == Pass::backward_filter;
    program_ = device.build(
        std::string(kernels::gemm_elements()) + std::string(kernels::scales()) + std::string(kernels::conv2d_shape()) +
            std::string(kernels::warp_tiles()) + std::string(implicit_sums_kernel) +
            std::string(filter ? implicit_weights_kernel : implicit_positions_kernel) + std::string(mma_parts_kernel) +
            std::string(filter ? mma_filters_kernel : mma_pixels_kernel),
        definitions_of(problem, device, tile), {.occupancy = {tile.resident, tile.group()}});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    switch (problem().pass) {
      case Pass::forward: return append_pixels(sequence, run, run.x, run.y, problem().bias ? run.bias : run.w);
      case Pass::backward_data: return append_pixels(sequence, run, run.y, run.x, run.w);
      case Pass::backward_filter: return append_filters(sequence, run);
    }
  }

 private:
  std::int64_t elements_before(const Operand& operand) const { return operand.offset_bytes / size_of(problem().type); }

  // Of both operands, where they are scaled.
  void append_scan(devices::Sequence& sequence, const Conv2dRun& run, const Operand& first,
                   const Operand& second) const {
    if (!numbers_of(problem().type).are_scaled) return;
    const Work work(problem(), tile_);
    const devices::KernelArgument arguments[] = {first.buffer.impl().get(),
                                                 elements_before(first),
                                                 work.first,
                                                 scan_groups(work.first),
                                                 static_cast<std::int32_t>(sampling_.a),
                                                 second.buffer.impl().get(),
                                                 elements_before(second),
                                                 work.second,
                                                 scan_groups(work.second),
                                                 static_cast<std::int32_t>(sampling_.b),
                                                 run.workspace.impl().get(),
                                                 workspace_.maxima / 4,
                                                 workspace_.largest / 4};
    const std::int64_t items = (scan_groups(work.first) + scan_groups(work.second)) * scan_group;
    sequence.launch(program_, "find_largest", {{items, 1}, {scan_group, 1}}, arguments);
  }
  // Of all tiles, and once more where samples of the operands were looked at.
  void append_tiles(devices::Sequence& sequence, const char* kernel,
                    std::span<const devices::KernelArgument> arguments) const {
    std::vector<devices::KernelArgument> all(arguments.begin(), arguments.end());
    all.emplace_back(std::int32_t{0});
    const devices::Grid grid = {{groups_of(problem(), tile_) * tile_.group(), 1}, {tile_.group(), 1}};
    sequence.launch(program_, kernel, grid, all);
    if (sampling_.bits() == 0) return;
    all.back() = std::int32_t{1};
    sequence.launch(program_, kernel, grid, all);
  }
  void append_sums(devices::Sequence& sequence, const Conv2dRun& run, const Operand& out, const Operand& bias) const {
    if (tile_.parts == 1) return;
    launch_groups(divide_up(divide_up(Work(problem(), tile_).out, 4), combine_group),
                  [&](std::int64_t first, std::int64_t groups) {
                    const devices::KernelArgument arguments[] = {out.buffer.impl().get(),
                                                                 elements_before(out),
                                                                 bias.buffer.impl().get(),
                                                                 elements_before(bias),
                                                                 run.workspace.impl().get(),
                                                                 workspace_.parts / 16,
                                                                 first};
                    sequence.launch(program_, "combine", {{groups * combine_group, 1}, {combine_group, 1}}, arguments);
                  });
  }

  void append_pixels(devices::Sequence& sequence, const Conv2dRun& run, const Operand& source, const Operand& out,
                     const Operand& bias) const {
    append_scan(sequence, run, source, run.w);
    const Work work(problem(), tile_);
    const devices::Buffer* const workspace = run.workspace.impl().get();
    const std::int64_t items = workspace_.panel_chunks / numbers_of(problem().type).planes();
    launch_groups(divide_up(items, turn_group), [&](std::int64_t first, std::int64_t groups) {
      const devices::KernelArgument arguments[] = {run.w.buffer.impl().get(),
                                                   elements_before(run.w),
                                                   workspace,
                                                   workspace_.panel / 16,
                                                   workspace,
                                                   workspace_.maxima / 4,
                                                   scan_groups(work.first),
                                                   scan_groups(work.second),
                                                   workspace_.largest / 4,
                                                   first};
      sequence.launch(program_, "turn", {{groups * turn_group, 1}, {turn_group, 1}}, arguments);
    });
    const devices::KernelArgument arguments[] = {source.buffer.impl().get(),
                                                 elements_before(source),
                                                 run.w.buffer.impl().get(),
                                                 elements_before(run.w),
                                                 workspace,
                                                 workspace_.panel / 16,
                                                 out.buffer.impl().get(),
                                                 elements_before(out),
                                                 bias.buffer.impl().get(),
                                                 elements_before(bias),
                                                 workspace,
                                                 workspace_.parts / 4,
                                                 workspace_.largest / 4};
    append_tiles(sequence, "pixels", arguments);
    append_sums(sequence, run, out, bias);
  }

  void append_filters(devices::Sequence& sequence, const Conv2dRun& run) const {
    append_scan(sequence, run, run.y, run.x);
    const Work work(problem(), tile_);
    // Where nothing is scaled and sums have one part there is no workspace, and some buffer stands in its place.
    const devices::Buffer* const workspace = (workspace_.bytes() > 0 ? run.workspace : run.w.buffer).impl().get();
    if (numbers_of(problem().type).are_scaled) {
      const devices::KernelArgument arguments[] = {workspace, workspace_.maxima / 4, scan_groups(work.first),
                                                   scan_groups(work.second), workspace_.largest / 4};
      sequence.launch(program_, "settle", {{scan_group, 1}, {scan_group, 1}}, arguments);
    }
    const devices::KernelArgument arguments[] = {run.y.buffer.impl().get(),
                                                 elements_before(run.y),
                                                 run.x.buffer.impl().get(),
                                                 elements_before(run.x),
                                                 run.w.buffer.impl().get(),
                                                 elements_before(run.w),
                                                 workspace,
                                                 workspace_.parts / 4,
                                                 workspace_.largest / 4};
    append_tiles(sequence, "filters", arguments);
    append_sums(sequence, run, run.w, run.x);
  }

  WarpTile tile_;
  Workspace workspace_;
  split_gemm::Sampling sampling_;
  std::shared_ptr<devices::Program> program_;
};

class MmaGemmGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/mma_gemm/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, scan_group); !reason.empty()) return reason;
    if (device->kind() == devices::DeviceKind::cuda && !has_units(*device))
      return "multiplies on the matrix units of NVIDIA's compute capability 8.0 and above";
    if (std::string reason = implicit_gemm::product_refusal(problem); !reason.empty()) return reason;
    if (std::string reason = local_memory_refusal(*device, warp_tiles.back().local_bytes(numbers_of(problem.type)));
        !reason.empty())
      return reason;
    const auto chosen = choose_tile(problem, *device, request);
    if (const std::string* const reason = std::get_if<std::string>(&chosen)) return *reason;
    const WarpTile tile = std::get<WarpTile>(chosen);
    return Offer{
        .cost = {cost_of(problem, *device, tile)},
        .bound = split_gemm::bound_of(problem.type, static_cast<double>(stages_of(problem, tile)),
                                      static_cast<double>(tile.parts), longest_sum(problem), cutting_of(*device, tile)),
        .workspace_bytes = Workspace(problem, tile).bytes(),
        .uses_only_fma = false,
        .tuning = tuning_of(tile),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tile); },
    };
  }
  std::span<const Tunable> tunables() const override { return warp_tunables(); }
};

}  // namespace

const Conv2dSolver& conv2d_mma_gemm_gpu() {
  static const MmaGemmGpu solver;
  return solver;
}

}  // namespace omniconv::operations
