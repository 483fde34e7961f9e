// Backward of the filter: products of x by y over pixels.
#include <memory>

#include "embedded/split_filters.kernel.h"
#include "embedded/split_planes.kernel.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/split_gemm/plans.h"

namespace omniconv::operations::split_gemm {
namespace {

std::int64_t tiles_m_of(const FilterTask& task, const Tile& tile) {
  return divide_up(task.rows(), tile.rows);
}
std::int64_t tiles_n_of(const FilterTask& task, const Tile& tile) {
  return divide_up(task.columns(), tile.columns);
}
std::int64_t tiles_of(const FilterTask& task, const Tile& tile) {
  return tiles_m_of(task, tile) * tiles_n_of(task, tile) * task.x.groups;
}
// Tiles whose sums are in parts; and sums of all tiles and parts.
std::int64_t cut_tiles(const FilterTask& task, const Tile& tile, const devices::Device& device) {
  return cut_tiles(tile, tiles_of(task, tile), device);
}
std::int64_t sums_of(const FilterTask& task, const Tile& tile, const devices::Device& device) {
  const std::int64_t tiles = tiles_of(task, tile), cut = cut_tiles(task, tile, device),
                     units = tiles - cut + checked_multiply(cut, tile.parts, "the sums");
  return checked_multiply(units, tile.rows * tile.columns, "the sums");
}

std::int64_t adding_groups_of(const FilterTask& task, bool nhwc) {
  if (!nhwc) return std::int64_t{task.channel_slices} * task.filter_slices * task.x.groups;
  return divide_up(divide_up(task.channels, 4) * task.filters * task.taps() * task.x.groups, task.items_at_once);
}
// How parts of sums lie, and which of them a group of add_parts adds: few enough that all compute units have some.
void set_sums(FilterTask& task, bool nhwc, std::int64_t units) {
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const bool exchanged = task.exchanged != 0;
  const std::int64_t taps = task.taps();
  task.tap_step = narrow((task.have_columns_taps() ? task.column_blocks : task.blocks) * task.box);
  task.filters = exchanged ? task.x.channels : task.y.channels;
  task.channels = exchanged ? task.y.channels : task.x.channels;
  const std::int64_t fours = divide_up(task.channels, 4), most_slices = std::min<std::int64_t>(task.parts, 32);
  if (nhwc) {
    task.items_at_once = pass_group;
    while (2 * task.slices_at_once <= most_slices && adding_groups_of(task, nhwc) < 2 * units)
      task.slices_at_once *= 2, task.items_at_once /= 2;
  } else {
    constexpr std::int64_t most_sums = 8192, most_channels = 64;
    std::int64_t channels = std::min(most_channels, 4 * fours);
    while (channels > 4 && channels * taps > most_sums) channels = round_up(channels / 2, 4);
    // As many as keep most work items busy.
    std::int64_t filters = 1;
    const auto busy = [&](std::int64_t count) {
      const std::int64_t items = count * taps * channels / 4;
      return static_cast<double>(items) / static_cast<double>(round_up(items, pass_group));
    };
    for (std::int64_t more = 2; more <= 8 && more * (channels * taps + 1) <= most_sums; ++more)
      if (busy(more) > busy(filters)) filters = more;
    const auto groups = [&] {
      return divide_up(task.channels, channels) * divide_up(task.filters, filters) * task.x.groups;
    };
    while (filters > 1 && groups() < 2 * units) filters /= 2;
    while (channels > 8 && groups() < 2 * units) channels = round_up(channels / 2, 4);
    task.filters_at_once = narrow(filters), task.channels_at_once = narrow(channels);
    task.items_at_once = narrow(filters * taps * channels / 4);
    task.slices_at_once = narrow(std::clamp<std::int64_t>(pass_group / task.items_at_once, 1, most_slices));
    task.channel_slices = narrow(divide_up(task.channels, channels));
    task.filter_slices = narrow(divide_up(task.filters, filters));
    task.by_channel_slices = Divisor(task.channel_slices), task.by_filter_slices = Divisor(task.filter_slices);
  }
  task.by_items = Divisor(task.items_at_once), task.by_fours = Divisor(nhwc ? fours : task.channels_at_once / 4);
  task.by_taps = Divisor(taps), task.by_filters = Divisor(task.filters);
}

Workspace workspace_for(const FilterTask& task, const Numbers& numbers, const Tile& tile, const Prepared& prepared,
                        const devices::Device& device) {
  return {prepared.a ? 0 : task.x.elements() * planes_of_source(tile, numbers), prepared.b ? 0 : task.y.elements(),
          numbers, sums_of(task, tile, device)};
}

// What copies read of x or y themselves, where they lie so: groups begin at multiples of 16 bytes. What they bring in
// of the next group are rows and columns that nobody stores.
std::optional<Planes> array_of(const Planes& planes, const Conv2dProblem& problem) {
  constexpr std::int64_t aligned = 8;
  return as_array(planes, problem.type, problem.layout == Layout::nhwc, aligned);
}

// What a tile makes: of planes of both arrays, or of one array itself and planes of the other.
struct Forms {
  const FilterTask& plain;
  std::optional<FilterTask> raw;

