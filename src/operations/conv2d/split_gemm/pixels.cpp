// Forward, and backward of the data: products of pixels by filters.
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

Workspace workspace_for(const PixelTask& task, const Numbers& numbers, const Tile& tile) {
  const std::int64_t sums = checked_multiply(round_up(task.positions(), tile_rows),
                                             round_up(task.filters, tile.columns), "the parts of sums"),
                     parts = tile.parts > 1 ? tile.parts * task.source.groups : 0;
  // In the place of planes a raw source that begins at no multiple of 16 bytes.
  const std::int64_t planes = task.source.elements() * (tile.is_raw && numbers.planes() == 1 ? 2 : 1);
  return {planes, task.filter_elements(), numbers, checked_multiply(sums, parts, "the parts of sums")};
}

// What a tile makes: of all positions, and where taps share windows of those behind the columns too; from planes, or
// from the array itself.
struct Forms {
  const PixelTask& plain;
  std::optional<PixelTask> shared, raw;

  const PixelTask& of(const Tile& tile) const { return tile.is_shared ? *shared : tile.is_raw ? *raw : plain; }
};

// Bytes that the launches before the tiles move.
double bytes_before(const PixelTask& task, const Conv2dProblem& problem, const Numbers& numbers, const Tile& tile) {
  const bool nhwc = problem.layout == Layout::nhwc;
  const std::int64_t sampling = sampling_of(task.source.source_elements(), elements_of(problem).w).a;
  double bytes = 0;
  if (tile.is_raw)
    bytes += static_cast<double>(task.source.source_elements() * size_of(problem.type));
  else if (!as_array(task.source, problem.type, nhwc, task.box()))
    bytes += bytes_moved(task.source, numbers, sampling, problem.type);
  if (!can_filters_lie(problem, task, tile.is_shared))
    bytes += static_cast<double>(task.filter_elements()) * 4 * static_cast<double>(numbers.planes() + 1);
  return bytes;
}

Tile tile_for(const Forms& forms, const Conv2dProblem& problem, const devices::Device& device,
              const SolverOptions& request) {
  const bool nhwc = problem.layout == Layout::nhwc;
  const Numbers numbers = numbers_of(problem.type);
  const auto cycles = [&](const Tile& tile) -> double {
    if (tile.is_raw && !forms.raw) return 0;
    const PixelTask& task = forms.of(tile);
    const bool is_wide = tile.columns > 32 && tile.columns / 2 >= task.filters;
    const std::int64_t windows = tile.is_shared ? std::int64_t{task.of_class[0].taps_h} * task.blocks : task.steps;
    if ((is_wide && request.tuning.empty()) || (tile.parts > 1 && (task.classes > 1 || tile.parts * 2 > windows)))
      return 0;
    const double steps = static_cast<double>(divide_up(task.steps_of_all(tile.is_shared), tile.parts)) / task.classes;
    // Pixels of a class lie apart, and what is between them is written by others.
    const double apart = task.classes > 1 && task.out_step_w > 1 ? 1 : 0;
    const double bytes = bytes_before(task, problem, numbers, tile) +
                         apart * static_cast<double>(elements_of(problem).x * size_of(problem.type));
    const double of_tiles =
        cycles_of(tile, tiles_of(task, tile.columns), steps, numbers, device) + cycles_of_bytes(bytes, device);
    // Under nchw raw tiles take longer to store.
    constexpr double raw_store = 3500;
    const double stores =
        tile.is_raw && !nhwc ? raw_store * tile_rounds(tile, tiles_of(task, tile.columns), device) : 0;
    if (tile.parts == 1) return of_tiles + stores;
    // Parts are written and read in order; what is stored lies apart, but where channels stand last.
    const double sums = static_cast<double>(task.positions() * task.filters * task.source.groups),
                 of_parts = 8.0 * static_cast<double>(tile.parts) + (nhwc ? 4 : 40);
    return of_tiles + launch_cycles + cycles_of_bytes(of_parts * sums, device);
  };
  const Window window{.rows = forms.shared ? window_rows(*forms.shared) : 0, .line = 2 * forms.plain.box()};
  return best_tile(request, numbers, device, window, cycles,
                   [&](const Tile& tile) { return workspace_for(forms.of(tile), numbers, tile).bytes(); });
}

// TAPS of the text.
std::int64_t turned_taps(const PixelTask& task) {
  const std::int64_t taps = std::int64_t{task.taps_h} * task.taps_w;
  return task.source.have_taps() || task.is_merged() || taps > most_turned_taps ? 0 : taps;
}

// What copies read of x or y themselves, where they lie so.
std::optional<Planes> array_of(const PixelTask& task, const Conv2dProblem& problem) {
  return as_array(task.source, problem.type, problem.layout == Layout::nhwc, task.box());
}

