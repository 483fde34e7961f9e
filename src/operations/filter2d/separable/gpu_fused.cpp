// Separable filtering on OpenCL and CUDA devices in one launch: rows go through local memory in turns, filtered along
// by some work items, and down the columns by others, whose chains stay in registers. Equal weights are served too:
// sums of pixels that are exact in fp32 do not depend on their order.
#include "embedded/fused.kernel.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cost.h"
#include "operations/filter2d/separable/separable.h"
#include "operations/filter2d/strips.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 128;
// The chains of 4 columns stay in registers, and a turn's rows in local memory; of tall kernels filtered rows do. A
// work item holds a window in registers.
constexpr std::int64_t most_rows = 33, most_window = 128;
constexpr std::int64_t columns_of_an_item = 4;
// Of tall kernels: rows that are filtered at a time, and that a work item makes of its columns.
constexpr std::int64_t tall_step = 16, deep = 8;
// Steps of a band, and groups that a compute unit is taken to hold where that is not known.
constexpr std::int64_t least_steps = 2, most_steps = 2000, usual_residents = 4;

// What a group makes.
struct FusedTile {
  std::int64_t segment, segments;  // elements that a work item filters along a row, and how many of a row
  std::int64_t step_rows, steps;   // that are filtered at a time, so often a turn
  std::int64_t buffers;            // for the rows of so many turns

  std::int64_t width() const { return segment * segments; }
  std::int64_t turn_rows() const { return step_rows * steps; }
};

bool is_tall(const Filter2dProblem& problem) {
  constexpr std::int64_t most_chains = 17;  // down a work item's columns
  return problem.r > most_chains;
}

// 16 bytes each, of what a group reads of a row, which begins at any word and has so many elements left and right of
// those that are filtered.
std::int64_t quads_of(const Filter2dProblem& problem, const FusedTile& tile, std::int64_t left, std::int64_t right) {
  const std::int64_t size = size_of(problem.input), of_word = 4 / size;
  return divide_up(12 + round_up(round_up(left, of_word) + tile.width() + right, of_word) * size, 16);
}

// Local memory of the text's arrays, or a little more: of band_t and barriers, of filtered rows with a spare segment,
// and of rows that begin and end within words and lines of 16 bytes, up to a multiple of 128.
std::int64_t local_bytes(const Filter2dProblem& problem, const FusedTile& tile) {
  constexpr std::int64_t of_band = 112;
  const std::int64_t window = (problem.s - 1) * problem.c, of_word = 4 / size_of(problem.input);
  const std::int64_t filtered = is_tall(problem) ? round_up(problem.r - 1 + tile.step_rows, deep) : problem.r;
  return of_band + (filtered * tile.width() + tile.segment) * 4 +
         tile.buffers * round_up(tile.turn_rows() * 16 * quads_of(problem, tile, window, of_word - 1), 128);
}

// Groups that share a multiprocessor with registers left for their chains and windows (README.md).
std::int64_t resident_groups(const Filter2dProblem& problem) {
  if (is_tall(problem)) return 4;  // as many as their local memory lets be
  const std::int64_t size = size_of(problem.input), window = size == 1 ? 0 : size == 2 ? 8 : 24;
  return std::clamp<std::int64_t>(65536 / group / (52 + 4 * problem.r + window), 4, 8);
}

// Whether a second buffer pays: copies go on by themselves (or are plain memory's, on a CPU), and it costs no groups.
bool gains_from_two_buffers(const Filter2dProblem& problem, const devices::Device& device, const FusedTile& tile) {
  if (size_of(problem.input) == 4) return false;  // not timed apart
  if (device.info().is_gpu && device.facts().compute_capability < 80) return false;
  FusedTile two = tile;
  two.buffers = 2;
  if (local_bytes(problem, two) > device.info().local_memory_bytes) return false;
  const std::int64_t of_unit = device.facts().unit_local_memory_bytes;  // 0: not known
  const auto groups = [&](const FusedTile& of) {
    constexpr std::int64_t of_driver = 1024;
    return std::min(resident_groups(problem), of_unit / (local_bytes(problem, of) + of_driver));
  };
  return groups(two) == groups(tile);
}

