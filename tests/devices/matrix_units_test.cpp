// What a probe finds out about matrix units, by units that are modelled.
#include "devices/matrix_units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "omniconv/plan.h"
#include "recording_device.h"

namespace omniconv::devices {
namespace {

std::vector<float> sums_of(const MatrixUnits& units) {
  std::vector<float> sums;
  for (const ProbeSum& sum : probe_sums()) sums.push_back(sum_by(units, sum));
  return sums;
}

TEST(MatrixUnits, AddUpAsModelled) {
  const MatrixUnits hopper = matrix_units_of(90), ampere = matrix_units_of(80);
  ProbeSum sum;
  sum.products[0] = 1, sum.products[1] = 0x1p-25, sum.before = -1;
  EXPECT_EQ(sum_by(hopper, sum), 0x1p-25f);
  EXPECT_EQ(sum_by(ampere, sum), 0.0f);
  sum.products[1] = -0x1.8p-25;  // toward zero
  EXPECT_EQ(sum_by(hopper, sum), -0x1p-25f);
  EXPECT_EQ(sum_by({.terms = 16, .bits = 25, .truncates = false}, sum), -0x1p-24f);
  sum.products[1] = 0, sum.products[8] = 0x1p-28;  // added when the 1 is gone
  EXPECT_EQ(sum_by(hopper, sum), 0.0f);
  EXPECT_EQ(sum_by(ampere, sum), 0x1p-28f);
  sum.products.fill(0x1p-26), sum.products[0] = 1;  // each is cut by itself
  EXPECT_EQ(sum_by(hopper, sum), 0.0f);
  EXPECT_EQ(sum_by({.terms = 16, .bits = 26}, sum), 15 * 0x1p-26f);
  sum.before = 0, sum.products.fill(0), sum.products[0] = -1, sum.products[15] = -0x1.8p-24;  // 24 bits come out
  EXPECT_EQ(sum_by(hopper, sum), -1.0f);
  EXPECT_EQ(sum_by({.terms = 16, .bits = 25, .truncates = false}, sum), -1 - 0x1p-23f);
}

TEST(MatrixUnits, AreFoundByTheirSums) {
  for (const int terms : {4, 8, 16})
    for (int bits = 22; bits <= 27; ++bits)
      for (const bool truncates : {true, false}) {
        const MatrixUnits units{.terms = terms, .bits = bits, .truncates = truncates};
        EXPECT_EQ(units_that_give(sums_of(units)), units) << describe(units);
      }
  std::vector<float> others = sums_of(matrix_units_of(90));
  EXPECT_TRUE(units_that_give(others));
  for (float& each : others) {
    const float before = each;
    each = 2;
    EXPECT_FALSE(units_that_give(others));
    each = before;
  }
  EXPECT_FALSE(units_that_give(std::vector<float>(others.begin(), others.end() - 1)));
}

// Random sums lose no more than what is said of 16 products.
TEST(MatrixUnits, CutNoMoreThanTheirBound) {
  EXPECT_EQ(cut_of_sixteen(matrix_units_of(90)), 5);
  EXPECT_EQ(cut_of_sixteen(matrix_units_of(80)), 10);
  EXPECT_EQ(cut_of_sixteen(matrix_units_of(89)), 10);
  std::mt19937 random(3);
  const auto drawn = [&] {
    return std::ldexp(random() % 2 == 0 ? 1.0 : -1.0, -static_cast<int>(random() % 30)) * (random() % 2 == 0 ? 1 : 1.5);
  };
  for (const MatrixUnits& units : {MatrixUnits{16, 25, true}, MatrixUnits{8, 24, true}, MatrixUnits{4, 23, true},
                                   MatrixUnits{16, 25, false}, MatrixUnits{8, 23, false}})
    for (int i = 0; i < 20000; ++i) {
      ProbeSum sum;
      sum.before = i % 3 == 0 ? 0 : drawn();
      double exact = sum.before, magnitudes = std::fabs(exact);
      for (double& each : sum.products) each = drawn(), exact += each, magnitudes += std::fabs(each);
      ASSERT_LE(std::fabs(static_cast<double>(sum_by(units, sum)) - exact),
                cut_of_sixteen(units) * 0x1p-23 * magnitudes)
          << describe(units);
    }
}

TEST(MatrixUnits, AreRefusedWhereTheyLoseMore) {
  RecordingDevice device(DeviceKind::cuda);
  device.be_of_capability_90();
  const MatrixUnits known = matrix_units_of(90), fewer{.terms = 16, .bits = 24}, more{.terms = 16, .bits = 26};
  EXPECT_EQ(disagreement(device.facts(), {known, known}), "");
  EXPECT_EQ(disagreement(device.facts(), {more, known}), "");
  EXPECT_EQ(
      disagreement(device.facts(), {known, fewer}),
      "the bound rests on matrix units that add up 16 products at a time, cut toward zero at 25 bits, and on this "
      "device a probe found that mma.sync adds up 16 products at a time, cut toward zero at 25 bits, wgmma adds up "
      "16 products at a time, cut toward zero at 24 bits");
  EXPECT_NE(disagreement(device.facts(), {std::nullopt, known}).find("mma.sync adds up in no way that is known"),
            std::string::npos);
  device.set_capability(80);
  EXPECT_EQ(disagreement(device.facts(), {MatrixUnits{8, 24}, std::nullopt}), "");
  EXPECT_NE(disagreement(device.facts(), {MatrixUnits{4, 23}, std::nullopt}), "");
}

// Nothing is probed until it is asked for, and then once; without such units nothing is.
TEST(MatrixUnits, AreProbedOnce) {
  RecordingDevice device(DeviceKind::cuda);
  EXPECT_TRUE(device.has_probed_matrix_units());
  device.probe_matrix_units();
  EXPECT_TRUE(device.built.empty());
  device.be_of_capability_90();
  EXPECT_FALSE(device.has_probed_matrix_units());
  EXPECT_EQ(device.matrix_units_refusal(), "");
  device.probe_matrix_units(), device.probe_matrix_units();
  ASSERT_EQ(device.built.size(), 1u);
  EXPECT_EQ(device.built[0].target, "sm_90a");
  EXPECT_TRUE(device.has_probed_matrix_units());
  // This device computes nothing.
  EXPECT_NE(device.matrix_units_refusal().find("wgmma adds up in no way that is known"), std::string::npos)
      << device.matrix_units_refusal();
}

// The first plan that rests on them asks, and another solver serves where they lose more.
TEST(MatrixUnits, AreProbedByTheFirstPlanThatRestsOnThem) {
  const auto device = std::make_shared<RecordingDevice>(DeviceKind::cuda);
  device->be_of_capability_90();
  device->set_compute_units(132);
  const Context context(device);
  const Problem problem = parse_problem("n32c256h56w56k256r3s3p1");
  const std::string by_units = explain(context, problem, {}).front().solver;
  EXPECT_EQ(by_units, "conv2d/split_gemm/gpu.1");
  EXPECT_EQ(Plan(context, problem, {.units = Units::fma}).solver(), "conv2d/winograd/gpu.1");
  EXPECT_FALSE(device->has_probed_matrix_units());
  EXPECT_EQ(Plan(context, problem, {}).solver(), "conv2d/winograd/gpu.1");
  EXPECT_TRUE(device->has_probed_matrix_units());
  for (const char* const solver : {"conv2d/split_gemm/gpu.1", "conv2d/mma_gemm/gpu.1"})
    EXPECT_NE(error_of([&] { Plan(context, problem, {.solver = solver}); }).find("a probe found that mma.sync adds up"),
              std::string::npos);
}

}  // namespace
}  // namespace omniconv::devices
