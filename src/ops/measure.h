// Times solvers: fresh random data, outputs poisoned before, caches cold between samples.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "devices/device.h"
#include "omniconv/filter2d.h"
#include "ops/verify.h"
#include "timing/stopwatch.h"

namespace omniconv {

struct MeasureOptions {
  std::string solver = "auto";  // what auto would run; all: every solver but the references; or an id
  std::string versus = {};      // the id of a solver to time beside each, in turn with it; empty: none
  double budget_seconds = 1;    // per solver
  // One run may be predicted to take so long; a solver predicted above is refused. Needs peaks.
  double longest_seconds = std::numeric_limits<double>::infinity();
  std::uint64_t seed = 1;
};

// The solver beside which another was timed.
struct Versus {
  std::string solver;
  Status status = Status::ok;
  std::string reason;  // of a refusal or a failure
  timing::Summary seconds = {};
  timing::Summary ratio = {};  // its time divided by the other's, pair by pair: above 1 the other is faster
};

struct MeasureResult {
  std::string solver;
  Status status = Status::ok;
  std::string reason;
  timing::Summary seconds = {};
  double operations = 0;         // of the definition: two per tap and output element
  double bytes = 0;              // each input element read once, each output element written once
  double floor_seconds = 0;      // the larger of the least arithmetic / peak and bytes / bandwidth; 0: peaks unknown
  bool memory_binds = false;     // the floor is that of the bytes
  double predicted_seconds = 0;  // by the cost model of the choice; 0 where the peaks are unknown
  double compile_seconds = 0, plan_seconds = 0, transfer_seconds = 0;
  std::int64_t workspace_bytes = 0;
  double error = 0, bound = 0;  // of a sampled check, as in VerifyResult
  std::optional<Versus> versus = {};
};

// Works out the floors of a timed result, the arithmetic's from the fewest `operations` it could take. Where its arrays
// outgrow the caches, a timing that beats half of the memory floor fails: a copy that first reads its target moves half
// as much again.
void judge(MeasureResult& r, const devices::Device::Peaks& peaks, double operations, bool outgrows_caches);

// Throws for bad input, an unknown solver among it.
std::vector<MeasureResult> measure(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                                   const devices::Device::Peaks& peaks, const MeasureOptions& options = {});

}  // namespace omniconv
