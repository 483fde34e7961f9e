#include "checking/measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "checking/candidates.h"
#include "checking/checker.h"
#include "checking/host.h"
#include "checking/own_failure.h"
#include "checking/plans_ahead.h"
#include "checking/prepare.h"
#include "checking/transfers.h"
#include "choice/plan_record.h"
#include "core/checked.h"
#include "omniconv/error.h"
#include "vendor/vendor.h"

namespace omniconv::checking {
namespace {

using operations::AnyTask;
using operations::Offer;
using operations::Operation;

// Sets of arrays in turn, together larger than any cache, so that each repetition finds its own gone from there.
constexpr std::int64_t rotation_bytes = std::int64_t{256} << 20;
constexpr std::int64_t most_sets = 32;
constexpr std::int64_t checked_samples = 512;

constexpr std::uint8_t poison = 0xA5;

// A GPU that has nothing to do would wait for the host between the events and launches of a run.
constexpr double busy_seconds = 2e-4;

struct ArraySets {
  std::vector<std::vector<NamedOperand>> sets;
  double upload_seconds = 0;    // of the inputs of one set
  bool outgrow_caches = false;  // small ones may stay in a large cache, whatever their number
};

// The first set comes from the host, the others are its copies.
ArraySets make_sets(const Context& context, Host& host, const std::vector<ArraySpec>& arrays, Checker& checker) {
  std::int64_t set_bytes = 0;
  for (const ArraySpec& array : arrays) set_bytes = checked_add(set_bytes, array.bytes(), "a set of arrays");
  const std::int64_t count =
      std::clamp(rotation_bytes / std::max<std::int64_t>(set_bytes, 1) + 1, std::int64_t{1}, most_sets);
  ArraySets made;
  made.outgrow_caches = count * set_bytes >= rotation_bytes;
  made.sets.resize(static_cast<std::size_t>(count));
  Transfers transfers(context, host);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::int64_t bytes = arrays[i].bytes();
    const std::span<const std::byte> data = checker.random_data(i);
    for (std::vector<NamedOperand>& set : made.sets) {
      const Buffer buffer = context.allocate(bytes);
      if (data.empty())
        transfers.fill(buffer, 0, bytes, poison);
      else if (&set == made.sets.data())
        made.upload_seconds += transfers.upload(buffer, 0, data.data(), bytes);
      else
        transfers.queue().copy(buffer, 0, made.sets.front()[i].operand.buffer, 0, bytes);
      set.push_back({arrays[i].name, {buffer, 0}});
    }
  }
  transfers.queue().finish();
  return made;
}

// One solver's plan, with a workspace of its own, and the arrays as it takes them.
struct Timed {
  Plan plan;
  Buffer workspace;
  std::vector<std::vector<NamedOperand>> sets;
};

void distrust_if_too_fast(const timing::Summary& seconds, double memory_floor, Status& status, std::string& reason) {
  if (seconds.minimum >= memory_floor / 2) return;
  status = Status::failed;
  reason = fmt::format("{:.3g} ms beats half of the memory floor of {:.3g} ms: the timing is not to be trusted",
                       seconds.minimum * 1e3, memory_floor * 1e3);
}

// What measure() does with one problem, its arrays made once, when the first solver needs them.
class Measuring {
 public:
  Measuring(const Context& context, const Problem& problem, const devices::Device::Peaks& peaks,
            const MeasureOptions& options)
      : context_(context),
        problem_(problem),
        operation_(problem.operation()),
        task_(operation_.task(problem, options.seed)),
        arrays_(operation_.arrays(problem)),
        peaks_(peaks),
        options_(options),
        host_(options.host ? options.host : std::make_shared<Host>(context)),
        checks_{.sampled = true, .samples = checked_samples, .seed = options.seed},
        checker_(context, problem_, task_, checks_, *host_),
        queue_(context.make_queue()),
        busy_work_(context.impl()->busy_work(busy_seconds)) {}

  void measure(const std::function<void(const MeasureResult&)>& report) {
    const Candidates candidates = candidates_of(context_, problem_, task_, options_.solver);
    if (!options_.versus.empty()) check_versus();
    for (const choice::Considered& candidate : candidates.all)
      report(made_or_failed(result_of(*candidate.solver), candidates.are_several,
                            [&] { return measure_one(candidate, candidates.choice); }));
    if (options_.vendors) measure_vendors(candidates.choice, report);
  }

 private:
  static MeasureResult result_of(const operations::Solver& solver) {
    return {.solver = std::string(solver.id()), .is_vendors = solver.role() == operations::SolverRole::vendor};
  }