  const FilterTask& of(const Tile& tile) const { return tile.is_raw ? *raw : plain; }
};

// Of what launches before the tiles look at.
Sampling sampling_for(const FilterTask& task, const Numbers& numbers, const Prepared& prepared) {
  return sampling_of(prepared.a || prepared.measured_a ? 0 : task.x.source_elements(),
                     prepared.b || prepared.measured_b ? 0 : task.y.source_elements(), numbers);
}

// Bytes that the launches before the tiles move.
double bytes_before(const FilterTask& task, const Conv2dProblem& problem, const Numbers& numbers, const Tile& tile,
                    const Prepared& prepared) {
  Sampling sampling = sampling_for(task, numbers, prepared);
  if (prepared.measured_a) sampling.a = task.x.source_elements();
  if (prepared.measured_b) sampling.b = task.y.source_elements();
  double bytes = 0;
  if (tile.is_raw)
    bytes += static_cast<double>(task.x.source_elements() * size_of(problem.type) / sampling.a);
  else if (!prepared.a && !array_of(task.x, problem))
    bytes += bytes_moved(task.x, numbers, sampling.a, problem.type);
  if (!prepared.b && !array_of(task.y, problem)) bytes += bytes_moved(task.y, numbers, sampling.b, problem.type);
  return bytes;
}

// Lines of 128 bytes or less that are copied for 64 terms of a tile.
double lines_of(const FilterTask& task, const Tile& tile, const Numbers& numbers) {
  const auto boxes = [&](std::int64_t count, std::int64_t box) {
    return static_cast<double>(numbers.planes() * step_terms * divide_up(count, box));
  };
  const double raw_rows = 2 * static_cast<double>(tile.rows);  // of fp32
  if (task.have_columns_taps()) return raw_rows + boxes(tile.columns, task.box);
  return (tile.is_raw ? raw_rows : boxes(tile.rows, task.box)) + boxes(tile.columns, step_terms);
}

// Cycles of a compute unit for 64 terms of a tile, as an H100 takes them. Where two groups share it, copies of few
// steps are on their way, and each waits for its own; raw rows of nhwc are read from local memory number by number.
double products_cycles(const Tile& tile, const Numbers& numbers, bool nhwc) {
  if (numbers.products == 1) return step_cycles(tile, numbers);
  double cycles = tile.columns == 128 ? 1800 : tile.columns == 96 ? 1420 : tile.resident == 1 ? 1150 : 1420;
  if (tile.is_raw) cycles = (tile.rows < tile_rows ? 1260 : tile.columns == 64 ? 1300 : 1800) * (nhwc ? 1.15 : 1.0);
  return numbers.products == 6 ? 2 * cycles : cycles;
}
// Its products wait for copies, which take as long for each line whatever its length.
double step_cycles_of(const FilterTask& task, const Tile& tile, const Numbers& numbers, bool nhwc) {
  constexpr double line = 2.66;
  return std::max(products_cycles(tile, numbers, nhwc), line * lines_of(task, tile, numbers));
}

Tile tile_for(const Forms& forms, const Conv2dProblem& problem, const devices::Device& device,
              const SolverOptions& request, const Prepared& prepared) {
  const Numbers numbers = numbers_of(problem.type, request.relative_error);
  const auto cycles = [&](const Tile& tile) -> double {
    if (tile.is_raw && !forms.raw) return 0;
    const FilterTask& task = forms.of(tile);
    const std::int64_t steps = task.steps_of(tile.terms);
    const bool is_wide = tile.columns > 64 && tile.columns / 2 >= task.columns(),
               is_high = tile.is_raw && tile.rows == tile_rows && tile_rows / 2 >= task.x.channels;
    if (tile.columns < 64 || ((is_wide || is_high) && request.tuning.empty()) ||
        (tile.parts > 1 && tile.parts * 2 > steps))
      return 0;
    const std::int64_t tiles = tiles_of(task, tile);
    const double bytes = 8 * static_cast<double>(sums_of(task, tile, device));
    const double of_step = step_cycles_of(task, tile, numbers, problem.layout == Layout::nhwc) *
                           static_cast<double>(tile.terms) / step_terms;
    const double of_tiles = cycles_of_cut(tile, tiles, static_cast<double>(steps), of_step, tile_cycles(tile), device);
    // Raw rows come from memory.
    const double of_rows =
        tile.is_raw ? cycles_of_bytes(static_cast<double>(task.x.source_elements() * size_of(problem.type)), device)
                    : 0;
    return std::max(of_tiles, of_rows) + launch_cycles +
           cycles_of_bytes(bytes + bytes_before(task, problem, numbers, tile, prepared), device);
  };
  return best_tile(
      request, numbers, device, {.line = 2 * step_terms}, cycles,
      [&](const Tile& tile) { return workspace_for(forms.of(tile), numbers, tile, prepared, device).bytes(); },
      {.terms_of_two = numbers.products == 3 ? step_terms / 2 : step_terms, .are_turned = true});
}

PreparedOperand prepared_planes(const Planes& planes, DataType type) {
  return {planes.source_elements(), size_of(type), planes.elements(), numbers_of(type)};
}

class Plan final : public ProductPlan {
 public:
  Plan(const Conv2dProblem& problem, const Numbers& numbers, devices::Device& device, const FilterTask& task,
       const Tile& tile, const Prepared& prepared)
      : ProductPlan(problem, numbers, device, tile, workspace_for(task, numbers, tile, prepared, device)), task_(task) {
    prepared_ = prepared;
    sampling_ = sampling_for(task, numbers, prepared);
    if (prepared.a) prepared_a_ = prepared_planes(task.x, problem.type);
    if (prepared.b) prepared_b_ = prepared_planes(task.y, problem.type);
    task_.tiles_m = static_cast<std::int32_t>(tiles_m_of(task, tile));
    task_.tiles_n = static_cast<std::int32_t>(tiles_n_of(task, tile));
    task_.parts = static_cast<std::int32_t>(tile.parts);
    const std::int64_t cut = cut_tiles(task, tile, device);
    task_.whole = static_cast<std::int32_t>(tiles_of(task, tile) - cut), task_.cut = static_cast<std::int32_t>(cut);
    task_.by_cut = Divisor(std::max<std::int64_t>(cut, 1)), task_.by_tiles_m = Divisor(task_.tiles_m);
    task_.by_tiles_n = Divisor(task_.tiles_n);
    const Planes& without_taps = task_.without_taps();
    task_.by_pixels = Divisor(std::int64_t{without_taps.h} * without_taps.w);
    task_.by_columns = Divisor(without_taps.w);
    task_.steps = static_cast<std::int32_t>(task_.steps_of(tile.terms));
    if (task_.image_steps > 0) task_.image_steps = static_cast<std::int32_t>(task_.image_steps_of(tile.terms));
    task_.by_image_steps = Divisor(std::max(task_.image_steps, 1));
    set_sums(task_, problem.layout == Layout::nhwc, units_);
    constexpr std::int64_t whole_line = 2 * step_terms;
    const std::int64_t line = std::int64_t{2} * task.box;  // of the operand with taps
    std::vector<devices::Definition> definitions =
        definitions_of(problem.type, numbers_, tile, tile.is_raw ? whole_line : line, true, sampling_.bits());
    definitions.push_back({"B_LINE", std::to_string(task.have_columns_taps() ? line : whole_line)});
    const bool nhwc = problem.layout == Layout::nhwc;
    const std::int64_t forms =
        (tile.is_raw ? 0 : forms_of(task.x, problem.type, nhwc)) | forms_of(task.y, problem.type, nhwc);
    definitions.push_back({"NHWC", nhwc ? "1" : "0"});
    definitions.push_back({"FORMS", std::to_string(forms)});
    definitions.push_back({"ACCUMULATE", problem.accumulate ? "1" : "0"});
    definitions.push_back({"RAW", tile.is_raw ? (nhwc ? "2" : "1") : "0"});
    definitions.push_back({"COLUMN_TAPS", task.have_columns_taps() ? "1" : "0"});
    definitions.push_back({"BIAS", "0"});
    definitions.push_back({"RELU", "0"});
    if (prepared.bits() != 0) definitions.push_back({"PREPARED", std::to_string(prepared.bits())});
    most_meeting_ = most_meeting(device, numbers, tile, prepared, sampling_);
    if (most_meeting_ > 0) definitions.push_back({"MAY_MEET", "1"});
    build(device, split_planes_kernel, split_filters_kernel, definitions, true);
  }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const bool exchanged = task_.exchanged != 0;
    const Operand x = array_in(run.x, prepared_a_, prepared_.measured_a),
                  y = array_in(run.y, prepared_b_, prepared_.measured_b);
    const Product product{
        .a = exchanged ? y : x, .b = exchanged ? x : y, .out = run.w, .bias = x, .workspace = {run.workspace}};
    FilterTask task = task_;
    if (tile_.is_raw) return append_raw(sequence, product);
    if (const auto array = array_of(task_.x, problem()); array && is_aligned(product.a)) task.x = *array;
    if (const auto array = array_of(task_.y, problem()); array && is_aligned(product.b)) task.y = *array;
    append_before(sequence, product, task);
    append_products(sequence, product, bytes_of(task),
                    maps_of(map_of_x(task, tile_.terms), product, task.x.group_channels > 0, run.x, prepared_a_,
                            workspace_.a, task_.x.elements()),
                    maps_of(map_of_y(task, tile_.terms), product, task.y.group_channels > 0, run.y, prepared_b_,
                            workspace_.b, task_.y.elements()),
                    units(), adding_groups_of(task_, problem().layout == Layout::nhwc));
  }

