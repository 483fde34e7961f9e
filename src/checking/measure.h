// Times solvers of any operation: fresh random data, outputs poisoned before, caches cold between samples.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checking/verify.h"
#include "devices/device.h"
#include "timing/stopwatch.h"

namespace omniconv::operations {
struct Figures;
}

namespace omniconv::checking {

class PlansAhead;

struct MeasureOptions {
  // `solver`: what auto would run; all: every candidate of the device, without the references unless `allow` names
  // solvers; or an id.
  SolverOptions solver = {};
  // The id of a solver to time beside each, in turn with it; empty: none. It need not be among those allowed, but keeps
  // to the workspace limit.
  std::string versus = {};
  // Those of other libraries, too, after the rest.
  bool vendors = false;
  // Each once more with what it reads prepared, where it has such forms.
  bool also_prepared = false;
  double budget_seconds = 1;  // per solver
  // One run may be predicted to take so long; a solver predicted above is refused. Needs peaks.
  double longest_seconds = std::numeric_limits<double>::infinity();
  std::uint64_t seed = 1;
  std::shared_ptr<Host> host = {};         // of several calls, as of VerifyOptions
  std::shared_ptr<PlansAhead> ahead = {};  // has plans of the same options; null: all are made in the call
};

// The solver beside which another was timed.
struct Versus {
  std::string solver;
  Status status = Status::ok;
  std::string reason = {};  // of a refusal or a failure
  timing::Summary seconds = {};
  timing::Summary ratio = {};  // its time divided by the other's, pair by pair: above 1 the other is faster
};

// The same solver with arrays prepared.
struct AlsoPrepared {
  std::vector<std::string> arrays;
  Status status = Status::ok;
  std::string reason = {};                       // of a failure
  timing::Summary seconds = {}, preparing = {};  // of a run; of making the forms of all these arrays
  std::int64_t workspace_bytes = 0;
  std::string tuning = {};
};

struct MeasureResult {
  std::string solver;
  bool is_vendors = false;  // of another library
  bool uses_only_fma = true;
  Status status = Status::ok;
  std::string reason = {};
  timing::Summary seconds = {};
  double operations = 0;         // of the definition: two for a multiply-add
  double least_operations = 0;   // that could give the result
  double bytes = 0;              // each input element read once, each output element written once
  double pixels = 0;             // of an image
  double floor_seconds = 0;      // the larger of the least arithmetic / peak and bytes / bandwidth; 0: peaks unknown
  bool memory_binds = false;     // the floor is that of the bytes
  double predicted_seconds = 0;  // by the cost model of the choice; 0 where the peaks are unknown
  double compile_seconds = 0, plan_seconds = 0, transfer_seconds = 0;
  std::int64_t workspace_bytes = 0;
  double error = 0, bound = 0;  // of a sampled check, as in VerifyResult
  std::string tuning = {};
  std::optional<Versus> versus = {};
  std::optional<AlsoPrepared> prepared = {};
};

// Each array read once, each output written once, unless the operation says what a run moves.
double moved_bytes(const operations::Figures& figures, const std::vector<ArraySpec>& arrays);

// By the cost by which a solver is chosen; 0 where the peaks are unknown.
double predicted_seconds(double multiply_adds, double bytes, const devices::Device::Peaks& peaks);

// The floors of a timed result by these peaks.
void set_floor(MeasureResult& result, const devices::Device::Peaks& peaks);

// Each result as it comes. Throws for bad input, an unknown solver among it.
void measure(const Context& context, const Problem& problem, const devices::Device::Peaks& peaks,
             const MeasureOptions& options, const std::function<void(const MeasureResult&)>& report);
std::vector<MeasureResult> measure(const Context& context, const Problem& problem, const devices::Device::Peaks& peaks,
                                   const MeasureOptions& options = {});

}  // namespace omniconv::checking
