#include "ops/matrix_measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/checked.h"
#include "omniconv/error.h"
#include "ops/matrix_verify.h"
#include "ops/solver_ids.h"

namespace omniconv {
namespace {

// Sets of arrays in turn, together larger than any cache, so that each repetition finds its own gone from there.
constexpr std::int64_t rotation_bytes = std::int64_t{256} << 20;
constexpr std::int64_t most_sets = 32;
constexpr std::int64_t checked_samples = 512;

// Fills arrays of any size from one block of random elements, begun elsewhere for every piece.
class Filler {
 public:
  Filler(Queue& queue, DataType type, std::int64_t largest_bytes, std::uint64_t seed)
      : queue_(queue), piece_bytes_(std::min(largest_bytes, std::int64_t{16} << 20)) {
    random_.resize(static_cast<std::size_t>(piece_bytes_ + shifts_bytes));
    fill_random(type, 0, seed, random_);
    poison_.assign(static_cast<std::size_t>(piece_bytes_), std::byte{0xA5});
  }

  // Seconds that the copies took on the device.
  double fill(const Buffer& buffer) {
    return put(buffer, [this] {
      shift_ = (shift_ + 40'009 * 8) % shifts_bytes;  // odd times the largest element: no shift comes back soon
      return random_.data() + shift_;
    });
  }
  void poison(const Buffer& buffer) {
    put(buffer, [this] { return poison_.data(); });
  }

 private:
  static constexpr std::int64_t shifts_bytes = std::int64_t{1} << 20;

  template <typename Source>
  double put(const Buffer& buffer, const Source& source) {
    double seconds = 0;
    for (std::int64_t at = 0; at < buffer.bytes(); at += piece_bytes_) {
      Event event = queue_.upload(buffer, at, source(), std::min(piece_bytes_, buffer.bytes() - at));
      event.wait();
      seconds += event.seconds();
    }
    return seconds;
  }

  Queue& queue_;
  std::int64_t piece_bytes_, shift_ = 0;
  std::vector<std::byte> random_, poison_;
};

struct ArraySets {
  std::vector<std::vector<Operand>> inputs;
  std::vector<Operand> outputs;
  double upload_seconds = 0;    // of the inputs of one set
  bool outgrow_caches = false;  // small ones may stay in a large cache, whatever their number
};

ArraySets make_sets(const Context& context, Queue& queue, const MatrixWork& work, std::uint64_t seed) {
  const auto bytes_of = [&](const MatrixArray& array) {
    return checked_multiply(array.elements, size_of(work.type), array.name);
  };
  std::int64_t set_bytes = bytes_of(work.output), largest = set_bytes;
  for (const MatrixArray& input : work.inputs) {
    set_bytes = checked_add(set_bytes, bytes_of(input), "a set of arrays");
    largest = std::max(largest, bytes_of(input));
  }
  const std::int64_t count = std::clamp(rotation_bytes / set_bytes + 1, std::int64_t{1}, most_sets);
  Filler filler(queue, work.type, largest, seed);
  ArraySets sets;
  sets.outgrow_caches = count * set_bytes >= rotation_bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    sets.upload_seconds = 0;
    sets.inputs.emplace_back();
    for (const MatrixArray& input : work.inputs) {
      sets.inputs.back().push_back({context.allocate(bytes_of(input))});
      sets.upload_seconds += filler.fill(sets.inputs.back().back().buffer);
    }
    sets.outputs.push_back({context.allocate(bytes_of(work.output))});
    if (work.accumulates)
      filler.fill(sets.outputs.back().buffer);
    else
      filler.poison(sets.outputs.back().buffer);
  }
  return sets;
}

// One solver's plan, with a workspace of its own.
struct Prepared {
  std::unique_ptr<MatrixPlan> plan;
  Buffer workspace;
};

// What measure() does with one problem, its arrays made once, when the first solver needs them.
class Measuring {
 public:
  Measuring(const Context& context, const MatrixWork& work, const devices::Device::Peaks& peaks,
            const MatrixMeasureOptions& options)
      : context_(context), work_(work), peaks_(peaks), options_(options), queue_(context.make_queue()) {}

  std::vector<MeasureResult> measure() {
    std::vector<MeasureResult> results = check();
    if (!options_.versus.empty()) check_versus();
    for (MeasureResult& result : results) {
      if (versus_) result.versus = {.solver = versus_->solver, .status = versus_->status, .reason = versus_->reason};
      if (result.status == Status::ok) time(result);
    }
    return results;
  }

 private:
  bool all() const { return options_.solver.solver == "all"; }
  SolverOptions choice() const {
    SolverOptions choice = options_.solver;
    if (all()) choice.solver = "auto";
    return choice;
  }

