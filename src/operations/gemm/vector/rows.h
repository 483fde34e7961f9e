// Products of stored rows and one vector: the rows' steps, and the vector's, lie side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/types.h"

namespace omniconv::kernels {

// Sums of a row, of which step t is added to sum t % row_chains; they are added in halves, the second to the first.
inline constexpr int row_chains = 32;

struct VectorRows {
  const std::byte *rows, *vector;
  DataType type;              // of both
  std::int64_t pitch, steps;  // elements from a row to the next, and of each
};

// sums[i] = the sum over t of rows[i, t] * vector[t], for rows [first, end).
void multiply_rows(const VectorRows& rows, std::int64_t first, std::int64_t end, float* sums);
void multiply_rows(const VectorRows& rows, std::int64_t first, std::int64_t end, double* sums);

}  // namespace omniconv::kernels
