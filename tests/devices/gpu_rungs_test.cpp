// The rungs of the classic study on GPU devices: every operation that has them, each rung and kind of tile, and who
// gets them.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "../conformance/update_testing.h"
#include "checking/verify.h"
#include "gpu_testing.h"
#include "omniconv/plan.h"
#include "operations/operation.h"
#include "operations/tuning.h"

namespace omniconv::gpu_rungs_tests {
namespace {

class GpuRungs : public Gpu {
 protected:
  static std::string id_of(const Problem& problem) { return std::string(problem.operation_name()) + "/rungs/gpu.1"; }
  static std::vector<operations::Tuning> tunings(const Context& context, const Problem& problem) {
    for (const operations::Solver* const solver : problem.operation().solvers())
      if (solver->id() == id_of(problem))
        return operations::tunings_of(*solver, problem.operation().task(problem, 1), context.impl());
    return {};
  }
  // Exact on integers, and within the bound.
  static void expect_right(const Context& context, const Problem& problem, const SolverOptions& options) {
    for (const checking::VerifyResult& result : checking::verify(context, problem, {.solver = options}))
      EXPECT_EQ(result.status, checking::Status::ok)
          << to_text(problem) << ", " << options.tuning << ": " << result.reason;
  }
  // On a PoCL that is not trusted with barriers the naive rung alone serves.
  static bool has_tiles(const Context& context) {
    return explain(context, parse_problem("gemm f32 nn m8n8k8"),
                   {.solver = "gemm/rungs/gpu.1", .tuning = "rung=2 tile_m=8 tile_n=8 work=1"})
        .front()
        .applicable;
  }
  static std::vector<std::string> tunings_to_try(const Context& context) {
    std::vector<std::string> all = {"rung=1 tile_m=16 tile_n=16 work=1", "rung=1 tile_m=4 tile_n=8 work=1"};
    if (!has_tiles(context)) return all;
    for (const char* const tiled :
         {"rung=2 tile_m=4 tile_n=4 work=1", "rung=2 tile_m=8 tile_n=32 work=1", "rung=2 tile_m=16 tile_n=4 work=1",
          "rung=3 tile_m=8 tile_n=8 work=1", "rung=3 tile_m=16 tile_n=8 work=2", "rung=3 tile_m=4 tile_n=32 work=4",
          "rung=3 tile_m=64 tile_n=16 work=8"})
      all.emplace_back(tiled);
    return all;
  }
};

// Extents that no tile divides, and that one tile holds.
const char* const problems[] = {"gemm f32 nn m33n21k50",
                                "gemm f32 tn m5n70k17batch3",
                                "gemm f32 nt m18n9k40",
                                "gemm f32 tt m7n7k7",
                                "n3c5h9w11k7r3s3p1",
                                "n2c4h12w9k6r3s3p1u2",
                                "n2c3h10w13k5r5s2pt2pb1pl0pr3u2",
                                "n5c4h3w3k20r3s3",
                                "n2c6h7w5k9r1s1",
                                "bwd_data n3c5h9w11k7r3s3p1",
                                "bwd_data n2c4h12w9k6r3s3p1u2",
                                "bwd_data n2c3h10w13k5r5s2pt2pb1pl0pr3u2",
                                "bwd_data n5c4h3w3k20r3s3",
                                "bwd_filter n3c5h9w11k7r3s3p1",
                                "bwd_filter n2c4h12w9k6r3s3p1u2",
                                "bwd_filter n5c4h3w3k20r3s3",
                                "bias_add fwd n3c7h9w5",
                                "bias_add fwd n37c19h1w1",
                                "bias_add fwd nhwc n2c9h4w7",
                                "bias_add bwd n3c7h9w5",
                                "bias_add bwd n37c19h1w1",
                                "bias_add bwd nhwc n2c9h4w7",
                                "loss softmax n37c10",
                                "loss softmax bwd n37c10",
                                "loss softmax n3c131",
                                "loss softmax bwd n3c131",
                                "loss mse n19c12",
                                "loss mse bwd n19c12",
                                "activation relu n3c5h9w7",
                                "activation relu bwd n3c5h9w7",
                                "activation sigmoid n3c5h9w7",
                                "activation sigmoid bwd n3c5h9w7",
                                "activation tanh n3c5h9w7",
                                "activation tanh bwd n3c5h9w7",
                                "update sgd guarded n1003",
                                "update nesterov n1003",
                                "update adam guarded scaled n1003",
                                "add n3c5h8w6k5",
                                "add relu n2c4h9w7k8u2",
                                "add bwd n2c4h9w7k8u2",
                                "add bwd nhwc n2c4h9w7k8u2"};

TEST_F(GpuRungs, EachRungAndKindOfTileIsRight) {
  const Context context(device);
  const std::vector<std::string> all = tunings_to_try(context);
  for (std::size_t i = 0; i < std::size(problems); ++i) {
    const Problem problem = parse_problem(problems[i]);
    // Each problem by the first tuning of each rung and some of the others, so that all together have all of them.
    for (std::size_t k = 0; k < all.size(); ++k)
      if (k == 0 || (i + k) % 4 == 0) expect_right(context, problem, {.solver = id_of(problem), .tuning = all[k]});
  }
}

TEST_F(GpuRungs, TheDomainIsRight) {
  const Context context(device);
  const bool is_naive_alone = !has_tiles(context);
  for (const char* const text :
       {"gemm f32 nn m33n21k50", "n3c5h9w11k7r3s3p1", "bias_add bwd n3c7h9w5", "loss softmax bwd n37c10",
        "activation relu n3c5h9w7", "update sgd guarded n1003", "add n3c5h8w6k5"}) {
    const Problem problem = parse_problem(text);
    const std::vector<operations::Tuning> all = tunings(context, problem);
    ASSERT_GT(all.size(), is_naive_alone ? 0U : 100U) << text;
    for (const operations::Tuning& one : all) ASSERT_TRUE(!is_naive_alone || one.at("rung") == 1) << text;
    EXPECT_EQ(all.front().to_text(), "rung=1 tile_m=16 tile_n=16 work=1");
    constexpr std::size_t looked_at = 3;
    for (std::size_t i = 0; i < looked_at; ++i)
      expect_right(context, problem, {.solver = id_of(problem), .tuning = all[(i * 7919 + 1) % all.size()].to_text()});
  }
}

TEST_F(GpuRungs, UpdatesKeepWhatIsNotFinite) {
  const Context context(device);
  for (const char* const tuning : {"rung=1 tile_m=16 tile_n=16 work=1", "rung=2 tile_m=16 tile_n=16 work=1",
                                   "rung=3 tile_m=16 tile_n=16 work=4"}) {
    expect_others_change(context, {.solver = "update/rungs/gpu.1", .tuning = tuning}, DataType::f32);
    if (!has_tiles(context)) break;
  }
}

// Under a limit columns are made of fewer images at a time; of one at the least.
TEST_F(GpuRungs, ColumnsKeepToWorkspaceLimits) {
  const Context context(device);
  for (const char* const pass : {"fwd", "bwd_data", "bwd_filter"}) {
    const Problem problem = parse_problem(fmt::format("{} n7c3h8w9k5r3s3p1", pass));
    constexpr std::int64_t of_image = 3 * 9 * 8 * 9 * 4;
    for (const std::int64_t images : {1, 2, 3, 7}) {
      const SolverOptions options{.solver = "conv2d/rungs/gpu.1", .max_workspace_bytes = images * of_image};
      EXPECT_LE(Plan(context, problem, options).workspace_bytes(), images * of_image);
      expect_right(context, problem, options);
    }
    EXPECT_EQ(Plan(context, problem, {.solver = "conv2d/rungs/gpu.1"}).workspace_bytes(), 7 * of_image);
    EXPECT_HAS(
        error_of([&] { Plan(context, problem, {.solver = "conv2d/rungs/gpu.1", .max_workspace_bytes = of_image - 1}); },
                 ErrorKind::bad_input),
        fmt::format("needs a workspace of {} bytes at the least", of_image));
  }
}

// They serve where they are named, and nowhere else.
TEST_F(GpuRungs, AreForThoseWhoNameThem) {
  const Context context(device);
  for (const char* const text : problems) {
    const Problem problem = parse_problem(text);
    const std::string id = id_of(problem);
    bool is_listed = false;
    for (const SolverOptions& options :
         {SolverOptions{}, SolverOptions{.allow = {std::string(problem.operation_name())}}})
      for (const Candidate& candidate : explain(context, problem, options))
        if (candidate.solver == id) {
          is_listed = true;
          EXPECT_FALSE(candidate.applicable) << text;
          EXPECT_HAS(candidate.reason,
                     "is a rung of the classic study: it serves where it is named, as by the solver " + id);
        }
    EXPECT_TRUE(is_listed) << text;
    EXPECT_EQ(Plan(context, problem, {.allow = {std::string(problem.operation_name()) + "/rungs"}}).solver(), id);
  }
}

TEST_F(GpuRungs, WhatTheyDoNotServeIsSaid) {
  const Context context(device);
  const auto refusal = [&](const char* text, const std::string& tuning = {}) {
    const Problem problem = parse_problem(text);
    return error_of([&] { Plan(context, problem, {.solver = id_of(problem), .tuning = tuning}); },
                    ErrorKind::bad_input);
  };
  for (const char* const text : {"bias n1c2h4w4k2r3s3", "relu n1c2h4w4k2r3s3", "acc n1c2h4w4k2r3s3"})
    EXPECT_HAS(refusal(text), "by a launch of its own");
  EXPECT_HAS(refusal("n1c2h4w4k2r3s3g2"), "no groups");
  EXPECT_HAS(refusal("flip n1c2h4w4k2r3s3"), "not turned");
  EXPECT_HAS(refusal("n1c2h9w9k2r3s3d2"), "no dilation");
  EXPECT_HAS(refusal("nhwc n1c2h4w4k2r3s3"), "images are nchw");
  for (const char* const text :
       {"f16 n1c2h4w4k2r3s3", "gemm bf16 nn m4n4k4", "bias_add f16 n1c2h4w4", "loss softmax bf16 n4c4",
        "activation f16 relu n1c2h4w4", "update sgd f16 n4", "add bf16 n1c2h4w4k2"})
    EXPECT_HAS(refusal(text), "the study's kernels are of f32");
  EXPECT_HAS(refusal("loss bwd sums n4c4"), "a launch computes one function: leave out sums");
  const char* const product = "gemm f32 nn m64n64k64";
  EXPECT_HAS(refusal(product, "rung=1 tile_m=16 tile_n=16 work=2"),
             "work=2: results of a work item are 1 but of rung 3");
  EXPECT_HAS(refusal(product, "rung=3 tile_m=4 tile_n=16 work=8"), "work=8: must divide the rows of a tile, 4");
  EXPECT_HAS(refusal(product, "rung=3 tile_m=12 tile_n=16 work=1"), "must be one of 4, 8, 16, 32, 64");
  const std::int64_t most = device->facts().max_group_items;
  if (most < 64 * 64) {
    EXPECT_HAS(
        refusal(product, "rung=1 tile_m=64 tile_n=64 work=1"),
        fmt::format("a tile of 64 x 64, 1 a work item: a group has 4096 work items, and the device takes {} at most",
                    most));
  }
  // A patch of x that is larger than any local memory.
  if (has_tiles(context)) {
    EXPECT_HAS(refusal("n1c1h9000w9000k1r900s900", "rung=2 tile_m=16 tile_n=16 work=1"),
               "a tile of 16 x 16, 1 a work item: a group takes 3348900 bytes of local memory, and the device has");
  }
}

}  // namespace
}  // namespace omniconv::gpu_rungs_tests
