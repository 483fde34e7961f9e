// The tests of GPU devices are of OpenCL's in this program. A machine of the tests has at least one (PoCL).
#include <cstdlib>

#include "gpu_testing.h"

namespace omniconv {

const devices::Backend& tested_backend() {
  return devices::opencl_backend();
}

namespace {

// PoCL takes half of all these tests' time to optimize kernels. The tests of the command leave that to it, so that what
// users run is tested too. A value that is set already stands.
[[maybe_unused]] const int without_optimizing = setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);

TEST(OpenClConformance, ThereIsADevice) {
  if (!tested_ids().empty()) return;
  const std::string reason = no_device();
  if (reason.find("mount /sys") != std::string::npos)
    GTEST_SKIP() << reason;  // a driver is there, and can serve elsewhere
  ADD_FAILURE() << reason << "; install pocl-opencl-icd, or build with -DOMNICONV_OPENCL=OFF";
}

}  // namespace
}  // namespace omniconv
