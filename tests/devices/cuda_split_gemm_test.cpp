// Convolution on the matrix units of a device: every form of its tiles, and numbers of any range.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../conformance/conv2d_testing.h"
#include "../list_testing.h"
#include "checking/verify.h"
#include "float_arrays.h"
#include "gpu_testing.h"
#include "omniconv/plan.h"
#include "operations/conv2d/conv2d.h"

namespace omniconv {
namespace {

constexpr const char* solver = "conv2d/split_gemm/gpu.1";

class SplitGemm : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (device == nullptr) return;
    const int capability = device->facts().compute_capability;
    if (capability != 90) GTEST_SKIP() << "the solver is for compute capability 9.0, and the device has " << capability;
  }

  void expect_right(const Problem& problem) const {
    const Context context(device);
    const Candidate candidate = explain(context, problem, {.solver = solver}).front();
    if (!candidate.applicable) return;
    ++checked;
    for (const checking::VerifyResult& result :
         checking::verify(context, problem, {.solver = {.solver = solver}, .sampled = true, .samples = 1000}))
      EXPECT_EQ(result.status, checking::Status::ok) << to_text(problem) << ": " << result.reason;
  }
  mutable int checked = 0;
};

TEST_F(SplitGemm, EveryForm) {
  int number = 0;
  for (Conv2dProblem problem : listed_problems<Conv2dProblem>("tiles.txt"))
    for (const Pass pass : all_passes) {
      problem.layout = ++number % 2 == 0 ? Layout::nchw : Layout::nhwc;
      expect_right(with_pass(problem, pass));
    }
  EXPECT_GT(checked, 80);
}

TEST_F(SplitGemm, EveryTypeAndWhatIsFused) {
  for (const char* type : {"f32", "tf32", "f16", "bf16"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"bias relu acc", "flip bias", "bwd_data acc", "bwd_filter acc", "bwd_filter flip"})
        for (const char* geometry : {"n2c72h13w11k40r3s3p1", "n2c3h23w25k32r3s3p1u2"})
          expect_right(parse_problem(fmt::format("{} {} {} {}", words, type, layout, geometry)));
  EXPECT_EQ(checked, 4 * 2 * 5 * 2);
}

