// The randomised differential test: what fails is found, made small and told.
#include "checking/differential.h"

#include "conformance.h"
#include "faulty_testing.h"
#include "omniconv/conv2d.h"

namespace omniconv {
namespace {

using checking::Failure;

std::string small(const std::string& text, const std::function<bool(const Conv2dProblem&)>& fails) {
  return to_text(checking::shrink(parse_problem(text), [&](const Problem& problem) {
                   return fails(*problem.get_if<Conv2dProblem>());
                 }).problem);
}

TEST(Shrink, KeepsWhatTheFailureNeedsAlone) {
  const std::string text = "bwd_data f16 nhwc flip acc n5c48h65w33k32r5s3pt3pb1pl2pr1uh3uw9d2g16 \"drawn\"";
  EXPECT_EQ(small(text, [](const auto&) { return true; }), "n1c1h1w1k1r1s1");
  EXPECT_EQ(small(text, [](const auto& p) { return p.pass == Pass::backward_data && p.c >= 3; }),
            "bwd_data n1c3h1w1k1r1s1");
  EXPECT_EQ(small(text, [](const auto& p) { return p.layout == Layout::nhwc && p.stride_w > 1 && p.pad_top > 0; }),
            "nhwc n1c1h1w1k1r1s1pt1uw2");
  EXPECT_EQ(small(text, [](const auto& p) { return p.groups % 8 == 0 && p.flip; }), "flip n1c8h1w1k8r1s1g8");
  EXPECT_EQ(small(text, [](const auto&) { return false; }),
            "bwd_data f16 nhwc flip acc n5c48h65w33k32r5s3pt3pb1pl2pr1uh3uw9d2g16 \"drawn\"");
}

TEST(Shrink, EndsWithItsBudget) {
  int asked = 0;
  const checking::Shrunk shrunk = checking::shrink(parse_problem("gemm f32 nn m999n999k999"),
                                                   [&](const Problem&) { return ++asked % 2 == 0; }, {.problems = 5});
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(shrunk.tried, 5);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(checking::shrink(parse_problem("gemm f32 nn m999n999k999"), [&](const Problem&) { return false; },
                             {.seconds = -1})
                .tried,
            0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(Shrink, StepsAreValidAndOfFilters) {
  const Problem problem = parse_problem("filter2d u8>f32 h2w3c4r3s2 reflect flip alpha:2 kernel:gaussian:3,1");
  for (const Problem& step : checking::simpler(problem)) {
    EXPECT_NO_THROW(validate(step)) << to_text(step);
    EXPECT_FALSE(step == problem) << to_text(step);
  }
  EXPECT_EQ(to_text(checking::shrink(problem, [](const Problem&) { return true; }).problem),
            "filter2d u8>f32 h1w1r1s1");
}

class Differential : public testing::Test {
 protected:
  checking::DifferentialTally check(const std::vector<Problem>& drawn, checking::DifferentialOptions options = {}) {
    options.verify = [](const Problem&) { return checking::VerifyOptions{.solver = {.solver = "all"}, .seed = 3}; };
    return checking::verify_each(context_, drawn, options,
                                 {.waits =
                                      [&](auto under_way, const auto& so_far) {
                                        EXPECT_EQ(so_far.problems, waits_++);
                                        EXPECT_EQ(under_way.front(), drawn[static_cast<std::size_t>(so_far.problems)]);
                                      },
                                  .failed = [&](const Failure& failure) { failures_.push_back(failure); }});
  }

  const Context context_{{.device = "cpu"}};
  std::int64_t waits_ = 0;
  std::vector<Failure> failures_;
};

TEST_F(Differential, AWrongSolverIsFoundAndItsProblemMadeSmall) {
  const operations::Operation& faulty = operation_of(static_cast<const FaultyProblem*>(nullptr));
  // A byte of the second element: of one sum in four, and none of a single element.
  operations::FaultyOperation::fault_of_texts = {Fault::c, 5, false, 7};
  const operations::Operation* const all[] = {&faulty};
  const std::vector<Problem> drawn = checking::random_problems(all, 40, 1);
  const checking::DifferentialTally tally = check(drawn, {.threads = 2});
  EXPECT_EQ(tally.problems, static_cast<std::int64_t>(drawn.size()));
  EXPECT_EQ(waits_, tally.problems);
  ASSERT_EQ(tally.solvers.size(), 1u);
  EXPECT_EQ(tally.solvers[0].passed + tally.solvers[0].failed, tally.problems);
  EXPECT_EQ(tally.solvers[0].failed, static_cast<std::int64_t>(failures_.size()));
  ASSERT_GT(failures_.size(), 3u);
  for (std::size_t i = 0; i < failures_.size(); ++i) {
    const Failure& failure = failures_[i];
    EXPECT_EQ(failure.small.has_value(), i < 3);  // of each solver the first ones
    if (!failure.small) continue;
    const GemmProblem small = failure.small->problem.get_if<FaultyProblem>()->gemm;
    EXPECT_EQ(small.k, 7) << to_text(failure.small->problem);
    EXPECT_LE(small.m * small.n * small.batch, 3) << to_text(failure.small->problem);
    EXPECT_EQ(failure.small_result.status, checking::Status::failed);
  }
}

TEST_F(Differential, TellsHowToSeeItAgain) {
  operations::FaultyOperation::fault_of_texts = {Fault::c, 1, false, 7};
  check({FaultyProblem{get<GemmProblem>(parse_problem("gemm f32 nt m5n4k17batch3")), {Fault::c, 1, false, 7}}});
  ASSERT_EQ(failures_.size(), 1u);
  const std::string& reason = failures_[0].result.reason;
  EXPECT_EQ(reason.rfind("c[0] of integers is ", 0), 0u) << reason;
  EXPECT_EQ(failures_[0].to_text("--device cpu --seed 3"),
            fmt::format("  failed  faulty/gemm/cpu.1: gemm f32 nt m5n4k17 batch3\n          {}\n"
                        "  small   gemm f32 nt m1n1k7\n          {} (after {} tries)\n"
                        "  again   omniconv verify \"gemm f32 nt m1n1k7\" --solver faulty/gemm/cpu.1 --device cpu "
                        "--seed 3\n",
                        reason, failures_[0].small_result.reason, failures_[0].small->tried));
}

TEST_F(Differential, SaysWhatDoesNotFailAgain) {
  operations::faulty_plans = 1;
  check({FaultyProblem{get<GemmProblem>(parse_problem("gemm f32 nn m1n1k1")), {Fault::c, 1}}});
  operations::faulty_plans = 1 << 30;
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_FALSE(failures_[0].fails_again);
  EXPECT_FALSE(failures_[0].small.has_value());
  EXPECT_NE(failures_[0].to_text("").find("Alone it did not fail again"), std::string::npos);
}

TEST_F(Differential, GivesUpWhereAllFails) {
  const std::vector<Problem> drawn(
      6, FaultyProblem{get<GemmProblem>(parse_problem("gemm f32 nn m1n1k1")), {Fault::c, 1, false}});
  const checking::DifferentialTally tally = check(drawn, {.most_shrunk = 0, .most_failures = 4});
  EXPECT_EQ(tally.problems, 4);
  EXPECT_TRUE(tally.is_given_up);
  EXPECT_EQ(failures_.size(), 4u);
  EXPECT_FALSE(failures_[0].small.has_value());
}

// The border mirrors two columns, so that the filter's left and right sides are the same.
TEST_F(Differential, ResultsMayBeZero) {
  const Problem problem = parse_problem("filter2d f32 h6w2c2r3s3 reflect101 kernel:sobel-x");
  EXPECT_EQ(checking::verify(context_, problem).front().status, checking::Status::failed);
  EXPECT_GT(check({problem}).solvers.front().passed, 0);
  EXPECT_TRUE(failures_.empty());
}

TEST_F(Differential, CountsWhatEachSolverDid) {
  const std::vector<Problem> drawn = {parse_problem("gemm f32 nn m9n8k7"), parse_problem("gemm f32 nn m3n2k1"),
                                      parse_problem("filter2d u8 h9w9r3s3")};
  const checking::DifferentialTally tally = check(drawn, {.threads = 3});
  EXPECT_TRUE(failures_.empty());
  EXPECT_EQ(tally.unserved_problems, 0);
  for (const checking::SolverTally& one : tally.solvers) {
    const bool is_gemm = one.solver.starts_with("gemm/");
    EXPECT_EQ(one.passed + one.refused, is_gemm ? 2 : 1) << one.solver;
    EXPECT_EQ(one.failed, 0) << one.solver;
    EXPECT_EQ(one.worst_problem.empty(), one.largest_ratio == 0) << one.solver;
    EXPECT_LT(one.largest_ratio, 1) << one.solver;
    if (one.solver.starts_with("gemm/packed")) {
      EXPECT_EQ(one.worst_problem, "gemm f32 nn m9n8k7");
    }
  }
}

}  // namespace
}  // namespace omniconv
