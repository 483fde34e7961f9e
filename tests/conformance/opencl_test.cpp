// Every OpenCL device: every solver x type x border x kernel form, the problem list, and the CPU's bits.
#include <fmt/format.h>

#include "conformance.h"

namespace omniconv {
namespace {

// The devices found; a machine of the tests has at least one (PoCL).
std::vector<std::string> opencl_devices() {
  std::vector<std::string> ids;
  for (const DeviceInfo& info : list_devices().found)
    if (info.id.starts_with("opencl")) ids.push_back(info.id);
  return ids;
}

TEST(OpenClConformance, ThereIsADevice) {
  EXPECT_FALSE(opencl_devices().empty()) << "install pocl-opencl-icd, or build with -DOMNICONV_OPENCL=OFF";
}

class EveryDevice : public testing::TestWithParam<const char*> {};

TEST_P(EveryDevice, BordersAndKernels) {
  for (const std::string& id : opencl_devices()) {
    const Context context({.device = id});
    for (const char* border : {"constant:3", "replicate", "reflect", "reflect101", "wrap", "valid"})
      for (const char* kernel : {"random", "rank1", "equal"})
        expect_conformance(context, fmt::format("filter2d {} h19w23c3r3s4 {} kernel:{}", GetParam(), border, kernel));
    for (const int c : {1, 2, 4, 5})
      expect_conformance(context, fmt::format("filter2d {} h9w31c{}r5s2", GetParam(), c));
    expect_conformance(context, fmt::format("filter2d {} h40w30c2r3s5 wrap", GetParam()), {.strip_rows = 7});
  }
}

INSTANTIATE_TEST_SUITE_P(OpenClConformance, EveryDevice,
                         testing::Values("u8", "u16", "s16", "s32", "f16", "f32", "u8>f32", "f32>u8", "u8>s16"),
                         [](const auto& type) {
                           std::string name = type.param;
                           std::replace(name.begin(), name.end(), '>', '_');
                           return name;
                         });

TEST_P(EveryDevice, Gradients) {
  for (const std::string& id : opencl_devices()) {
    const Context context({.device = id});
    for (const char* border : {"constant:3", "replicate", "reflect", "reflect101", "wrap", "valid"})
      expect_conformance(context, fmt::format("filter2d {} h19w53c3r3s3 {} kernel:scharr", GetParam(), border));
    for (const int c : {1, 2, 4, 5})
      expect_conformance(context, fmt::format("filter2d {} h9w131c{}r3s3 kernel:sobel", GetParam(), c),
                         {.strip_rows = 4});
    expect_conformance(context, fmt::format("filter2d {} h1w2c3r3s3 wrap kernel:prewitt", GetParam()));
    // Kernels of different form, not exact, so that rank one is filtered along rows first.
    auto problem = std::get<Filter2dProblem>(parse_problem(fmt::format("filter2d {} h21w130c1r4s3", GetParam())));
    problem.kernel = "rank1";
    Filter filter{.weights = image::kernel_for(problem, 3).weights, .scale = 0.7, .bias = 3};
    problem.kernel = "random";
    filter.second_weights = image::kernel_for(problem, 4).weights;
    expect_conformance(context, problem, filter);
    std::swap(filter.weights, filter.second_weights);
    expect_conformance(context, problem, filter);
  }
}

// Every u16 value under weights that make sums of squares of all sizes, also below the normal range: the roots must be
// correctly rounded, which OpenCL's own sqrt() need not be.
TEST(OpenClConformance, RootsAreCorrectlyRounded) {
  for (const std::string& id : opencl_devices()) {
    const Context context({.device = id});
    const auto problem = std::get<Filter2dProblem>(parse_problem("filter2d u16>f32 h512w512c1r1s1"));
    for (const auto& [x, y] :
         {std::pair{1.0, 1.0}, {1.0, 0.3}, {0.7, 1e-3}, {1e-12, 3e-13}, {1e-19, 2e-20}, {3e-24, 1e-24}, {1e12, 7e11}})
      expect_conformance(context, problem, {.weights = {x}, .scale = 1, .second_weights = {y}});
  }
}

TEST(OpenClConformance, GradientList) {
  for (const std::string& id : opencl_devices()) {
    const Context context({.device = id});
    for (const Filter2dProblem& problem : shrunk_problems("gradients.txt"))
      expect_conformance(context, problem, filter_for(problem));
  }
}

TEST(OpenClConformance, ProblemList) {
  for (const std::string& id : opencl_devices()) {
    const Context context({.device = id});
    for (const Filter2dProblem& problem : shrunk_problems()) expect_conformance(context, problem, filter_for(problem));
  }
}

}  // namespace
}  // namespace omniconv