class Plan final : public ProductPlan {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const PixelTask& task, const Tile& tile)
      : ProductPlan(problem, device, tile, workspace_for(task, numbers_of(problem.type), tile)), task_(task) {
    task_.tiles_m = static_cast<std::int32_t>(divide_up(task.positions(), tile_rows));
    task_.tiles_n = static_cast<std::int32_t>(divide_up(task.filters, tile.columns));
    task_.parts = static_cast<std::int32_t>(tile.parts);
    const std::int64_t of_classes = std::int64_t{task_.tiles_n} * task_.classes;
    task_.by_tiles = Divisor(task_.tiles_m * of_classes), task_.by_parts = Divisor(task_.parts);
    task_.by_band = Divisor(8 * of_classes), task_.by_tiles_n = Divisor(task_.tiles_n);
    task_.by_positions = Divisor(std::int64_t{task_.rows} * task_.columns), task_.by_columns = Divisor(task_.columns);
    std::vector<devices::Definition> definitions =
        definitions_of(problem.type, numbers_, tile, 2 * task.box(), false, sampled());
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("NHWC", problem.layout == Layout::nhwc), add("RAW", tile.is_raw ? (problem.layout == Layout::nhwc ? 1 : 2) : 0);
    add("FORMS", tile.is_raw ? 0 : forms_of(task.source, problem.type, problem.layout == Layout::nhwc)),
        add("TAPS", turned_taps(task));
    add("FORWARD", problem.pass == Pass::forward);
    add("CHANNELS", task.box()), add("BIAS", problem.bias ? 2 : 0);
    add("PLAIN", task.is_plain()), add("BLOCK_H", task.block_h), add("BLOCK_W", task.block_w);
    add("MERGED", task.is_merged());
    add("RAGGED", task.block_w > 0 && (task.out_h % task.block_h != 0 || task.out_w % task.block_w != 0));
    add("ACCUMULATE", problem.accumulate), add("RELU", problem.relu);
    build(device, split_planes_kernel, split_pixels_kernel, definitions);
  }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const bool forward = problem().pass == Pass::forward;
    const Product product{.a = forward ? run.x : run.y,
                          .b = run.w,
                          .out = forward ? run.y : run.x,
                          .bias = problem().bias ? run.bias : run.w,  // without one some array, which is not read
                          .workspace = {run.workspace}};
    PixelTask task = task_;
    if (const auto array = array_of(task_, problem()); array && is_aligned(product.a)) task.source = *array;
    if (can_filters_lie(problem(), task_, tile_.is_shared) && is_aligned(product.b)) task.filters_lie = 1;
    if (tile_.is_raw) return append_raw(sequence, product, task);
    append_scan(sequence, product, task_.source.source_elements(), elements_of(problem()).w, sampled());
    append_parts(sequence, product, task);
    const bool source_lies = task.source.group_channels > 0;
    const std::int64_t sums = task_.positions() * task_.source.groups * task_.filters;
    append_products(sequence, product, bytes_of(task),
                    maps_of(map_of_source(task, std::max(tile_rows, tile_.window.rows)), product, source_lies,
                            product.a, workspace_.a, task_.source.elements()),
                    maps_of(map_of_filters(task, tile_.columns), product, task.filters_lie != 0, product.b,
                            workspace_.b, task_.filter_elements()),
                    tiles_of(task_, tile_.columns) * task_.parts, task_.parts == 1 ? 0 : divide_up(sums, pass_group));
  }

 private:
  static std::span<const std::byte> bytes_of(const PixelTask& task) { return std::as_bytes(std::span(&task, 1)); }

  // Copies read the source itself; or, where they cannot, a copy of it.
  void append_raw(devices::Sequence& sequence, const Product& product, const PixelTask& task) const {
    const std::int64_t count = task_.source.source_elements();
    append_scan(sequence, product, count, elements_of(problem()).w, 0);
    append_parts(sequence, product, task);
    const bool lies = is_aligned(product.a);
    const std::int64_t at = product.workspace.offset_bytes + workspace_.a;
    if (!lies) {
      const devices::KernelArgument arguments[] = {product.a.buffer.impl().get(), product.a.offset_bytes / size(),
                                                   count, product.workspace.buffer.impl().get(), at / size()};
      const std::int64_t groups = std::min(divide_up(count, pass_group), 8 * units_);
      sequence.launch(passes_, "align_source", {{groups * pass_group, 1}, {pass_group, 1}}, arguments,
                      {.overlaps = true});
    }
    devices::TensorMap source = map_of_raw_source(task, problem().layout == Layout::nhwc);
    source.buffer = (lies ? product.a : product.workspace).buffer.impl().get();
    source.offset_bytes = lies ? product.a.offset_bytes : at;
    const std::int64_t sums = task_.positions() * task_.source.groups * task_.filters;
    append_products(
        sequence, product, bytes_of(task), {source, source},
        maps_of(map_of_filters(task, tile_.columns), product, false, product.b, workspace_.b, task_.filter_elements()),
        tiles_of(task_, tile_.columns) * task_.parts, task_.parts == 1 ? 0 : divide_up(sums, pass_group));
  }

  void append_parts(devices::Sequence& sequence, const Product& product, const PixelTask& task) const {
    const Form form = form_of(task_.source, product.a, problem().type, problem().layout == Layout::nhwc);
    const std::int64_t of_source = task.source.group_channels > 0 ? 0 : groups_for(task_.source, form),
                       of_filters = task.filters_lie != 0 ? 0 : groups_for_filters();
    if (of_source + of_filters == 0) return;
    const devices::KernelArgument arguments[] = {bytes_of(task),
                                                 product.a.buffer.impl().get(),
                                                 product.a.offset_bytes / size(),
                                                 product.b.buffer.impl().get(),
                                                 product.b.offset_bytes / size(),
                                                 product.workspace.buffer.impl().get(),
                                                 workspace_.maxima / 4,
                                                 workspace_.largest / 4,
                                                 workspace_.a / 2,
                                                 task_.source.elements(),
                                                 workspace_.b / 2,
                                                 task_.filter_elements(),
                                                 of_source,
                                                 of_filters,
                                                 static_cast<std::int32_t>(form)};
    ProductPlan::append_parts(sequence, arguments, of_source + of_filters, sampled() != 0);
  }

  // SAMPLED of the text.
  std::int64_t sampled() const {
    return tile_.is_raw ? 0 : sampling_of(task_.source.source_elements(), elements_of(problem()).w).bits();
  }

  std::int64_t groups_for_filters() const {
    const std::int64_t taps = turned_taps(task_);
    if (taps == 0) return divide_up(task_.filter_elements() / 8, pass_group);
    const std::int64_t at_once = taps > 32 ? 1 : taps > 8 ? most_turned_taps / taps : 8;  // of the text
    return divide_up(task_.source.padded, 64) * divide_up(task_.filters, at_once) * task_.source.groups;
  }

  PixelTask task_;
};

