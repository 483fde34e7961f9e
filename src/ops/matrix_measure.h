// Times solvers of gemm and conv2d, as ops/measure.h does those of filter2d.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "ops/matrix_work.h"
#include "ops/measure.h"

namespace omniconv {

struct MatrixMeasureOptions {
  // `solver`: what auto would run; all: every candidate of the device, without the reference unless `allow` names
  // solvers; or an id.
  SolverOptions solver = {};
  // As in MeasureOptions. The solver to compare with need not be among those allowed, but keeps to the workspace limit.
  std::string versus = {};
  double budget_seconds = 1;
  double longest_seconds = std::numeric_limits<double>::infinity();
  std::uint64_t seed = 1;
};

// By the cost by which a solver is chosen, in multiply-adds at the device's peak; 0 where the peak is unknown.
double predicted_seconds(double cost, const devices::Device::Peaks& peaks);

// Throws for bad input.
std::vector<MeasureResult> measure(const Context& context, const MatrixWork& work, const devices::Device::Peaks& peaks,
                                   const MatrixMeasureOptions& options = {});

}  // namespace omniconv
