// The choice among the solvers of gemm or conv2d: what the options allow, cheapest first.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/suggest.h"
#include "devices/device.h"
#include "omniconv/error.h"
#include "omniconv/solver_options.h"
#include "omniconv/types.h"
#include "solvers/matrix_solver.h"

namespace omniconv {

// Throws for options that no solver could keep, or that name none.
void check_options(const SolverOptions& options, std::span<const std::string_view> ids);

// Why the options exclude a solver that would serve; empty if they do not.
std::string excluded(std::string_view id, const SolverOptions& options, const solvers::MatrixBound& bound,
                     bool only_fma, bool deterministic);

// "1 * (576/2 + 2) * 2^-23 * sum|a*b|"
std::string describe(const solvers::MatrixBound& bound, DataType type);

template <typename Solver>
std::vector<std::string_view> ids_of(std::span<const Solver* const> all) {
  std::vector<std::string_view> ids;
  for (const Solver* solver : all) ids.push_back(solver->id());
  return ids;
}

template <typename Solver, typename Task>
std::string reason_against(const Solver& solver, const Task& task, const devices::Device& device,
                           const SolverOptions& options) {
  if (std::string reason = solver.refusal(task, device); !reason.empty()) return reason;
  return excluded(solver.id(), options, solver.bound(task, device), solver.uses_only_fma(), solver.is_deterministic());
}

// The candidates, cheapest first; equal costs keep the registry's order. Refused ones stand last.
template <typename Solver, typename Task>
std::vector<Candidate> candidates_for(std::span<const Solver* const> all, const Task& task, DataType type,
                                      const devices::Device& device, const SolverOptions& options) {
  check_options(options, ids_of(all));
  std::vector<Candidate> candidates;
  for (const Solver* solver : all) {
    if (options.solver != "auto" && options.solver != solver->id()) continue;
    Candidate candidate{.solver = std::string(solver->id()), .reason = reason_against(*solver, task, device, options)};
    candidate.applicable = candidate.reason.empty();
    if (candidate.applicable) {
      const std::int64_t limit = options.max_workspace_bytes;
      candidate.workspace_bytes = solver->workspace_bytes(task, device, limit);
      candidate.cost = solver->cost(task, device);
      candidate.bound = describe(solver->bound(task, device), type);
      candidate.applicable = limit < 0 || candidate.workspace_bytes <= limit;
      if (!candidate.applicable)
        candidate.reason = fmt::format("needs a workspace of {} bytes at the least, and the limit is {}",
                                       candidate.workspace_bytes, limit);
    }
    candidates.push_back(std::move(candidate));
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.applicable != b.applicable ? a.applicable : a.applicable && a.cost < b.cost;
  });
  return candidates;
}

// The first of them; throws where none serves, with each one's reason.
template <typename Solver, typename Task>
const Solver& chosen(std::span<const Solver* const> all, const Task& task, DataType type, const devices::Device& device,
                     const SolverOptions& options, const std::string& problem) {
  const std::vector<Candidate> candidates = candidates_for(all, task, type, device, options);
  if (!candidates.front().applicable) {
    if (candidates.size() == 1 && options.solver != "auto")
      throw bad_input(fmt::format("solver {} cannot serve {}: {}", options.solver, problem, candidates.front().reason));
    std::string reasons;
    std::int64_t least = -1;
    for (const Candidate& candidate : candidates) {
      reasons += fmt::format("; {}: {}", candidate.solver, candidate.reason);
      if (candidate.workspace_bytes > 0 && (least < 0 || candidate.workspace_bytes < least))
        least = candidate.workspace_bytes;
    }
    if (least >= 0)
      throw bad_input(fmt::format("no solver on {} serves {} in a workspace of {} bytes: the least that would is {}{}",
                                  device.info().id, problem, options.max_workspace_bytes, least, reasons));
    throw bad_input(fmt::format("no solver on {} serves {}{}", device.info().id, problem, reasons));
  }
  for (const Solver* solver : all)
    if (solver->id() == candidates.front().solver) return *solver;
  throw bad_input("unreachable");
}

}  // namespace omniconv
