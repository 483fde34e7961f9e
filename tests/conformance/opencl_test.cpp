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

TEST(OpenClConformance, ProblemList) {
  for (const std::string& id : opencl_devices()) {
    const Context context({.device = id});
    for (const Filter2dProblem& problem : shrunk_problems()) expect_conformance(context, problem, filter_for(problem));
  }
}

}  // namespace
}  // namespace omniconv
