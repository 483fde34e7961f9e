// Solvers of other libraries, where there is nothing to run them on.
#include <gtest/gtest.h>

#include <algorithm>

#include "../error_testing.h"
#include "choice/choose.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "vendor/shared_library.h"
#include "vendor/vendor.h"

namespace omniconv {
namespace {

const Context& cpu() {
  static const Context context({.device = "cpu"});
  return context;
}

bool lists(const std::vector<Candidate>& candidates, std::string_view id) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [&](const Candidate& candidate) { return candidate.solver == id; });
}

TEST(OtherLibraries, AreAskedOnlyWhereTheyAreNamed) {
  if (vendor::solvers_of("conv2d").empty()) GTEST_SKIP() << "built without CUDA";
  struct Named {
    const char *problem, *id, *reason;
  };
  for (const Named& one : {Named{"n1c4h8w8k4r3s3", "conv2d/cudnn/gpu.1", "cuDNN is for CUDA devices"},
                           Named{"gemm f32 nn m4n4k4", "gemm/cublas/gpu.1", "cuBLAS is for CUDA devices"}}) {
    const Problem problem = parse_problem(one.problem);
    EXPECT_FALSE(lists(explain(cpu(), problem), one.id));
    const std::string pattern = std::string(one.id).substr(0, std::string_view(one.id).rfind('/'));
    EXPECT_TRUE(lists(explain(cpu(), problem, {.allow = {pattern}}), one.id));
    const std::vector<Candidate> named = explain(cpu(), problem, {.solver = one.id});
    ASSERT_EQ(named.size(), 1U);
    EXPECT_EQ(named.front().reason, one.reason);
    EXPECT_NE(error_of([&] { Plan(cpu(), problem, {.solver = one.id}); }, ErrorKind::bad_input).find(one.reason),
              std::string::npos);
  }
}

TEST(OtherLibraries, ThatAreMissingOrOfAnotherVersionAreNamed) {
  static constexpr const char* nowhere[] = {"libomniconv-nowhere.so.9", "libomniconv-nowhere.so.8"};
  const vendor::SharedLibrary missing(nowhere);
  EXPECT_TRUE(missing.why_not().starts_with("libomniconv-nowhere.so.9 was not found (")) << missing.why_not();

  static constexpr const char* there[] = {"libomniconv-nowhere.so.9", "libm.so.6"};
  vendor::SharedLibrary library(there);
  EXPECT_EQ(library.why_not(), "");
  double (*cosine)(double) = nullptr;
  library.bind("cos", cosine);
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(library.why_not(), "");
  int (*other)() = nullptr;
  library.bind("omniconv_nothing", other);
  EXPECT_EQ(library.why_not(), "libm.so.6 has no omniconv_nothing");
}

}  // namespace
}  // namespace omniconv
