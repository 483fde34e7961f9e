// Forward, and backward of the data: products of pixels by filters.
#include <memory>

#include "embedded/split_pixels.kernel.h"
#include "embedded/split_pixels_stores.kernel.h"
#include "embedded/split_planes.kernel.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/conv2d/split_gemm/plans.h"

namespace omniconv::operations::split_gemm {
namespace {

std::int64_t tiles_of(const PixelTask& task, const Tile& tile) {
  return divide_up(task.positions(), tile.rows) * divide_up(task.filters, tile.columns) * task.source.groups *
         task.classes;
}

// Tiles whose sums are in parts.
std::int64_t cut_tiles(const PixelTask& task, const Tile& tile, const devices::Device& device) {
  return cut_tiles(tile, tiles_of(task, tile), device);
}

Workspace workspace_for(const PixelTask& task, const Numbers& numbers, const Tile& tile, const Prepared& prepared,
                        const devices::Device& device) {
  const std::int64_t sums =
      checked_multiply(cut_tiles(task, tile, device) * tile.rows * tile.columns, tile.parts, "the parts of sums");
  // Of turned filters their copy, where copies cannot read them.
  const std::int64_t all_filters =
      std::int64_t{task.filters} * task.taps_h * task.taps_w * task.source.groups * task.source.source_channels;
  return {prepared.a ? 0 : task.source.elements() * planes_of_source(tile, numbers),
          prepared.b ? 0 : std::max(task.filter_elements(), all_filters), numbers, sums};
}

// What a tile makes: of all positions, and where taps share windows of those behind the columns too; from planes, or
// from the array itself.
struct Forms {
  const PixelTask& plain;
  std::optional<PixelTask> shared, raw;

