#include "omniconv/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "choice/choose.h"
#include "choice/operand_check.h"
#include "choice/plan_record.h"
#include "core/suggest.h"
#include "omniconv/error.h"

namespace omniconv {
namespace choice {

std::string key_of(const Problem& problem, const SolverOptions& options) {
  const std::string text = to_text(problem);
  const std::string_view without_name = std::string_view(text).substr(0, text.find(" \""));  // which decides nothing
  std::string key = fmt::format("{}\n{} {} {} {} {}", without_name, options.solver, static_cast<int>(options.units),
                                options.max_error, options.max_workspace_bytes, options.deterministic);
  if (options.relative_error) key += " relative";
  for (const std::string& allowed : options.allow) key += " +" + allowed;
  for (const std::string& denied : options.deny) key += " -" + denied;
  for (const std::string& prepared : options.prepared) key += " =" + prepared;
  for (const std::string& measured : options.measured) key += " ~" + measured;
  return key + " " + options.tuning;
}

namespace {

// Of an operation: runs hold them in place.
constexpr std::size_t most_arrays = 16, most_scalars = 12;

}  // namespace

std::shared_ptr<const PlanRecord> make_record(const Context& context, const Problem& problem,
                                              const operations::AnyTask& task, const SolverOptions& options) {
  const auto make = [&](const Considered& chosen) {
    return record_of(context, problem, task, chosen.solver->id(), *chosen.answer.offer());
  };
  const auto choose_now = [&] { return choose(problem.operation(), task, problem, context.impl(), options); };
  const Considered chosen = choose_now();
  devices::Device& device = *context.impl();
  const devices::Device::PlanUnderWay under_way(device);
  if (chosen.answer.offer()->uses_only_fma || device.has_probed_matrix_units()) return make(chosen);
  // Beside the plan's own programs. Where the probe disagrees, the solvers that rest on the units serve no more.
  std::future<void> probe = std::async(std::launch::async, [&] { device.probe_matrix_units(); });
  std::shared_ptr<const PlanRecord> record = make(chosen);
  probe.get();
  return device.matrix_units_refusal().empty() ? record : make(choose_now());
}

std::shared_ptr<const PlanRecord> record_of(const Context& context, const Problem& problem,
                                            const operations::AnyTask& task, std::string_view solver,
                                            const operations::Offer& offer) {
  const operations::Operation& operation = problem.operation();
  std::vector<ArraySpec> arrays = operation.arrays(problem);
  std::vector<operations::ScalarSpec> scalars = operation.scalars(task);
  if (arrays.size() > most_arrays || scalars.size() > most_scalars)
    throw bad_input(fmt::format("{} has {} arrays and {} scalars: {} and {} are the most", operation.name(),
                                arrays.size(), scalars.size(), most_arrays, most_scalars));
  std::vector<std::shared_ptr<const PreparedFormat>> formats(arrays.size());
  for (const auto& [array, format] : offer.prepared)
    formats[array] = std::make_shared<PreparedFormat>(fmt::format("{}, on {}", format.text, context.impl()->info().id),
                                                      format.bytes);
  return std::make_shared<PlanRecord>(PlanRecord{.problem = problem,
                                                 .task = task,
                                                 .solver = std::string(solver),
                                                 .device = context.impl(),
                                                 .arrays = std::move(arrays),
                                                 .scalars = std::move(scalars),
                                                 .workspace_bytes = offer.workspace_bytes,
                                                 .bound = offer.bound,
                                                 .tuning = offer.tuning,
                                                 .formats = std::move(formats),
                                                 .body = offer.plan()});
}

std::shared_ptr<const PlanRecord> remembered_record(const Context& context, const Problem& problem,
                                                    const SolverOptions& options) {
  validate(problem);  // what is not valid may have the text of what is
  return remembered(context, key_of(problem, options), [&] {
    constexpr std::uint64_t seed = 1;  // of what the text leaves open
    return make_record(context, problem, problem.operation().task(problem, seed), options);
  });
}

std::shared_ptr<const PlanRecord> PlanMemory::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(key);
  if (found == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void PlanMemory::store(const std::string& key, std::shared_ptr<const PlanRecord> record) {
  std::list<Entry> dropped;  // ends after the lock
  const std::lock_guard lock(mutex_);
  if (places_.contains(key)) return;
  entries_.emplace_front(key, std::move(record));
  places_[key] = entries_.begin();
  if (entries_.size() <= most) return;
  places_.erase(entries_.back().first);
  dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
}

}  // namespace choice

Plan::Plan(const Context& context, const Problem& problem, const SolverOptions& options)
    : record_(choice::remembered_record(context, problem, options)) {}

const choice::PlanRecord& Plan::record() const {
  if (!record_) throw bad_input("the plan was moved from: keep the one that it was moved to");
  return *record_;
}
const Problem& Plan::problem() const {
  return record().problem;
}
const std::string& Plan::solver() const {
  return record().solver;
}
std::int64_t Plan::workspace_bytes() const {
  return record().workspace_bytes;
}
double Plan::compile_seconds() const {
  return record().body->compile_seconds();
}
const std::vector<ArraySpec>& Plan::arrays() const {
  return record().arrays;
}

namespace {

std::size_t place_of(const std::vector<ArraySpec>& specs, std::string_view array) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const ArraySpec& spec) { return spec.name == array; });
  if (found != specs.end()) return static_cast<std::size_t>(found - specs.begin());
  std::vector<std::string_view> names;
  for (const ArraySpec& spec : specs) names.push_back(spec.name);
  throw bad_input(fmt::format("unknown array '{}': {}", array, suggest(array, names)));
}