  void append_prepare(devices::Sequence& sequence, std::size_t array, const Operand& from,
                      const Operand& to) const override {
    const bool of_y = array != x_array;
    const PreparedOperand& prepared = preparable(of_y);
    const Product product{.a = from, .b = from, .out = from, .bias = from, .workspace = to};
    append_keeping(sequence, from, to, prepared);
    append_parts(sequence, product,
                 {.x = !of_y,
                  .y = of_y,
                  .largest_at = largest_for(prepared, of_y),
                  .x_at = prepared.planes,
                  .y_at = prepared.planes},
                 Parts::of_all);
  }

 private:
  static std::span<const std::byte> bytes_of(const FilterTask& task) { return std::as_bytes(std::span(&task, 1)); }
  std::int64_t units() const { return task_.whole + std::int64_t{task_.cut} * task_.parts; }

  // Copies read the rows' array itself.
  void append_raw(devices::Sequence& sequence, const Product& product) const {
    append_before(sequence, product, task_);
    const OperandMaps rows =
        append_array_maps(sequence, map_of_raw_rows(task_, problem().layout == Layout::nhwc, tile_.terms, tile_.rows),
                          product.a, task_.x.source_elements(), product, workspace_.a);
    const devices::TensorMap columns =
        task_.have_columns_taps() ? map_of_x(task_, tile_.terms) : map_of_y(task_, tile_.terms);
    append_products(sequence, product, bytes_of(task_), rows,
                    ProductLaunches::maps_of(columns, product, false, product.b, workspace_.b, task_.y.elements()),
                    units(), adding_groups_of(task_, problem().layout == Layout::nhwc),
                    (sampling_.bits() & 1) != 0 ? task_.x.source_elements() : 0);
  }

