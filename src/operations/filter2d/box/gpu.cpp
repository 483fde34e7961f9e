// Box filters of integer images on OpenCL and CUDA devices: running sums down columns and along rows.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "core/convert.h"
#include "embedded/box.kernel.h"
#include "operations/filter2d/box/box.h"
#include "operations/filter2d/byte_quotient.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/gpu_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 256, side_by_side = 32;  // work items of a group, and of these that load at once
constexpr std::int64_t banks = 32;                      // of local memory, of four bytes

// Of local memory, which 32 work items read side by side, each the numbers of a channel of a run: how many of these ask
// a bank for different words at most. They make the runs of a row, or every other run of two rows, between which half
// of the banks lie.
std::int64_t turns_of_banks(std::int64_t run, std::int64_t runs, std::int64_t channels, std::int64_t size,
                            bool is_interleaved) {
  std::array<std::vector<std::int64_t>, banks> words;
  std::size_t most = 0;
  const std::int64_t of_row = is_interleaved ? side_by_side / 2 : side_by_side, step = is_interleaved ? 2 : 1;
  for (std::int64_t item = 0; item < side_by_side; ++item) {
    const std::int64_t row = item / of_row, number = item % of_row / channels * step;
    if (number >= runs) continue;
    const std::int64_t word = row * banks / 2 + (number * run * channels + item % of_row % channels) * size / 4;
    std::vector<std::int64_t>& of_bank = words[static_cast<std::size_t>(word % banks)];
    // Words of two rows are never the same.
    const std::int64_t name = word * 2 + row;
    if (std::ranges::find(of_bank, name) == of_bank.end()) of_bank.push_back(name);
    most = std::max(most, of_bank.size());
  }
  return static_cast<std::int64_t>(most);
}

// A group's part of rows.
struct Tile {
  bool is_narrow;               // sums down columns have 16 bits
  std::int64_t at_once;         // rows in local memory
  std::int64_t run = 0;         // pixels
  std::int64_t runs = 0;        // that its columns reach, and its work items make of all rows
  bool is_interleaved = false;  // of two rows

  // None where so many bytes of local memory hold none.
  Tile(const Filter2dProblem& problem, std::int64_t rows, std::int64_t local_memory)
      : is_narrow(problem.input == DataType::u8 && problem.r * 255 <= 0xFFFF), at_once(rows) {
    // Columns begin at a multiple of a work item's.
    const std::int64_t reach = (problem.s - 1) * problem.c + columns() - 1,
                       columns_left = std::max<std::int64_t>(columns() * group - reach, 0);
    // As long as makes few tiles of a row, of those that hardly wait for each other in local memory.
    const std::int64_t usual = is_narrow && rows == 8 ? 62 : 31, size = is_narrow ? 2 : 4, of_row = group / rows,
                       most_turns =
                           std::max<std::int64_t>(2, turns_of_banks(usual, of_row / problem.c, problem.c, size, false));
    std::array<std::int64_t, 4> best{};
    const std::int64_t spread = is_narrow ? usual / 8 : 0;
    const auto consider = [&](std::int64_t each, bool interleaved) {
      const std::int64_t most = interleaved ? 2 * (of_row / 2 / problem.c) : of_row / problem.c,
                         fit = std::min(columns_left / (each * problem.c), most);
      if (fit == 0 || bytes_of(problem, fit * each * problem.c, interleaved) > local_memory) return;
      const std::int64_t turns = turns_of_banks(each, fit, problem.c, size, interleaved);
      if (turns > most_turns) return;
      const std::array<std::int64_t, 4> cost = {divide_up(Q(problem), fit * each), turns, interleaved, each};
      if (runs == 0 || cost < best) best = cost, run = each, runs = fit, is_interleaved = interleaved;
    };
    for (std::int64_t each = usual - spread; each <= usual + spread; ++each) {
      consider(each, false);
      if (is_narrow && of_row == side_by_side) consider(each, true);
    }
  }
  std::int64_t columns() const { return is_narrow ? 8 : 4; }  // of a work item
  // From a row of sums to the next, in sixteen bytes: interleaved ones lie half of the banks apart.
  std::int64_t pitch() const { return pitch_of(is_interleaved); }
  std::int64_t width(const Filter2dProblem& problem) const { return runs * run * problem.c; }
  std::int64_t local_bytes(const Filter2dProblem& problem) const {
    return bytes_of(problem, width(problem), is_interleaved);
  }

 private:
  static std::int64_t pitch_of(bool interleaved) { return group + (interleaved ? banks / 2 / 4 : 0); }
  // Of sums and results.
  std::int64_t bytes_of(const Filter2dProblem& problem, std::int64_t width, bool interleaved) const {
    return at_once * (16 * pitch_of(interleaved) + (width * size_of(problem.output) + 14) / 8 * 8);
  }
};

// With fewer rows of results that take more memory; of two where there is none of more.
Tile tile_of(const Filter2dProblem& problem, const devices::Device& device) {
  for (const std::int64_t rows : {8, 4}) {
    const Tile tile(problem, rows, device.info().local_memory_bytes);
    if (tile.runs > 0 && (rows != 8 || size_of(problem.output) == 1)) return tile;
  }
  return {problem, 2, std::numeric_limits<std::int64_t>::max()};
}

