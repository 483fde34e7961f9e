// What verify of products and convolutions must find: plans with faults made on purpose.
#include "conformance.h"
#include "matrix_testing.h"

namespace omniconv {
namespace {

// Puts a byte of `array`'s buffer where it does not belong, counted from the array's first byte.
struct Fault {
  enum Array : std::uint8_t { a, b, c } array = c;
  std::int64_t at = 0;
};

class FaultyPlan final : public MatrixPlan {
 public:
  FaultyPlan(std::unique_ptr<MatrixPlan> sound, Fault fault) : sound_(std::move(sound)), fault_(fault) {}
  std::string solver() const override { return sound_->solver(); }
  std::int64_t workspace_bytes() const override { return sound_->workspace_bytes(); }
  double compile_seconds() const override { return 0; }
  Event run(Queue& queue, const std::vector<Operand>& inputs, const Operand& output,
            const Buffer& workspace) const override {
    static constexpr std::byte stray{0x41};
    sound_->run(queue, inputs, output, workspace).wait();
    const Operand& array = fault_.array == Fault::c ? output : inputs[fault_.array];
    return queue.upload(array.buffer, array.offset_bytes + fault_.at, &stray, 1);
  }

 private:
  std::unique_ptr<MatrixPlan> sound_;
  Fault fault_;
};

// A product whose plans have a fault.
class FaultyWork final : public MatrixWork {
 public:
  FaultyWork(const GemmProblem& problem, Fault fault) : sound_(make_work(problem)), fault_(fault) {
    type = sound_->type;
    inputs = sound_->inputs;
    output = sound_->output;
    longest_sum = sound_->longest_sum;
    multiply_adds = sound_->multiply_adds;
  }
  std::string text() const override { return sound_->text(); }
  std::unique_ptr<MatrixPlan> plan(const Context& context, const SolverOptions& options) const override {
    return std::make_unique<FaultyPlan>(sound_->plan(context, options), fault_);
  }
  std::vector<Candidate> explain(const Context& context, const SolverOptions& options) const override {
    return sound_->explain(context, options);
  }
  std::vector<std::string> solvers() const override { return sound_->solvers(); }
  operations::MatrixBound bound(const std::string& solver, const devices::Device& device) const override {
    return sound_->bound(solver, device);
  }
  reference::DoubleSum expected(const std::vector<const std::byte*>& data, std::int64_t index) const override {
    return sound_->expected(data, index);
  }

 private:
  std::unique_ptr<MatrixWork> sound_;
  Fault fault_;
};

TEST(MatrixVerify, FindsFaults) {
  const Context context({.device = "cpu"});
  const auto small = get<GemmProblem>(parse_problem("gemm f32 nn m5n7k3"));
  const auto large = get<GemmProblem>(parse_problem("gemm f32 nn m2100n3k2100"));
  const auto found = [&](const GemmProblem& problem, Fault fault) {
    const VerifyResult result = verify(context, FaultyWork(problem, fault), {.sampled = true}).front();
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
  EXPECT_EQ(found(small, {Fault::c, 3}).substr(0, 26), "failed: c[0] of integers i");
}

}  // namespace
}  // namespace omniconv
