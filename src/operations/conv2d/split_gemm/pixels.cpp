// Forward, and backward of the data: products of pixels by filters.
#include <array>
#include <memory>

#include "embedded/split_pixels.kernel.h"
#include "embedded/split_planes.kernel.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/split_gemm/plans.h"

namespace omniconv::operations::split_gemm {
namespace {

Tile tile_for(const PixelTask& task, const Numbers& numbers, const devices::Device& device) {
  const std::int64_t units = device.info().compute_units, tiles_m = divide_up(task.positions(), tile_rows);
  Tile best;
  for (const std::int64_t columns : {128, 64, 32}) {
    if (columns > 32 && columns / 2 >= task.filters) continue;
    const std::int64_t tiles = tiles_m * divide_up(task.filters, columns) * task.source.groups * task.classes;
    for (std::int64_t parts = 1; parts <= 32; parts += parts < 4 ? 1 : parts / 2) {
      if (parts > 1 && (task.classes > 1 || parts * 2 > task.steps)) break;
      const double steps = static_cast<double>(divide_up(task.steps, parts)) / task.classes;
      double cycles = static_cast<double>(divide_up(tiles * parts, units)) *
                      (steps * step_cycles(columns, numbers) + tile_cycles(columns));
      if (parts > 1) {
        const double sums = static_cast<double>(task.positions() * task.filters * task.source.groups);
        cycles += launch_cycles + cycles_of_bytes(4.0 * static_cast<double>(parts + 1) * sums, device);
      }
      if (best.cycles == 0 || cycles < best.cycles) best = {.columns = columns, .parts = parts, .cycles = cycles};
    }
  }
  best.stages = stages_for(best.columns, numbers, device);
  return best;
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
    std::vector<devices::Definition> definitions = definitions_of(problem.type, numbers_, tile, 2 * task.box(), false);
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("NHWC", problem.layout == Layout::nhwc), add("FORWARD", problem.pass == Pass::forward);
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
    const std::int64_t of_source = groups_for(task_.source, form),
                       of_filters = divide_up(task_.filter_elements() / 8, pass_group);
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
    const std::int64_t tiles =
        std::int64_t{task_.tiles_m} * task_.tiles_n * task_.source.groups * task_.classes * task_.parts;
    sequence.launch(program_, "tile_products", {{std::min(tiles, units_) * product_group, 1}, {product_group, 1}},
                    arguments, {.overlaps = true, .local_memory_bytes = local_bytes(tile_, numbers_)});
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

Answer pixel_offer(const Conv2dProblem& problem, const DevicePointer& device, const PixelTask& task) {
  const Numbers numbers = numbers_of(problem.type);
  const Tile tile = tile_for(task, numbers, *device);
  const std::int64_t tiles =
      checked_multiply(divide_up(task.positions(), tile_rows) * divide_up(task.filters, tile.columns),
                       std::int64_t{task.source.groups} * task.classes * tile.parts, "the tiles");
  if (tiles > most_groups) return fmt::format("has {} tiles, and a launch counts {}", tiles, most_groups);
  const double bytes = bytes_moved(task.source, numbers, problem.type) +
                       static_cast<double>(task.filter_elements()) * 4 * static_cast<double>(numbers.planes() + 1);
  return Offer{
      .cost = {cost_of_cycles(2 * launch_cycles + tile.cycles + cycles_of_bytes(bytes, *device), *device)},
      .bound = bound_of(problem.type, task.steps, static_cast<double>(tile.parts), longest_sum(problem)),
      .workspace_bytes = Workspace(task, numbers, tile).bytes(),
      .uses_only_fma = false,
      .plan = [=] { return std::make_shared<Plan>(problem, *device, task, tile); },
  };
}

}  // namespace omniconv::operations::split_gemm
