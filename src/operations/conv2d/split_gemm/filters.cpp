// Backward of the filter: products of x by y over pixels.
#include <memory>

#include "embedded/split_filters.kernel.h"
#include "embedded/split_planes.kernel.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/split_gemm/plans.h"

namespace omniconv::operations::split_gemm {
namespace {

std::int64_t tiles_of(const FilterTask& task, std::int64_t columns) {
  return divide_up(task.boxes(), 2) * divide_up(task.y.channels, columns) * task.x.groups;
}
std::int64_t sums_of(const FilterTask& task, std::int64_t columns) {
  return checked_multiply(tiles_of(task, columns) * tile_rows, columns, "the sums");
}

// Channels of a group of add_parts: as many as its local memory holds, and few enough for all compute units.
std::int64_t channels_at_once(const FilterTask& task, std::int64_t units) {
  const std::int64_t taps = std::int64_t{task.taps_h} * task.taps_w, eights = divide_up(task.y.channels, 8);
  std::int64_t channels = 32;
  while (channels > 1 &&
         (channels * taps > most_taps || divide_up(task.x.channels, channels) * eights * task.x.groups < 2 * units))
    channels /= 2;
  return channels;
}

Workspace workspace_for(const FilterTask& task, const Numbers& numbers, const Tile& tile) {
  return {task.x.elements(), task.y.elements(), numbers,
          checked_multiply(sums_of(task, tile.columns), tile.parts, "the parts of sums")};
}

Tile tile_for(const FilterTask& task, const Numbers& numbers, const devices::Device& device,
              const SolverOptions& request) {
  const auto cycles = [&](const Tile& tile) -> double {
    if (tile.is_raw) return 0;
    const bool is_wide = tile.columns > 64 && task.y.channels <= 64;
    if (tile.columns < 64 || (is_wide && request.tuning.empty()) || (tile.parts > 1 && tile.parts * 2 > task.steps))
      return 0;
    const double steps = static_cast<double>(divide_up(task.steps, tile.parts)),
                 bytes = 4 * static_cast<double>(sums_of(task, tile.columns)) * static_cast<double>(2 * tile.parts);
    return cycles_of(tile, tiles_of(task, tile.columns), steps, numbers, device) + launch_cycles +
           cycles_of_bytes(bytes, device);
  };
  return best_tile(request, numbers, device, {.line = 2 * step_terms}, cycles,
                   [&](const Tile& tile) { return workspace_for(task, numbers, tile).bytes(); });
}

// What copies read of x or y themselves, where they lie so. What they bring in of the next group are rows and columns
// that nobody stores.
std::optional<Planes> array_of(const Planes& planes, const Conv2dProblem& problem) {
  return as_array(planes, problem.type, problem.layout == Layout::nhwc, 1);
}

class Plan final : public ProductPlan {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const FilterTask& task, const Tile& tile)
      : ProductPlan(problem, device, tile, workspace_for(task, numbers_of(problem.type), tile)), task_(task) {
    task_.tiles_m = static_cast<std::int32_t>(divide_up(task.boxes(), 2));
    task_.tiles_n = static_cast<std::int32_t>(divide_up(task.y.channels, tile.columns));
    task_.parts = static_cast<std::int32_t>(tile.parts);
    task_.by_pixels = Divisor(std::int64_t{task_.y.h} * task_.y.w), task_.by_columns = Divisor(task_.y.w);
    task_.channels_at_once = static_cast<std::int32_t>(channels_at_once(task, units_));
    std::vector<devices::Definition> definitions =
        definitions_of(problem.type, numbers_, tile, 2 * step_terms, true, sampled());
    const bool nhwc = problem.layout == Layout::nhwc;
    const std::int64_t forms = forms_of(task.x, problem.type, nhwc) | forms_of(task.y, problem.type, nhwc);
    definitions.push_back({"NHWC", nhwc ? "1" : "0"});
    definitions.push_back({"FORMS", std::to_string(forms)});
    definitions.push_back({"ACCUMULATE", problem.accumulate ? "1" : "0"});
    definitions.push_back({"RAW", "0"});
    definitions.push_back({"BIAS", "0"});
    definitions.push_back({"RELU", "0"});
    build(device, split_planes_kernel, split_filters_kernel, definitions);
  }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const Product product{.a = run.x, .b = run.y, .out = run.w, .bias = run.x, .workspace = {run.workspace}};
    FilterTask task = task_;
    if (const auto array = array_of(task_.x, problem()); array && is_aligned(product.a)) task.x = *array;
    if (const auto array = array_of(task_.y, problem()); array && is_aligned(product.b)) task.y = *array;
    append_scan(sequence, product, task_.x.source_elements(), task_.y.source_elements(), sampled());
    append_parts(sequence, product, task);
    append_products(
        sequence, product, bytes_of(task),
        maps_of(map_of_x(task), product, task.x.group_channels > 0, product.a, workspace_.a, task_.x.elements()),
        maps_of(map_of_y(task), product, task.y.group_channels > 0, product.b, workspace_.b, task_.y.elements()),
        tiles_of(task_, tile_.columns) * task_.parts,
        divide_up(task_.x.channels, task_.channels_at_once) * divide_up(task_.y.channels, 8) * task_.x.groups);
  }

