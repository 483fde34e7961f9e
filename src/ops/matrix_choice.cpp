#include "ops/matrix_choice.h"

#include "omniconv/types.h"

namespace omniconv {
namespace {

bool names(const std::string& pattern, std::string_view id) {
  return id.starts_with(pattern) && (id.size() == pattern.size() || pattern.back() == '/' || id[pattern.size()] == '/');
}

bool any_names(const std::vector<std::string>& patterns, std::string_view id) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return !pattern.empty() && names(pattern, id); });
}

}  // namespace

void check_options(const SolverOptions& options, std::span<const std::string_view> ids) {
  const auto unknown = [&](const std::string& what, const std::string& id) {
    return bad_input(fmt::format("unknown solver '{}'{}: {}", id, what, suggest(id, ids)));
  };
  if (options.solver != "auto" && std::find(ids.begin(), ids.end(), options.solver) == ids.end())
    throw unknown("", options.solver);
  for (const auto& [what, patterns] : {std::pair(" in allow", &options.allow), std::pair(" in deny", &options.deny)})
    for (const std::string& pattern : *patterns)
      if (std::none_of(ids.begin(), ids.end(),
                       [&](std::string_view id) { return !pattern.empty() && names(pattern, id); }))
        throw unknown(what, pattern);
  if (!(options.max_error >= 0))
    throw bad_input(
        fmt::format("max_error is {}: must be an amplification of at least 0, as in 1024", options.max_error));
  if (options.units > Units::fma)
    throw bad_input(fmt::format("units is number {}: must be any or fma", static_cast<int>(options.units)));
}

std::string excluded(std::string_view id, const SolverOptions& options, const solvers::MatrixBound& bound,
                     bool only_fma, bool deterministic) {
  if (!options.allow.empty() && !any_names(options.allow, id)) return "is not among those allowed";
  if (any_names(options.deny, id)) return "is denied";
  if (options.units == Units::fma && !only_fma) return "uses other units than fused multiply-adds";
  if (options.deterministic && !deterministic) return "may give other bits from run to run";
  if (bound.amplification > options.max_error)
    return fmt::format("its errors are amplified {:g} times, and max_error is {:g}", bound.amplification,
                       options.max_error);
  return {};
}

std::string describe(const solvers::MatrixBound& bound, DataType type) {
  return fmt::format("{:g} * ({:g}/2 + {:g}) * 2^-{} * sum|a*b|", bound.amplification, bound.chain, bound.constant,
                     type == DataType::f64 ? 52 : 23);
}

}  // namespace omniconv
