// Plans of several problems, made side by side before the first is measured: device text is compiled by as many threads
// as the host has cores, and what is timed then has the machine for itself.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "checking/checker.h"
#include "checking/measure.h"

namespace omniconv::checking {

// A problem, and what measure() will be asked of it; nothing where it will not be called.
struct Planned {
  Problem problem;
  std::optional<MeasureOptions> options;
};

class PlansAhead {
 public:
  // Makes the plans that measure() would make of the first problems, of so many that memory is bounded, and returns how
  // many problems these are, at least one. Those of other libraries, which time things to choose, are left out, and so
  // is what throws: measure() meets it again. Once `stops` is true no more are begun.
  std::size_t make(const Context& context, std::span<const Planned> problems, const std::function<bool()>& stops);

  // Hands a plan over that was made of this problem by these options.
  std::optional<MadePlan> take(const Problem& problem, const SolverOptions& options);

  // The most plans that were being made at once, each of whose times is that of its own thread.
  int most_at_once() const { return most_at_once_; }

 private:
  std::multimap<std::string, MadePlan> made_;
  int most_at_once_ = 1;
};

}  // namespace omniconv::checking