 private:
  static std::span<const std::byte> bytes_of(const FilterTask& task) { return std::as_bytes(std::span(&task, 1)); }

  void append_parts(devices::Sequence& sequence, const Product& product, const FilterTask& task) const {
    const bool nhwc = problem().layout == Layout::nhwc;
    const Form x_form = form_of(task_.x, product.a, problem().type, nhwc),
               y_form = form_of(task_.y, product.b, problem().type, nhwc);
    const std::int64_t of_x = task.x.group_channels > 0 ? 0 : groups_for(task_.x, x_form),
                       of_y = task.y.group_channels > 0 ? 0 : groups_for(task_.y, y_form);
    if (of_x + of_y == 0) return;
    const devices::KernelArgument arguments[] = {bytes_of(task),
                                                 product.a.buffer.impl().get(),
                                                 product.a.offset_bytes / size(),
                                                 product.b.buffer.impl().get(),
                                                 product.b.offset_bytes / size(),
                                                 product.workspace.buffer.impl().get(),
                                                 workspace_.maxima / 4,
                                                 workspace_.largest / 4,
                                                 workspace_.a / 2,
                                                 task_.x.elements(),
                                                 workspace_.b / 2,
                                                 task_.y.elements(),
                                                 of_x,
                                                 of_y,
                                                 static_cast<std::int32_t>(x_form),
                                                 static_cast<std::int32_t>(y_form)};
    ProductPlan::append_parts(sequence, arguments, of_x + of_y, sampled() != 0);
  }

  // SAMPLED of the text.
  std::int64_t sampled() const { return sampling_of(task_.x.source_elements(), task_.y.source_elements()).bits(); }

  FilterTask task_;
};

}  // namespace

Answer filter_offer(const Conv2dProblem& problem, const DevicePointer& device, const FilterTask& task,
                    const SolverOptions& request) {
  const Numbers numbers = numbers_of(problem.type);
  const Tile tile = tile_for(task, numbers, *device, request);
  if (tile.columns == 0) return fmt::format("tuning {}: tiles and parts of sums do not go together so", request.tuning);
  const std::int64_t tiles = checked_multiply(tiles_of(task, tile.columns), tile.parts, "the tiles");
  if (tiles > most_groups) return fmt::format("has {} tiles, and a launch counts {}", tiles, most_groups);
  const Sampling sampling = sampling_of(task.x.source_elements(), task.y.source_elements());
  double bytes = 0;
  if (!array_of(task.x, problem)) bytes += bytes_moved(task.x, numbers, sampling.a, problem.type);
  if (!array_of(task.y, problem)) bytes += bytes_moved(task.y, numbers, sampling.b, problem.type);
  return Offer{
      .cost = {cost_of_cycles(2 * launch_cycles + tile.cycles + cycles_of_bytes(bytes, *device), *device)},
      .bound = bound_of(problem.type, static_cast<double>(divide_up(task.steps, tile.parts)),
                        static_cast<double>(tile.parts), longest_sum(problem)),
      .workspace_bytes = workspace_for(task, numbers, tile).bytes(),
      .uses_only_fma = false,
      .tuning = tuning_of(tile),
      .plan = [=] { return std::make_shared<Plan>(problem, *device, task, tile); },
  };
}

}  // namespace omniconv::operations::split_gemm