  // By the same request, but for what names solvers.
  void measure_vendors(SolverOptions choice, const std::function<void(const MeasureResult&)>& report) {
    choice.allow = choice.deny = choice.prepared = choice.measured = {};
    choice.tuning = {};
    for (const operations::Solver* const solver : vendor::solvers_of(operation_.name())) {
      choice.solver = solver->id();
      report(made_or_failed(result_of(*solver), true, [&] {
        return measure_one(choice::consider(operation_, task_, context_.impl(), choice).front(), choice);
      }));
    }
  }

  MeasureResult measure_one(const choice::Considered& candidate, SolverOptions choice) {
    choice.solver = candidate.solver->id();
    MeasureResult result = result_of(*candidate.solver);
    if (versus_)
      result.versus = {
          .solver = versus_->result.solver, .status = versus_->result.status, .reason = versus_->result.reason};
    if (!candidate.serves()) {
      result.status = Status::refused;
      result.reason = candidate.reason;
      return result;
    }
    const Offer& offer = *candidate.answer.offer();
    result.uses_only_fma = offer.uses_only_fma;
    result.predicted_seconds = predicted_seconds(offer.cost.multiply_adds, offer.cost.bytes, peaks_);
    result.tuning = offer.tuning.to_text();
    if (result.predicted_seconds > options_.longest_seconds) {
      result.status = Status::refused;
      result.reason = fmt::format("not measured: one run is predicted to take {:.3g} s, which is longer than {:.3g} s",
                                  result.predicted_seconds, options_.longest_seconds);
      return result;
    }
    const MadePlan made = plan_of(choice);
    const VerifyResult checked = checker_.check(made);
    result.status = checked.status;
    result.reason = checked.reason;
    result.error = checked.error;
    result.bound = checked.bound;
    result.plan_seconds = checked.plan_seconds;
    result.compile_seconds = checked.compile_seconds;
    if (result.status == Status::ok) time(result, made.plan);
    if (result.status != Status::ok || !options_.also_prepared || result.is_vendors) return result;
    if (const auto prepared = choice_of_prepared(context_, problem_, task_, choice))
      result.prepared = measure_prepared(*prepared, result);
    return result;
  }

  AlsoPrepared measure_prepared(const SolverOptions& choice, const MeasureResult& plain) {
    const MadePlan made = plan_of(choice);
    const VerifyResult checked = checker_.check(made);
    AlsoPrepared result{.arrays = choice.prepared, .status = checked.status, .reason = checked.reason};
    result.workspace_bytes = made.plan.workspace_bytes();
    result.tuning = made.plan.record().tuning.to_text();
    if (result.status != Status::ok) return result;
    const Timed timed = prepare(made.plan);
    const timing::SamplingOptions sampling{.budget_seconds = options_.budget_seconds};
    result.preparing = timing::sample([&](int i) { return prepare_again(timed, i); }, sampling);
    result.seconds = timing::sample([&](int i) { return run(timed, i); }, sampling);
    if (sets_.outgrow_caches && peaks_.gbps > 0)
      distrust_if_too_fast(result.seconds, plain.bytes / (peaks_.gbps * 1e9), result.status, result.reason);
    return result;
  }
  // All forms of a set, as one submission.
  Event prepare_again(const Timed& timed, int i) {
    const std::size_t set = static_cast<std::size_t>(i) % timed.sets.size();
    Sequence sequence = context_.make_sequence();
    for (std::size_t j = 0; j < arrays_.size(); ++j)
      if (const Operand& operand = timed.sets[set][j].operand; operand.format)
        timed.plan.append_prepare(sequence, arrays_[j].name, sets_.sets[set][j].operand, operand.buffer);
    keep_busy();
    return queue_.submit(std::move(sequence));
  }

  MadePlan plan_of(const SolverOptions& choice) {
    if (options_.ahead)
      if (std::optional<MadePlan> made = options_.ahead->take(problem_, choice)) return std::move(*made);
    return make_plan(context_, problem_, task_, choice);
  }

  // The solver beside which the others are timed: what its check found, and its plan where it serves.
  struct CheckedVersus {
    VerifyResult result;
    std::optional<Plan> plan = {};
  };
  void check_versus() {
    try {
      const MadePlan made = plan_of(choice_of_versus(options_.solver, options_.versus));
      versus_ = {checker_.check(made), made.plan};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
      versus_ = {{.solver = options_.versus, .status = Status::refused, .reason = error.what()}};
    }
  }