  const PixelTask& of(const Tile& tile) const { return tile.is_shared ? *shared : tile.is_raw ? *raw : plain; }
};

// Of what launches before the tiles look at. What is added to what the output held cannot be made again,
// nor can what was larger than all that is stored in the end be forgotten.
Sampling sampling_for(const PixelTask& task, const Conv2dProblem& problem, const Numbers& numbers, const Tile& tile,
                      const Prepared& prepared, bool has_whole_tiles) {
  if (tile.is_raw && has_whole_tiles && (problem.accumulate || prepared.measures)) return {};
  return sampling_of(prepared.a || prepared.measured_a ? 0 : task.source.source_elements(),
                     prepared.b || prepared.measured_b ? 0 : elements_of(problem).w, numbers);
}

// Bytes that the launches before the tiles move.
double bytes_before(const PixelTask& task, const Conv2dProblem& problem, const Numbers& numbers, const Tile& tile,
                    const Prepared& prepared, bool has_whole_tiles) {
  const bool nhwc = problem.layout == Layout::nhwc;
  const std::int64_t sampling = prepared.measured_a
                                    ? task.source.source_elements()
                                    : sampling_for(task, problem, numbers, tile, prepared, has_whole_tiles).a;
  double bytes = 0;
  if (tile.is_raw)
    bytes += static_cast<double>(task.source.source_elements() * size_of(problem.type) / sampling);
  else if (!prepared.a && !as_array(task.source, problem.type, nhwc, task.box()))
    bytes += bytes_moved(task.source, numbers, sampling, problem.type);
  if (!prepared.b && !can_filters_lie(problem, task, tile.is_shared) &&
      !can_filters_be_turned(problem, task, tile.columns))
    bytes += static_cast<double>(task.filter_elements()) * 4 * static_cast<double>(numbers.planes() + 1);
  return bytes;
}

Tile tile_for(const Forms& forms, const Conv2dProblem& problem, const devices::Device& device,
              const SolverOptions& request, const Prepared& prepared) {
  const bool nhwc = problem.layout == Layout::nhwc;
  const Numbers numbers = numbers_of(problem.type, request.relative_error);
  const auto cycles = [&](const Tile& tile) -> double {
    if (tile.is_raw && (!forms.raw || tile.rows != tile_rows)) return 0;
    const PixelTask& task = forms.of(tile);
    const bool is_wide = tile.columns > 32 && tile.columns / 2 >= task.filters;
    const std::int64_t windows = tile.is_shared ? std::int64_t{task.of_class[0].taps_h} * task.blocks : task.steps;
    if ((is_wide && request.tuning.empty()) || (tile.parts > 1 && (task.classes > 1 || tile.parts * 2 > windows)))
      return 0;
    const std::int64_t tiles = tiles_of(task, tile), cut = cut_tiles(task, tile, device);
    const double steps = static_cast<double>(task.steps_of_all(tile.is_shared)) / task.classes;
    // Pixels of a class lie apart, and what is between them is written by others.
    const double apart = task.classes > 1 && task.out_step_w > 1 ? 1 : 0;
    const double bytes = bytes_before(task, problem, numbers, tile, prepared, cut < tiles) +
                         apart * static_cast<double>(elements_of(problem).x * size_of(problem.type));
    // Tiles whose rows are pixels take longer to store under nchw, and those whose rows are filters under nhwc. Blocks'
    // rows are stored in short runs.
    const bool is_one = numbers.products == 1, are_pixels = tile.is_raw || tile.columns == 96;
    constexpr double wide_store = 4500;
    const double turned_store = tile.is_kept ? 1000 : 2000;  // one warpgroup stores while the other multiplies
    // One product's tiles of 64 columns, as an H200 takes them: of kept filters under nchw, and without shared windows.
    double of_64 = 0;
    if (tile.is_kept)
      of_64 = nhwc ? 0 : 200;
    else if (is_one && tile.columns == 64 && !tile.is_shared && !tile.is_raw && !is_wide)
      of_64 = -850;
    const double pixels_store = is_one && !tile.is_raw ? 0 : 3500;
    const double of_blocks = task.are_row_blocks() ? (nhwc ? 5000 : 3000) : 0;
    const double of_store = (are_pixels                   ? (nhwc ? 0 : pixels_store)
                             : tile.columns == 256        ? (nhwc ? 0 : wide_store)
                             : nhwc && tile.columns >= 64 ? turned_store
                                                          : 0) +
                            of_blocks + of_64;
    // To split rows takes as long for one product as for three.
    const double of_split = tile.is_raw && is_one ? (tile.columns == 128 ? 350 : 100) : 0;
    // And rows of pixels wait longer for their copies, as measured under nchw.
    const double of_planar = tile.columns == 96 && is_one && !nhwc ? 40 : 0;
    const double of_tiles =
        cycles_of_cut(tile, tiles, steps, step_cycles(tile, tiles, numbers, device) + of_split + of_planar,
                      tile_cycles(tile) + of_store, device) +
        cycles_of_bytes(bytes, device);
    if (cut == 0) return of_tiles;
    // Parts are written and read in order, and what they make is written.
    const double sums = static_cast<double>(cut * tile.rows * tile.columns),
                 of_parts = 8.0 * static_cast<double>(tile.parts) + static_cast<double>(size_of(problem.type));
    // Halves of the last tiles of one product gain less than their steps say, as measured under nchw.
    const double of_halves = is_one && !nhwc && cut < tiles && tile.parts == 2 ? 10500 : 0;
    return of_tiles + launch_cycles + of_halves + cycles_of_bytes(of_parts * sums, device);
  };
  const PixelTask& plain = forms.plain;
  const bool can_keep = forms.shared && plain.classes == 1 && plain.source.groups == 1;
  const Window window{.rows = forms.shared ? window_rows(*forms.shared) : 0,
                      .line = 2 * plain.box(),
                      .kept_columns = plain.filters,
                      .kept_steps = can_keep ? forms.shared->steps_of_all(true) : 0};
  const auto workspace = [&](const Tile& tile) {
    return workspace_for(forms.of(tile), numbers, tile, prepared, device).bytes();
  };
  // Rows of blocks are stored one by one.
  return best_tile(request, numbers, device, window, cycles, workspace,
                   {.have_heights = plain.are_row_blocks(),
                    .are_turned = can_filters_be_turned(problem, plain, step_terms) && !prepared.b});
}

PreparedOperand prepared_source(const PixelTask& task, const Conv2dProblem& problem) {
  return {task.source.source_elements(), size_of(problem.type), task.source.elements(), numbers_of(problem.type)};
}
PreparedOperand prepared_filters(const PixelTask& task, const Conv2dProblem& problem) {
  return {elements_of(problem).w, size_of(problem.type), task.filter_elements(), numbers_of(problem.type)};
}

// TAPS of the text.
std::int64_t turned_taps(const PixelTask& task) {
  const std::int64_t taps = std::int64_t{task.taps_h} * task.taps_w;
  return task.source.have_taps() || task.is_merged() || taps > most_turned_taps ? 0 : taps;
}

std::int64_t groups_for_filters(const PixelTask& task) {
  const std::int64_t taps = turned_taps(task);
  if (taps == 0) return divide_up(task.filter_elements() / 8, pass_group);
  const std::int64_t at_once = taps > 32 ? 1 : taps > 8 ? most_turned_taps / taps : 8;  // of the text
  return divide_up(task.source.padded, 64) * divide_up(task.filters, at_once) * task.source.groups;
}
// Whether the groups that make parts meet, of which so many can. Filters that are not turned are read by the taps of
// classes, which may leave some out.
bool groups_meet(const PixelTask& task, Form form, std::int64_t most) {
  return (turned_taps(task) > 0 || task.classes == 1) && read_all_once(task.source, form) &&
         groups_for(task.source, form) + groups_for_filters(task) <= most;
}

// What copies read of x or y themselves, where they lie so.
std::optional<Planes> array_of(const PixelTask& task, const Conv2dProblem& problem) {
  return as_array(task.source, problem.type, problem.layout == Layout::nhwc, task.box());
}

class Plan final : public ProductPlan {
 public:
  Plan(const Conv2dProblem& problem, const Numbers& numbers, devices::Device& device, const PixelTask& task,
       const Tile& tile, const Prepared& prepared)
      : ProductPlan(problem, numbers, device, tile, workspace_for(task, numbers, tile, prepared, device)), task_(task) {
    prepared_ = prepared;
    are_filters_turned_ = !prepared.b && can_filters_be_turned(problem, task, tile.columns);
    if (prepared.a) prepared_a_ = prepared_source(task, problem);
    if (prepared.b) prepared_b_ = prepared_filters(task, problem);
    const std::int64_t tiles = tiles_of(task, tile), cut = cut_tiles(task, tile, device);
    sampling_ = sampling_for(task, problem, numbers, tile, prepared, cut < tiles);
    task_.tiles_m = static_cast<std::int32_t>(divide_up(task.positions(), tile.rows));
    task_.tiles_n = static_cast<std::int32_t>(divide_up(task.filters, tile.columns));
    task_.parts = static_cast<std::int32_t>(tile.parts);
    task_.whole = static_cast<std::int32_t>(tiles - cut), task_.cut = static_cast<std::int32_t>(cut);
    const std::int64_t of_classes = std::int64_t{task_.tiles_n} * task_.classes;
    task_.by_tiles = Divisor(task_.tiles_m * of_classes), task_.by_cut = Divisor(std::max<std::int64_t>(cut, 1));
    task_.by_band = Divisor(8 * of_classes), task_.by_tiles_n = Divisor(task_.tiles_n);
    task_.by_positions = Divisor(std::int64_t{task_.rows} * task_.columns), task_.by_columns = Divisor(task_.columns);
    std::vector<devices::Definition> definitions = definitions_of(
        problem.type, problem.type, numbers_, tile, 2 * task.box(), false, are_filters_turned_, sampling_.bits());
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("NHWC", problem.layout == Layout::nhwc), add("RAW", tile.is_raw ? (problem.layout == Layout::nhwc ? 1 : 2) : 0);
    add("FORMS", tile.is_raw ? 0 : forms_of(task.source, problem.type, problem.layout == Layout::nhwc)),
        add("TAPS", turned_taps(task));
    add("FORWARD", problem.pass == Pass::forward);
    add("CHANNELS", task.box()), add("BIAS", problem.bias ? 2 : 0);
    add("PLAIN", task.is_plain()         ? 1
                 : task.has_plain_rows() ? 2
                                         : 0),
        add("BLOCK_H", task.block_h), add("BLOCK_W", task.block_w);
    add("MERGED", task.is_merged());
    if (tile.is_shared && task.classes == 1) add("WINDOW_TERMS", task.of_class[0].taps_w * task.box());
    add("RAGGED", task.block_w > 0 && (task.out_h % task.block_h != 0 || task.out_w % task.block_w != 0));
    add("ACCUMULATE", problem.accumulate), add("RELU", problem.relu);
    // Sums of no pixel are made, too, and would count among the largest.
    const bool can_be_boxed = !problem.accumulate && !prepared.measures, nhwc = problem.layout == Layout::nhwc;
    if (can_be_boxed && nhwc && has_boxes(task, problem.type)) {
      has_boxes_ = true, boxes_ = map_of_output(task, problem.type, tile);
    } else if (can_be_boxed && !nhwc) {
      boxes_ = map_of_planar_output(task, problem.type, tile), has_boxes_ = boxes_.has_value();
      if (boxes_) add("LINE_BYTES", output_line(task, problem.type, tile));
    }
    add("BOXED", !has_boxes_ ? 0 : !boxes_ ? 2 : nhwc ? 1 : 3);
    if (prepared.bits() != 0) add("PREPARED", prepared.bits());
    if (prepared.measures) add("LARGEST", 1);
    most_meeting_ = most_meeting(device, numbers, tile, prepared, sampling_);
    if (most_meeting_ > 0) add("MAY_MEET", 1);
    const std::string text = std::string(split_pixels_kernel) + std::string(split_pixels_stores_kernel);
    build(device, split_planes_kernel, text, definitions, cut > 0 || (tile.is_raw && (sampling_.bits() & 1) != 0));
  }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const bool forward = problem().pass == Pass::forward;
    const Operand &source = forward ? run.x : run.y, &written = forward ? run.y : run.x,
                  a = array_in(source, prepared_a_, prepared_.measured_a),
                  b = array_in(run.w, prepared_b_, prepared_.measured_b),
                  out = array_in(written, {}, prepared_.measures);
    Product product{.a = a,
                    .b = b,
                    .out = out,
                    .bias = problem().bias ? run.bias : b,  // without one some array, which is not read
                    .workspace = {run.workspace}};
    product.has_boxes = has_boxes_ && is_aligned(out);
    if (product.has_boxes && boxes_) product.boxes = placed(*boxes_, out);
    append_zero(sequence, written);
    PixelTask task = task_;
    if (const auto array = array_of(task_, problem()); array && is_aligned(product.a)) task.source = *array;
    if (can_filters_lie(problem(), task_, tile_.is_shared) && is_aligned(product.b)) task.filters_lie = 1;
    append_before(sequence, product, task);
    if (tile_.is_raw) return append_raw(sequence, product, run.w, task);
    const bool source_lies = task.source.group_channels > 0;
    append_products(sequence, product, bytes_of(task),
                    maps_of(map_of_source(task, std::max(tile_.rows, tile_.window.rows)), product, source_lies, source,
                            prepared_a_, workspace_.a, task_.source.elements()),
                    are_filters_turned_ ? append_array_maps(sequence, map_of_turned_filters(task), run.w,
                                                            elements_of(problem()).w, product, workspace_.b)
                                        : maps_of(map_of_filters(task, tile_.columns), product, task.filters_lie != 0,
                                                  run.w, prepared_b_, workspace_.b, task_.filter_elements()),
                    units(), adding_groups(), 0, !(prepared_.all() && prepared_.measures));
  }

