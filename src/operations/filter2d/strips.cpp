#include "operations/filter2d/strips.h"

#include <cstring>

#include "core/convert.h"
#include "operations/filter2d/gradient/gradient.h"
#include "operations/filter2d/integer_dot/integer_dot.h"

namespace omniconv::operations {
namespace {

using devices::KernelArgument;

// A work item holds the window of a row in registers.
constexpr std::int64_t most_window = 48;
// Work items and elements of a launch are counted in 32 bits.
constexpr std::int64_t most_items = std::int64_t{1} << 30;
// Rows of a band, the least and the most: taller ones drift apart, and rows that they share leave the caches. What a
// work item does before its first row takes about as long as two.
constexpr std::int64_t least_rows = 4, most_rows = 32, most_rows_of_cuda = 80, lead_of_an_item = 2;
// Where rows are given by a tunable, they are halved until the device is so many times full; where what it holds is not
// known, only until it is surely full.
constexpr double least_waves = 2, least_uncertain_waves = 1.25;
// What lies beside the strips is spread over all work items, so that groups take equally long. Of many taps it waits
// for memory several times: groups of its own make it, while others make strips.
bool shares_rest(const Filter2dTask& task) {
  constexpr std::int64_t most_taps = 16;
  return task.problem.r * task.problem.s <= most_taps;
}

// Work items that a compute unit is taken to hold where that is not known.
constexpr std::int64_t usual_items = 1024;

// How the kernel of a single filter, or either of a pair, is chained.
bool along_rows_first(const Filter2dTask& task, const Weights& weights) {
  return task.second && rows_first(task, weights);
}

// The words of dot products, in the order of the text: along the rows, and with `column` the last column by itself.
std::vector<std::int32_t> dot_words(const kernels::ByteWeights& bytes, bool column) {
  if (!column) return bytes.low;
  const std::int64_t along = bytes.groups - 1;
  std::vector<std::int32_t> words;
  std::vector<std::uint32_t> down(static_cast<std::size_t>(divide_up(bytes.r, kernels::dot_taps)));
  for (std::int64_t j = 0; j < bytes.r; ++j) {
    const auto row = bytes.low.begin() + j * bytes.groups;
    words.insert(words.end(), row, row + along);
    const std::int64_t fours = j / kernels::dot_taps;
    const std::int64_t newest = std::min((fours + 1) * kernels::dot_taps, bytes.r) - 1;
    down[static_cast<std::size_t>(fours)] |= (static_cast<std::uint32_t>(row[along]) & 255) << (24 - 8 * (newest - j));
  }
  words.insert(words.end(), down.begin(), down.end());
  return words;
}

Tuning tuning_of(const StripTunables& t) {
  return {{"v", t.v},       {"prefetch", t.prefetch}, {"ahead", t.ahead}, {"halo", t.halo},
          {"ring", t.ring}, {"group", t.group},       {"rows", t.rows},   {"rest", t.rest}};
}

// The rest decides what is computed, and is the solver's.
StripTunables tunables_of(const Tuning& tuning, StripTunables t) {
  t.v = tuning.at("v"), t.prefetch = tuning.at("prefetch"), t.ahead = tuning.at("ahead"), t.halo = tuning.at("halo");
  t.ring = tuning.at("ring"), t.group = tuning.at("group"), t.rows = tuning.at("rows"), t.rest = tuning.at("rest");
  return t;
}

// Why the text has no such variant; empty if it has.
std::string tuning_refusal(const Tuning& tuning, const Filter2dTask& task, const devices::Device& device) {
  const std::int64_t v = tuning.at("v"), halo = tuning.at("halo");
  if (v * size_of(task.problem.input) < 4 * halo)
    return fmt::format("tuning v={} halo={}: a strip's elements must fill the {} bytes that are read at once", v, halo,
                       4 * halo);
  if (std::string reason = group_refusal(device, tuning.at("group")); !reason.empty()) return "tuning: " + reason;
  return {};
}

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, devices::Device& device, const StripTunables& tunables)
      : Filter2dPlanBody(task),
        tunables_(tunables),
        layout_(strip_placement(task, tunables_)),
        whole_(strips_of_whole_rows(task, tunables_)),
        weights_(scaled_strip_weights(task, tunables_)),
        border_word_(border_word(task)) {
    std::string text(kernels::filter2d_pixels());
    for (const std::string_view part : {kernels::exact_root(), kernels::filter2d_words(), kernels::filter2d_strips()})
      text += part;
    program_ = device.build(text, strip_definitions(task, tunables_));
    most_rows_ = device.kind() == devices::DeviceKind::cuda ? most_rows_of_cuda : most_rows;
    resident_groups_ = program_->resident_groups("strips", tunables_.group) * device.info().compute_units;
    knows_residents_ = resident_groups_ > 0;
    if (!knows_residents_) resident_groups_ = usual_items / tunables_.group * device.info().compute_units;
    rest_weights_ = upload_weights(device, strip_weights(task));
  }

  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    const std::int64_t alignment = std::min<std::int64_t>(tunables_.v * size_of(task().problem.input), 16);
    const bool aligned = (run.input_offset_bytes | run.input_stride_bytes) % alignment == 0;
    const StripPlacement& layout = whole_.count > 0 && aligned ? whole_ : layout_;
    const std::int64_t rest = Q(task().problem) * task().problem.c - layout.count * tunables_.v;
    in_parts_of(most_items / std::max(layout.count, rest), run,
                [&](const Filter2dRun& part) { append_part(sequence, part, layout, rest); });
  }

 private:
  // `rest` elements of every row lie beside the strips.
  void append_part(devices::Sequence& sequence, const Filter2dRun& run, const StripPlacement& layout,
                   std::int64_t rest) const {
    const std::int64_t item_rows = rows_of_item(run.output_rows, layout.count);
    const std::int64_t items = layout.count * divide_up(run.output_rows, item_rows);
    const std::int64_t group = tunables_.group, rest_items = divide_up(rest * run.output_rows, tunables_.rest);
    const bool shared = shares_rest(task());
    const std::int64_t rest_groups = divide_up(shared ? std::max(items, rest_items) : rest_items, group),
                       groups = shared ? rest_groups : rest_groups + divide_up(items, group);
    const auto arguments = image_arguments(
        run, rest_weights_.get(), static_cast<float>(task().weights.scale), static_cast<float>(task().weights.bias),
        static_cast<float>(task().weights.border_value), static_cast<std::int32_t>(rest_groups * group),
        static_cast<std::int32_t>(shared ? 0 : rest_groups * group), static_cast<std::int32_t>(rest),
        strip_weights_argument(), weights_.scale, border_word_, static_cast<std::int32_t>(layout.first),
        static_cast<std::int32_t>(layout.count), static_cast<std::int32_t>(item_rows));
    sequence.launch(program_, "strips", {{groups * group, 1}, {group, 1}}, arguments);
  }

  KernelArgument strip_weights_argument() const {
    if (tunables_.dots) return std::span<const std::int32_t>(weights_.words);
    return std::span<const float>(weights_.values);
  }

  std::int64_t rows_of_item(std::int64_t rows, std::int64_t strips) const {
    const double groups_per_band = static_cast<double>(strips) / static_cast<double>(tunables_.group);
    if (tunables_.rows == 0)
      return rows_of_bands(rows, groups_per_band, knows_residents_ ? resident_groups_ : 0,
                           task().problem.r - 1 + lead_of_an_item, least_rows, most_rows_);
    std::int64_t item_rows = tunables_.rows;
    const auto waves = [&] {
      return groups_per_band * static_cast<double>(divide_up(rows, item_rows)) /
             static_cast<double>(std::max<std::int64_t>(resident_groups_, 1));
    };
    while (item_rows > least_rows && waves() < (knows_residents_ ? least_waves : least_uncertain_waves)) item_rows /= 2;
    return item_rows;
  }

  StripTunables tunables_;
  StripPlacement layout_, whole_;  // of any rows; of aligned ones, if there is one
  std::int64_t most_rows_ = 0, resident_groups_ = 0;
  bool knows_residents_ = false;
  StripWeights weights_;
  std::int32_t border_word_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> rest_weights_;
};

}  // namespace

