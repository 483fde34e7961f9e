// The checks of one problem: its data and expected results are made once, for any number of its plans.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "checking/trial.h"

namespace omniconv::checking {

struct MadePlan {
  Plan plan;
  double seconds = 0;  // that making it took
};
// Of the solver that the options name.
MadePlan make_plan(const Context& context, const Problem& problem, const operations::AnyTask& task,
                   const SolverOptions& options);

class Checker {
 public:
  // All that it is given outlives it.
  Checker(const Context& context, const Problem& problem, const operations::AnyTask& task, const VerifyOptions& options,
          Host& host)
      : context_(context), problem_(problem), task_(task), options_(options), host_(host) {}

  VerifyResult check(const MadePlan& made);
  // Random numbers of an array that plans read; empty of others.
  std::span<const std::byte> random_data(std::size_t array) { return trials().back()->data(array); }

 private:
  std::vector<std::unique_ptr<Trial>>& trials();

  const Context& context_;
  const Problem& problem_;
  const operations::AnyTask& task_;
  const VerifyOptions& options_;
  Host& host_;
  std::vector<std::unique_ptr<Trial>> trials_;
};

}  // namespace omniconv::checking