// The task and the tile of the fewest cycles, of those that a pass has. Without columns: none.
struct Made {
  PixelTask task;
  Tile tile{.columns = 0};
};
Made made_of(const Forms& forms, const Conv2dProblem& problem, const devices::Device& device,
             const SolverOptions& request) {
  const Tile tile = tile_for(forms, problem, device, request);
  return tile.columns == 0 ? Made{} : Made{forms.of(tile), tile};
}

}  // namespace

Answer pixel_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) {
  const Numbers numbers = numbers_of(problem.type);
  const auto plain = pixel_task(problem);
  const std::optional<PixelTask> blocks = block_task(problem);
  Made made;
  if (const auto* const reason = std::get_if<std::string>(&plain)) {
    if (!blocks) return *reason;
  } else {
    const PixelTask& task = std::get<PixelTask>(plain);
    made =
        made_of({.plain = task, .shared = with_shared_taps(task), .raw = raw_task(problem)}, problem, *device, request);
  }
  if (blocks) {
    const Made other =
        made_of({.plain = *blocks, .shared = with_shared_taps(*blocks), .raw = raw_task(problem, *blocks)}, problem,
                *device, request);
    if (other.tile.columns != 0 && (made.tile.columns == 0 || other.tile.cycles < made.tile.cycles)) made = other;
  }
  const Tile tile = made.tile;
  if (tile.columns == 0)
    return fmt::format("tuning {}: tiles, parts of sums and shared windows do not go together so", request.tuning);
  const PixelTask task = made.task;
  const std::int64_t tiles = checked_multiply(tiles_of(task, tile.columns), tile.parts, "the tiles");
  if (tiles > most_groups) return fmt::format("has {} tiles, and a launch counts {}", tiles, most_groups);
  // These tiles add low products to a step's high ones.
  const double steps = static_cast<double>(std::max<std::int64_t>(task.steps, task.steps_of_all(tile.is_shared)) +
                                           (tile.columns == 32 || (tile.is_raw && tile.columns == 64) ? 1 : 0));
  return Offer{
      .cost = {cost_of_cycles(2 * launch_cycles + tile.cycles, *device)},
      .bound = bound_of(problem.type, steps, static_cast<double>(tile.parts), longest_sum(problem)),
      .workspace_bytes = workspace_for(task, numbers, tile).bytes(),
      .uses_only_fma = false,
      .tuning = tuning_of(tile),
      .plan = [=] { return std::make_shared<Plan>(problem, *device, task, tile); },
  };
}

}  // namespace omniconv::operations::split_gemm
