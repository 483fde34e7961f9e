// The tests of GPU devices are of OpenCL's in this program. A machine of the tests has at least one (PoCL).
#include "gpu_testing.h"

namespace omniconv {

const devices::Backend& tested_backend() {
  return devices::opencl_backend();
}

namespace {

TEST(OpenClConformance, ThereIsADevice) {
  EXPECT_FALSE(tested_ids().empty()) << "install pocl-opencl-icd, or build with -DOMNICONV_OPENCL=OFF";
}

}  // namespace
}  // namespace omniconv