  // A sampled check of all that are to be timed; those that would run for too long are refused instead.
  std::vector<MeasureResult> check() {
    std::vector<Candidate> candidates = work_.explain(context_, choice());
    if (!all() && candidates.front().applicable) candidates.resize(1);
    std::vector<MeasureResult> results;
    MatrixVerifyOptions options{
        .solver = options_.solver, .sampled = true, .samples = checked_samples, .seed = options_.seed};
    if (all()) options.solver.solver = "all";
    std::vector<std::string> left_out;
    for (const Candidate& candidate : candidates) {
      if (all() && options_.solver.allow.empty() && is_reference(candidate.solver)) {
        left_out.push_back(candidate.solver);
        continue;
      }
      const double predicted = candidate.applicable ? predicted_seconds(candidate.cost, peaks_) : 0;
      if (predicted <= options_.longest_seconds) continue;
      results.push_back(
          {.solver = candidate.solver,
           .status = Status::refused,
           .reason = fmt::format("not measured: one run is predicted to take {:.3g} s, which is longer than {:.3g} s",
                                 predicted, options_.longest_seconds),
           .predicted_seconds = predicted});
      left_out.push_back(candidate.solver);
    }
    if (left_out.size() == candidates.size()) return results;
    options.solver.deny.insert(options.solver.deny.end(), left_out.begin(), left_out.end());
    for (const VerifyResult& checked : verify(context_, work_, options))
      if (std::find(left_out.begin(), left_out.end(), checked.solver) == left_out.end())
        results.push_back(from(checked, candidates));
    return results;
  }

  MeasureResult from(const VerifyResult& checked, const std::vector<Candidate>& candidates) const {
    MeasureResult result;
    result.solver = checked.solver;
    result.status = checked.status;
    result.reason = checked.reason;
    result.error = checked.error;
    result.bound = checked.bound;
    result.plan_seconds = checked.plan_seconds;  // the first of this solver: later ones may find its programs compiled
    result.compile_seconds = checked.compile_seconds;
    for (const Candidate& candidate : candidates)
      if (candidate.solver == checked.solver) result.predicted_seconds = predicted_seconds(candidate.cost, peaks_);
    return result;
  }

  SolverOptions versus_choice() const {
    return {.solver = options_.versus, .max_workspace_bytes = options_.solver.max_workspace_bytes};
  }

  void check_versus() {
    try {
      versus_ = verify(context_, work_,
                       {.solver = versus_choice(), .sampled = true, .samples = checked_samples, .seed = options_.seed})
                    .front();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
      versus_ = VerifyResult{.solver = options_.versus, .status = Status::refused, .reason = error.what()};
    }
  }

  Prepared prepare(const SolverOptions& options) const {
    Prepared prepared{work_.plan(context_, options), {}};
    prepared.workspace = context_.allocate(std::max<std::int64_t>(prepared.plan->workspace_bytes(), 1));
    return prepared;
  }

  void time(MeasureResult& r) {
    if (sets_.inputs.empty()) sets_ = make_sets(context_, queue_, work_, options_.seed);
    SolverOptions own = choice();
    own.solver = r.solver;
    const Prepared prepared = prepare(own);
    r.workspace_bytes = prepared.plan->workspace_bytes();
    r.transfer_seconds = sets_.upload_seconds;
    r.operations = 2 * work_.multiply_adds;
    r.bytes = array_bytes(work_);
    if (r.versus && r.versus->status == Status::ok) {
      const Prepared other = prepare(versus_choice());
      const timing::Comparison both =
          timing::compare([&](int i) { return run(prepared, i); }, [&](int i) { return run(other, i); },
                          {.budget_seconds = 2 * options_.budget_seconds});
      r.seconds = both.first;
      r.versus->seconds = both.second;
      r.versus->ratio = both.ratio;
    } else {
      r.seconds = timing::sample([&](int i) { return run(prepared, i); }, {.budget_seconds = options_.budget_seconds});
    }
    judge(r, peaks_, r.operations, sets_.outgrow_caches);
  }

  Event run(const Prepared& prepared, int i) {
    const std::size_t set = static_cast<std::size_t>(i) % sets_.inputs.size();
    return prepared.plan->run(queue_, sets_.inputs[set], sets_.outputs[set], prepared.workspace);
  }

  const Context& context_;
  const MatrixWork& work_;
  devices::Device::Peaks peaks_;
  MatrixMeasureOptions options_;
  Queue queue_;
  ArraySets sets_;
  std::optional<VerifyResult> versus_;
};

}  // namespace

double predicted_seconds(double cost, const devices::Device::Peaks& peaks) {
  return peaks.tflops > 0 ? cost / (peaks.tflops * 1e12 / 2) : 0;
}

std::vector<MeasureResult> measure(const Context& context, const MatrixWork& work, const devices::Device::Peaks& peaks,
                                   const MatrixMeasureOptions& options) {
  return Measuring(context, work, peaks, options).measure();
}

}  // namespace omniconv
