// The randomised differential test: solvers on random problems of every operation, against the references. What fails
// is made small.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checking/shrink.h"
#include "checking/verify.h"
#include "operations/operation.h"

namespace omniconv::checking {

// The first of a seed are the same, however many there are.
std::vector<Problem> random_problems(std::span<const operations::Operation* const> operations, std::int64_t count,
                                     std::uint64_t seed);

struct Failure {
  Problem problem;  // as it was drawn
  VerifyResult result;
  bool fails_again = true;  // alone; false is the mark of a race
  // Where it was made small: what of it fails by the same solver, and how.
  std::optional<Shrunk> small = {};
  VerifyResult small_result = {};

  const Problem& smallest() const { return small ? small->problem : problem; }
  // Lines that say it all, and the command that shows it again, of which `options` are the last.
  std::string to_text(std::string_view options) const;
};

struct SolverTally {
  std::string solver;
  std::int64_t passed = 0, failed = 0, refused = 0;
  // The largest error of what passed, as a part of its bound, and the problem that had it.
  double largest_ratio = 0;
  std::string worst_problem = {};
};

struct DifferentialTally {
  std::vector<SolverTally> solvers;                  // in the order in which problems met them
  std::int64_t problems = 0, unserved_problems = 0;  // that were checked, and which of these no solver served
  bool is_given_up = false;                          // too many failures, or the device is lost

  SolverTally& of(const std::string& solver);
};

struct DifferentialOptions {
  // What is asked of a problem's solvers.
  std::function<VerifyOptions(const Problem&)> verify = {};
  int threads = 1;  // of the host, each with a problem of its own
  ShrinkBudget budget = {};
  int most_shrunk = 3;      // failures of a solver; others are reported as they are
  int most_failures = 100;  // then it ends: where a device is lost, all fails
};

// What is told while it runs, by the thread that called.
struct DifferentialWatch {
  // Before a result is waited for: the problems under way.
  std::function<void(std::span<const Problem>, const DifferentialTally&)> waits;
  std::function<void(const Failure&)> failed;
};

DifferentialTally verify_each(const Context& context, std::span<const Problem> problems,
                              const DifferentialOptions& options, const DifferentialWatch& watch);

}  // namespace omniconv::checking
