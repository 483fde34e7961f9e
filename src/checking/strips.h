// Filters checked in strips, as files and devices run them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checking/transfers.h"
#include "checking/verify.h"

namespace omniconv::checking {

// The output of a filter's plan over the image, strip by strip, each given its own rows alone and its output between
// guards; the result fails where these were written to. Throws for plans of other operations.
std::vector<std::byte> run_in_strips(Transfers& transfers, const Plan& plan, std::span<const std::byte> image,
                                     std::int64_t strip_rows, VerifyResult& result);

}  // namespace omniconv::checking
