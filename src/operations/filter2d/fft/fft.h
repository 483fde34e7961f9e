// Filtering by Fourier transforms of tiles: conv2d/fft does them, of bands of rows that go on beyond the image.
#pragma once

#include "operations/conv2d/conv2d.h"
#include "operations/filter2d/filter2d.h"

namespace omniconv::operations {

// The convolution that makes so many rows of the output: each channel is a group of its own, and the band has the
// rows and columns beside it that the kernel reads.
Conv2dProblem band_problem(const Filter2dTask& task, std::int64_t rows);

// Rows of a band: whole tiles of so many rows, as many as give the threads enough to do.
std::int64_t band_rows(const Filter2dProblem& problem, std::int64_t tile_rows);

}  // namespace omniconv::operations
