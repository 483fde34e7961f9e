// The device's own matrix units add up as is known of them.
#include "devices/matrix_units.h"
#include "gpu_testing.h"

namespace omniconv {
namespace {

TEST_F(Gpu, MatrixUnitsAddUpAsIsKnown) {
  const devices::DeviceFacts& facts = device->facts();
  if (facts.matrix_units.terms == 0) GTEST_SKIP() << "the device has no matrix units that are known";
  const devices::ProbedUnits found = devices::probe_matrix_units(*device);
  ASSERT_TRUE(found.by_warps) << "mma.sync adds up in no way that is known";
  EXPECT_EQ(*found.by_warps, facts.matrix_units) << devices::describe(*found.by_warps);
  if (devices::has_warpgroup_products(facts)) {
    ASSERT_TRUE(found.by_warpgroups) << "wgmma adds up in no way that is known";
    EXPECT_EQ(*found.by_warpgroups, facts.matrix_units) << devices::describe(*found.by_warpgroups);
  }
  device->probe_matrix_units();
  EXPECT_EQ(device->matrix_units_refusal(), "");
}

}  // namespace
}  // namespace omniconv