  // The launches that look for the largest magnitudes and make parts, of what is not prepared.
  void append_before(devices::Sequence& sequence, const Product& product, const FilterTask& task) const {
    if (prepared_a_ && prepared_b_) return;
    const Making making = {.x = !prepared_a_ && task.x.group_channels == 0,
                           .y = !prepared_b_ && task.y.group_channels == 0,
                           .largest_at = workspace_.largest / 4,
                           .x_at = workspace_.a,
                           .y_at = workspace_.b};
    const Form x_form = form_for(task_.x, product.a), y_form = form_for(task_.y, product.b);
    const bool do_meet = read_all_once(task_.x, x_form) && read_all_once(task_.y, y_form) &&
                         groups_for(task_.x, x_form) + groups_for(task_.y, y_form) <= most_meeting_;
    if (!do_meet) append_look(sequence, product, task_.x.source_elements(), task_.y.source_elements(), sampling_);
    append_parts(sequence, product, making, do_meet ? Parts::of_groups_that_meet : parts_of(sampling_));
  }

  // Of which arrays, and where their planes are in the workspace.
  struct Making {
    bool x, y;
    std::int64_t largest_at, x_at, y_at;
  };
  void append_parts(devices::Sequence& sequence, const Product& product, const Making& making, Parts parts) const {
    const Form x_form = form_for(task_.x, product.a), y_form = form_for(task_.y, product.b);
    const std::int64_t of_x = making.x ? groups_for(task_.x, x_form) : 0,
                       of_y = making.y ? groups_for(task_.y, y_form) : 0;
    if (of_x + of_y == 0) return;
    const devices::KernelArgument arguments[] = {bytes_of(task_),
                                                 product.a.buffer.impl().get(),
                                                 product.a.offset_bytes / size(),
                                                 product.b.buffer.impl().get(),
                                                 product.b.offset_bytes / size(),
                                                 product.workspace.buffer.impl().get(),
                                                 workspace_.maxima / 4,
                                                 making.largest_at,
                                                 making.x_at / 2,
                                                 task_.x.elements(),
                                                 making.y_at / 2,
                                                 task_.y.elements(),
                                                 of_x,
                                                 of_y,
                                                 static_cast<std::int32_t>(x_form),
                                                 static_cast<std::int32_t>(y_form)};
    ProductPlan::append_parts(sequence, arguments, of_x + of_y, parts);
  }
  Form form_for(const Planes& planes, const Operand& source) const {
    return form_of(planes, source, problem().type, problem().layout == Layout::nhwc);
  }

