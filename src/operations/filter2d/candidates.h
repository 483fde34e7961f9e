// The filter2d solvers, one object each, for registry.cpp alone.
#pragma once

#include "operations/filter2d/filter2d.h"

namespace omniconv::operations {

const Filter2dSolver& box_cpu();
const Filter2dSolver& box_gpu();
const Filter2dSolver& integer_dot_cpu();
const Filter2dSolver& integer_dot_gpu_strips();
const Filter2dSolver& separable_cpu();
const Filter2dSolver& separable_gpu();
const Filter2dSolver& separable_gpu_fused();
const Filter2dSolver& rank_two_cpu();
const Filter2dSolver& fft_cpu();
const Filter2dSolver& fft_gpu();
const Filter2dSolver& direct_cpu();
const Filter2dSolver& direct_gpu();
const Filter2dSolver& direct_gpu_strips();
const Filter2dSolver& direct_gpu_tiles();
const Filter2dSolver& premultiplied_cpu();
const Filter2dSolver& premultiplied_gpu();
const Filter2dSolver& gradient_cpu();
const Filter2dSolver& gradient_gpu();
const Filter2dSolver& gradient_gpu_strips();
const Filter2dSolver& definition();
const Filter2dSolver& double_precision();

}  // namespace omniconv::operations
