#include "checking/solver_ids.h"

#include <fmt/format.h>

#include <algorithm>

#include "choice/choose.h"
#include "core/suggest.h"
#include "omniconv/error.h"
#include "operations/operation.h"

namespace omniconv::checking {
namespace {

void require(std::string_view name, const std::vector<std::string_view>& known) {
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw bad_input(fmt::format("unknown solver '{}': {}", name, suggest(name, known)));
}

}  // namespace

std::vector<std::string_view> solver_ids() {
  std::vector<std::string_view> ids;
  for (const operations::Operation* const operation : operations::operations())
    for (const operations::Solver* const solver : choice::solvers_of(*operation)) ids.push_back(solver->id());
  return ids;
}

std::string_view operation_of_id(std::string_view solver_id) {
  return solver_id.substr(0, solver_id.find('/'));
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

}  // namespace omniconv::checking
