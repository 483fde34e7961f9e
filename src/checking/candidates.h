// Which of a problem's solvers are measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choice/choose.h"

namespace omniconv::checking {

struct Candidates {
  std::vector<choice::Considered> all;  // in the order of choice
  SolverOptions choice;                 // that each is asked for, with its id as `solver`
  bool are_several = false;             // what fails does not end the others
};

// By `solver` of the options: of auto and of an id the one that serves; of all those of the device, without the
// references, unless they are allowed by name. Throws where auto or an id names none that serves.
Candidates candidates_of(const Context& context, const Problem& problem, const operations::AnyTask& task,
                         const SolverOptions& options);

// The same request of the solver beside which others are timed.
SolverOptions choice_of_versus(SolverOptions options, const std::string& versus);

// The request of one solver, with as many of the arrays that are read prepared as it has forms of; none, where it has
// no form of any.
std::optional<SolverOptions> choice_of_prepared(const Context& context, const Problem& problem,
                                                const operations::AnyTask& task, SolverOptions choice);

}  // namespace omniconv::checking