TEST_F(SplitGemm, EveryTuning) {
  const Context context(device);
  for (const char* tuning : {"tile_n=128 resident=1 parts=1 shared=0", "tile_n=64 resident=1 parts=2 shared=0",
                             "tile_n=64 resident=2 parts=1 shared=0", "tile_n=32 resident=2 parts=3 shared=0",
                             "tile_n=128 resident=1 parts=1 shared=1", "tile_n=64 resident=2 parts=2 shared=1",
                             "tile_n=32 resident=2 parts=1 shared=1"})
    for (const char* problem :
         {"n2c128h14w14k128r3s3p1", "bwd_data nhwc n2c128h14w14k128r3s3p1", "tf32 n2c96h14w14k72r3s5p2dw2",
          "bwd_data n3c40h13w15k48r5s5p2", "bf16 nhwc n2c96h14w14k40r3s5p2"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem), {.solver = {.solver = solver, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
}

// Arrays of a pass by a solver; the output as it holds.
struct Arrays {
  std::vector<float> x, w, y;
};
std::vector<float> made_by(const Context& context, const Conv2dProblem& problem, const char* id, const Arrays& arrays) {
  Queue queue = context.make_queue();
  const auto put = [&](const std::vector<float>& values) { return uploaded(context, queue, values); };
  const Conv2dPlan plan(context, problem, {.solver = id});
  Conv2dRun run{.x = put(arrays.x), .w = put(arrays.w), .y = put(arrays.y)};
  if (plan.workspace_bytes() > 0) run.workspace = context.allocate(plan.workspace_bytes());
  plan.run(queue, run).wait();
  const Buffer out = (problem.pass == Pass::forward         ? run.y
                      : problem.pass == Pass::backward_data ? run.x
                                                            : run.w)
                         .buffer;
  std::vector<float> values(static_cast<std::size_t>(out.bytes() / 4));
  queue.download(values.data(), out, 0, out.bytes()).wait();
  return values;
}

class SplitGemmRanges : public SplitGemm {
 protected:
  // Of the result NaN and infinities are those of the definition, the rest lies within the bound.
  void expect_as_defined(const Conv2dProblem& problem, const Arrays& arrays) const {
    const Context context(device), cpu({.device = "cpu"});
    const std::vector<float> found = made_by(context, problem, solver, arrays),
                             wanted = made_by(cpu, problem, "conv2d/double/cpu.1", arrays);
    Arrays magnitudes = arrays;
    for (std::vector<float>* const each : {&magnitudes.x, &magnitudes.w, &magnitudes.y})
      for (float& value : *each) value = std::isfinite(value) ? std::fabs(value) : 0;
    const std::vector<float> sums = made_by(cpu, problem, "conv2d/double/cpu.1", magnitudes);
    const double terms = operations::longest_sum(problem),
                 absolute =
                     terms * 0x1p-38 *
                     static_cast<double>(largest(problem.pass == Pass::backward_data ? magnitudes.y : magnitudes.x)) *
                     static_cast<double>(largest(problem.pass == Pass::backward_filter ? magnitudes.y : magnitudes.w));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!std::isfinite(wanted[i])) {
        if (std::isnan(wanted[i]))
          ASSERT_TRUE(std::isnan(found[i])) << to_text(problem) << " at " << i << ": " << found[i];
        else
          ASSERT_EQ(found[i], wanted[i]) << to_text(problem) << " at " << i;
        continue;
      }
      const double allowed = 64 * 0x1p-23 * static_cast<double>(sums[i]) + absolute + 0x1p-149;
      ASSERT_NEAR(found[i], wanted[i], allowed) << to_text(problem) << " at " << i;
    }
  }
  void expect_of_scales(float of_x, float of_w) const {
    for (const Pass pass : all_passes)
      for (const char* layout : {"nchw", "nhwc"}) {
        const Conv2dProblem problem = with_pass(conv2d_problem(fmt::format("{} n2c20h9w8k12r3s3p1", layout)), pass);
        const Conv2dElements all = elements_of(problem);
        expect_as_defined(problem,
                          {randoms(all.x, 1, of_x), randoms(all.w, 2, pass == Pass::backward_data ? of_x : of_w),
                           randoms(all.y, 3, of_w)});
      }
  }
};

TEST_F(SplitGemmRanges, LargeAndSmall) {
  expect_of_scales(0x1p100f, 0x1p-110f);
  expect_of_scales(0x1p-70f, 0x1p-60f);   // results below the normal range
  expect_of_scales(0x1p-140f, 0x1p120f);  // numbers below it
  expect_of_scales(0x1p-149f, 1.0f);
  expect_of_scales(0x1p70f, 0x1p70f);  // results beyond it
  expect_of_scales(0.0f, 1.0f);
  expect_of_scales(0.0f, 0.0f);
}

// Of arrays this large a sample alone is looked at for the scale: what was not looked at may be larger than all of it,
// infinite or NaN, or all that is there.
TEST_F(SplitGemmRanges, LargeNumbersBesideTheSample) {
  constexpr std::size_t not_looked_at = 40;  // in the second line of 32, of which the first is
  for (const Pass pass : all_passes) {
    const Conv2dProblem problem = with_pass(conv2d_problem("n1c16h1024w1032k16r1s1"), pass);
    const Conv2dElements all = elements_of(problem);
    const Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 1), randoms(all.y, 3, 1)};
    const auto expect_with = [&](float number, bool alone) {
      Arrays changed = arrays;
      for (std::vector<float>* const each : {&changed.x, &changed.y}) {
        if (alone) std::fill(each->begin(), each->end(), 0.0f);
        (*each)[not_looked_at] = number;
      }
      expect_as_defined(problem, changed);
    };
    expect_with(1.5f, false);  // is a part beside the others
    expect_with(1e6f, false);
    expect_with(0x1p-100f, true);
    if (pass == Pass::forward) expect_with(std::numeric_limits<float>::infinity(), false);
  }
}

