#include "checking/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/convert.h"

namespace omniconv::checking {
namespace {

using operations::Expected;

// Sums of integers up to this magnitude are exact in fp32.
constexpr double largest_exact = 0x1p24;

// gamma: higher orders too.
double closed(double units, double epsilon) {
  return units / (1 - units * epsilon);
}

// The reference's own roundings count too: in fp32's epsilon they vanish, for f64 they do not.
double units_of(const operations::ErrorBound& bound, double reference_units) {
  if (bound.exact) return 0;
  const double solver = bound.amplification * (bound.chain / 2 + bound.constant);
  return closed(solver, bound.epsilon()) + closed(reference_units, 0x1p-52) * 0x1p-52 / bound.epsilon();
}

}  // namespace

Judge::Judge(const operations::Operation& operation, const operations::AnyTask& task, const ArraySpec& array,
             operations::DataKind kind, const operations::ErrorBound& bound, double largest_product)
    : operation_(operation),
      task_(task),
      array_(array),
      must_be_whole_(kind == operations::DataKind::integers && !bound.rounds_integers),
      largest_exact_(largest_exact / bound.integer_scale),
      epsilon_(bound.epsilon()),
      units_(units_of(bound, operation.figures(task).reference_units)),
      absolute_(bound.absolute * largest_product) {}

void Judge::check(std::int64_t point, const Expected& expected, const std::byte* stored, VerifyResult& result) const {
  ++result.checked;
  if (expected.exact)
    check_bits(point, expected, stored, result);
  else if (must_be_whole_ && expected.magnitude <= largest_exact_)
    check_exact(point, expected, stored, result);
  else
    check_bound(point, expected, stored, result);
}

void Judge::check_bits(std::int64_t point, const Expected& expected, const std::byte* stored,
                       VerifyResult& result) const {
  if (std::memcmp(expected.bytes, stored, static_cast<std::size_t>(size_of(array_.type))) == 0) return;
  const double wanted = load_element(array_.type, expected.bytes), found = load_element(array_.type, stored);
  result.error = std::max(result.error, std::fabs(found - wanted));
  fail(point, fmt::format("is {} and must be {} to the bit", found, wanted), result);
}

void Judge::check_exact(std::int64_t point, const Expected& expected, const std::byte* stored,
                        VerifyResult& result) const {
  const double found = load_element(array_.type, stored), wanted = converted(expected.value);
  if (found != wanted) fail(point, fmt::format("of integers is {} and must be {}", found, wanted), result);
}

// Rounding to the stored type is monotone: what lies within the bound before it lies between the rounded ends after it.
void Judge::check_bound(std::int64_t point, const Expected& expected, const std::byte* stored,
                        VerifyResult& result) const {
  const double lost = units_ * epsilon_ * expected.condition;
  if (!(lost < 1)) return;  // a divisor that rounding alone may turn to zero or less: the result may be anything
  const double unit = epsilon_ * expected.magnitude / (1 - lost), allowed = units_ * unit + absolute_;
  const double found = load_element(array_.type, stored), low = converted(expected.value - allowed),
               high = converted(expected.value + allowed);
  if (!(found >= low && found <= high) && !(std::isnan(found) && std::isnan(expected.value)))
    fail(point, fmt::format("is {} and must lie in [{}, {}]", found, low, high), result);
  const bool wide = size_of(array_.type) >= 4 && !is_integer(array_.type);
  if (unit == 0 || !wide || operation_.finished(task_, expected.value) != expected.value) return;
  // What rounding to the stored type alone accounts for is no error of the solver's, and the absolute term none in
  // units.
  const double excess =
      std::fabs(found - expected.value) - std::fabs(converted(expected.value) - expected.value) - absolute_;
  result.error = std::max(result.error, excess / unit);
}

void Judge::fail(std::int64_t point, const std::string& what, VerifyResult& result) const {
  if (result.status == Status::failed) return;  // the first is reported
  result.status = Status::failed;
  result.reason = fmt::format("{} {}", operation_.place(task_, array_, point), what);
}

double Judge::converted(double value) const {
  std::byte bytes[8];
  store_element(array_.type, operation_.finished(task_, value), bytes);
  return load_element(array_.type, bytes);
}

}  // namespace omniconv::checking
