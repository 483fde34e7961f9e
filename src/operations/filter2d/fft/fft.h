// Filtering by Fourier transforms of tiles: conv2d/fft does them, of bands of rows that go on beyond the image.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "operations/conv2d/conv2d.h"
#include "operations/filter2d/filter2d.h"

namespace omniconv::operations {

// The convolution that makes so many rows of the output: each channel is a group of its own, and the band has the
// rows and columns beside it that the kernel reads.
Conv2dProblem band_problem(const Filter2dTask& task, std::int64_t rows);

// Rows of a band: whole tiles of so many rows, as many as have `enough` elements, and fewer than `most_rows` where
// these are a tile's or more.
std::int64_t band_rows(const Filter2dProblem& problem, std::int64_t tile_rows, std::int64_t enough,
                       std::int64_t most_rows);

// What a plan makes its bands by, and with.
struct FilterBand {
  Conv2dProblem problem;
  Offer convolution;  // filters come prepared
  std::int64_t rows;
  double largest;  // magnitude of a pixel of which no tile's transforms overflow

  // In the workspace: what the convolution needs, the rows read, the rows made, and behind them what the plan notes, a
  // word for each row read at the most.
  std::int64_t input_at() const;
  std::int64_t output_at() const;
  std::int64_t notes_at() const;
  std::int64_t workspace_bytes() const;

  // Spectra of the kernel for each channel, from that many copies of it; done when this returns.
  Buffer spectra_of(const Buffer& filters, const Conv2dPlanBody& plan, devices::Device& device) const;
  // Of the bands' convolutions, an element of the image that is made.
  double operations(const Filter2dProblem& filtered) const;
  ErrorBound bound(const Filter2dProblem& filtered) const;
};
// Or why there are none. Bands are as small as a limit of the workspace asks for, which leaves tiles, and so the
// results.
std::variant<FilterBand, std::string> cut_bands(const Filter2dTask& task, const DevicePointer& device,
                                                const SolverOptions& request, const Conv2dSolver& solver,
                                                std::int64_t enough, std::int64_t most_rows);

}  // namespace omniconv::operations
