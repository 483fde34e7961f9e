// The promise of a solver, whatever the operation: an offer means that the result is right, within the stated bound,
// for every such task, and says all of the plan that will keep it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "devices/sequence.h"
#include "omniconv/plan.h"
#include "omniconv/solver_options.h"
#include "operations/tuning.h"

namespace omniconv::operations {

// Of a block of outputs, along an image's axes.
struct BlockExtents {
  std::int64_t rows = 0, columns = 0;
};

// |error| <= amplification * (chain / 2 + constant) * epsilon * norm + absolute * max|a| * max|b|, per output element,
// before it is rounded to the type that is stored. epsilon is 2^-23; 2^-52 where sums are f64.
struct ErrorBound {
  double amplification = 1;
  double chain = 0;              // L, dependent additions
  double constant = 2;           // what is added or rounded beside the chain
  double absolute = 0;           // and as much times max|a| * max|b|, of all factors
  bool exact = false;            // the bits are defined, and these
  bool f64 = false;              // the sums are f64
  bool rounds_integers = false;  // not even sums of small integers are exact
  const char* norm = "sum|a*b|";
  // Where not 0 the norm is not the element's own: of the block of so many outputs that are computed together, or, of a
  // gradient that sums over blocks, of all of them (Operation::expect_in_blocks).
  BlockExtents tile = {};
  double integer_scale = 1;  // sums of integers are exact while so many times the norm is below 2^24

  double epsilon() const { return f64 ? 0x1p-52 : 0x1p-23; }
};

// The arrays of one run, in the operation's order and checked.
struct RunArrays {
  std::span<const Operand> arrays;
  Operand workspace;
  std::span<const Scalar> scalars;
};

// Immutable. What a run does, as steps of a sequence.
class PlanBody : public std::enable_shared_from_this<PlanBody> {
 public:
  virtual ~PlanBody() = default;
  virtual double compile_seconds() const { return 0; }  // of device text, when the plan was made
  virtual void append(devices::Sequence& sequence, const RunArrays& run) const = 0;
  // Puts array `array`, of those that the offer takes prepared, into its format.
  virtual void append_prepare(devices::Sequence& sequence, std::size_t array, const Operand& from,
                              const Operand& to) const;
};

// study: a kernel as others teach it, beside which ours are seen: it serves where it is named (docs/study.md).
enum class SolverRole : std::uint8_t { own, reference, vendor, study };

// What a run takes of a device: the longer of the arithmetic, in multiply-adds at the device's peak, which may hold
// traffic too, and of memory's traffic that overlaps it.
struct Cost {
  double multiply_adds = 0, bytes = 0;
};

struct Offer {
  Cost cost = {};      // the choice takes the fewest multiply-adds,
  double counted = 1;  // so many times: more where errors may pass those of a chain
  ErrorBound bound = {};
  std::int64_t workspace_bytes = 0;  // the least that will do, where the request's limit is below it
  // The arrays that runs give prepared, each of the request's: by their places in the operation's order.
  std::map<std::size_t, PreparedFormat> prepared = {};
  bool uses_only_fma = true;
  bool is_deterministic = true;
  bool is_as_promised = true;  // else its results are within its bound of what is promised, and it serves where named
  Tuning tuning = {};          // in full
  // Exactly what is offered; may compile device text.
  std::function<std::shared_ptr<const PlanBody>()> plan;
};

// An offer, or one sentence that says why there is none.
class Answer {
 public:
  Answer(std::string refusal) : refusal_(std::move(refusal)) {}
  Answer(const char* refusal) : refusal_(refusal) {}
  Answer(Offer offer) : offer_(std::move(offer)) {}
  const Offer* offer() const { return offer_ ? &*offer_ : nullptr; }
  const std::string& refusal() const { return refusal_; }

 private:
  std::optional<Offer> offer_;
  std::string refusal_;  // where there is no offer
};

// What solvers are asked, whatever its type: a problem, with what its text leaves open.
class AnyTask {
 public:
  template <typename Task>
  explicit AnyTask(Task task) : value_(std::make_shared<const Task>(std::move(task))) {}
  template <typename Task>
  const Task& as() const {
    return *static_cast<const Task*>(value_.get());
  }

 private:
  std::shared_ptr<const void> value_;
};

using DevicePointer = std::shared_ptr<devices::Device>;

class Solver {
 public:
  virtual ~Solver() = default;
  // With a version, never a class name: "conv2d/direct/cpu.1". The number grows whenever results or tunings change.
  virtual std::string_view id() const = 0;
  virtual SolverRole role() const { return SolverRole::own; }
  // For exactly the request's tuning; where it has none, for the first.
  virtual Answer offer_any(const AnyTask& task, const DevicePointer& device, const SolverOptions& request) const = 0;
  // The names of its tunings in their order, each with the integers that it may be; empty where there is nothing to
  // tune. Which of them go together for a task on a device, an offer says.
  virtual std::span<const Tunable> tunables() const { return {}; }
};

// All that the solver offers for a task, its first tuning first; empty where it does not serve or has nothing to tune.
std::vector<Tuning> tunings_of(const Solver& solver, const AnyTask& task, const DevicePointer& device);

// Of the tasks of one operation.
template <typename Task>
class SolverOf : public Solver {
 public:
  virtual Answer offer(const Task& task, const DevicePointer& device, const SolverOptions& request) const = 0;

  Answer offer_any(const AnyTask& task, const DevicePointer& device, const SolverOptions& request) const final {
    return offer(task.as<Task>(), device, request);
  }
};

// Whether a solver of this id is for devices of the kind: ids end in "/cpu..." or "/gpu...".
inline bool is_for(std::string_view id, devices::DeviceKind kind) {
  return id.substr(id.rfind('/') + 1).starts_with("cpu") == (kind == devices::DeviceKind::cpu);
}

// A byte that moves through the device's memory, in multiply-adds at its peak: what costs add up.
inline double byte_cost(const devices::Device& device) {
  return device.info().is_gpu ? 7 : 12;  // an H200: 28.9e12 / 4.2e12; two AVX-512 cores: 170e9 / 14e9
}

// Processors' products of pairs of bf16 take numbers below the normal range for zeros, which fused multiply-adds alone,
// and errors relative to an element's own terms, forbid.
inline bool may_pair(const SolverOptions& request) {
  return request.units != Units::fma && !request.relative_error;
}

}  // namespace omniconv::operations
