// The tests of GPU devices are of CUDA's in this program. Where there is none, every test is skipped, with the reason.
#include <iostream>

#include "gpu_testing.h"

namespace omniconv {

const devices::Backend& tested_backend() {
  return devices::cuda_backend();
}

namespace {

class NeedsADevice : public testing::Environment {
  void SetUp() override {
    if (!tested_ids().empty()) return;
    std::cout << "[  SKIPPED ] all tests\n";  // ctest looks for this; GoogleTest says it of single tests alone
    GTEST_SKIP() << no_device();
  }
};

[[maybe_unused]] testing::Environment* const needs_a_device = testing::AddGlobalTestEnvironment(new NeedsADevice);

}  // namespace
}  // namespace omniconv
