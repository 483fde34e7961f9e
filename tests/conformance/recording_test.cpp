// Rounds of three operations, recorded and replayed: the results are those of single runs, on the device at hand.
#include <gtest/gtest.h>

#include <cstring>

#include "../error_testing.h"
#include "omniconv/conv2d.h"
#include "omniconv/filter2d.h"
#include "omniconv/gemm.h"
#include "recording_testing.h"

namespace omniconv {
namespace {

TEST(Recordings, ReplayThreeOperationsOnTheCpu) {
  expect_replays(Context({.device = "cpu", .threads = 2}));
}

TEST(Recordings, AreRefusedWhereTheyDoNotBelong) {
  const Context one({.device = "cpu"}), other({.device = "cpu"});
  const GemmPlan plan(one, get<GemmProblem>(parse_problem("gemm f32 nn m2n2k2")));
  const GemmRun run{.a = {one.allocate(16)},
                    .b = {one.allocate(16)},
                    .c = {one.allocate(16)},
                    .workspace = one.allocate(plan.workspace_bytes())};
  Sequence moved = one.make_sequence(), sequence = std::move(moved), foreign = other.make_sequence();
  EXPECT_NE(error_of([&] { plan.append(moved, run); }).find("was moved from"), std::string::npos);
  EXPECT_NE(error_of([&] { plan.append(foreign, run); }).find("make both with one context"), std::string::npos);
  EXPECT_NE(error_of([&] { one.record(one.make_sequence()); }), "nothing was thrown");
  EXPECT_NE(error_of([&] { one.record(std::move(foreign)); }), "nothing was thrown");
  Queue queue = one.make_queue();
  EXPECT_NE(error_of([&] { Recording().replay(queue); }), "nothing was thrown");
  Plan taken = plan.plan(), kept = std::move(taken);
  EXPECT_EQ(error_of([&] { taken.solver(); }), "the plan was moved from: keep the one that it was moved to");
}

}  // namespace
}  // namespace omniconv
