#include "choice/choose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/suggest.h"
#include "omniconv/error.h"
#include "vendor/vendor.h"

namespace omniconv::choice {
namespace {

using operations::Answer;
using operations::AnyTask;
using operations::DevicePointer;
using operations::Offer;
using operations::Operation;
using operations::Solver;

bool names(const std::string& pattern, std::string_view id) {
  return !pattern.empty() && id.starts_with(pattern) &&
         (id.size() == pattern.size() || pattern.back() == '/' || id[pattern.size()] == '/');
}

bool any_names(const std::vector<std::string>& patterns, std::string_view id) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return names(pattern, id); });
}

// Those of other libraries only where the options name them, by id or among those allowed.
std::vector<const Solver*> candidates_of(const Operation& operation, const SolverOptions& options) {
  std::vector<const Solver*> all = solvers_of(operation);
  std::erase_if(all, [&](const Solver* solver) {
    return solver->role() == operations::SolverRole::vendor && options.solver != solver->id() &&
           !any_names(options.allow, solver->id());
  });
  return all;
}

void check_options(const SolverOptions& options, const Operation& operation) {
  std::vector<std::string_view> ids;
  for (const Solver* const solver : solvers_of(operation)) ids.push_back(solver->id());
  const auto unknown = [&](const char* where, const std::string& id) {
    return bad_input(fmt::format("unknown solver '{}'{}: {}", id, where, suggest(id, ids)));
  };
  if (options.solver != "auto" && std::find(ids.begin(), ids.end(), options.solver) == ids.end())
    throw unknown("", options.solver);
  for (const auto& [where, patterns] : {std::pair(" in allow", &options.allow), std::pair(" in deny", &options.deny)})
    for (const std::string& pattern : *patterns)
      if (std::none_of(ids.begin(), ids.end(), [&](std::string_view id) { return names(pattern, id); }))
        throw unknown(where, pattern);
  std::vector<std::string> forms = options.prepared;
  forms.insert(forms.end(), options.measured.begin(), options.measured.end());
  for (const std::string& array : forms) {
    std::vector<std::string> known;
    for (const operations::ArrayHelp& help : operation.array_help()) known.push_back(help.name);
    if (std::find(known.begin(), known.end(), array) == known.end())
      throw bad_input(fmt::format("prepared array '{}': {} has {}", array, operation.name(), fmt::join(known, ", ")));
    if (std::count(forms.begin(), forms.end(), array) > 1)
      throw bad_input(fmt::format("prepared array '{}' stands twice", array));
  }
  if (!options.tuning.empty() && options.solver == "auto")
    throw bad_input(fmt::format("tuning '{}' is given without a solver: name the one whose it is", options.tuning));
  operations::Tuning::parse(options.tuning);  // throws
  if (!(options.max_error >= 0))
    throw bad_input(
        fmt::format("max_error is {}: must be an amplification of at least 0, as in 1024", options.max_error));
  if (options.units > Units::fma)
    throw bad_input(fmt::format("units is number {}: must be any or fma", static_cast<int>(options.units)));
}

// Whether the options name this algorithm: not only its operation, as --allow filter2d.
bool is_named(std::string_view id, const SolverOptions& options) {
  const std::size_t algorithm = id.find('/') + 1;
  return options.solver == id || std::ranges::any_of(options.allow, [&](const std::string& pattern) {
           return pattern.size() > algorithm && names(pattern, id);
         });
}

// Why the options exclude a solver that would serve; empty if they do not.
std::string excluded(const Solver& solver, const Offer& offer, const SolverOptions& options, bool as_named) {
  const std::string_view id = solver.id();
  if (!options.allow.empty() && !any_names(options.allow, id)) return "is not among those allowed";
  if (any_names(options.deny, id)) return "is denied";
  if (solver.role() == operations::SolverRole::study && !as_named && !is_named(id, options))
    return fmt::format("is a rung of the classic study: it serves where it is named, as by the solver {}", id);
  if (!offer.is_as_promised && !as_named && !is_named(id, options))
    return fmt::format(
        "an integer image has promised bits, of which its results may be neighbours: it serves where it "
        "is named, as by the solver {}",
        id);
  if (options.units == Units::fma && !offer.uses_only_fma) return "uses other units than fused multiply-adds";
  if (options.deterministic && !offer.is_deterministic) return "may give other bits from run to run";
  if (!offer.bound.exact && offer.bound.amplification > options.max_error)
    return fmt::format("its errors are amplified {:g} times, and max_error is {:g}", offer.bound.amplification,
                       options.max_error);
  if (options.relative_error && offer.bound.absolute > 0)
    return "its bound has a term by the largest numbers of all, and relative errors are asked for";
  if (offer.prepared.size() < options.prepared.size() + options.measured.size())
    return options.measured.empty() ? fmt::format("has no prepared form of {}", fmt::join(options.prepared, ", "))
                                    : fmt::format("has no measured form of {}", fmt::join(options.measured, ", "));
  const std::int64_t limit = options.max_workspace_bytes;
  if (limit >= 0 && offer.workspace_bytes > limit)
    return fmt::format("needs a workspace of {} bytes at the least, and the limit is {}", offer.workspace_bytes, limit);
  return {};
}

