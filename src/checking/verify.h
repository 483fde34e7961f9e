// Runs solvers of any operation on random data and checks them: bit for bit where bits are promised, exactly on small
// integers where the operation has such data, else against the double reference within the solver's own bound. Arrays
// lie between guards; outputs and workspaces are poisoned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/plan.h"
#include "operations/solver.h"

namespace omniconv::checking {

class Host;

struct VerifyOptions {
  SolverOptions solver = {};  // `solver`: what auto would run; all: every candidate of the device; or an id
  bool sampled = false;       // check a random sample of outputs, edges and corners among them
  std::int64_t samples = 4096;
  std::int64_t strip_rows = 0;  // of filter2d: run in strips of so many output rows; 0: at once
  std::uint64_t seed = 1;
  // Whether a result may be mostly zero, which a comparison says little of: of random problems some are, such as an
  // edge filter of an image that its border mirrors.
  bool may_be_zero = false;
  std::shared_ptr<Host> host = {};  // of several calls on one context, one after the other; null: one of the call's own
};

enum class Status : std::uint8_t { ok, refused, failed };
std::string_view name(Status status);

struct VerifyResult {
  std::string solver;
  Status status = Status::ok;
  std::string reason = {};      // of a refusal or a failure
  std::int64_t checked = 0;     // elements
  double error = 0, bound = 0;  // the largest, in the units of the bound: stored values where bits are promised (bound
                                // 0), else epsilon times the bound's norm
  std::string tuning = {};      // in full
  std::string unit = {};        // of both: "2^-23 * sum|a*b|", or "stored values"
  double plan_seconds = 0, compile_seconds = 0;  // of making the plan, and of that in the compiler of device text
};

// Each result as it comes; solvers that refuse are among them with their reason. Throws for bad input, and where the
// options name one solver, or auto, and none serves.
void verify(const Context& context, const Problem& problem, const VerifyOptions& options,
            const std::function<void(const VerifyResult&)>& report);
std::vector<VerifyResult> verify(const Context& context, const Problem& problem, const VerifyOptions& options = {});

// Of filters whose weights the caller has.
std::vector<VerifyResult> verify(const Context& context, const Problem& problem, const operations::AnyTask& task,
                                 const VerifyOptions& options);

}  // namespace omniconv::checking
