// What verify must find: plans with faults made on purpose.
#include "checking/verify.h"

#include "conformance.h"
#include "faulty_testing.h"

namespace omniconv {
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
