// Quick starts on a device: the first run, by code that was compiled quickly, has the bits of the optimised code's.
#include <cstring>
#include <limits>

#include "gpu_testing.h"
#include "range_testing.h"

namespace omniconv {
namespace {

class QuickStarts : public Gpu {
 protected:
  // Of a quick start twice, then of a usual one.
  void expect_same_bits(const Conv2dProblem& problem, const Arrays& arrays, const char* by) const {
    const Context quick({.device = device->info().id, .quick_start = true});
    const std::vector<float> first = made_by(quick, problem, by, arrays), second = made_by(quick, problem, by, arrays),
                             usual = made_by(Context({.device = device->info().id, .quick_start = false}), problem, by,
                                             arrays);
    ASSERT_EQ(first.size(), usual.size());
    EXPECT_EQ(std::memcmp(first.data(), usual.data(), usual.size() * sizeof(float)), 0) << to_text(problem);
    EXPECT_EQ(std::memcmp(second.data(), usual.data(), usual.size() * sizeof(float)), 0) << to_text(problem);
  }
};

// By every solver of convolutions that starts quickly; the second problem of each by the definition within a run, where
// there is one.
TEST_F(QuickStarts, HaveTheBitsOfLaterRuns) {
  struct Case {
    const char *by, *text;
  };
  for (const auto& [by, text] : {Case{"conv2d/split_gemm/gpu.1", "n8c128h14w14k128r3s3p1"},
                                 {"conv2d/split_gemm/gpu.1", "nhwc n2c264h9w9k264r1s1"},
                                 {"conv2d/few_channels/gpu.1", "n2c3h40w40k64r7s7p3u2"},
                                 {"conv2d/winograd/gpu.1", "n2c64h28w28k64r3s3p1"},
                                 {"conv2d/fft/gpu.1", "n2c3h60w60k10r16s16"},
                                 {"conv2d/mma_gemm/gpu.1", "n2c64h28w28k64r3s3p1"},
                                 {"conv2d/few_pixels/gpu.1", "n1c8h4w4k8r3s3"}}) {
    int passes = 0;
    for (const Pass pass : all_passes) {
      const Conv2dProblem problem = with_pass(conv2d_problem(text), pass);
      if (!explain(Context(device), problem, {.solver = by}).front().applicable) continue;
      ++passes;
      const Conv2dElements all = elements_of(problem);
      Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 1), randoms(all.y, 3, 1)};
      expect_same_bits(problem, arrays, by);
      (pass == Pass::backward_data ? arrays.y : arrays.x).at(7) = std::numeric_limits<float>::infinity();
      expect_same_bits(problem, arrays, by);
    }
    if (device->facts().compute_capability == 90) {
      EXPECT_GT(passes, 0) << by;
    }
  }
}

}  // namespace
}  // namespace omniconv
