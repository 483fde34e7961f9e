// Times solvers: fresh random data, outputs poisoned before, caches cold between samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "devices/device.h"
#include "omniconv/filter2d.h"
#include "ops/verify.h"
#include "timing/stopwatch.h"

namespace omniconv {

struct MeasureOptions {
  std::string solver = "auto";
  double budget_seconds = 1;  // per solver
  std::uint64_t seed = 1;
};

struct MeasureResult {
  std::string solver;
  Status status = Status::ok;
  std::string reason;
  timing::Summary seconds;
  double operations = 0;     // of the definition: two per weight and output element
  double bytes = 0;          // each input element read once, each output element written once
  double floor_seconds = 0;  // the larger of operations / peak and bytes / bandwidth; 0 where the peaks are unknown
  double compile_seconds = 0, plan_seconds = 0, transfer_seconds = 0;
  std::int64_t workspace_bytes = 0;
  double error = 0, bound = 0;  // of a sampled check, as in VerifyResult
};

std::vector<MeasureResult> measure(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                                   const devices::Device::Peaks& peaks, const MeasureOptions& options = {});

}  // namespace omniconv