// Of those that fit into local memory the tile of least work: its segments leave few work items idle, and widen few
// elements twice. They are 4 times an odd number. Without any `segment` is 0.
FusedTile best_tile(const Filter2dProblem& problem, const devices::Device& device) {
  const bool tall = is_tall(problem);
  const std::int64_t step_rows = tall ? tall_step : problem.r;
  FusedTile best{};
  double best_cost = std::numeric_limits<double>::infinity();
  for (std::int64_t segment = 12; segment <= 60; segment += 8) {
    // Of tall kernels half of the work items stand side by side.
    const std::int64_t most_width = tall ? group * columns_of_an_item * deep / tall_step : group * columns_of_an_item;
    for (std::int64_t segments = most_width / segment; segments > 0; --segments) {
      const FusedTile tile{segment, segments, step_rows, 1, 1};
      if (local_bytes(problem, tile) > device.info().local_memory_bytes) continue;
      const auto passes = static_cast<double>(divide_up(step_rows * segments, group));
      const auto window = static_cast<double>(segment + (problem.s - 1) * problem.c);
      const double along = passes * (static_cast<double>(segment * problem.s) + 2 * window);
      const auto down = static_cast<double>((tall ? deep : problem.r) * columns_of_an_item * (problem.r + 3));
      const double cost = (along + down) / static_cast<double>(tile.width() * step_rows);
      if (cost < best_cost) best_cost = cost, best = tile;
      if (!tall) break;
    }
  }
  // Steps of a turn: of bytes two, where local memory holds them; one and three were slower (README.md).
  const std::int64_t most = size_of(problem.input) == 1 && !tall ? 2 : 1;
  FusedTile more = best;
  while (best.segment > 0 && ++more.steps <= most && local_bytes(problem, more) <= device.info().local_memory_bytes)
    best = more;
  if (best.segment > 0 && gains_from_two_buffers(problem, device, best)) best.buffers = 2;
  return best;
}

