// Forward, and backward of the data: products of pixels by filters.
#include <array>
#include <memory>

#include "embedded/split_pixels.kernel.h"
#include "embedded/split_planes.kernel.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/split_gemm/plans.h"

namespace omniconv::operations::split_gemm {
namespace {

std::int64_t tiles_of(const PixelTask& task, std::int64_t columns) {
  return divide_up(task.positions(), tile_rows) * divide_up(task.filters, columns) * task.source.groups * task.classes;
}

struct Workspace : Sections {
  std::int64_t maxima, largest, source, filters, parts;  // in bytes

  Workspace(const PixelTask& task, const Numbers& numbers, const Tile& tile)
      : maxima(take(2 * split_gemm::maxima, 4)),
        largest(take(2, 4)),
        source(take(task.source.elements(), 2 * numbers.planes())),
        filters(take(task.filter_elements(), 2 * numbers.planes())),
        parts(bytes()) {
    const std::int64_t sums = checked_multiply(round_up(task.positions(), tile_rows),
                                               round_up(task.filters, tile.columns), "the parts of sums");
    if (tile.parts > 1) take(checked_multiply(sums, tile.parts * task.source.groups, "the parts of sums"), 4);
  }
};

Tile tile_for(const PixelTask& task, bool nhwc, const Numbers& numbers, const devices::Device& device,
              const SolverOptions& request) {
  const auto cycles = [&](const Tile& tile) -> double {
    const bool is_wide = tile.columns > 32 && tile.columns / 2 >= task.filters;
    if ((is_wide && request.tuning.empty()) || (tile.parts > 1 && (task.classes > 1 || tile.parts * 2 > task.steps)))
      return 0;
    const double steps = static_cast<double>(divide_up(task.steps, tile.parts)) / task.classes;
    const double of_tiles = cycles_of(tile, tiles_of(task, tile.columns), steps, numbers, device);
    if (tile.parts == 1) return of_tiles;
    // Parts are read in order; what is stored lies apart, but where channels stand last.
    const double sums = static_cast<double>(task.positions() * task.filters * task.source.groups),
                 bytes = 4.0 * static_cast<double>(tile.parts) + (nhwc ? 4 : 20);
    return of_tiles + launch_cycles + cycles_of_bytes(bytes * sums, device);
  };
  return best_tile(request, numbers, device, cycles,
                   [&](const Tile& tile) { return Workspace(task, numbers, tile).bytes(); });
}

// TAPS of the text.
std::int64_t turned_taps(const PixelTask& task) {
  const std::int64_t taps = std::int64_t{task.taps_h} * task.taps_w;
  return task.source.have_taps() || taps > most_turned_taps ? 0 : taps;
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const PixelTask& task, const Tile& tile)
      : Conv2dPlanBody(problem),
        task_(task),
        numbers_(numbers_of(problem.type)),
        tile_(tile),
        workspace_(task, numbers_, tile),
        units_(device.info().compute_units) {
    task_.tiles_m = static_cast<std::int32_t>(divide_up(task.positions(), tile_rows));
    task_.tiles_n = static_cast<std::int32_t>(divide_up(task.filters, tile.columns));
    task_.parts = static_cast<std::int32_t>(tile.parts);
    const std::int64_t of_classes = std::int64_t{task_.tiles_n} * task_.classes;
    task_.by_tiles = Divisor(task_.tiles_m * of_classes), task_.by_parts = Divisor(task_.parts);
    task_.by_band = Divisor(8 * of_classes), task_.by_tiles_n = Divisor(task_.tiles_n);
    task_.by_positions = Divisor(std::int64_t{task_.rows} * task_.columns), task_.by_columns = Divisor(task_.columns);
    std::vector<devices::Definition> definitions = definitions_of(problem.type, numbers_, tile, 2 * task.box(), false);
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("NHWC", problem.layout == Layout::nhwc);
    add("FORMS", forms_of(task.source, problem.type, problem.layout == Layout::nhwc)), add("TAPS", turned_taps(task));
    add("FORWARD", problem.pass == Pass::forward);
    add("CHANNELS", task.box()), add("BIAS", problem.bias ? 2 : 0);
    add("ACCUMULATE", problem.accumulate), add("RELU", problem.relu);
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::tensor_units()) +
                                std::string(kernels::parts()) + std::string(split_planes_kernel) +
                                std::string(split_pixels_kernel) + std::string(kernels::tile_products()),
                            definitions, {.target = "sm_90a"});
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const bool forward = problem().pass == Pass::forward;
    const Operand &source = forward ? run.x : run.y, &out = forward ? run.y : run.x;
    if (numbers_.are_scaled) append_scan(sequence, source, run);
    append_parts(sequence, source, run);
    append_products(sequence, source, out, run);
  }

 private:
  std::span<const std::byte> task() const { return std::as_bytes(std::span(&task_, 1)); }
  std::int64_t size() const { return size_of(problem().type); }

  void append_scan(devices::Sequence& sequence, const Operand& source, const Conv2dRun& run) const {
    const devices::KernelArgument arguments[] = {source.buffer.impl().get(),     source.offset_bytes / size(),
                                                 task_.source.source_elements(), run.w.buffer.impl().get(),
                                                 run.w.offset_bytes / size(),    elements_of(problem()).w,
                                                 run.workspace.impl().get(),     workspace_.maxima / 4};
    sequence.launch(program_, "find_largest", {{2 * maxima * pass_group, 1}, {pass_group, 1}}, arguments);
  }

  void append_parts(devices::Sequence& sequence, const Operand& source, const Conv2dRun& run) const {
    const Form form = form_of(task_.source, source, problem().type, problem().layout == Layout::nhwc);
    const std::int64_t of_source = groups_for(task_.source, form), of_filters = groups_for_filters();
    const devices::KernelArgument arguments[] = {task(),
                                                 source.buffer.impl().get(),
                                                 source.offset_bytes / size(),
                                                 run.w.buffer.impl().get(),
                                                 run.w.offset_bytes / size(),
                                                 run.workspace.impl().get(),
                                                 workspace_.maxima / 4,
                                                 workspace_.largest / 4,
                                                 workspace_.source / 2,
                                                 task_.source.elements(),
                                                 workspace_.filters / 2,
                                                 task_.filter_elements(),
                                                 of_source,
                                                 static_cast<std::int32_t>(form)};
    sequence.launch(program_, "make_parts", {{(of_source + of_filters) * pass_group, 1}, {pass_group, 1}}, arguments,
                    {.overlaps = numbers_.are_scaled});
  }

  std::int64_t groups_for_filters() const {
    const std::int64_t taps = turned_taps(task_);
    if (taps == 0) return divide_up(task_.filter_elements() / 8, pass_group);
    const std::int64_t at_once = taps > 32 ? 1 : taps > 8 ? most_turned_taps / taps : 8;  // of the text
    return divide_up(task_.source.padded, 64) * divide_up(task_.filters, at_once) * task_.source.groups;
  }

  void append_products(devices::Sequence& sequence, const Operand& source, const Operand& out,
                       const Conv2dRun& run) const {
    std::array<devices::TensorMap, 4> maps = {map_of_source(task_), map_of_source(task_),
                                              map_of_filters(task_, tile_.columns),
                                              map_of_filters(task_, tile_.columns)};
    const std::int64_t low = numbers_.planes() - 1;  // where there is one
    for (devices::TensorMap& map : maps) map.buffer = run.workspace.impl().get();
    maps[0].offset_bytes = workspace_.source;
    maps[1].offset_bytes = workspace_.source + low * 2 * task_.source.elements();
    maps[2].offset_bytes = workspace_.filters;
    maps[3].offset_bytes = workspace_.filters + low * 2 * task_.filter_elements();
    const Operand& bias = problem().bias ? run.bias : run.w;
    const devices::KernelArgument arguments[] = {&maps[0],
                                                 &maps[1],
                                                 &maps[2],
                                                 &maps[3],
                                                 task(),
                                                 source.buffer.impl().get(),
                                                 source.offset_bytes / size(),
                                                 run.w.buffer.impl().get(),
                                                 run.w.offset_bytes / size(),
                                                 out.buffer.impl().get(),
                                                 out.offset_bytes / size(),
                                                 bias.buffer.impl().get(),
                                                 bias.offset_bytes / size(),
                                                 run.workspace.impl().get(),
                                                 workspace_.parts / 4,
                                                 workspace_.largest / 4};
    const std::int64_t groups = std::min(tiles_of(task_, tile_.columns) * task_.parts, units_ * tile_.resident);
    sequence.launch(program_, "tile_products", {{groups * product_group, 1}, {product_group, 1}}, arguments,
                    {.overlaps = true, .local_memory_bytes = local_bytes(tile_, numbers_)});
    if (task_.parts == 1) return;
    const std::int64_t items = task_.positions() * task_.source.groups * task_.filters;
    sequence.launch(program_, "add_parts", {{round_up(items, pass_group), 1}, {pass_group, 1}},
                    std::span(arguments).subspan(4), {.overlaps = true});
  }

  PixelTask task_;
  Numbers numbers_;
  Tile tile_;
  Workspace workspace_;
  std::int64_t units_;
  std::shared_ptr<devices::Program> program_;
};

}  // namespace