  void append_prepare(devices::Sequence& sequence, std::size_t array, const Operand& from,
                      const Operand& to) const override {
    const bool of_filters = array == w_array;
    const PreparedOperand& prepared = preparable(of_filters);
    const Product product{.a = from, .b = from, .out = from, .bias = from, .workspace = to};
    append_keeping(sequence, from, to, prepared);
    append_parts(sequence, product, task_,
                 {.source = of_filters ? 0 : groups_for_source(from),
                  .filters = of_filters ? groups_for_filters(task_) : 0,
                  .largest_at = largest_for(prepared, of_filters),
                  .source_at = prepared.planes,
                  .filters_at = prepared.planes},
                 Parts::of_all);
  }

 private:
  static std::span<const std::byte> bytes_of(const PixelTask& task) { return std::as_bytes(std::span(&task, 1)); }
  std::int64_t units() const { return task_.whole + std::int64_t{task_.cut} * task_.parts; }
  std::int64_t adding_groups() const {
    const std::int64_t sums_of_item = problem().layout == Layout::nhwc ? 4 : 1;
    return task_.cut * (tile_.rows * tile_.columns / (pass_group * sums_of_item));
  }

  // The launches that look for the largest magnitudes and make parts, of what is not prepared.
  void append_before(devices::Sequence& sequence, const Product& product, const PixelTask& task) const {
    if (prepared_a_ && prepared_b_) return;
    const bool do_meet = groups_meet(task_, form_for(product.a), most_meeting_);
    if (!do_meet) append_look(sequence, product, task_.source.source_elements(), elements_of(problem()).w, sampling_);
    append_parts(
        sequence, product, task,
        {.source = prepared_a_ || task.source.group_channels > 0 ? 0 : groups_for_source(product.a),
         .filters = prepared_b_ || task.filters_lie != 0 || are_filters_turned_ ? 0 : groups_for_filters(task_),
         .largest_at = workspace_.largest / 4,
         .source_at = workspace_.a,
         .filters_at = workspace_.b},
        do_meet ? Parts::of_groups_that_meet : parts_of(sampling_));
  }