// Whether bytes as denormal numbers give the same bits: README.md has the proof.
bool denormals_are_exact_in_two_chains(const Filter2dTask& task) {
  const Weights& weights = task.weights;
  if (task.problem.input != DataType::u8) return false;
  const auto ordinary = [](double weight) {
    const double magnitude = std::abs(static_cast<float>(weight));
    return magnitude == 0 || (magnitude >= 0x1p-32 && magnitude < 0x1p7);
  };
  return std::all_of(weights.row.begin(), weights.row.end(), ordinary) &&
         std::all_of(weights.column.begin(), weights.column.end(), ordinary);
}

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, devices::Device& device)
      : Filter2dPlanBody(task), tile_(best_tile(task.problem, device)), border_word_(border_word(task)) {
    const Filter2dProblem& problem = task.problem;
    columns_ = divide_up(Q(problem) * problem.c, tile_.width());
    std::vector<devices::Definition> definitions = pixel_definitions(task);
    const bool denormal = !adds_pixels(task) && device.info().is_gpu && device.facts().has_denormals &&
                          denormals_are_exact_in_two_chains(task);
    // Not of floating outputs, which tell a sum of -0 from 0.
    const bool scaled = task.weights.scale != 1 || task.weights.bias != 0 || !is_integer(problem.output);
    definitions.push_back(narrow_positions(problem));
    const std::int64_t left = task.weights.anchor_x * problem.c, right = (problem.s - 1) * problem.c - left;
    quads_ = quads_of(problem, tile_, left, right);
    takes_boxes_ =
        tile_.buffers > 1 && device.facts().has_tensor_maps;  // of two buffers rows are less than a box's most
    definitions.push_back({"QUADS", std::to_string(quads_)});
    definitions.push_back({"BOXED", takes_boxes_ ? "1" : "0"});
    definitions.push_back({"V", std::to_string(columns_of_an_item)});
    definitions.push_back({"DENORMAL", denormal ? "1" : "0"});
    definitions.push_back({"EQUAL", adds_pixels(task) ? "1" : "0"});
    definitions.push_back({"SCALED", scaled ? "1" : "0"});
    definitions.push_back({"GROUP", std::to_string(group)});
    const devices::Occupancy occupancy{resident_groups(problem), group};
    definitions.push_back({"RESIDENT", std::to_string(occupancy.groups)});
    definitions.push_back({"TALL", is_tall(problem) ? "1" : "0"});
    definitions.push_back({"DEEP", std::to_string(deep)});
    definitions.push_back({"STEP_ROWS", std::to_string(tile_.step_rows)});
    // Of warp_units.kernel, for copies: there are no products.
    definitions.push_back({"MATRIX_UNITS", device.facts().compute_capability >= 80 ? "1" : "0"});
    definitions.push_back({"PART", "TYPE_f16"});
    definitions.push_back({"STEPS", std::to_string(tile_.steps)});
    definitions.push_back({"BUFFERS", std::to_string(tile_.buffers)});
    definitions.push_back({"SEGMENT", std::to_string(tile_.segment)});
    definitions.push_back({"SEGMENTS", std::to_string(tile_.segments)});
    program_ = device.build(std::string(kernels::filter2d_pixels()) + std::string(kernels::filter2d_words()) +
                                std::string(kernels::filter2d_stage()) + std::string(kernels::warp_units()) +
                                std::string(takes_boxes_ ? kernels::box_copies() : "") + std::string(fused_kernel),
                            definitions, {.occupancy = occupancy});
    const std::int64_t resident = program_->resident_groups("fused", group);
    resident_groups_ =
        std::max<std::int64_t>((resident > 0 ? resident : usual_residents) * device.info().compute_units, 1);
    const Weights& weights = task.weights;
    if (adds_pixels(task)) {
      weights_.assign(static_cast<std::size_t>(weights.r + weights.s), 1);
      factor_ = static_cast<float>(weights.values[0]);
    } else {
      weights_.assign(weights.column.begin(), weights.column.end());
      weights_.insert(weights_.end(), weights.row.begin(), weights.row.end());
    }
    if (denormal) {
      constexpr int sum_exponent = denormal_unit_exponent + denormal_weight_exponent;
      const auto r = static_cast<std::size_t>(weights.r);
      for (std::size_t i = 0; i < weights_.size(); ++i)
        weights_[i] = std::ldexp(weights_[i], i < r ? -sum_exponent : denormal_weight_exponent);
    }
  }

  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    constexpr std::int64_t most_groups = std::int64_t{1} << 30;
    in_parts_of(most_groups / columns_, run, [&](const Filter2dRun& part) { append_part(sequence, part); });
  }

 private:
  void append_part(devices::Sequence& sequence, const Filter2dRun& run) const {
    const Bands bands = bands_of(run.output_rows);
    const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    const auto arguments = image_arguments(
        run, std::span<const float>(weights_), factor_, static_cast<float>(task().weights.scale),
        static_cast<float>(task().weights.bias), border_word_, number(bands.of_end), number(bands.end_rows),
        number(bands.count), number(bands.rows), number(bands.more_parts), number(bands.more_rows));
    const devices::TensorMap given = boxes_of(run);
    // What a run is given lies in arrays alone, since it allocates nothing.
    std::array<devices::KernelArgument, 2 + arguments.size()> all = {&given, std::int32_t{given.rank > 0}};
    std::copy(arguments.begin(), arguments.end(), all.begin() + 2);
    sequence.launch(program_, "fused", {{bands.groups(columns_) * group, 1}, {group, 1}},
                    std::span(all).subspan(takes_boxes_ ? 0 : 2));
  }

  // The input's rows, where they are aligned, as 8 bytes each, as many as are whole quads.
  devices::TensorMap boxes_of(const Filter2dRun& run) const {
    constexpr std::int64_t most_rows_of_map = std::int64_t{1} << 30, most_stride = std::int64_t{1} << 39;
    const Filter2dProblem& problem = task().problem;
    constexpr std::int64_t most_row_quads = std::int64_t{1} << 29;  // so that 8 bytes each are counted by 31 bits
    const std::int64_t row_quads = problem.w * problem.c * size_of(problem.input) / 16, rows = run.input_rows;
    if (!takes_boxes_ || row_quads == 0 || row_quads > most_row_quads || rows == 0 || rows > most_rows_of_map ||
        run.input_stride_bytes > most_stride / rows)
      return {};
    const std::uint64_t begin = run.input.impl()->place().address + static_cast<std::uint64_t>(run.input_offset_bytes);
    if (begin % 16 != 0 || run.input_stride_bytes % 16 != 0) return {};
    return {.buffer = run.input.impl().get(),
            .offset_bytes = run.input_offset_bytes,
            .element = devices::TensorMap::Element::u64,
            .rank = 3,
            .extents = {2 * row_quads, rows, 1},
            .strides_bytes = {run.input_stride_bytes, run.input_stride_bytes * rows},
            .box = {2 * quads_, tile_.turn_rows(), 1},
            .promotion = devices::TensorMap::Promotion::bytes_256};
  }

  // Groups one below the other for each part of the columns, and the output rows of each of them.
  struct Bands {
    std::int64_t of_end = 0, end_rows = 1;       // of the parts at the ends of the rows
    std::int64_t count = 0, rows = 1;            // of the others,
    std::int64_t more_parts = 0, more_rows = 1;  // the last ones of which have one more

    std::int64_t groups(std::int64_t columns) const {
      const std::int64_t ends = std::min<std::int64_t>(columns, 2);
      return (columns - ends) * count + more_parts + ends * of_end;
    }
  };
  // Whole steps: what is lost to the rows read twice, against what is lost in the last wave, in which few groups may
  // run: groups take equally long, so that waves begin and end together. What a group does before its first step takes
  // about as long as one. At the ends of the rows they take an eighth longer, for what lies beside them.
  Bands bands_of(std::int64_t image_rows) const {
    constexpr std::int64_t end_part = 9;  // one of so many steps is less at the ends
    const std::int64_t r = task().problem.r, step = tile_.step_rows;
    const auto rows_of = [&](std::int64_t steps) {
      return std::clamp<std::int64_t>(steps * step - (r - 1), 1, std::max<std::int64_t>(image_rows, 1));
    };
    Bands best;
    std::int64_t best_cost = std::numeric_limits<std::int64_t>::max(), left = 0;
    for (std::int64_t steps = divide_up(r, step) + least_steps - 1; steps <= most_steps; ++steps) {
      Bands bands;
      bands.rows = rows_of(steps), bands.end_rows = rows_of(steps - steps / end_part);
      bands.count = divide_up(image_rows, bands.rows), bands.of_end = divide_up(image_rows, bands.end_rows);
      const std::int64_t groups = bands.groups(columns_), waves = divide_up(groups, resident_groups_);
      const std::int64_t cost = waves * (divide_up(bands.rows + r - 1, step) + 1);
      if (cost < best_cost) best_cost = cost, best = bands, left = waves * resident_groups_ - groups;
      if (waves <= 1 || bands.end_rows >= image_rows) break;  // longer bands only cost more
    }
    // Groups that are left make the bands of some parts shorter: of the last ones, since a multiprocessor serves those
    // that it got first before the others.
    best.more_rows = rows_of(divide_up(divide_up(image_rows, best.count + 1) + r - 1, step));
    const bool shortens = best.more_rows < best.rows && best.count * best.more_rows < image_rows;
    if (shortens) best.more_parts = std::clamp<std::int64_t>(columns_ - 2, 0, left);
    return best;
  }

  FusedTile tile_;
  bool takes_boxes_ = false;
  std::int64_t quads_ = 0;  // of a row that a group reads
  std::int64_t columns_ = 0, resident_groups_ = 0;
  std::int32_t border_word_;
  std::vector<float> weights_;
  float factor_ = 1;
  std::shared_ptr<devices::Program> program_;
};