Answer pixel_offer(const Conv2dProblem& problem, const DevicePointer& device, const PixelTask& task,
                   const SolverOptions& request) {
  const Numbers numbers = numbers_of(problem.type);
  const Tile tile = tile_for(task, problem.layout == Layout::nhwc, numbers, *device, request);
  if (tile.columns == 0) return fmt::format("tuning {}: tiles and parts of sums do not go together so", request.tuning);
  const std::int64_t tiles = checked_multiply(tiles_of(task, tile.columns), tile.parts, "the tiles");
  if (tiles > most_groups) return fmt::format("has {} tiles, and a launch counts {}", tiles, most_groups);
  const double bytes = bytes_moved(task.source, numbers, problem.type) +
                       static_cast<double>(task.filter_elements()) * 4 * static_cast<double>(numbers.planes() + 1);
  return Offer{
      .cost = {cost_of_cycles(2 * launch_cycles + tile.cycles + cycles_of_bytes(bytes, *device), *device)},
      .bound = bound_of(problem.type, task.steps, static_cast<double>(tile.parts), longest_sum(problem)),
      .workspace_bytes = Workspace(task, numbers, tile).bytes(),
      .uses_only_fma = false,
      .tuning = tuning_of(tile),
      .plan = [=] { return std::make_shared<Plan>(problem, *device, task, tile); },
  };
}

}  // namespace omniconv::operations::split_gemm
