// Plans with faults made on purpose, of an operation that is gemm but for them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "omniconv/gemm.h"
#include "operations/operation.h"

namespace omniconv {

// Puts a byte of an array's buffer where it does not belong, counted from the array's first byte or from the buffer's
// end; or leaves scalars as they are by default.
struct Fault {
  enum Kind : std::uint8_t { a, b, c, workspace, scalars } kind = c;
  std::int64_t at = 0;
  bool from_end = false;
  std::int64_t least_k = 0;  // shorter sums are right
};

struct FaultyProblem {
  GemmProblem gemm;
  Fault fault;
};
const operations::Operation& operation_of(const FaultyProblem*);

namespace operations {

struct FaultyTask {
  FaultyProblem problem;
  AnyTask gemm;
};

class FaultyPlan final : public PlanBody {
 public:
  FaultyPlan(std::shared_ptr<const PlanBody> sound, Fault fault) : sound_(std::move(sound)), fault_(fault) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const override {
    const Scalar one = 1;
    RunArrays given = run;
    if (fault_.kind == Fault::scalars) given.scalars = std::span(&one, 1);
    sound_->append(sequence, given);
    if (fault_.kind == Fault::scalars) return;
    const Operand& array = fault_.kind == Fault::workspace ? run.workspace : run.arrays[fault_.kind];
    const std::int64_t at = (fault_.from_end ? array.buffer.bytes() : array.offset_bytes) + fault_.at;
    sequence.call(devices::HostTask([buffer = array.buffer, at] { buffer.impl()->host()[at] = std::byte{0x41}; }));
  }
  void append_prepare(devices::Sequence& sequence, std::size_t array, const Operand& from,
                      const Operand& to) const override {
    sound_->append_prepare(sequence, array, from, to);
  }

 private:
  std::shared_ptr<const PlanBody> sound_;
  Fault fault_;
};

// How many plans are still made with their fault.
inline std::atomic<int> faulty_plans{1 << 30};

class FaultySolver final : public SolverOf<FaultyTask> {
 public:
  std::string_view id() const override { return "faulty/gemm/cpu.1"; }
  Answer offer(const FaultyTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    const std::span<const Solver* const> solvers = Problem(task.problem.gemm).operation().solvers();
    const auto packed = std::find_if(solvers.begin(), solvers.end(),
                                     [](const Solver* solver) { return solver->id().starts_with("gemm/packed/cpu"); });
    Offer offer = *(*packed)->offer_any(task.gemm, device, request).offer();
    if (task.problem.gemm.k < task.problem.fault.least_k) return offer;
    offer.plan = [plan = offer.plan, fault = task.problem.fault]() -> std::shared_ptr<const PlanBody> {
      if (--faulty_plans < 0) return plan();
      return std::make_shared<FaultyPlan>(plan(), fault);
    };
    return offer;
  }
};

class FaultyOperation final : public Operation {
 public:
  // Of problems that are read or drawn.
  static inline Fault fault_of_texts = {};

  std::string_view name() const override { return "faulty"; }
  Problem read(const text::Words& line, text::Completeness completeness) const override {
    return FaultyProblem{get<GemmProblem>(gemm().read(line, completeness)), fault_of_texts};
  }
  std::string to_text(const Problem& problem) const override { return gemm().to_text(sound(problem)); }
  void validate(const Problem& problem) const override { gemm().validate(sound(problem)); }
  bool are_equal(const Problem& a, const Problem& b) const override { return sound(a) == sound(b); }
  const std::string& name_of(const Problem& problem) const override {
    return problem.get_if<FaultyProblem>()->gemm.name;
  }
  std::vector<std::string_view> letters() const override { return gemm().letters(); }
  Problem with_letters(const Problem& problem, std::string_view, std::int64_t) const override { return problem; }
  std::vector<std::string_view> words(std::string_view) const override { return {}; }
  Problem with_word(const Problem& problem, std::string_view, std::string_view) const override { return problem; }
  std::string missing(const Problem&) const override { return {}; }
  std::int64_t extent(const Problem&, std::string_view) const override { return 0; }
  Problem random_problem(Draws& draws) const override {
    return FaultyProblem{get<GemmProblem>(gemm().random_problem(draws)), fault_of_texts};
  }
  std::span<const Solver* const> solvers() const override {
    static const FaultySolver solver;
    static const Solver* const all[] = {&solver};
    return all;
  }
  AnyTask task(const Problem& problem, std::uint64_t seed) const override {
    return AnyTask(FaultyTask{*problem.get_if<FaultyProblem>(), gemm().task(sound(problem), seed)});
  }
  std::vector<ArraySpec> arrays(const Problem& problem) const override { return gemm().arrays(sound(problem)); }
  std::vector<ArrayHelp> array_help() const override { return gemm().array_help(); }
  std::vector<ScalarSpec> scalars(const AnyTask& task) const override { return gemm().scalars(of(task)); }
  Figures figures(const AnyTask& task) const override { return gemm().figures(of(task)); }
  std::vector<DataKind> data_kinds(const AnyTask& task) const override { return gemm().data_kinds(of(task)); }
  void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
            std::span<std::byte> data) const override {
    gemm().fill(of(task), array, kind, seed, data);
  }
  void expect(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data,
              std::span<const double> scalars, std::span<const std::int64_t> points,
              std::span<Expected> expected) const override {
    gemm().expect(of(task), array, data, scalars, points, expected);
  }

 private:
  static const Operation& gemm() { return operation_of(static_cast<const GemmProblem*>(nullptr)); }
  static Problem sound(const Problem& problem) { return problem.get_if<FaultyProblem>()->gemm; }
  static const AnyTask& of(const AnyTask& task) { return task.as<FaultyTask>().gemm; }
};

}  // namespace operations

inline const operations::Operation& operation_of(const FaultyProblem*) {
  static const operations::FaultyOperation operation;
  return operation;
}

}  // namespace omniconv
