#include "checking/measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "checking/own_failure.h"
#include "checking/prepare.h"
#include "choice/choose.h"
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

struct ArraySets {
  std::vector<std::vector<NamedOperand>> sets;
  double upload_seconds = 0;    // of the inputs of one set
  bool outgrow_caches = false;  // small ones may stay in a large cache, whatever their number
};

ArraySets make_sets(const Context& context, Queue& queue, const Operation& operation, const AnyTask& task,
                    const std::vector<ArraySpec>& arrays, std::uint64_t seed) {
  std::int64_t set_bytes = 0;
  for (const ArraySpec& array : arrays) set_bytes = checked_add(set_bytes, array.bytes(), "a set of arrays");
  const std::int64_t count =
      std::clamp(rotation_bytes / std::max<std::int64_t>(set_bytes, 1) + 1, std::int64_t{1}, most_sets);
  ArraySets made;
  made.outgrow_caches = count * set_bytes >= rotation_bytes;
  made.sets.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ArraySpec& array = arrays[i];
    std::vector<std::byte> data(static_cast<std::size_t>(array.bytes()), std::byte{0xA5});  // poison, unless
    const bool is_read = array.role != ArrayRole::out;
    if (is_read) operation.fill(task, i, operations::DataKind::reals, seed + i, data);
    for (std::size_t set = 0; set < made.sets.size(); ++set) {
      const Buffer buffer = context.allocate(array.bytes());
      Event copied = queue.upload(buffer, 0, data.data(), array.bytes());
      copied.wait();
      if (is_read && set + 1 == made.sets.size()) made.upload_seconds += copied.seconds();
      made.sets[set].push_back({array.name, {buffer, 0}});
    }
  }
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
        queue_(context.make_queue()) {}

  void measure(const std::function<void(const MeasureResult&)>& report) {
    const bool all = options_.solver.solver == "all";
    SolverOptions choice = options_.solver;
    if (all) choice.solver = "auto";
    std::vector<choice::Considered> candidates = choice::consider(operation_, task_, context_.impl(), choice);
    if (!all && !candidates.front().serves()) choice::choose(operation_, task_, problem_, context_.impl(), choice);
    if (!all) candidates.erase(candidates.begin() + 1, candidates.end());
    if (!options_.versus.empty()) check_versus();
    for (const choice::Considered& candidate : candidates)
      if (!all || is_meant(*candidate.solver, choice))
        report(made_or_failed(result_of(*candidate.solver), all, [&] { return measure_one(candidate, choice); }));
    if (options_.vendors) measure_vendors(choice, report);
  }

 private:
  // By `all`: those of the device, without the references, unless they are allowed by name.
  bool is_meant(const operations::Solver& solver, const SolverOptions& choice) const {
    return operations::is_for(solver.id(), context_.impl()->kind()) &&
           (!choice.allow.empty() || solver.role() != operations::SolverRole::reference);
  }

  static MeasureResult result_of(const operations::Solver& solver) {
    return {.solver = std::string(solver.id()), .is_vendors = solver.role() == operations::SolverRole::vendor};
  }

  // By the same request, but for what names solvers.
  void measure_vendors(SolverOptions choice, const std::function<void(const MeasureResult&)>& report) {
    choice.allow = choice.deny = choice.prepared = {};
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
    if (versus_) result.versus = {.solver = versus_->solver, .status = versus_->status, .reason = versus_->reason};
    if (!candidate.serves()) {
      result.status = Status::refused;
      result.reason = candidate.reason;
      return result;
    }
    const Offer& offer = *candidate.answer.offer();
    result.predicted_seconds = predicted_seconds(offer.cost.multiply_adds, offer.cost.bytes, peaks_);
    result.tuning = offer.tuning.to_text();
    if (result.predicted_seconds > options_.longest_seconds) {
      result.status = Status::refused;
      result.reason = fmt::format("not measured: one run is predicted to take {:.3g} s, which is longer than {:.3g} s",
                                  result.predicted_seconds, options_.longest_seconds);
      return result;
    }
    const VerifyResult checked = check(choice);
    result.status = checked.status;
    result.reason = checked.reason;
    result.error = checked.error;
    result.bound = checked.bound;
    result.plan_seconds = checked.plan_seconds;  // the first of this solver: later ones may find its programs compiled
    result.compile_seconds = checked.compile_seconds;
    if (result.status == Status::ok) time(result, choice);
    return result;
  }

  VerifyResult check(const SolverOptions& choice) const {
    return verify(context_, problem_, task_,
                  {.solver = choice, .sampled = true, .samples = checked_samples, .seed = options_.seed})
        .front();
  }

  // The same request of another solver.
  SolverOptions versus_choice() const {
    SolverOptions options = options_.solver;
    options.solver = options_.versus;
    options.allow = options.deny = {};
    options.tuning = {};
    return options;
  }

  void check_versus() {
    try {
      versus_ = check(versus_choice());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
      versus_ = VerifyResult{.solver = options_.versus, .status = Status::refused, .reason = error.what()};
    }
  }

  Timed prepare(const SolverOptions& options) {
    Timed timed{Plan(choice::make_record(context_, problem_, task_, options)), {}, sets_.sets};
    timed.workspace = context_.allocate(std::max<std::int64_t>(timed.plan.workspace_bytes(), 1));
    for (std::vector<NamedOperand>& set : timed.sets)
      checking::prepare(timed.plan, queue_, set, [&](std::int64_t bytes) { return context_.allocate(bytes); });
    return timed;
  }

  void time(MeasureResult& r, const SolverOptions& choice) {
    if (sets_.sets.empty()) sets_ = make_sets(context_, queue_, operation_, task_, arrays_, options_.seed);
    const operations::Figures figures = operation_.figures(task_);
    const Timed own = prepare(choice);
    r.workspace_bytes = own.plan.workspace_bytes();
    r.transfer_seconds = sets_.upload_seconds;
    r.operations = figures.operations;
    r.pixels = figures.pixels;
    r.bytes = array_bytes(arrays_);
    if (r.versus && r.versus->status == Status::ok) {
      const Timed other = prepare(versus_choice());
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
    if (sets_.outgrow_caches) distrust(r);
  }

  Event run(const Timed& timed, int i) {
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
  Queue queue_;
  ArraySets sets_;
  std::optional<VerifyResult> versus_;
};

}  // namespace

double array_bytes(const std::vector<ArraySpec>& arrays) {
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
