// Complex matrix products of one frequency, whose columns are vectors: real parts, then imaginary parts.
#pragma once

#include <cstdint>

namespace omniconv::operations {

// sums[row, panel] (+)= sum over steps of rows[row, step] * columns[panel, step], panels being a vector of columns.
// Steps come in runs of so many; the last run may be shorter.
template <typename Real>
struct FftProduct {
  const Real* rows = nullptr;  // real parts; the imaginary ones a vector on
  std::int64_t row_count = 0, row_pitch = 0, row_step = 0, run = 0, run_pitch = 0;
  const Real* columns = nullptr;  // step after step
  std::int64_t panels = 0, panel_pitch = 0;
  std::int64_t steps = 0;
  Real* sums = nullptr;
  std::int64_t sum_row = 0, sum_panel = 0;
  bool add = false;  // to what the sums hold
};
void multiply_fft(const FftProduct<float>& product);
void multiply_fft(const FftProduct<double>& product);

// values[i] = values[i] * factors[i], or * lane `lane` of factors[i] where that is not negative.
template <typename Real>
struct FftScaling {
  Real* values = nullptr;
  const Real* factors = nullptr;
  std::int64_t columns = 0, bins = 0, value_column = 0, factor_column = 0;  // bins of a column lie side by side
  std::int64_t lane = -1;
};
void scale_fft(const FftScaling<float>& scaling);
void scale_fft(const FftScaling<double>& scaling);

// sums[i] += values[i] * factors[i].
template <typename Real>
struct FftAddition {
  Real* sums = nullptr;
  const Real *values = nullptr, *factors = nullptr;
  std::int64_t columns = 0, bins = 0, column_pitch = 0;  // of all three
};
void add_fft(const FftAddition<float>& addition);
void add_fft(const FftAddition<double>& addition);

}  // namespace omniconv::operations
