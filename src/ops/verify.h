// Runs solvers on random data and checks them: bit for bit where bits are promised, else against the double reference
// within the solver's own bound.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/filter2d.h"

namespace omniconv {

struct VerifyOptions {
  std::string solver = "auto";  // what auto would run; all: every candidate of the device; or an id
  bool sampled = false;         // check a random sample of outputs, edges and corners among them
  std::int64_t samples = 4096;
  std::int64_t strip_rows = 0;  // run in strips of so many output rows; 0: at once
  std::uint64_t seed = 1;
};

enum class Status : std::uint8_t { ok, refused, failed };
std::string_view name(Status status);

struct VerifyResult {
  std::string solver;
  Status status = Status::ok;
  std::string reason;           // of a refusal or a failure
  std::int64_t checked = 0;     // elements
  double error = 0, bound = 0;  // the largest, in the units of the bound: stored values where bits are promised (bound
                                // 0), else epsilon * (|scale| * sum |x * w| + |bias|)
  double plan_seconds = 0, compile_seconds = 0;  // of making the plan, and of that in the compiler of device text
};

// Throws where no solver has this id, with the nearest that there are.
void require_solver(std::string_view id);

// The solver that auto would run. Nothing is compiled to find it. Throws where none serves, with each one's reason.
std::string auto_solver(const Context& context, const Filter2dProblem& problem, const Filter& filter);

// Refused solvers are in the list with their reason. Throws for bad input.
std::vector<VerifyResult> verify(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                                 const VerifyOptions& options = {});

}  // namespace omniconv
