// Filtering by strips on GPUs (filter2d_strips.kernel): its tunables, where the strips of a row lie, and constants and
// weights as the text wants them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "operations/filter2d/gpu_text.h"
#include "operations/filter2d/vector/dot_rows.h"

namespace omniconv::operations {

// Those of the text by their names there, explained at its top; and two of the launch.
struct StripTunables {
  std::int64_t v = 8, prefetch = 1, ahead = 0, halo = 1, denormal = 0, ring = 0, dots = 0, group = 128;
  std::int64_t rows = 0;  // output rows of a work item, at most; 0: as many as keep the device full to the end
  std::int64_t rest = 1;  // elements beside the strips that a work item makes at most
};

// Taps that stand alone at the end of a kernel's rows, where the others are taken by fours: such a column may be taken
// by fours itself (DOTS 2).
inline bool has_lone_column(const Filter2dProblem& problem) {
  return problem.s > 1 && problem.s % kernels::dot_taps == 1;
}

// Strips begin at this element of a row; so many stand side by side. None where the row is too short for them, or the
// text has no such variant.
struct StripPlacement {
  std::int64_t first = 0, count = 0;
};

// Whole words are read, some of them across those of an unaligned row: strips keep that distance from a row's ends.
inline StripPlacement strip_placement(const Filter2dTask& task, const StripTunables& tunables) {
  const Filter2dProblem& problem = task.problem;
  const std::int64_t bytes = size_of(problem.input), per_word = 4 / bytes;
  if (tunables.v * bytes < 4 * tunables.halo || tunables.v * size_of(problem.output) < 4) return {};
  const std::int64_t left = round_up(task.weights.anchor_x * problem.c, per_word * tunables.halo);
  const std::int64_t right = round_up((problem.s - 1 - task.weights.anchor_x) * problem.c, per_word * tunables.halo);
  const std::int64_t first = round_up(left + per_word - 1, tunables.v);
  const std::int64_t end = std::min(problem.w * problem.c - right - per_word, Q(problem) * problem.c);
  return {first, std::max<std::int64_t>(0, (end - first) / tunables.v)};
}

// Strips that fill rows as long as the image's, where they are aligned: what the border puts beside the first and the
// last strip is in these strips' own windows, or constant. None where that is not so.
inline StripPlacement strips_of_whole_rows(const Filter2dTask& task, const StripTunables& tunables) {
  const Filter2dProblem& problem = task.problem;
  const std::int64_t elements = problem.w * problem.c, v = tunables.v, c = problem.c;
  const BorderMode border = problem.border.mode;
  // Where there is a strip with its distance from the ends, two at the least fill the row.
  if (strip_placement(task, tunables).count == 0 || Q(problem) != problem.w || elements % v != 0 ||
      border == BorderMode::wrap || border == BorderMode::valid)
    return {};
  const std::int64_t left = task.weights.anchor_x, right = problem.s - 1 - left;
  const std::int64_t words = 4 / size_of(problem.input) * tunables.halo;
  // Windows of strips beside the ends lie within the row; the first and the last one hold the pixels that are
  // reflected.
  const bool neighbours_read_within = v >= round_up(std::max(left, right) * c, words);
  const bool continued_is_in_window = (left + 1) * c <= v + right * c && (right + 1) * c <= v + left * c;
  return neighbours_read_within && continued_is_in_window ? StripPlacement{0, elements / v} : StripPlacement{};
}

// The constants of filter2d_pixels.kernel, filter2d_words.kernel and filter2d_strips.kernel.
std::vector<devices::Definition> strip_definitions(const Filter2dTask& task, const StripTunables& tunables);

// The weights in the order of the text: of each kernel all, or the column's and then the row's.
std::vector<double> strip_weights(const Filter2dTask& task);

// Bytes as denormal numbers: a byte is denormal_unit of its value, the weights that meet it are denormal_weight times
// larger, and the sum is scaled back by what is left.
inline constexpr int denormal_unit_exponent = -133, denormal_weight_exponent = 120;

// The weights of the strips, and the scale of their sums. Those of dot products are words of four signed bytes.
struct StripWeights {
  std::vector<float> values;
  std::vector<std::int32_t> words;
  float scale = 1;
};
StripWeights scaled_strip_weights(const Filter2dTask& task, const StripTunables& tunables);

// Whether bytes as denormal numbers give the same bits under a direct chain: README.md of `direct` has the proof.
inline bool denormals_are_exact(const Filter2dTask& task) {
  if (task.second || task.problem.input != DataType::u8 || !(std::abs(task.weights.scale) < 0x1p100)) return false;
  return std::all_of(task.weights.values.begin(), task.weights.values.end(), [](double weight) {
    const double magnitude = std::abs(static_cast<float>(weight));
    return magnitude == 0 || (magnitude >= 0x1p-100 && magnitude < 0x1p7);
  });
}

// The border's constant in every element of a word, as the image stores it.
std::int32_t border_word(const Filter2dTask& task);

// Rows of input and output begin at multiples of 16 bytes, if they are packed.
bool strips_are_aligned(const Filter2dProblem& problem);

// What was fastest for direct filtering of u8 images on an H200 (README.md of `direct`).
StripTunables byte_strip_tunables(const Filter2dProblem& problem, const devices::Device& device);

// Narrower strips where the row is too short for such, or where results are written one by one.
StripTunables fitted(const Filter2dTask& task, StripTunables tunables);

// Why strips do not serve the task; empty if they do. `most` rows and columns of the kernel.
std::string strip_refusal(const Filter2dTask& task, const StripTunables& tunables, std::int64_t most);

// What of a solver by strips depends on the solver: its tunables where no others are asked for, the most rows and
// columns of its kernels, its cost, its bound.
struct StripSolver {
  StripTunables first = {};
  std::int64_t most = 0;
  double operations = 0;
  ErrorBound bound = {};
};
std::span<const Tunable> strip_tunables();
// Unless strips do not serve the task, or not with the request's tuning.
Answer strip_offer(const Filter2dTask& task, const DevicePointer& device, const StripSolver& solver,
                   const SolverOptions& request);

}  // namespace omniconv::operations
