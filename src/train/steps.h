// The operations of a step in their order, over arrays that share memory where their lives do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/training.h"

namespace omniconv::training {

// Where an array of an operation is: in memory of its own, which lasts, or a passing one of Steps.
struct Place {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  Operand lasting = {};
  std::size_t passing = none;
};

struct NamedPlace {
  std::string_view name;
  Place place = {};
};

struct StepOperation {
  std::size_t layer = 0;
  std::string what;  // "backward-data"
  Problem problem;
  std::vector<NamedPlace> arrays;
  std::vector<NamedScalar> scalars = {};
};

class Steps {
 public:
  // An array that lives from the first operation that has it to the last.
  Place passing(std::int64_t bytes);
  // It lives to the end: somebody reads it then.
  void keep(const Place& place);
  void add(StepOperation operation) { operations_.push_back(std::move(operation)); }

  // Lays the passing arrays over each other; no more are added then. Returns the bytes of the memory that holds them.
  std::int64_t lay_out();
  // Makes the plans, by the solvers that are named for an operation or a problem, else by the rung's, and returns the
  // bytes of the workspace that they share. With `prepares` filters are given in their solver's own form where that
  // costs less: they do not change from run to run.
  std::int64_t plan(const Context& context, const SolverOptions& options,
                    const std::map<std::string, std::string>& solvers = {}, const RungOptions& rungs = {},
                    bool prepares = false);
  // Allocates what holds the forms that `prepares` asked for: before anything is appended. They are made by what
  // append_prepare() appends, again whenever filters have changed.
  void allocate_prepared(const std::function<Buffer(std::int64_t bytes)>& allocate);
  bool has_prepared() const;
  void append_prepare(Sequence& sequence) const;
  void append(Sequence& sequence, const Buffer& passing, const Buffer& workspace) const;
  // One of them, so many times.
  void append_one(Sequence& sequence, std::size_t operation, const Buffer& passing, const Buffer& workspace) const;
  Operand at(const Place& place, const Buffer& passing) const;

  const std::vector<StepOperation>& operations() const { return operations_; }
  const std::vector<Plan>& plans() const { return plans_; }

 private:
  bool is_prepared(std::size_t operation, std::string_view array) const;

  struct Array {
    std::int64_t bytes = 0, offset = 0;
    std::size_t first = Place::none, last = 0;  // of the operations that have it
  };

  std::vector<StepOperation> operations_;
  std::vector<Array> arrays_;
  std::vector<Buffer> prepared_;  // of each operation that has any
  std::vector<Plan> plans_;
};

}  // namespace omniconv::training
