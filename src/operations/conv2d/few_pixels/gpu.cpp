// Convolution backward of the filter on OpenCL and CUDA devices where images are so small that whole planes lie in
// local memory: multiply-adds of few filters by all taps of a channel.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "embedded/few_pixels.kernel.h"
#include "embedded/implicit_definition.kernel.h"
#include "embedded/implicit_sums.kernel.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/gemm/gpu_text.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t lanes = 32;

struct Tile {
  std::int64_t warps = 0, filters = 0;  // of a group, and of a work item
  std::int64_t resident = 0;            // groups on a compute unit by their registers
  std::int64_t stored_filters = 0;      // of a warp, whose sums are in local memory at once
  std::int64_t local_bytes = 0;
  double cost = 0;

  std::int64_t group() const { return lanes * warps; }
  std::int64_t group_filters() const { return warps * filters; }
};

std::span<const Tunable> tile_tunables() {
  static const std::vector<Tunable> all = {
      {"warps", {4, 2, 8, 1}}, {"filters", {8, 4, 16}}, {"resident", {2, 1, 3, 4, 6, 8}}};
  return all;
}

// Of the text: rows of x that taps meet, and elements in local memory.
std::int64_t rows_of(const Conv2dShape& g) {
  return (g.p - 1) * g.stride_h + (g.r - 1) * g.dilation_h + 1;
}
std::int64_t staged_words(const Conv2dShape& g, const Tile& tile) {
  return round_up(lanes * (rows_of(g) * g.w | 1), 4) + g.p * g.q * (tile.group_filters() + 4);
}

// Of x or of y by a work item: FETCHES_OF_X and FETCHES_OF_Y of the text. Where they are more than are on their way at
// once PoCL 3.1 makes zeros of some sums.
constexpr std::int64_t most_fetches = 32;
std::int64_t fetches_of(const Conv2dShape& g, const Tile& tile) {
  const std::int64_t plane = rows_of(g) * g.w;
  return std::max(g.nhwc ? divide_up(plane, tile.warps) : lanes / tile.warps * divide_up(plane, lanes),
                  divide_up(g.p * g.q, 8) * (tile.filters / 4));
}

// Columns of x that taps of a row's pixels meet, over all pixels and taps of a row; 0 where some pixel meets none.
std::int64_t inner_pairs(const Conv2dShape& g) {
  std::int64_t pairs = 0;
  for (std::int64_t q = 0; q < g.q; ++q) {
    const std::int64_t before = pairs;
    for (std::int64_t s = 0; s < g.s; ++s) {
      const std::int64_t column = g.column_of(q, s);
      if (column >= 0 && column < g.w) ++pairs;
    }
    if (pairs == before) return 0;
  }
  return pairs;
}

std::string problem_refusal(const Conv2dProblem& problem) {
  if (problem.pass != Pass::backward_filter) return "serves backward of the filter alone";
  const Conv2dShape g(problem);
  if (g.groups > 1) return "serves one group of channels, not several";
  constexpr std::int64_t most_taps = 36, most_columns = 32, most_pixels = 1024, most_images = 1 << 12;
  if (std::max(g.r, g.s) > most_taps || g.r * g.s > most_taps)
    return fmt::format("a work item has {} taps at most, and filters have {} x {}", most_taps, g.r, g.s);
  if (g.w > most_columns || g.q > most_columns || g.h > most_pixels || g.p > most_pixels || g.h * g.w > most_pixels ||
      g.p * g.q > most_pixels)
    return fmt::format("images have {} columns and {} pixels at most, for planes to lie in local memory", most_columns,
                       most_pixels);
  if (g.dilation_h > most_pixels || g.dilation_w > most_pixels || g.stride_h > most_pixels || g.stride_w > most_pixels)
    return "strides and dilations reach beyond small images";
  if (g.n > most_images) return fmt::format("{} images at most are looked at one by one", most_images);
  constexpr std::int64_t most_elements = std::int64_t{1} << 30;
  if (g.c >= most_elements / (most_pixels * most_taps) || g.k >= most_elements / (most_pixels * most_taps))
    return "channels pass what it counts";
  // Else an infinity of y might not be seen by the work item whose sums are to have it.
  if (inner_pairs(g) == 0) return "some pixels meet padding alone";
  return {};
}

