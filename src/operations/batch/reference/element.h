// The reference of batch: an element by itself, as the formula says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/batch.h"
#include "operations/batch/draw.h"

namespace omniconv::reference {

struct BatchData {
  const std::byte *images, *labels, *order, *table;
};

// Of y, in the order of its layout; in fp32, before it is rounded to the problem's type.
double batch_element(const BatchProblem& problem, const BatchData& data, const operations::BatchNumbers& numbers,
                     std::int64_t at);
double batch_class(const BatchProblem& problem, const BatchData& data, const operations::BatchNumbers& numbers,
                   std::int64_t i);

}  // namespace omniconv::reference
