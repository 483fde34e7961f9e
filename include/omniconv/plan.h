// Plans of any operation: problem -> plan -> run, on the caller's memory, with arrays by the names that the operation
// has for them. The typed plans (Conv2dPlan, ...) are thin over these.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/context.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

// A form of an array that a solver reads faster than the problem's own: packed, turned or split. `text` says all that
// another plan must agree on: the form, type, extents and device.
struct PreparedFormat {
  std::string text = {};
  std::int64_t bytes = 0;
};

// An array in a buffer, from a byte on that is a multiple of its elements' size (of a prepared one, of 64).
struct Operand {
  Buffer buffer = {};
  std::int64_t offset_bytes = 0;
  std::shared_ptr<const PreparedFormat> format = {};  // null: as the problem says
};

// in: read; out: written; in_out: added to, or changed.
enum class ArrayRole : std::uint8_t { in, out, in_out };

// An array of a problem, packed.
struct ArraySpec {
  std::string name;  // "x"
  DataType type = DataType::f32;
  std::vector<std::int64_t> extents = {};  // the outermost first
  std::string axes = {};                   // what the extents are: "n, c, h, w"
  ArrayRole role = ArrayRole::in;

  std::int64_t elements() const;
  std::int64_t bytes() const;
};
// In the operation's order.
std::vector<ArraySpec> arrays_of(const Problem& problem);

struct NamedOperand {
  std::string_view name;
  Operand operand = {};
};
struct NamedScalar {
  std::string_view name;
  Scalar value = {};
};

namespace devices {
class Sequence;
}
namespace choice {
struct PlanRecord;
}

// Immutable, usable from many threads; a handle, whose copies share the plan. Making one may compile device text; run()
// allocates nothing. What is left of a plan that was moved from throws.
class Plan {
 public:
  Plan(const Context& context, const Problem& problem, const SolverOptions& options = {});
  explicit Plan(std::shared_ptr<const choice::PlanRecord> record) : record_(std::move(record)) {}

  const Problem& problem() const;
  const std::string& solver() const;  // its id
  std::int64_t workspace_bytes() const;
  double compile_seconds() const;  // that making the plan spent on device text
  const std::vector<ArraySpec>& arrays() const;

  // Of an array that SolverOptions::prepared named: runs are given it so. Null for the others.
  const std::shared_ptr<const PreparedFormat>& format(std::string_view array) const;
  // Makes `to` hold the array in that format: its bytes from the start of the buffer, for {to, 0, format(array)}. Once
  // for many runs, of this plan and of any other whose format has the same text; again when the array has changed.
  // `from` is the array as the problem says it. Asynchronous, and refused, as runs are.
  Event prepare(Queue& queue, std::string_view array, const Operand& from, const Buffer& to) const;
  void append_prepare(Sequence& sequence, std::string_view array, const Operand& from, const Buffer& to) const;

  // Asynchronous on a queue of the plan's context. Every array of the plan is given, in any order, an empty one where
  // the problem has no such array; the workspace has at least workspace_bytes(), for this run alone, at a multiple of
  // 64 bytes, as what Context::allocate gives. Throws, naming the array, for a missing, unknown, misaligned or too
  // small one, one of another device, or memory that may not be read or written, and where an output overlaps an input
  // (unless it is the very memory of one that it may be: of add and dropout) or the workspace anything.
  Event run(Queue& queue, std::span<const NamedOperand> arrays, const Buffer& workspace,
            std::span<const NamedScalar> scalars = {}) const;
  Event run(Queue& queue, std::initializer_list<NamedOperand> arrays, const Buffer& workspace) const {
    return run(queue, std::span(arrays.begin(), arrays.size()), workspace);
  }

  // The same work at the end of a sequence of the plan's context, to be submitted or recorded.
  void append(Sequence& sequence, std::span<const NamedOperand> arrays, const Buffer& workspace,
              std::span<const NamedScalar> scalars = {}) const;
  void append(Sequence& sequence, std::initializer_list<NamedOperand> arrays, const Buffer& workspace) const {
    append(sequence, std::span(arrays.begin(), arrays.size()), workspace);
  }

  const choice::PlanRecord& record() const;

 private:
  void append_prepare_checked(devices::Sequence& sequence, std::string_view array, const Operand& from,
                              const Buffer& to) const;
  void append_checked(devices::Sequence& sequence, std::span<const NamedOperand> arrays, const Buffer& workspace,
                      std::span<const NamedScalar> scalars) const;

  std::shared_ptr<const choice::PlanRecord> record_;
};

// A plan for each problem, in this order, made by as many threads as the host has cores: device text is compiled side
// by side, equal text once. Throws the error of the first problem that has one.
std::vector<Plan> make_plans(const Context& context, std::span<const Problem> problems,
                             const SolverOptions& options = {});

// The applicable ones first, in the order of choice: the first is what `auto` runs.
std::vector<Candidate> explain(const Context& context, const Problem& problem, const SolverOptions& options = {});

}  // namespace omniconv
