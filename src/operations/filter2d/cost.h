// The numbers of the cost model, in multiply-adds per output element: what they mean, and the measurements they come
// from, are in docs/choosing.md. A solver's operations() adds its taps to these.
#pragma once

#include "operations/filter2d/weights.h"

namespace omniconv::operations {

// Chains run in f64 where an image is f64, and where equal weights sum pixels that fp32 cannot add exactly.
inline bool chains_in_f64(const Filter2dTask& task) {
  const bool integer_sums = task.weights.alpha_rule != AlphaRule::premultiplied;
  const bool wide_sums = integer_sums && task.weights.form == WeightForm::equal && !pixel_sums_fit_f32(task);
  return wide_sums || task.weights.accumulate == DataType::f64;
}

// Everything but the taps on the CPU: widening, converting and storing, starting rows.
inline double cpu_pixel_operations(const Filter2dTask& task) {
  constexpr double element = 20, byte = 3;
  constexpr double scalar_s32 = 240, scalar_f64 = 500;  // conversions that are not vectorised
  const auto bytes = static_cast<double>(size_of(task.problem.input) + size_of(task.problem.output));
  const double scalar = chains_in_f64(task) ? scalar_f64 : task.problem.output == DataType::s32 ? scalar_s32 : 0;
  return element + byte * bytes + scalar;
}

// Multiply-adds of the peak's kind (fp32) that one of a chain stands for.
inline double cpu_chain_operations(const Filter2dTask& task) {
  return chains_in_f64(task) ? 2 : 1;
}

// Everything but the taps on OpenCL devices: index arithmetic, loading, converting and storing.
inline constexpr double gpu_pixel_operations = 75;
// A tap of a kernel that loads its element and its weight for it.
inline constexpr double gpu_tap_operations = 2.75;
// By strips each element is loaded and widened once for all that read it.
inline constexpr double strip_pixel_operations = 8;
inline constexpr double strip_tap_operations = 1.08;
// With dot products of four bytes each; written out, as long as the instructions of its text.
inline constexpr double strip_dot_pixel_operations = 16;
inline constexpr double strip_dot_operations = 1.6;
inline constexpr double gpu_written_dot_operations = 16;
inline constexpr double root_operations = 12;
// Through local memory.
inline constexpr double fused_pixel_operations = 10;
inline constexpr double fused_tap_operations = 1.1;
inline constexpr double fused_equal_operations = 8;  // sums' conversions, where weights are equal
inline constexpr double tile_pixel_operations = 120;
inline constexpr double tile_tap_operations = 1.4;
inline constexpr double tile_tap_cycles = 300;  // of a group by itself
// OpenCL on a CPU: strips hinder the compiler from taking work items together, and take so many times as long.
inline constexpr double cpu_strip_factor = 6, separable_cpu_strip_factor = 3;

}  // namespace omniconv::operations
