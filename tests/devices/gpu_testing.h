// What the tests of GPU devices share. Each test program is of one kind of device, which it names.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "devices/device.h"

namespace omniconv {

// The program's kind of device: devices/opencl_tests.cpp or devices/cuda_tests.cpp.
const devices::Backend& tested_backend();

inline bool tests_cuda() {
  return tested_backend().kind == devices::DeviceKind::cuda;
}

inline std::vector<std::string> tested_ids() {
  DeviceListing listing;
  tested_backend().list(listing);
  std::vector<std::string> ids;
  for (const DeviceInfo& info : listing.found) ids.push_back(info.id);
  return ids;
}

// Why there is none.
inline std::string no_device() {
  DeviceListing listing;
  tested_backend().list(listing);
  return listing.missing.empty() ? "no reason given"
                                 : listing.missing.front().id + ": " + listing.missing.front().reason;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// Programs that are built meanwhile are compiled by PoCL with these flags.
class WithFlagsOfPocl {
 public:
  explicit WithFlagsOfPocl(const char* flags) {
    if (const char* const before = std::getenv(variable)) flags_before_ = before;
    setenv(variable, flags, 1);
  }
  ~WithFlagsOfPocl() { setenv(variable, flags_before_.c_str(), 1); }
  WithFlagsOfPocl(const WithFlagsOfPocl&) = delete;
  WithFlagsOfPocl& operator=(const WithFlagsOfPocl&) = delete;

 private:
  static constexpr const char* variable = "POCL_EXTRA_BUILD_FLAGS";
  std::string flags_before_;
};

// As for users: other tests spare themselves PoCL's optimizer.
struct WithOptimizer : WithFlagsOfPocl {
  WithOptimizer() : WithFlagsOfPocl("") {}
};

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (tested_ids().empty()) GTEST_SKIP() << no_device();
    // With the variable, first runs are by code that was compiled quickly, where a device has such.
    device = tested_backend().open("", {.quick_start = std::getenv("OMNICONV_TESTS_QUICK_START") != nullptr});
  }

  std::shared_ptr<devices::Buffer> filled(const std::vector<float>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
    auto buffer = device->allocate(bytes);
    device->make_queue()->upload(buffer, 0, values.data(), bytes).wait();
    return buffer;
  }

  std::shared_ptr<devices::Device> device;
};

inline constexpr const char* add_text = R"(
KERNEL void add(GLOBAL float* values, const float addend) { values[GLOBAL_ID_X] += addend; }
)";

}  // namespace omniconv