// In multiply-adds at the peak: groups in rounds, by the warps that share a scheduler, each of which issues one
// instruction in a cycle; what waits for memory take for each image, of which the first of x and of y are one; and the
// arrays' way, of which stores follow the sums.
double cost_of(const Conv2dProblem& problem, const Tile& tile, const devices::Device& device) {
  constexpr double wait_cost = 3e7, schedulers = 4, share_of_rate = 0.85, of_fetch = 14, of_row = 20;
  constexpr std::int64_t at_once = 32;  // of the text
  const Conv2dShape g(problem);
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double pairs = real(inner_pairs(g)), filters = real(tile.filters);
  const double row = real(g.r) * pairs * filters + real(g.q) * filters / 4 + real(g.r * g.w) + of_row;
  const double fetches = real(rows_of(g) * g.w) / real(tile.warps) + real(g.p * g.q) * filters / real(lanes);
  const std::int64_t of_x = divide_up(lanes, tile.warps) * divide_up(rows_of(g) * g.w, lanes),
                     of_y = divide_up(g.p * g.q, 8) * divide_up(tile.filters, 4);
  const double waits = real(divide_up(of_x, at_once) + divide_up(of_y, at_once) - 1);
  const double stores = 2 * filters * real(g.r * g.s);
  const double of_warp = real(g.n) * (real(g.p) * row + of_fetch * fetches) + stores;
  const double units = std::max(device.info().compute_units, 1);
  const double groups = real(divide_up(g.c, lanes) * divide_up(g.k, tile.group_filters()));
  const double of_scheduler = std::ceil(std::ceil(groups / units) * real(tile.warps) / schedulers);
  return of_scheduler * of_warp / share_of_rate * real(lanes) * schedulers * units + wait_cost * real(g.n) * waits +
         byte_cost(device) * least_bytes(problem);
}

std::variant<Tile, std::string> tile_of(const Conv2dProblem& problem, const Tuning& tuning,
                                        const devices::Device& device) {
  constexpr std::int64_t most_sums = 144, most_items = 2048, most_row = 4096;
  const Conv2dShape g(problem);
  Tile tile{.warps = tuning.at("warps"), .filters = tuning.at("filters"), .resident = tuning.at("resident")};
  const std::int64_t taps = g.r * g.s;
  if (tile.filters * taps > most_sums)
    return fmt::format("tuning filters={}: a work item has {} sums at most, and filters have {} taps", tile.filters,
                       most_sums, taps);
  if (tile.filters * g.r * inner_pairs(g) > most_row)
    return fmt::format("tuning filters={}: a row of pixels takes more than {} multiply-adds of a work item",
                       tile.filters, most_row);
  if (tile.resident * tile.group() > most_items)
    return fmt::format("tuning resident={}: at most {} groups of {} work items have registers on a compute unit",
                       tile.resident, most_items / tile.group(), tile.group());
  if (std::string reason = group_refusal(device, tile.group()); !reason.empty()) return "tuning: " + reason;
  if (!device.info().is_gpu && fetches_of(g, tile) > most_fetches)
    return fmt::format("tuning warps={}: a work item asks for {} numbers of an image, and on a CPU for {} at most",
                       tile.warps, fetches_of(g, tile), most_fetches);
  const std::int64_t of_filter = g.nhwc ? 0 : tile.warps * lanes * taps, staged = staged_words(g, tile);
  constexpr std::int64_t most_words = 10 << 10;  // of sums, more than which are stored in turns
  tile.stored_filters = tile.filters;
  while (tile.stored_filters > 1 && tile.stored_filters * of_filter > std::max(most_words, staged))
    tile.stored_filters /= 2;
  constexpr std::int64_t others = 16;  // of the text, as it is aligned
  tile.local_bytes = 4 * round_up(std::max(staged, tile.stored_filters * of_filter), 4) + others;
  if (std::string reason = local_memory_refusal(device, tile.local_bytes); !reason.empty()) return "tuning: " + reason;
  tile.cost = cost_of(problem, tile, device);
  return tile;
}

Tuning tuning_of(const Tile& tile) {
  return {{"warps", tile.warps}, {"filters", tile.filters}, {"resident", tile.resident}};
}