std::vector<devices::Definition> strip_definitions(const Filter2dTask& task, const StripTunables& tunables) {
  std::vector<devices::Definition> definitions = pixel_definitions(task);
  definitions.push_back(narrow_positions(task.problem));
  const auto form = [&](const Weights& weights) {
    return along_rows_first(task, weights) ? "FORM_rows_first" : "FORM_direct";
  };
  definitions.push_back({"KERNELS", task.second ? "2" : "1"});
  definitions.push_back({"FORM_X", form(task.weights)});
  if (task.second) definitions.push_back({"FORM_Y", form(*task.second)});
  const auto add = [&](const char* symbol, std::int64_t value) {
    definitions.push_back({symbol, std::to_string(value)});
  };
  add("V", tunables.v);
  add("PREFETCH", tunables.prefetch);
  add("AHEAD", tunables.ahead);
  add("HALO", tunables.halo);
  add("DENORMAL", tunables.denormal);
  add("RING", tunables.ring);
  add("DOTS", tunables.dots);
  // Two elements of pairs of kernels would take too many registers.
  add("REST_AT_ONCE", tunables.rest > 1 && shares_rest(task) && !task.second ? 2 : 1);
  add("EDGES", strips_of_whole_rows(task, tunables).count > 0 ? 1 : 0);
  add("STRIP_GROUP", tunables.group);
  return definitions;
}

