// cuDNN and cuBLAS on a GPU: what they compute is what the problem says.
#include <fmt/format.h>

#include "checking/verify.h"
#include "gpu_testing.h"
#include "omniconv/plan.h"

namespace omniconv {
namespace {

class OtherLibrariesOnAGpu : public Gpu {
 protected:
  // Skips the test where the library is not there.
  void expect_right(const std::string& id, const std::vector<std::string>& problems) const {
    const Context context(device);
    for (const std::string& text : problems) {
      const Problem problem = parse_problem(text);
      const Candidate candidate = explain(context, problem, {.solver = id}).front();
      if (candidate.reason.find(" is needed") != std::string::npos) GTEST_SKIP() << candidate.reason;
      EXPECT_TRUE(candidate.applicable) << text << ": " << candidate.reason;
      for (const checking::VerifyResult& result : checking::verify(context, problem, {.solver = {.solver = id}}))
        EXPECT_EQ(result.status, checking::Status::ok) << text << ": " << result.reason;
    }
  }
};

TEST_F(OtherLibrariesOnAGpu, Convolutions) {
  std::vector<std::string> problems;
  for (const char* pass : {"", "bwd_data ", "bwd_filter "})
    for (const char* words : {"", "nhwc ", "flip acc ", "tf32 nhwc ", "f16 nhwc ", "bf16 "})
      for (const char* geometry : {"n2c16h9w11k24r3s3p1", "n3c16h14w13k32r5s3p2u2"})
        problems.push_back(fmt::format("{}{}{}", pass, words, geometry));
  problems.insert(problems.end(), {"n2c12h9w8k12r3s3p1g3", "n1c8h20w20k8r3s3p2d2", "n2c8h9w9k8r1s1"});
  expect_right("conv2d/cudnn/gpu.1", problems);
}

TEST_F(OtherLibrariesOnAGpu, Products) {
  std::vector<std::string> problems;
  for (const char* form : {"nn", "nt", "tn", "tt"})
    for (const char* type : {"f32", "tf32", "f16", "bf16"})
      problems.push_back(fmt::format("gemm {} {} m65n130k97batch2", type, form));
  expect_right("gemm/cublas/gpu.1", problems);
}

TEST_F(OtherLibrariesOnAGpu, LimitsOfTheWorkspaceAreKept) {
  const Context context(device);
  const Problem problem = parse_problem("n8c64h28w28k64r3s3p1");
  for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{1} << 20})
    EXPECT_LE(explain(context, problem, {.solver = "conv2d/cudnn/gpu.1", .max_workspace_bytes = limit})
                  .front()
                  .workspace_bytes,
              limit);
}

}  // namespace
}  // namespace omniconv
