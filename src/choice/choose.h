// The choice among an operation's solvers: what the options allow, cheapest first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operations/operation.h"

namespace omniconv::choice {

// A solver's answer, and why it is not to be had: its own refusal, or the options'; empty if it is.
struct Considered {
  const operations::Solver* solver;
  operations::Answer answer;
  std::string reason = {};

  bool serves() const { return reason.empty(); }
};

// The operation's own, then those of other libraries.
std::vector<const operations::Solver*> solvers_of(const operations::Operation& operation);

// All solvers of the operation (of --solver ID that one; of other libraries those that are named), those that serve
// first, the cheapest before others; equal costs keep the registry's order. `as_named`: each as if the options named
// it. Throws for options that no solver could keep, or that name none.
std::vector<Considered> consider(const operations::Operation& operation, const operations::AnyTask& task,
                                 const operations::DevicePointer& device, const SolverOptions& options,
                                 bool as_named = false);

// The first of them; throws where none serves, with each one's reason.
Considered choose(const operations::Operation& operation, const operations::AnyTask& task, const Problem& problem,
                  const operations::DevicePointer& device, const SolverOptions& options);

// "1 * (576/2 + 2) * 2^-23 * sum|a*b|", or "bit-exact".
std::string describe(const operations::ErrorBound& bound);

Candidate candidate_of(const Considered& considered);

}  // namespace omniconv::choice