  Timed prepare(const Plan& plan) {
    Timed timed{plan, {}, sets_.sets};
    timed.workspace = context_.allocate(std::max<std::int64_t>(timed.plan.workspace_bytes(), 1));
    for (std::vector<NamedOperand>& set : timed.sets)
      checking::prepare(timed.plan, queue_, set, [&](std::int64_t bytes) { return context_.allocate(bytes); });
    return timed;
  }

  void time(MeasureResult& r, const Plan& plan) {
    if (sets_.sets.empty()) sets_ = make_sets(context_, *host_, arrays_, checker_);
    const operations::Figures figures = operation_.figures(task_);
    const Timed own = prepare(plan);
    r.workspace_bytes = own.plan.workspace_bytes();
    r.transfer_seconds = sets_.upload_seconds;
    r.operations = figures.operations;
    r.pixels = figures.pixels;
    r.bytes = moved_bytes(figures, arrays_);
    if (r.versus && r.versus->status == Status::ok) {
      const Timed other = prepare(*versus_->plan);
      const timing::Comparison both =
          timing::compare([&](int i) { return run(own, i); }, [&](int i) { return run(other, i); },
                          {.budget_seconds = 2 * options_.budget_seconds});
      r.seconds = both.first;
      r.versus->seconds = both.second;
      r.versus->ratio = both.ratio;
    } else {
      r.seconds = timing::sample([&](int i) { return run(own, i); }, {.budget_seconds = options_.budget_seconds});
    }
    r.least_operations = figures.least_operations;
    set_floor(r, peaks_);
    // A part of the arrays, if that is all that a run moves, may stay in a cache.
    if (sets_.outgrow_caches && figures.bytes == 0) distrust(r);
  }

  void keep_busy() {
    if (busy_work_) queue_.impl()->submit(busy_work_);
  }

  Event run(const Timed& timed, int i) {
    keep_busy();
    return timed.plan.run(queue_, timed.sets[static_cast<std::size_t>(i) % timed.sets.size()], timed.workspace);
  }

  // Where arrays outgrow the caches, a timing that beats half of the memory floor fails: a copy that first reads its
  // target moves half as much again.
  void distrust(MeasureResult& r) const {
    if (peaks_.gbps <= 0) return;
    const double memory_floor = r.bytes / (peaks_.gbps * 1e9);
    distrust_if_too_fast(r.seconds, memory_floor, r.status, r.reason);
    if (r.versus && r.versus->status == Status::ok)
      distrust_if_too_fast(r.versus->seconds, memory_floor, r.versus->status, r.versus->reason);
  }

  const Context& context_;
  const Problem& problem_;
  const Operation& operation_;
  AnyTask task_;
  std::vector<ArraySpec> arrays_;
  devices::Device::Peaks peaks_;
  const MeasureOptions& options_;
  std::shared_ptr<Host> host_;
  VerifyOptions checks_;
  Checker checker_;
  Queue queue_;
  std::shared_ptr<const devices::Sequence> busy_work_;
  ArraySets sets_;
  std::optional<CheckedVersus> versus_;
};

}  // namespace

double moved_bytes(const operations::Figures& figures, const std::vector<ArraySpec>& arrays) {
  if (figures.bytes > 0) return figures.bytes;
  double bytes = 0;
  for (const ArraySpec& array : arrays)
    bytes += static_cast<double>(array.bytes()) * (array.role == ArrayRole::in_out ? 2 : 1);
  return bytes;
}

double predicted_seconds(double multiply_adds, double bytes, const devices::Device::Peaks& peaks) {
  if (peaks.tflops <= 0 || peaks.gbps <= 0) return 0;
  return std::max(multiply_adds / (peaks.tflops * 1e12 / 2), bytes / (peaks.gbps * 1e9));
}

void set_floor(MeasureResult& r, const devices::Device::Peaks& peaks) {
  if (peaks.tflops <= 0 || peaks.gbps <= 0) return;
  const double memory_floor = r.bytes / (peaks.gbps * 1e9),
               arithmetic_floor = r.least_operations / (peaks.tflops * 1e12);
  r.floor_seconds = std::max(arithmetic_floor, memory_floor);
  r.memory_binds = memory_floor >= arithmetic_floor;
}

void measure(const Context& context, const Problem& problem, const devices::Device::Peaks& peaks,
             const MeasureOptions& options, const std::function<void(const MeasureResult&)>& report) {
  validate(problem);
  Measuring(context, problem, peaks, options).measure(report);
}

std::vector<MeasureResult> measure(const Context& context, const Problem& problem, const devices::Device::Peaks& peaks,
                                   const MeasureOptions& options) {
  std::vector<MeasureResult> results;
  measure(context, problem, peaks, options, [&](const MeasureResult& result) { results.push_back(result); });
  return results;
}

}  // namespace omniconv::checking
