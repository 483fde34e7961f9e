#include "ops/solver_ids.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/suggest.h"
#include "omniconv/error.h"
#include "solvers/conv2d/conv2d.h"
#include "solvers/gemm/gemm.h"
#include "solvers/solver.h"

namespace omniconv {
namespace {

void require(std::string_view name, const std::vector<std::string_view>& known) {
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw bad_input(fmt::format("unknown solver '{}': {}", name, suggest(name, known)));
}

}  // namespace

std::vector<std::string_view> solver_ids() {
  std::vector<std::string_view> ids;
  const auto add = [&](const auto& solvers) {
    for (const auto* solver : solvers) ids.push_back(solver->id());
  };
  add(solvers::filter2d_solvers());
  add(solvers::conv2d_solvers());
  add(solvers::gemm_solvers());
  return ids;
}

std::string_view operation_of(std::string_view solver_id) {
  return solver_id.substr(0, solver_id.find('/'));
}

std::string_view operation_of(const Problem& problem) {
  if (std::holds_alternative<Filter2dProblem>(problem)) return "filter2d";
  return std::holds_alternative<Conv2dProblem>(problem) ? "conv2d" : "gemm";
}

bool is_reference(std::string_view solver_id) {
  const std::string_view rest = solver_id.substr(std::min(operation_of(solver_id).size() + 1, solver_id.size()));
  return rest.starts_with("double/") || rest.starts_with("definition/");
}

void require_any_solver(std::string_view id) {
  require(id, solver_ids());
}

void require_any_solver_like(std::string_view pattern) {
  std::vector<std::string_view> known;
  for (const std::string_view id : solver_ids()) {
    for (std::size_t slash = id.find('/'); slash != std::string_view::npos; slash = id.find('/', slash + 1))
      if (std::find(known.begin(), known.end(), id.substr(0, slash)) == known.end())
        known.push_back(id.substr(0, slash));
    known.push_back(id);
  }
  require(pattern.ends_with('/') ? pattern.substr(0, pattern.size() - 1) : pattern, known);
}

}  // namespace omniconv
