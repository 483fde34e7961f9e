#include <cmath>

#include "core/convert.h"
#include "operations/gemm/reference/element.h"

namespace omniconv::reference {

DoubleSum gemm_element(const GemmProblem& problem, const std::byte* a, std::int64_t lda, const std::byte* b,
                       std::int64_t ldb, std::int64_t i, std::int64_t j) {
  const std::int64_t size = size_of(problem.type);
  DoubleSum sum;
  for (std::int64_t t = 0; t < problem.k; ++t) {
    const std::int64_t of_a = problem.transpose_a ? t * lda + i : i * lda + t;
    const std::int64_t of_b = problem.transpose_b ? j * ldb + t : t * ldb + j;
    const double product = load_element(problem.type, a + of_a * size) * load_element(problem.type, b + of_b * size);
    sum.value += product;
    sum.magnitude += std::fabs(product);
  }
  return sum;
}

}  // namespace omniconv::reference
