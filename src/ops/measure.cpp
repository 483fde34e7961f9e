#include "ops/measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/checked.h"
#include "ops/predict.h"
#include "ops/random_image.h"
#include "ops/solver_ids.h"
#include "solvers/solver.h"

namespace omniconv {
namespace {

// Images in turn, together larger than any cache, so that each repetition finds its own gone from there.
constexpr std::int64_t rotation_bytes = std::int64_t{256} << 20;
constexpr std::int64_t most_images = 32;

struct Images {
  std::vector<Buffer> inputs, outputs;
  double upload_seconds = 0;    // of one input
  bool outgrow_caches = false;  // small ones may stay in a large cache, whatever their number
};

Images make_images(const Context& context, Queue& queue, const Filter2dTask& task, std::uint64_t seed) {
  const Filter2dProblem& problem = task.problem;
  const auto bytes_of = [&](std::int64_t rows, std::int64_t columns, DataType type) {
    return checked_multiply(checked_multiply(checked_multiply(rows, columns, "the image"), problem.c, "the image"),
                            size_of(type), "the image");
  };
  const std::int64_t input_bytes = bytes_of(problem.h, problem.w, problem.input);
  const std::int64_t output_bytes = bytes_of(P(problem), Q(problem), problem.output);
  const std::int64_t count =
      std::clamp(rotation_bytes / (input_bytes + output_bytes) + 1, std::int64_t{1}, most_images);
  std::vector<std::byte> image(static_cast<std::size_t>(input_bytes));
  const std::vector<std::byte> poison(static_cast<std::size_t>(output_bytes), std::byte{0xA5});
  Images images;
  images.outgrow_caches = count * (input_bytes + output_bytes) >= rotation_bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    fill_random(task, seed + static_cast<std::uint64_t>(i), image);
    images.inputs.push_back(context.allocate(input_bytes));
    images.outputs.push_back(context.allocate(output_bytes));
    Event event = queue.upload(images.inputs.back(), 0, image.data(), input_bytes);
    event.wait();
    images.upload_seconds = event.seconds();
    queue.upload(images.outputs.back(), 0, poison.data(), output_bytes).wait();
  }
  return images;
}

// One solver's plan, with a workspace of its own.
struct Prepared {
  Filter2dPlan plan;
  Buffer workspace;
};

Prepared prepare(const Context& context, const Filter2dTask& task, const Filter& filter, const std::string& solver) {
  Filter2dPlan plan(context, task.problem, filter, {.solver = solver});
  Buffer workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
  return {std::move(plan), std::move(workspace)};
}

const solvers::Filter2dSolver* find_solver(std::string_view id) {
  for (const solvers::Filter2dSolver* solver : solvers::filter2d_solvers())
    if (solver->id() == id) return solver;
  return nullptr;
}

// What measure() does with one problem, its images made once, when the first solver needs them.
class Measuring {
 public:
  Measuring(const Context& context, const Filter2dProblem& problem, const Filter& filter,
            const devices::Device::Peaks& peaks, const MeasureOptions& options)
      : context_(context),
        task_(task_for(problem, filter)),
        filter_(filter),
        peaks_(peaks),
        options_(options),
        queue_(context.make_queue()) {
    if (options_.versus.empty()) return;
    require_solver(options_.versus);  // auto and all are none
    versus_ = check(options_.versus);
  }

  MeasureResult measure(const std::string& solver) {
    MeasureResult result;
    result.solver = solver;
    if (!is_short_enough(result)) return result;
    const VerifyResult checked = check(solver);
    result.status = checked.status;
    result.reason = checked.reason;
    result.error = checked.error;
    result.bound = checked.bound;
    result.plan_seconds = checked.plan_seconds;  // the first of this solver: later ones may find its programs compiled
    result.compile_seconds = checked.compile_seconds;
    if (versus_) result.versus = {.solver = versus_->solver, .status = versus_->status, .reason = versus_->reason};
    if (result.status == Status::ok) time(result);
    return result;
  }

 private:
  VerifyResult check(const std::string& solver) const {
    return verify(context_, task_.problem, filter_, {.solver = solver, .sampled = true, .seed = options_.seed}).front();
  }

