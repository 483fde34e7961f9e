#include "operations/add/reference/element.h"

#include "core/convert.h"

namespace omniconv::reference {

// In double precision, which has more than twice the digits of the other types and two more: a sum of theirs that is
// rounded to it and then to them is the nearest one (S. Figueroa, When is double rounding innocuous?, 1995).
void added(const AddProblem& problem, const std::byte* base, const std::byte* other, std::byte* to) {
  const double x = load_element(problem.type, base);
  const double sum = other == nullptr ? x : x + load_element(problem.type, other);
  store_element(problem.type, problem.relu && sum <= 0 ? 0.0 : sum, to);
}

}  // namespace omniconv::reference
