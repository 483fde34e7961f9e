// The tables of train --list-models.
#pragma once

#include <cstdint>
#include <string>

#include "report.h"

namespace omniconv::cli {

// What a batch's numbers are.
struct BatchSize {
  std::int64_t batch = 64, element_bytes = 4;
};

// Of one model, or of all that are built in: each layer's output, how many numbers it has, parameters, and what the
// output takes for a batch.
int list_models(const std::string& model, const BatchSize& size, bool prints, Json& json);

}  // namespace omniconv::cli