  // Copies read the source itself.
  void append_raw(devices::Sequence& sequence, const Product& product, const Operand& filters,
                  const PixelTask& task) const {
    const OperandMaps source = append_array_maps(sequence, map_of_raw_source(task, problem().layout == Layout::nhwc),
                                                 product.a, task_.source.source_elements(), product, workspace_.a);
    append_products(sequence, product, bytes_of(task), source,
                    maps_of(map_of_filters(task, tile_.columns), product, false, filters, prepared_b_, workspace_.b,
                            task_.filter_elements()),
                    units(), adding_groups(), (sampling_.bits() & 1) != 0 ? task_.source.source_elements() : 0);
  }

  // By so many groups of each, at sections of the workspace.
  struct Making {
    std::int64_t source, filters, largest_at, source_at, filters_at;
  };
  void append_parts(devices::Sequence& sequence, const Product& product, const PixelTask& task, const Making& making,
                    Parts parts) const {
    // Of a raw source a group keeps the largest magnitude.
    const std::int64_t groups = std::max<std::int64_t>(making.source + making.filters, tile_.is_raw ? 1 : 0);
    if (groups == 0) return;
    const devices::KernelArgument arguments[] = {bytes_of(task),
                                                 product.a.buffer.impl().get(),
                                                 product.a.offset_bytes / size(),
                                                 product.b.buffer.impl().get(),
                                                 product.b.offset_bytes / size(),
                                                 product.workspace.buffer.impl().get(),
                                                 workspace_.maxima / 4,
                                                 making.largest_at,
                                                 making.source_at / 2,
                                                 task_.source.elements(),
                                                 making.filters_at / 2,
                                                 task_.filter_elements(),
                                                 making.source,
                                                 making.filters,
                                                 static_cast<std::int32_t>(form_for(product.a))};
    ProductPlan::append_parts(sequence, arguments, groups, parts);
  }