// Registers beside the sums, for groups that should be on a compute unit at once; more are not asked for than there
// are.
std::int64_t resident_for(std::int64_t warps, std::int64_t filters, std::int64_t taps) {
  constexpr std::int64_t others = 80, registers = 65536, most = 8;
  const std::int64_t fit = registers / (lanes * warps * std::min<std::int64_t>(filters * taps + others, 255));
  std::int64_t resident = 1;
  for (const std::int64_t value : {2, 3, 4, 6, 8})
    if (value <= std::min(fit, most)) resident = value;
  return resident;
}

std::variant<Tile, std::string> choose_tile(const Conv2dProblem& problem, const devices::Device& device,
                                            const SolverOptions& request) {
  if (!request.tuning.empty()) return tile_of(problem, Tuning::parse(request.tuning), device);
  const std::span<const Tunable> domain = tile_tunables();
  std::optional<Tile> best;
  std::string refusal;
  for (const std::int64_t warps : domain[0].values)
    for (const std::int64_t filters : domain[1].values) {
      const std::int64_t resident = resident_for(warps, filters, problem.r * problem.s);
      const auto tile = tile_of(problem, {{"warps", warps}, {"filters", filters}, {"resident", resident}}, device);
      if (const std::string* const reason = std::get_if<std::string>(&tile)) {
        if (refusal.empty()) refusal = *reason;
      } else if (!best || std::get<Tile>(tile).cost < best->cost) {
        best = std::get<Tile>(tile);
      }
    }
  if (!best) return refusal;
  return *best;
}

std::vector<devices::Definition> definitions_of(const Conv2dProblem& problem, const Tile& tile) {
  std::vector<devices::Definition> all = conv2d_definitions(problem);
  const auto add = [&](const char* symbol, std::int64_t value) { all.push_back({symbol, std::to_string(value)}); };
  add("WARPS", tile.warps), add("FILTERS", tile.filters), add("RESIDENT", tile.resident);
  add("STORED_FILTERS", tile.stored_filters), add("GROUPS", 1), add("PASS", static_cast<int>(problem.pass));
  return all;
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const Tile& tile)
      : Conv2dPlanBody(problem),
        group_(tile.group()),
        groups_(divide_up(problem.c, lanes) * divide_up(problem.k, tile.group_filters())) {
    program_ =
        device.build(std::string(kernels::gemm_elements()) + std::string(kernels::plain_sums()) +
                         std::string(kernels::conv2d_shape()) + std::string(implicit_definition_kernel) +
                         std::string(implicit_sums_kernel) + std::string(few_pixels_kernel),
                     definitions_of(problem, tile),
                     {.occupancy = {tile.resident, tile.group()}, .expected_seconds = 0.7, .starts_quickly = true});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const auto before = [&](const Operand& operand) { return operand.offset_bytes / size_of(problem().type); };
    const devices::KernelArgument arguments[] = {run.y.buffer.impl().get(), before(run.y),
                                                 run.x.buffer.impl().get(), before(run.x),
                                                 run.w.buffer.impl().get(), before(run.w)};
    sequence.launch(program_, "few_pixels", {{groups_ * group_, 1}, {group_, 1}}, arguments, {.overlaps = true});
  }

 private:
  std::int64_t group_, groups_;
  std::shared_ptr<devices::Program> program_;
};

class FewPixelsGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/few_pixels/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, lanes); !reason.empty()) return reason;
    if (std::string reason = problem_refusal(problem); !reason.empty()) return reason;
    const auto chosen = choose_tile(problem, *device, request);
    if (const std::string* const reason = std::get_if<std::string>(&chosen)) return *reason;
    const Tile tile = std::get<Tile>(chosen);
    constexpr double cpu_multiply_add = 20;  // PoCL: work items take turns at every barrier
    return Offer{
        .cost = {launch_cost(*device) +
                 (device->info().is_gpu ? tile.cost : cpu_multiply_add * multiply_adds(problem))},
        .bound = conv2d_bound(problem, longest_sum(problem)),
        .tuning = tuning_of(tile),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tile); },
    };
  }
  std::span<const Tunable> tunables() const override { return tile_tunables(); }
};

}  // namespace

const Conv2dSolver& conv2d_few_pixels_gpu() {
  static const FewPixelsGpu solver;
  return solver;
}

}  // namespace omniconv::operations