// What finishes sums of bytes as bytes, if there is one.
std::optional<SumQuotient> quotient_of(const Filter2dTask& task) {
  const Filter2dProblem& problem = task.problem;
  const Weights& weights = task.weights;
  if (problem.input != DataType::u8 || problem.output != DataType::u8) return {};
  return sum_quotient({weights.values.front(), weights.scale, weights.bias}, problem.r * problem.s * 255, 32, 255);
}

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, devices::Device& device)
      : Filter2dPlanBody(task),
        tile_(tile_of(task.problem, device)),
        columns_(divide_up(Q(task.problem) * task.problem.c, tile_.width(task.problem))) {
    std::vector<devices::Definition> definitions = pixel_definitions(task);
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("GROUP", group), add("AT_ONCE", tile_.at_once), add("NARROW", tile_.is_narrow);
    add("RUN", tile_.run), add("RUNS", tile_.runs), add("INTERLEAVED", tile_.is_interleaved),
        add("PITCH", tile_.pitch());
    if (const std::optional<SumQuotient> quotient = quotient_of(task)) {
      definitions.push_back({"QUOTIENT", "1"}), definitions.push_back({"ADD", fmt::format("{}u", quotient->add)});
      definitions.push_back({"MULTIPLIER", fmt::format("{}ul", quotient->multiplier)}), add("SHIFT", quotient->shift);
    }
    // Rows of narrow sums are twice as many pixels, and are loaded ahead: more groups have not registers enough. Of
    // other sums NVIDIA's OpenCL compiler needs more registers than four groups have.
    const std::int64_t of_unit = tile_.is_narrow ? 2 : device.kind() == devices::DeviceKind::cuda ? 4 : 3;
    add("RESIDENT", of_unit);
    program_ = device.build(std::string(kernels::filter2d_pixels()) + std::string(box_kernel), definitions,
                            {.occupancy = {of_unit, group}});
    resident_ = device.info().is_gpu ? of_unit * device.info().compute_units : 0;
  }

  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    // Bands much taller than the rows that each adds up before its first.
    const std::int64_t lead = task().problem.r - 1, rows = std::max<std::int64_t>(run.output_rows, 1);
    const std::int64_t band = round_up(rows_of_bands(rows, static_cast<double>(columns_), resident_, lead,
                                                     4 * tile_.at_once, std::max<std::int64_t>(256, 4 * lead)),
                                       tile_.at_once);
    in_launches(run, band, [&](const Filter2dRun& part) { append_part(sequence, part, band); });
  }

 private:
  void append_part(devices::Sequence& sequence, const Filter2dRun& run, std::int64_t band) const {
    const Weights& weights = task().weights;
    const auto arguments =
        image_arguments(run, static_cast<float>(weights.values.front()), static_cast<float>(weights.scale),
                        static_cast<float>(weights.bias), static_cast<std::int32_t>(weights.border_value), band);
    sequence.launch(program_, "box", {{columns_ * group, divide_up(run.output_rows, band)}, {group, 1}}, arguments);
  }

  Tile tile_;
  std::int64_t columns_;       // of tiles
  std::int64_t resident_ = 0;  // groups at once; 0: not known
  std::shared_ptr<devices::Program> program_;
};

class BoxGpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/box/gpu.1"; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = box_refusal(task); !reason.empty()) return reason;
    const Filter2dProblem& problem = task.problem;
    if (problem.input != DataType::u8 && problem.input != DataType::u16 && problem.input != DataType::s16)
      return "running sums are of 8- and 16-bit integers";
    const double largest = std::max(highest_value(problem.input), -lowest_value(problem.input));
    if (static_cast<double>(problem.r) * static_cast<double>(problem.s) * largest > 0x7FFFFFFF)
      return "a window's sum may pass 32 bits";
    const Tile tile = tile_of(problem, *device);
    // Elements of a row, and those beside it that a group or a window reaches, are counted in 32 bits.
    constexpr std::int64_t most_elements = 0x7FFFFFFF - 16 * group * 2;
    if (problem.w > most_elements / problem.c || Q(problem) > most_elements / problem.c)
      return fmt::format("a row has more than {} elements", most_elements);
    if (tile.runs == 0)
      return fmt::format("windows of {} pixels of {} channels leave no run of pixels of a group's {} columns",
                         problem.s, problem.c, tile.columns() * group);
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    if (std::string reason = local_memory_refusal(*device, tile.local_bytes(problem)); !reason.empty()) return reason;
    // Measured (README.md): less of narrow sums, more of results that are wider than pixels.
    const double of_element = tile.is_narrow ? 23 : 57, of_column = tile.is_narrow ? 0.25 : 0.35;
    constexpr double of_wider = 40, of_processor = 110;
    const double operations = of_element + of_column * static_cast<double>(problem.s) +
                              (size_of(problem.output) > size_of(problem.input) ? of_wider : 0);
    return offer_of(task, {.operations = device->info().is_gpu ? operations : of_processor,
                           .bound = box_bound(task),
                           .plan = [=] { return std::make_shared<Plan>(task, *device); }});
  }
};

}  // namespace

const Filter2dSolver& box_gpu() {
  static const BoxGpu solver;
  return solver;
}

}  // namespace omniconv::operations
