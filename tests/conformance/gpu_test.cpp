// Every device of the program's kind: every solver x type x border x kernel form, the problem list, and the CPU's bits.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../devices/gpu_testing.h"
#include "conformance.h"
#include "matrix_testing.h"
#include "recording_testing.h"

namespace omniconv {
namespace {

constexpr const char* type_names[] = {"u8", "u16", "s16", "s32", "f16", "f32", "u8>f32", "f32>u8", "u8>s16"};
constexpr const char* borders[] = {"constant:3", "replicate", "reflect", "reflect101", "wrap", "valid"};

class EveryDevice : public testing::TestWithParam<const char*> {
 protected:
  // Every third border, others for the next type and the next kernel: compiling for every solver takes seconds. Of
  // OpenCL on a processor, which takes longest, every sixth.
  static std::vector<std::string> some_borders(const Context& context, std::size_t kernel) {
    const auto type =
        static_cast<std::size_t>(std::find(std::begin(type_names), std::end(type_names), GetParam()) - type_names);
    std::vector<std::string> some = {borders[(type + kernel) % 6]};
    if (context.device().is_gpu) some.push_back(borders[(type + kernel + 3) % 6]);
    return some;
  }
};

TEST_P(EveryDevice, BordersAndKernels) {
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    std::size_t number = 0;
    for (const char* kernel : {"random", "rank1", "equal"})
      for (const std::string& border : some_borders(context, number++))
        expect_conformance(context, fmt::format("filter2d {} h19w23c3r3s4 {} kernel:{}", GetParam(), border, kernel));
    for (const int c : {1, 4}) expect_conformance(context, fmt::format("filter2d {} h9w31c{}r5s2", GetParam(), c));
    expect_conformance(context, fmt::format("filter2d {} h40w30c2r3s5 wrap", GetParam()), {.strip_rows = 7});
  }
}

INSTANTIATE_TEST_SUITE_P(GpuConformance, EveryDevice, testing::ValuesIn(type_names), [](const auto& type) {
  std::string name = type.param;
  std::replace(name.begin(), name.end(), '>', '_');
  return name;
});

TEST_P(EveryDevice, Gradients) {
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    for (const std::string& border : some_borders(context, 1))
      expect_conformance(context, fmt::format("filter2d {} h19w53c3r3s3 {} kernel:scharr", GetParam(), border));
    for (const int c : {2, 5})
      expect_conformance(context, fmt::format("filter2d {} h9w131c{}r3s3 kernel:sobel", GetParam(), c),
                         {.strip_rows = 4});
    expect_conformance(context, fmt::format("filter2d {} h1w2c3r3s3 wrap kernel:prewitt", GetParam()));
    // Kernels of different form, not exact, so that rank one is filtered along rows first.
    auto problem = get<Filter2dProblem>(parse_problem(fmt::format("filter2d {} h21w130c1r4s3", GetParam())));
    problem.kernel = "rank1";
    Filter filter{.weights = kernel_for(problem, 3).weights, .scale = 0.7, .bias = 3};
    problem.kernel = "random";
    filter.second_weights = kernel_for(problem, 4).weights;
    expect_conformance(context, problem, filter);
    std::swap(filter.weights, filter.second_weights);
    expect_conformance(context, problem, filter);
  }
}

// Every u16 value under weights that make sums of squares of all sizes, also below the normal range: the roots must be
// correctly rounded, which OpenCL's own sqrt() need not be.
TEST(GpuConformance, RootsAreCorrectlyRounded) {
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    const auto problem = get<Filter2dProblem>(parse_problem("filter2d u16>f32 h512w512c1r1s1"));
    for (const auto& [x, y] :
         {std::pair{1.0, 1.0}, {1.0, 0.3}, {0.7, 1e-3}, {1e-12, 3e-13}, {1e-19, 2e-20}, {3e-24, 1e-24}, {1e12, 7e11}})
      expect_conformance(context, problem, {.weights = {x}, .scale = 1, .second_weights = {y}});
  }
}

TEST(GpuConformance, GradientList) {
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    for (const Filter2dProblem& problem : shrunk_problems("gradients.txt"))
      expect_conformance(context, problem, filter_for(problem));
  }
}

TEST(GpuConformance, ProblemList) {
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    // Of OpenCL on a processor every second: an unrolled mask takes its compiler seconds.
    std::size_t number = 0;
    for (const Filter2dProblem& problem : shrunk_problems())
      if (context.device().is_gpu || number++ % 2 == 0) expect_conformance(context, problem, filter_for(problem));
  }
}

// More rows of groups than one launch may have on CUDA devices; on a processor, which has no such limit, more than 2^16
// rows, of some a quarter of that.
TEST(GpuConformance, VeryTallImages) {
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    const int most = context.device().is_gpu ? 600000 : 70000;
    for (const std::string& text : {fmt::format("filter2d u8 h{}w2c1r3s3", most),
                                    fmt::format("filter2d u8 h{}w2c1r3s3 kernel:rank1 wrap", most / 4),
                                    fmt::format("filter2d u8 h{}w2c1r3s3 kernel:sobel", most),
                                    fmt::format("filter2d u8 h{}w2c2r3s3 alpha:1", most),
                                    fmt::format("filter2d u8 h{}w2c4r3s3 kernel:laplacian alpha:3", most / 4)})
      expect_conformance(context, text, {.sampled = true, .samples = samples(20000)});
  }
}

// What PoCL's optimizer leaves of a kernel has other barriers and branches than the text.
TEST(GpuConformance, OptimizedKernels) {
  const WithOptimizer optimizer;
  for (const std::string& id : tested_ids()) {
    const Context context({.device = id});
    for (const char* text : {"n2c17h8w8k31r3s3p1", "bwd_data n2c17h8w8k31r3s3p1", "bwd_filter n2c17h8w8k31r3s3p1",
                             "nhwc n2c20h11w12k36r3s3p1", "gemm f32 nt m70n90k50"})
      expect_exact_and_bounded(context, parse_problem(text), {.solver = {.solver = "all"}});
  }
}

TEST(GpuConformance, RecordingsReplayThreeOperations) {
  for (const std::string& id : tested_ids()) expect_replays(Context({.device = id}));
}

}  // namespace
}  // namespace omniconv
