// verify --random: the randomised differential test, and what it found.
#pragma once

#include "checks.h"

namespace omniconv::cli {

// What verify's report says of a result.
Json result_json(const Problem& problem, const checking::VerifyResult& result);
// What the options ask of the problem's solvers.
checking::VerifyOptions verify_options(const Checks& checks, const Problem& problem);

int run_random(const Checks& checks, const std::vector<Problem>& problems, const Context& context, Json& json,
               const Keep& keep);

}  // namespace omniconv::cli