std::vector<double> strip_weights(const Filter2dTask& task) {
  std::vector<double> all;
  const auto add = [&](const Weights& weights) {
    if (along_rows_first(task, weights)) {
      all.insert(all.end(), weights.column.begin(), weights.column.end());
      all.insert(all.end(), weights.row.begin(), weights.row.end());
    } else {
      all.insert(all.end(), weights.values.begin(), weights.values.end());
    }
  };
  add(task.weights);
  if (task.second) add(*task.second);
  return all;
}

StripWeights scaled_strip_weights(const Filter2dTask& task, const StripTunables& tunables) {
  StripWeights result;
  result.scale = static_cast<float>(task.weights.scale);
  if (tunables.dots) {
    const kernels::ByteWeights bytes = byte_weights(task.weights);
    result.words = dot_words(bytes, tunables.dots == 2);
    result.scale = static_cast<float>(integer_sum_scale(task.weights, bytes));
    return result;
  }
  const std::vector<double> weights = strip_weights(task);
  result.values.assign(weights.begin(), weights.end());
  if (!tunables.denormal) return result;
  for (float& weight : result.values) weight = std::ldexp(weight, denormal_weight_exponent);
  result.scale = std::ldexp(result.scale, -(denormal_unit_exponent + denormal_weight_exponent));
  return result;
}

std::int32_t border_word(const Filter2dTask& task) {
  const std::int64_t size = size_of(task.problem.input);
  std::byte bytes[4] = {};
  for (std::int64_t i = 0; i < 4; i += size) store_element(task.problem.input, task.weights.border_value, bytes + i);
  std::int32_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

bool strips_are_aligned(const Filter2dProblem& problem) {
  return problem.w * problem.c * size_of(problem.input) % 16 == 0 &&
         Q(problem) * problem.c * size_of(problem.output) % 16 == 0;
}

StripTunables byte_strip_tunables(const Filter2dProblem& problem, const devices::Device& device) {
  const bool cuda = device.kind() == devices::DeviceKind::cuda;
  const std::int64_t extent = std::max(problem.r, problem.s), wide = strips_are_aligned(problem) ? 16 : 8;
  if (extent <= 3) return {.v = wide, .prefetch = cuda ? 2 : 1, .ahead = 2, .group = cuda ? 64 : 128, .rest = 8};
  if (extent <= 5) return {.v = wide, .ahead = cuda ? 6 : 3, .halo = cuda ? 1 : 2, .group = cuda ? 64 : 128, .rest = 2};
  return {.v = cuda ? 8 : wide, .prefetch = 2, .ahead = 3};
}

StripTunables fitted(const Filter2dTask& task, StripTunables tunables) {
  if (tunables.v * size_of(task.problem.input) < 4 * tunables.halo) tunables.halo = 1;
  while (tunables.v > 4 && strip_placement(task, tunables).count == 0) tunables.v /= 2, tunables.halo = 1;
  return tunables;
}

std::string strip_refusal(const Filter2dTask& task, const StripTunables& tunables, std::int64_t most) {
  const Filter2dProblem& problem = task.problem;
  if (problem.r > most || problem.s > most)
    return fmt::format("strips keep sums in registers for kernels of at most {0} x {0}, and this one has {1} x {2}",
                       most, problem.r, problem.s);
  if ((problem.s - 1) * problem.c > most_window)
    return fmt::format("strips read at most {} elements beside them, and {} columns of {} channels are more",
                       most_window, problem.s - 1, problem.c);
  const std::int64_t strips = strip_placement(task, tunables).count;
  if (strips == 0) return fmt::format("rows of {} columns are too short for a strip", problem.w);
  if (std::max(strips, strips_of_whole_rows(task, tunables).count) > most_items)
    return fmt::format("rows of {} columns have too many strips for one launch", problem.w);
  return {};
}

std::span<const Tunable> strip_tunables() {
  static const std::vector<Tunable> all = {
      {"v", {4, 8, 16}}, {"prefetch", {0, 1, 2, 3, 4}}, {"ahead", {0, 2, 3, 6}},      {"halo", {1, 2, 4}},
      {"ring", {0, 1}},  {"group", {64, 128, 256}},     {"rows", {0, 8, 16, 32, 64}}, {"rest", {1, 2, 4, 8}},
  };
  return all;
}

Answer strip_offer(const Filter2dTask& task, const DevicePointer& device, const StripSolver& solver,
                   const SolverOptions& request) {
  StripTunables tunables = solver.first;
  if (!request.tuning.empty()) {
    const Tuning tuning = Tuning::parse(request.tuning);
    if (std::string reason = tuning_refusal(tuning, task, *device); !reason.empty()) return reason;
    tunables = tunables_of(tuning, solver.first);
  }
  if (std::string reason = strip_refusal(task, tunables, solver.most); !reason.empty()) return reason;
  return offer_of(task,
                  {.operations = solver.operations, .bound = solver.bound, .tuning = tuning_of(tunables), .plan = [=] {
                     return std::make_shared<Plan>(task, *device, tunables);
                   }});
}

}  // namespace omniconv::operations