  // Predicts; a solver that would run for too long is refused.
  bool is_short_enough(MeasureResult& result) const {
    const solvers::Filter2dSolver* const solver = find_solver(result.solver);
    if (solver == nullptr || !solver->refusal(task_, *context_.impl()).empty()) return true;  // the check says so
    result.predicted_seconds = predicted_seconds(task_.problem, solver->operations(task_, *context_.impl()), peaks_);
    if (result.predicted_seconds <= options_.longest_seconds) return true;
    result.status = Status::refused;
    result.reason = fmt::format("not measured: one run is predicted to take {:.3g} s, which is longer than {:.3g} s",
                                result.predicted_seconds, options_.longest_seconds);
    return false;
  }

  void time(MeasureResult& r) {
    if (images_.inputs.empty()) images_ = make_images(context_, queue_, task_, options_.seed);
    const Prepared prepared = prepare(context_, task_, filter_, r.solver);
    r.workspace_bytes = prepared.plan.workspace_bytes();
    r.transfer_seconds = images_.upload_seconds;
    const double kernels = task_.second ? 2 : 1;
    r.operations = 2 * kernels * output_elements(task_.problem) * static_cast<double>(task_.problem.r) *
                   static_cast<double>(task_.problem.s);
    r.bytes = image_bytes(task_.problem);
    if (r.versus && r.versus->status == Status::ok) {
      const Prepared other = prepare(context_, task_, filter_, r.versus->solver);
      const timing::Comparison both =
          timing::compare([&](int i) { return run(prepared, i); }, [&](int i) { return run(other, i); },
                          {.budget_seconds = 2 * options_.budget_seconds});
      r.seconds = both.first;
      r.versus->seconds = both.second;
      r.versus->ratio = both.ratio;
    } else {
      r.seconds = timing::sample([&](int i) { return run(prepared, i); }, {.budget_seconds = options_.budget_seconds});
    }
    judge(r, peaks_, 2 * least_multiply_adds(task_) * output_elements(task_.problem), images_.outgrow_caches);
  }

  Event run(const Prepared& prepared, int i) {
    const std::size_t image = static_cast<std::size_t>(i) % images_.inputs.size();
    return prepared.plan.run(
        queue_, {.input = images_.inputs[image], .output = images_.outputs[image], .workspace = prepared.workspace});
  }

  const Context& context_;
  Filter2dTask task_;
  const Filter& filter_;
  devices::Device::Peaks peaks_;
  MeasureOptions options_;
  Queue queue_;
  Images images_;
  std::optional<VerifyResult> versus_;
};

void distrust_if_too_fast(const timing::Summary& seconds, double memory_floor, Status& status, std::string& reason) {
  if (seconds.minimum >= memory_floor / 2) return;
  status = Status::failed;
  reason = fmt::format("{:.3g} ms beats half of the memory floor of {:.3g} ms: the timing is not to be trusted",
                       seconds.minimum * 1e3, memory_floor * 1e3);
}

}  // namespace

void judge(MeasureResult& r, const devices::Device::Peaks& peaks, double operations, bool outgrows_caches) {
  if (peaks.tflops <= 0 || peaks.gbps <= 0) return;
  const double memory_floor = r.bytes / (peaks.gbps * 1e9), arithmetic_floor = operations / (peaks.tflops * 1e12);
  r.floor_seconds = std::max(arithmetic_floor, memory_floor);
  r.memory_binds = memory_floor >= arithmetic_floor;
  if (!outgrows_caches) return;
  distrust_if_too_fast(r.seconds, memory_floor, r.status, r.reason);
  if (r.versus && r.versus->status == Status::ok)
    distrust_if_too_fast(r.versus->seconds, memory_floor, r.versus->status, r.versus->reason);
}

std::vector<MeasureResult> measure(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                                   const devices::Device::Peaks& peaks, const MeasureOptions& options) {
  std::vector<std::string> ids;
  if (options.solver == "all")
    for (const solvers::Filter2dSolver* solver : solvers::filter2d_solvers()) {
      if (!is_reference(solver->id())) ids.emplace_back(solver->id());
    }
  else
    ids.push_back(options.solver == "auto" ? auto_solver(context, problem, filter) : options.solver);
  Measuring measuring(context, problem, filter, peaks, options);
  std::vector<MeasureResult> results;
  for (const std::string& id : ids) results.push_back(measuring.measure(id));
  return results;
}

}  // namespace omniconv