  FilterTask task_;
  Sampling sampling_;
};

// The task and the tile of the fewest cycles. Without columns: none.
struct Made {
  FilterTask task;
  Tile tile{.columns = 0};
};
Made made_of(const Forms& forms, const Conv2dProblem& problem, const devices::Device& device,
             const SolverOptions& request, const Prepared& prepared) {
  const Tile tile = tile_for(forms, problem, device, request, prepared);
  return tile.columns == 0 ? Made{} : Made{forms.of(tile), tile};
}

}  // namespace

Answer filter_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) {
  const Numbers numbers = numbers_of(problem.type, request.relative_error);
  const auto asked = prepared_of(request, numbers, "x", "dy", "");
  if (const auto* const reason = std::get_if<std::string>(&asked)) return *reason;
  const Prepared prepared = std::get<Prepared>(asked);
  const auto made_plain = filter_task(problem);
  if (const auto* const reason = std::get_if<std::string>(&made_plain)) return *reason;
  FilterTask plain = std::get<FilterTask>(made_plain);
  std::map<std::size_t, PreparedFormat> formats;
  for (const std::size_t array : {x_array, y_array}) {
    if (!(array == x_array ? prepared.a : prepared.b)) continue;
    Planes& planes = array == x_array ? plain.x : plain.y;
    if (array_of(planes, problem))
      return fmt::format("has no prepared form of {}, which copies read as it lies", array == x_array ? "x" : "dy");
    store_as_for_pixels(planes);
    formats[array] = format_of(planes, problem, prepared_planes(planes, problem.type));
  }
  const Conv2dElements all = elements_of(problem);
  if (prepared.measured_a) formats[x_array] = measured_format(all.x);
  if (prepared.measured_b) formats[y_array] = measured_format(all.y);
  const auto raw_of = [&](const FilterTask& task) -> std::optional<FilterTask> {
    if (prepared.bits() != 0 || !request.measured.empty()) return {};
    const std::optional<FilterTask> of_one_tap = raw_filter_task(problem);
    return of_one_tap ? of_one_tap : raw_filter_task(problem, task);
  };
  Made made;
  const auto consider = [&](const FilterTask& task) {
    const Made other = made_of({.plain = task, .raw = raw_of(task)}, problem, *device, request, prepared);
    if (other.tile.columns != 0 && (made.tile.columns == 0 || other.tile.cycles < made.tile.cycles)) made = other;
  };
  consider(plain);
  if (const auto narrow = narrow_filter_task(plain)) consider(*narrow);
  // A prepared x has the planes of the forward pass.
  if (auto folded = prepared.a ? std::nullopt : folded_filter_task(problem)) {
    folded->y = plain.y;
    consider(*folded);
  }
  const FilterTask& task = made.task;
  const Tile& tile = made.tile;
  if (tile.columns == 0) return fmt::format("tuning {}: tiles and parts of sums do not go together so", request.tuning);
  const std::int64_t tiles = checked_multiply(tiles_of(task, tile), tile.parts, "the tiles");
  if (tiles > most_groups) return fmt::format("has {} tiles, and a launch counts {}", tiles, most_groups);
  // Raw tiles of 64 columns add low products to a step's high ones.
  const bool are_all_cut = cut_tiles(task, tile, *device) == tiles_of(task, tile);
  const double steps = static_cast<double>(divide_up(task.steps_of(tile.terms), are_all_cut ? tile.parts : 1) +
                                           (tile.is_raw && tile.columns == 64));
  return Offer{
      .cost = {cost_of_cycles((prepared.all() ? 0 : 2 * launch_cycles + others_wait) + tile.cycles, *device)},
      .bound = bound_of(numbers, steps, static_cast<double>(tile.parts), longest_sum(problem), cutting_of(*device)),
      .workspace_bytes = workspace_for(task, numbers, tile, prepared, *device).bytes(),
      .prepared = formats,
      .uses_only_fma = false,
      .tuning = tuning_of(tile),
      .plan = [=] { return std::make_shared<Plan>(problem, numbers, *device, task, tile, prepared); },
  };
}

}  // namespace omniconv::operations::split_gemm