// Those that were given, in the plan's order.
std::array<Operand, choice::most_arrays> in_order(const std::vector<ArraySpec>& specs,
                                                  std::span<const NamedOperand> given) {
  std::array<Operand, choice::most_arrays> operands;
  std::array<bool, choice::most_arrays> given_already{};
  for (const NamedOperand& one : given) {
    const std::size_t place = place_of(specs, one.name);
    if (given_already[place]) throw bad_input(fmt::format("array '{}' is given twice", one.name));
    given_already[place] = true;
    operands[place] = one.operand;
  }
  return operands;
}

std::array<Scalar, choice::most_scalars> in_order(const std::vector<operations::ScalarSpec>& specs,
                                                  std::span<const NamedScalar> given) {
  std::array<Scalar, choice::most_scalars> scalars;
  for (std::size_t i = 0; i < specs.size(); ++i) scalars[i] = specs[i].value;
  for (const NamedScalar& one : given) {
    const auto found =
        std::find_if(specs.begin(), specs.end(), [&](const auto& spec) { return spec.name == one.name; });
    if (found == specs.end()) {
      std::vector<std::string_view> names;
      for (const operations::ScalarSpec& spec : specs) names.push_back(spec.name);
      throw bad_input(names.empty() ? fmt::format("unknown scalar '{}': this operation has none", one.name)
                                    : fmt::format("unknown scalar '{}': {}", one.name, suggest(one.name, names)));
    }
    for (const NamedScalar* other = given.data(); other != &one; ++other)
      if (other->name == one.name) throw bad_input(fmt::format("scalar '{}' is given twice", one.name));
    scalars[static_cast<std::size_t>(found - specs.begin())] = one.value;
  }
  return scalars;
}

}  // namespace

void Plan::append_checked(devices::Sequence& sequence, std::span<const NamedOperand> arrays, const Buffer& workspace,
                          std::span<const NamedScalar> scalars) const {
  const choice::PlanRecord& plan = record();
  const auto all = in_order(plan.arrays, arrays);
  const std::span operands = std::span(all).first(plan.arrays.size());
  check_arrays(plan.arrays, operands, plan.formats, plan.solver, *plan.device,
               [&plan](std::size_t output, std::size_t input) {
                 return plan.problem.operation().may_be_same(plan.problem, output, input);
               });
  check_workspace(workspace, plan.workspace_bytes, plan.solver, *plan.device, plan.arrays, operands);
  const auto values = in_order(plan.scalars, scalars);
  plan.body->append(
      sequence,
      {.arrays = operands, .workspace = {workspace, 0}, .scalars = std::span(values).first(plan.scalars.size())});
}

const std::shared_ptr<const PreparedFormat>& Plan::format(std::string_view array) const {
  return record().formats[place_of(arrays(), array)];
}

void Plan::append_prepare_checked(devices::Sequence& sequence, std::string_view array, const Operand& from,
                                  const Buffer& to) const {
  const choice::PlanRecord& plan = record();
  const std::size_t index = place_of(plan.arrays, array);
  const std::shared_ptr<const PreparedFormat>& format = plan.formats[index];
  if (!format)
    throw bad_input(
        fmt::format("this plan of {} takes {} as it is: name it in SolverOptions::prepared", plan.solver, array));
  check_preparation(plan.arrays[index], from, to, *format, *plan.device);
  plan.body->append_prepare(sequence, index, from, {to});
}

Event Plan::prepare(Queue& queue, std::string_view array, const Operand& from, const Buffer& to) const {
  devices::Queue& on = present(queue);
  const std::shared_ptr<devices::Sequence> sequence = on.take_sequence();
  append_prepare_checked(*sequence, array, from, to);
  return on.submit(sequence);
}

void Plan::append_prepare(Sequence& sequence, std::string_view array, const Operand& from, const Buffer& to) const {
  append_prepare_checked(present(sequence, *record().device), array, from, to);
}

Event Plan::run(Queue& queue, std::span<const NamedOperand> arrays, const Buffer& workspace,
                std::span<const NamedScalar> scalars) const {
  devices::Queue& to = present(queue);
  const std::shared_ptr<devices::Sequence> sequence = to.take_sequence();
  append_checked(*sequence, arrays, workspace, scalars);
  return to.submit(sequence);
}

void Plan::append(Sequence& sequence, std::span<const NamedOperand> arrays, const Buffer& workspace,
                  std::span<const NamedScalar> scalars) const {
  append_checked(present(sequence, *record().device), arrays, workspace, scalars);
}

std::vector<Plan> make_plans(const Context& context, std::span<const Problem> problems, const SolverOptions& options) {
  std::vector<std::shared_ptr<const choice::PlanRecord>> records(problems.size());
  std::vector<std::exception_ptr> errors(problems.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < problems.size(); i = next++) try {
        records[i] = choice::remembered_record(context, problems[i], options);
      } catch (...) {
        errors[i] = std::current_exception();
      }
  };
  {
    std::optional<devices::Device::PlanUnderWay> several;  // the first to be made knows of the others
    if (problems.size() > 1) several.emplace(*context.impl());
    std::vector<std::jthread> threads;
    const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < std::min(problems.size(), most); ++i) threads.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  std::vector<Plan> plans;
  for (auto& record : records) plans.emplace_back(std::move(record));
  return plans;
}

std::vector<Candidate> explain(const Context& context, const Problem& problem, const SolverOptions& options) {
  validate(problem);
  const operations::Operation& operation = problem.operation();
  std::vector<Candidate> candidates;
  for (const choice::Considered& one : choice::consider(operation, operation.task(problem, 1), context.impl(), options))
    candidates.push_back(choice::candidate_of(one));
  return candidates;
}

}  // namespace omniconv