TEST_F(SplitGemmRanges, LargestBesideSmallest) {
  for (const Pass pass : all_passes) {
    const Conv2dProblem problem = with_pass(conv2d_problem("n2c20h9w8k12r3s3p1"), pass);
    const Conv2dElements all = elements_of(problem);
    Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 0x1p-20f), randoms(all.y, 3, 0x1p-20f)};
    arrays.x[7] = 0x1p127f, arrays.x[100] = 0x1p-126f, arrays.w[5] = 0x1p-126f;
    if (pass == Pass::backward_data) arrays.y[30] = 0x1p127f;
    expect_as_defined(problem, arrays);
  }
}

TEST_F(SplitGemmRanges, InfinitiesAndNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const Pass pass : all_passes)
    for (const char* geometry : {"n2c20h9w8k12r3s3p1", "nhwc n2c3h9w12k12r3s3p1u2", "n1c300h3w3k12r1s1"})
      for (const float odd : {infinity, -infinity, none}) {
        const Conv2dProblem problem = with_pass(conv2d_problem(geometry), pass);
        const Conv2dElements all = elements_of(problem);
        Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 1), randoms(all.y, 3, 1)};
        std::vector<float>& first = pass == Pass::backward_data ? arrays.y : arrays.x;
        first[first.size() / 2] = odd;
        expect_as_defined(problem, arrays);
        std::vector<float>& second = pass == Pass::backward_filter ? arrays.y : arrays.w;
        second[second.size() / 3] = -odd;
        expect_as_defined(problem, arrays);
      }
}

// Nothing is read back and nothing allocated, so that a recording gives what a run gives.
TEST_F(SplitGemm, IsReplayed) {
  const Context context(device);
  Queue queue = context.make_queue();
  for (const char* text : {"n2c64h9w8k72r3s3p1", "n1c512h4w4k64r3s3p1", "bwd_data n2c64h9w8k72r3s3p1u2",
                           "bwd_filter n2c64h9w8k72r3s3p1"}) {
    const Conv2dProblem problem = conv2d_problem(text);
    const Conv2dElements all = elements_of(problem);
    const Conv2dPlan plan(context, problem, {.solver = solver});
    Conv2dRun run{
        .x = {context.allocate(all.x * 4)}, .w = {context.allocate(all.w * 4)}, .y = {context.allocate(all.y * 4)}};
    run.workspace = context.allocate(plan.workspace_bytes());
    const Buffer out = (problem.pass == Pass::forward         ? run.y
                        : problem.pass == Pass::backward_data ? run.x
                                                              : run.w)
                           .buffer;
    const auto fill = [&](std::uint64_t seed, float scale) {
      for (const Operand* const each : {&run.x, &run.w, &run.y}) {
        const std::vector<float> values = randoms(each->buffer.bytes() / 4, ++seed, scale);
        queue.upload(each->buffer, 0, values.data(), each->buffer.bytes()).wait();
      }
    };
    const auto result = [&] {
      std::vector<float> values(static_cast<std::size_t>(out.bytes() / 4));
      queue.download(values.data(), out, 0, out.bytes()).wait();
      return values;
    };
    Sequence sequence = context.make_sequence();
    plan.append(sequence, run);
    const Recording recording = context.record(std::move(sequence));
    for (const float scale : {1.0f, 0x1p40f, 0x1p-40f}) {
      fill(5, scale);
      plan.run(queue, run).wait();
      const std::vector<float> wanted = result();
      fill(5, scale);
      recording.replay(queue).wait();
      EXPECT_EQ(result(), wanted) << text;
    }
  }
}

}  // namespace
}  // namespace omniconv