class SeparableGpuFused final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/separable/gpu-fused.1"; }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = separable_or_equal_refusal(task); !reason.empty()) return reason;
    const Filter2dProblem& problem = task.problem;
    if (problem.r > most_rows)
      return fmt::format("serves kernels of at most {} rows, and this one has {}", most_rows, problem.r);
    if ((problem.s - 1) * problem.c > most_window)
      return fmt::format("windows reach at most {} elements beside them, and {} columns of {} channels are more",
                         most_window, problem.s - 1, problem.c);
    const FusedTile tile = best_tile(problem, *device);
    if (tile.segment == 0)
      return fmt::format("no rows of {} taps, and {} of them, fit into the device's {} bytes of local memory",
                         problem.s, problem.r, device->info().local_memory_bytes);
    if (std::string reason = local_memory_refusal(*device, local_bytes(problem, tile)); !reason.empty()) return reason;
    const auto taps = static_cast<double>(task.weights.r + task.weights.s);
    const double of_element = fused_pixel_operations + (adds_pixels(task) ? fused_equal_operations : 0);
    return offer_of(task, {.operations = device->info().is_gpu ? of_element + fused_tap_operations * taps
                                                               : separable_cpu_strip_factor *
                                                                     (gpu_pixel_operations + gpu_tap_operations * taps),
                           .bound = separable_bound(task),
                           .plan = [=] { return std::make_shared<Plan>(task, *device); }});
  }
};

}  // namespace

const Filter2dSolver& separable_gpu_fused() {
  static const SeparableGpuFused solver;
  return solver;
}

}  // namespace omniconv::operations