// With a tuning, only where it is in the solver's domain.
Answer answer_of(const Solver& solver, const AnyTask& task, const DevicePointer& device, const SolverOptions& options) {
  if (!options.tuning.empty())
    if (std::string reason = domain_refusal(operations::Tuning::parse(options.tuning), solver.tunables());
        !reason.empty())
      return reason;
  return solver.offer_any(task, device, options);
}

bool served_by_cpu(const Operation& operation, const AnyTask& task) {
  const DevicePointer cpu = devices::cpu_backend().open("", {});
  const auto solvers = operation.solvers();
  return std::any_of(solvers.begin(), solvers.end(),
                     [&](const Solver* solver) { return solver->offer_any(task, cpu, {}).offer() != nullptr; });
}

[[noreturn]] void refuse(const std::vector<Considered>& all, const Operation& operation, const AnyTask& task,
                         const Problem& problem, const DevicePointer& device, const SolverOptions& options) {
  if (options.solver != "auto")
    throw bad_input(fmt::format("solver {} cannot serve {}: {}", options.solver, to_text(problem), all.front().reason));
  SolverOptions unlimited = options;
  unlimited.max_workspace_bytes = -1;
  std::string reasons;
  std::int64_t least = -1;
  for (const Considered& one : all) {
    if (!operations::is_for(one.solver->id(), device->kind())) continue;
    reasons += fmt::format("; {}: {}", one.solver->id(), one.reason);
    const Offer* const offer = one.answer.offer();
    if (options.max_workspace_bytes >= 0 && offer != nullptr && excluded(*one.solver, *offer, unlimited, false).empty())
      least = least < 0 ? offer->workspace_bytes : std::min(least, offer->workspace_bytes);
  }
  const std::string& id = device->info().id;
  if (least >= 0)
    throw bad_input(fmt::format("no solver on {} serves {} in a workspace of {} bytes: the least that would is {}{}",
                                id, to_text(problem), options.max_workspace_bytes, least, reasons));
  const bool cpu_would = device->kind() != devices::DeviceKind::cpu && served_by_cpu(operation, task);
  throw bad_input(fmt::format("no solver on {} serves {}{}{}", id, to_text(problem), reasons,
                              cpu_would ? "; choose the device cpu" : ""));
}

}  // namespace

std::vector<const Solver*> solvers_of(const Operation& operation) {
  const auto own = operation.solvers();
  std::vector<const Solver*> all(own.begin(), own.end());
  const auto vendors = vendor::solvers_of(operation.name());
  all.insert(all.end(), vendors.begin(), vendors.end());
  return all;
}

std::vector<Considered> consider(const Operation& operation, const AnyTask& task, const DevicePointer& device,
                                 const SolverOptions& options, bool as_named) {
  check_options(options, operation);
  std::vector<Considered> all;
  for (const Solver* const solver : candidates_of(operation, options)) {
    if (options.solver != "auto" && options.solver != solver->id()) continue;
    Considered one{solver, answer_of(*solver, task, device, options)};
    const Offer* const offer = one.answer.offer();
    one.reason = offer == nullptr ? one.answer.refusal() : excluded(*solver, *offer, options, as_named);
    all.push_back(std::move(one));
  }
  std::stable_sort(all.begin(), all.end(), [](const Considered& a, const Considered& b) {
    if (a.serves() != b.serves()) return a.serves();
    const auto counted = [](const Considered& one) {
      return one.answer.offer()->cost.multiply_adds * one.answer.offer()->counted;
    };
    return a.serves() && counted(a) < counted(b);
  });
  return all;
}

Considered choose(const Operation& operation, const AnyTask& task, const Problem& problem, const DevicePointer& device,
                  const SolverOptions& options) {
  std::vector<Considered> all = consider(operation, task, device, options);
  if (!all.front().serves()) refuse(all, operation, task, problem, device, options);
  return std::move(all.front());
}

std::string describe(const operations::ErrorBound& bound) {
  if (bound.exact) return "bit-exact";
  const std::string absolute =
      bound.absolute > 0 ? fmt::format(" + {:g} * 2^-38 * max|a| * max|b|", bound.absolute * 0x1p38) : "";
  return fmt::format("{:g} * ({:g}/2 + {:g}) * 2^-{} * {}{}", bound.amplification, bound.chain, bound.constant,
                     bound.f64 ? 52 : 23, bound.norm, absolute);
}

Candidate candidate_of(const Considered& considered) {
  Candidate candidate{
      .solver = std::string(considered.solver->id()), .applicable = considered.serves(), .reason = considered.reason};
  const Offer* const offer = considered.answer.offer();
  if (offer == nullptr) return candidate;
  candidate.workspace_bytes = offer->workspace_bytes;
  candidate.cost = offer->cost.multiply_adds;
  candidate.counted = offer->counted;
  candidate.bytes = offer->cost.bytes;
  candidate.bound = describe(offer->bound);
  candidate.tuning = offer->tuning.to_text();
  return candidate;
}

}  // namespace omniconv::choice
