// What verify must find: plans with faults made on purpose, of an operation that is gemm but for them.
#include "checking/verify.h"

#include "conformance.h"
#include "omniconv/gemm.h"
#include "operations/operation.h"

namespace omniconv {

// Puts a byte of an array's buffer where it does not belong, counted from the array's first byte or from the buffer's
// end; or leaves scalars as they are by default.
struct Fault {
  enum Kind : std::uint8_t { a, b, c, workspace, scalars } kind = c;
  std::int64_t at = 0;
  bool from_end = false;
};

struct FaultyProblem {
  GemmProblem gemm;
  Fault fault;
};
const operations::Operation& operation_of(const FaultyProblem*);

namespace operations {
namespace {

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

class FaultySolver final : public SolverOf<FaultyTask> {
 public:
  std::string_view id() const override { return "faulty/gemm/cpu.1"; }
  Answer offer(const FaultyTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    const std::span<const Solver* const> solvers = Problem(task.problem.gemm).operation().solvers();
    const auto packed = std::find_if(solvers.begin(), solvers.end(),
                                     [](const Solver* solver) { return solver->id().starts_with("gemm/packed/cpu"); });
    Offer offer = *(*packed)->offer_any(task.gemm, device, request).offer();
    offer.plan = [plan = offer.plan, fault = task.problem.fault] {
      return std::make_shared<FaultyPlan>(plan(), fault);
    };
    return offer;
  }
};

class FaultyOperation final : public Operation {
 public:
  std::string_view name() const override { return "faulty"; }
  Problem read(const text::Words& line, text::Completeness completeness) const override {
    return gemm().read(line, completeness);
  }
  std::string to_text(const Problem& problem) const override { return gemm().to_text(sound(problem)); }
  void validate(const Problem& problem) const override { gemm().validate(sound(problem)); }
  bool are_equal(const Problem& a, const Problem& b) const override { return sound(a) == sound(b); }
  const std::string& name_of(const Problem& problem) const override {
    return problem.get_if<FaultyProblem>()->gemm.name;
  }
  std::vector<std::string_view> letters() const override { return {}; }
  Problem with_letters(const Problem& problem, std::string_view, std::int64_t) const override { return problem; }
  std::vector<std::string_view> words(std::string_view) const override { return {}; }
  Problem with_word(const Problem& problem, std::string_view, std::string_view) const override { return problem; }
  std::string missing(const Problem&) const override { return {}; }
  std::int64_t extent(const Problem&, std::string_view) const override { return 0; }
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

}  // namespace
}  // namespace operations

const operations::Operation& operation_of(const FaultyProblem*) {
  static const operations::FaultyOperation operation;
  return operation;
}

namespace {

TEST(Verify, FindsFaults) {
  const Context context({.device = "cpu"});
  const auto small = get<GemmProblem>(parse_problem("gemm f32 nn m5n7k3"));
  const auto large = get<GemmProblem>(parse_problem("gemm f32 nn m2100n3k2100"));
  const auto found = [&](const GemmProblem& problem, Fault fault, std::vector<std::string> prepared = {}) {
    const checking::VerifyResult result =
        checking::verify(context, FaultyProblem{problem, fault},
                         {.solver = {.prepared = std::move(prepared)}, .sampled = true})
            .front();
    return std::string(name(result.status)) + ": " + result.reason;
  };
  const std::int64_t c_bytes = 5 * 7 * 4;
  for (const std::int64_t at : {std::int64_t{-256}, std::int64_t{-1}, c_bytes, c_bytes + 255})
    EXPECT_EQ(found(small, {Fault::c, at}), "failed: wrote outside c") << at;
  for (const std::int64_t at : {-256, -1, 0, 59, 60, 60 + 255})
    EXPECT_EQ(found(small, {Fault::a, at}), "failed: changed a") << at;
  EXPECT_EQ(found(small, {Fault::b, 83}), "failed: changed b");
  for (const std::int64_t at : {16 << 20, (16 << 20) - 1, 0, 2100 * 2100 * 4 - 1}) {  // of 17 MB, in pieces of 16 MiB
    EXPECT_EQ(found(large, {Fault::a, at}), "failed: changed a") << at;
    if (threads_watched) break;  // they do the same for each
  }
  EXPECT_EQ(found(small, {Fault::c, 7}).substr(0, 26), "failed: c[1] of integers i");
  EXPECT_EQ(found(small, {Fault::scalars}).substr(0, 26), "failed: c[0] of integers i");
  for (const std::int64_t at : {-256, -1}) {
    EXPECT_EQ(found(small, {Fault::workspace, at, true}), "failed: wrote behind the workspace") << at;
    EXPECT_EQ(found(small, {Fault::a, at, true}, {"a"}), "failed: wrote behind the prepared a") << at;
  }
}

}  // namespace
}  // namespace omniconv