  Form form_for(const Operand& source) const {
    return form_of(task_.source, source, problem().type, problem().layout == Layout::nhwc);
  }
  std::int64_t groups_for_source(const Operand& source) const { return groups_for(task_.source, form_for(source)); }

  PixelTask task_;
  bool are_filters_turned_ = false;
  Sampling sampling_;
  bool has_boxes_ = false;                   // where the output begins at a multiple of 16 bytes
  std::optional<devices::TensorMap> boxes_;  // of it without its buffer, where copies store it
};

// The task and the tile of the fewest cycles, of those that a pass has. Without columns: none.
struct Made {
  PixelTask task;
  Tile tile{.columns = 0};
};
Made made_of(const Forms& forms, const Conv2dProblem& problem, const devices::Device& device,
             const SolverOptions& request, const Prepared& prepared) {
  const Tile tile = tile_for(forms, problem, device, request, prepared);
  return tile.columns == 0 ? Made{} : Made{forms.of(tile), tile};
}

}  // namespace

Answer pixel_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) {
  const Numbers numbers = numbers_of(problem.type, request.relative_error);
  const char* const source = problem.pass == Pass::forward ? "x" : "dy";
  const auto asked = prepared_of(request, numbers, source, "w", problem.pass == Pass::forward ? "y" : "dx");
  if (const auto* const reason = std::get_if<std::string>(&asked)) return *reason;
  const Prepared prepared = std::get<Prepared>(asked);
  const auto plain = pixel_task(problem);
  std::vector<PixelTask> others;
  if (const std::optional<PixelTask> blocks = block_task(problem)) others.push_back(*blocks);
  // A prepared source is planes.
  const auto forms_of = [&](const PixelTask& task, const std::optional<PixelTask>& raw) -> Forms {
    return {.plain = task, .shared = with_shared_taps(task), .raw = prepared.a ? std::nullopt : raw};
  };
  Made made;
  if (const auto* const reason = std::get_if<std::string>(&plain)) {
    if (others.empty()) return *reason;
  } else {
    const PixelTask& task = std::get<PixelTask>(plain);
    made = made_of(forms_of(task, raw_task(problem)), problem, *device, request, prepared);
    if (const std::optional<PixelTask> blocks = row_block_task(problem, task)) others.push_back(*blocks);
  }
  for (const PixelTask& blocks : others) {
    const bool are_rows = blocks.are_row_blocks();
    const Made other = made_of(forms_of(blocks, are_rows ? std::nullopt : raw_task(problem, blocks)), problem, *device,
                               request, prepared);
    if (other.tile.columns != 0 && (made.tile.columns == 0 || other.tile.cycles < made.tile.cycles)) made = other;
  }
  const Tile tile = made.tile;
  if (tile.columns == 0)
    return fmt::format("tuning {}: tiles, parts of sums and shared windows do not go together so", request.tuning);
  const PixelTask task = made.task;
  const std::int64_t tiles = checked_multiply(tiles_of(task, tile), tile.parts, "the tiles");
  if (tiles > most_groups) return fmt::format("has {} tiles, and a launch counts {}", tiles, most_groups);
  if (prepared.a && array_of(task, problem))
    return fmt::format("has no prepared form of {}, which copies read as it lies", source);
  if (prepared.b && can_filters_lie(problem, task, tile.is_shared))
    return "has no prepared form of w, which copies read as it lies";
  const auto [of_source, of_output] =
      problem.pass == Pass::forward ? std::pair(x_array, y_array) : std::pair(y_array, x_array);
  const Conv2dElements all = elements_of(problem);
  const auto elements = [&](std::size_t array) { return array == x_array ? all.x : all.y; };
  std::map<std::size_t, PreparedFormat> formats;
  if (prepared.a) formats[of_source] = format_of(task.source, problem, prepared_source(task, problem));
  if (prepared.measured_a) formats[of_source] = measured_format(elements(of_source));
  if (prepared.measures) formats[of_output] = measured_format(elements(of_output));
  if (prepared.measured_b) formats[w_array] = measured_format(all.w);
  if (prepared.b) formats[w_array] = format_of(task, problem, tile.is_shared, prepared_filters(task, problem));
  const bool do_meet = groups_meet(task, form_of(task.source, {}, problem.type, problem.layout == Layout::nhwc),
                                   most_meeting(*device, numbers, tile, prepared,
                                                sampling_for(task, problem, numbers, tile, prepared,
                                                             cut_tiles(task, tile, *device) < tiles_of(task, tile))));
  const double before = prepared.all() ? 0 : 2 * launch_cycles + pixels_wait - (do_meet ? meeting_gain : 0);
  // These tiles add low products to a step's high ones.
  const double steps = static_cast<double>(std::max<std::int64_t>(task.steps, task.steps_of_all(tile.is_shared)) +
                                           (tile.columns == 32 || (tile.is_raw && tile.columns == 64) ? 1 : 0));
  return Offer{
      .cost = {cost_of_cycles(before + tile.cycles, *device)},
      .bound = bound_of(numbers, steps, static_cast<double>(tile.parts), longest_sum(problem), cutting_of(*device)),
      .workspace_bytes = workspace_for(task, numbers, tile, prepared, *device).bytes(),
      .prepared = formats,
      .uses_only_fma = false,
      .tuning = tuning_of(tile),
      .plan = [=] { return std::make_shared<Plan>(problem, numbers, *device, task, tile, prepared); },
  };
}

}  // namespace omniconv::operations::split_gemm
