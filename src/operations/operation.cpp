#include "operations/operation.h"

#include <algorithm>
#include <random>

namespace omniconv::operations {

// The first and the last, and a random choice between.
std::vector<std::int64_t> Operation::sample(const AnyTask&, const ArraySpec& array, std::int64_t samples,
                                            std::uint64_t seed) const {
  constexpr std::int64_t ends = 8;
  const std::int64_t all = array.elements(), count = std::min(samples, all);
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> points;
  for (std::int64_t i = 0; i < count; ++i)
    points.push_back(count == all   ? i
                     : i < ends     ? i
                     : i < 2 * ends ? all - 1 - (i - ends)
                                    : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(all)));
  return points;
}

void PlanBody::append_prepare(devices::Sequence&, std::size_t, const Operand&, const Operand&) const {
  throw bad_input("this plan takes its arrays as they are");
}

std::vector<Tuning> tunings_of(const Solver& solver, const AnyTask& task, const DevicePointer& device) {
  const Answer first = solver.offer_any(task, device, {});
  if (solver.tunables().empty() || first.offer() == nullptr) return {};
  std::vector<Tuning> all = {first.offer()->tuning};
  for_each_tuning(solver.tunables(), [&](const Tuning& one) {
    if (one != all.front() && solver.offer_any(task, device, {.tuning = one.to_text()}).offer() != nullptr)
      all.push_back(one);
  });
  return all;
}

std::string Operation::place(const AnyTask&, const ArraySpec& array, std::int64_t point) const {
  return fmt::format("{}[{}]", array.name, point);
}

}  // namespace omniconv::operations
