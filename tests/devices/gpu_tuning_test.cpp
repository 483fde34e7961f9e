// Tunings of solvers on GPUs: the domain is what the solver takes, all of it is right, and nothing else is taken.
#include <fmt/format.h>

#include <cstdlib>

#include "checking/verify.h"
#include "gpu_testing.h"
#include "omniconv/plan.h"
#include "operations/operation.h"
#include "operations/tuning.h"

namespace omniconv {
namespace {

class GpuTuning : public Gpu {
 protected:
  static std::vector<operations::Tuning> tunings(const Context& context, const Problem& problem,
                                                 const std::string& id) {
    for (const operations::Solver* const solver : problem.operation().solvers())
      if (solver->id() == id)
        return operations::tunings_of(*solver, problem.operation().task(problem, 1), context.impl());
    return {};
  }
  static std::string tuning_of(const Context& context, const Problem& problem, const std::string& id) {
    for (const Candidate& candidate : explain(context, problem, {.solver = id}))
      if (candidate.applicable) return candidate.tuning;
    return "not served";
  }
};

struct Tuned {
  const char *solver, *problem;
};

TEST_F(GpuTuning, TheDomainIsRight) {
  const Context context(device);
  for (const Tuned& one :
       {Tuned{"gemm/tiled/gpu.1", "gemm f32 nt m70n90k200"}, Tuned{"gemm/tiled/gpu.1", "gemm f16 tn m33n65k300batch2"},
        Tuned{"gemm/mma/gpu.1", "gemm f32 tn m70n90k50"}, Tuned{"gemm/planes/gpu.1", "gemm f32 nt m70n90k50"},
        Tuned{"gemm/short/gpu.1", "gemm f32 tn m70n90k20"},
        Tuned{"filter2d/direct/gpu-strips.1", "filter2d u8 h40w200c3r3s3"},
        Tuned{"filter2d/gradient/gpu-strips.1", "filter2d u8 h40w200c1r3s3 kernel:sobel"},
        Tuned{"filter2d/integer_dot/gpu-strips.1", "filter2d u8 h40w200c1r5s5 kernel:integer"},
        Tuned{"conv2d/im2col_gemm/gpu.1", "n2c32h12w12k64r3s3p1"},
        Tuned{"conv2d/implicit_gemm/gpu.1", "n2c32h12w12k64r3s3p1"},
        Tuned{"conv2d/implicit_gemm/gpu.1", "bwd_filter nhwc n2c32h12w12k64r3s3p1"},
        Tuned{"conv2d/depthwise/gpu.1", "nhwc n2c12h13w12k12r3s3p1g12"},
        Tuned{"conv2d/depthwise/gpu.1", "bwd_filter n2c6h13w12k12r3s3p1g6"}}) {
    const Problem problem = parse_problem(one.problem);
    const std::vector<operations::Tuning> all = tunings(context, problem, one.solver);
    const std::string first = tuning_of(context, problem, one.solver);
    // On a PoCL that is not trusted with barriers tiles are not served, and products inside have nothing to tune.
    if (first == "not served" || first.empty()) continue;
    ASSERT_GT(all.size(), 100U) << one.solver;
    EXPECT_EQ(all.front().to_text(), first);
    constexpr std::size_t looked_at = 4;
    for (std::size_t i = 0; i < looked_at; ++i) {
      const std::string text = all[(i * 7919 + 1) % all.size()].to_text();
      const checking::VerifyOptions options{
          .solver = {.solver = one.solver, .tuning = text}, .sampled = true, .samples = 2000};
      for (const checking::VerifyResult& result : checking::verify(context, problem, options))
        EXPECT_EQ(result.status, checking::Status::ok)
            << one.solver << ", " << text << ", " << one.problem << ": " << result.reason;
    }
  }
}

// Also where the product that is taken unasked has nothing to tune.
TEST_F(GpuTuning, InnerProductsOfConvolutionsAreTuned) {
  const Context context(device);
  const Problem problem = parse_problem("n2c16h12w12k24r3s3p1");
  const std::string id = "conv2d/im2col_gemm/gpu.1";
  const std::string text =
      "gemm.tile_m=32 gemm.tile_n=64 gemm.tile_k=8 gemm.quads_m=1 gemm.quads_n=1 gemm.resident=4 gemm.parts=1";
  for (const Candidate& tiled :
       explain(context, parse_problem("gemm f32 nn m64n64k64"), {.solver = "gemm/tiled/gpu.1"}))
    if (!tiled.applicable) {  // the reason is that of the product
      EXPECT_HAS(error_of([&] { Plan(context, problem, {.solver = id, .tuning = text}); }, ErrorKind::bad_input),
                 tiled.reason);
      return;
    }
  const Plan plan(context, problem, {.solver = id, .tuning = text});
  EXPECT_EQ(explain(context, problem, {.solver = id, .tuning = text}).front().tuning, text);
  for (const checking::VerifyResult& result :
       checking::verify(context, problem, {.solver = {.solver = id, .tuning = text}}))
    EXPECT_EQ(result.status, checking::Status::ok) << result.reason;
}

TEST_F(GpuTuning, AnythingElseIsRefused) {
  const Context context(device);
  const Problem product = parse_problem("gemm f32 nn m64n64k256");
  const auto refusal = [&](const std::string& solver, const std::string& tuning) {
    return error_of([&] { Plan(context, product, {.solver = solver, .tuning = tuning}); }, ErrorKind::bad_input);
  };
  const std::string tiled = "gemm/tiled/gpu.1";
  EXPECT_HAS(refusal("auto", "tile_m=64"), "name the one whose it is");
  EXPECT_HAS(refusal(tiled, "tile_m"), "write NAME=INTEGER");
  EXPECT_HAS(refusal(tiled, "tile_m=6x"), "write NAME=INTEGER");
  EXPECT_HAS(refusal(tiled, "tile_m=99999999999999999999"), "write NAME=INTEGER");
  EXPECT_HAS(refusal(tiled, "tile_m=64 tile_m=64"), "stands twice");
  EXPECT_HAS(refusal(tiled, "tile_m=64 tile_m=128"), "stands twice");
  EXPECT_HAS(refusal("gemm/plain/gpu.1", "tile_m=64"), "has nothing to tune");
  EXPECT_HAS(error_of(
                 [&] {
                   Plan(context, parse_problem("n1c1h4w4k1r1s1"),
                        {.solver = "conv2d/im2col_gemm/gpu.1", .tuning = "tile_m=64"});
                 },
                 ErrorKind::bad_input),
             "tuned by gemm.tile_m, gemm.tile_n");
  if (tuning_of(context, product, tiled) == "not served") return;
  const auto with = [](int m, int n, int quads_m, int quads_n, int resident, int parts) {
    return fmt::format("tile_m={} tile_n={} tile_k=8 quads_m={} quads_n={} resident={} parts={}", m, n, quads_m,
                       quads_n, resident, parts);
  };
  EXPECT_HAS(refusal(tiled, "v=8 halo=1"), "this solver is tuned by tile_m, tile_n");
  EXPECT_HAS(refusal(tiled, "tile_m=64"), "tile_n is missing");
  EXPECT_HAS(refusal(tiled, with(60, 64, 1, 1, 1, 1)), "must be one of 16, 32, 64, 128, 256");
  EXPECT_HAS(refusal(tiled, with(32, 64, 4, 1, 1, 1)), "must be a multiple of 16 * quads_m, 64");
  EXPECT_HAS(refusal(tiled, with(256, 256, 4, 4, 1, 1)), "must be at most 8");
  EXPECT_HAS(refusal(tiled, with(64, 64, 1, 1, 16, 1)), "have registers on a compute unit");
  EXPECT_HAS(refusal(tiled, with(64, 64, 1, 1, 1, 64)), "parts=64: each must have at least");
}

}  // namespace
}  // namespace omniconv
