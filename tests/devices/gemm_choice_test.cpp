// Which tiles gemm takes on a GPU, and when it splits k. No device is needed.
#include <gtest/gtest.h>

#include <set>

#include "../conformance/solver_testing.h"
#include "operations/gemm/tiled/tiles.h"
#include "recording_device.h"

namespace omniconv {
namespace {

using operations::GemmChoice;

class GemmChoices : public testing::TestWithParam<devices::DeviceKind> {
 protected:
  GemmChoices() : device(std::make_shared<devices::RecordingDevice>(GetParam())) { device->set_compute_units(132); }
  static operations::GemmTask task_of(const std::string& extents, const std::string& form = "nn") {
    return operations::task_for(get<GemmProblem>(parse_problem("gemm f32 " + form + " " + extents)));
  }
  GemmChoice choice(const std::string& extents, std::int64_t limit = -1) const {
    return operations::choose_tiles(task_of(extents), *device, limit);
  }
  std::shared_ptr<devices::RecordingDevice> device;
};

// Through OpenCL two launches cost more than a product of few rows takes on matrix units; where launches overlap they
// do not.
TEST_P(GemmChoices, FewRowsTakeOneLaunchThroughOpenCl) {
  const bool is_cuda = GetParam() == devices::DeviceKind::cuda;
  if (is_cuda)
    device->be_of_capability_90();
  else
    device->set_capability(90);
  for (const char* const extents : {"m64n1000k1000", "m64n1000k784", "m64n10k1000", "m1024n10k1000"}) {
    const auto cost = [&](const operations::GemmSolver& solver) {
      return offer_by(solver, task_of(extents, "nt"), device).cost.multiply_adds;
    };
    EXPECT_EQ(cost(operations::gemm_mma_gpu()) < cost(operations::gemm_tiled_gpu()), !is_cuda) << extents;
  }
}

TEST_P(GemmChoices, LargeSquaresAreNotSplit) {
  // 5000 makes 6.1 rounds of the largest tiles, 23.9 of smaller ones. Compilers that cannot be told how many registers
  // to use are not asked for the largest.
  for (const auto& [extents, m] :
       {std::pair("m4096n4096k4096", 256), std::pair("m8192n8192k8192", 256), std::pair("m5000n5000k5000", 64)}) {
    const GemmChoice chosen = choice(extents);
    EXPECT_EQ(chosen.parts, 1) << extents;
    EXPECT_EQ(chosen.workspace_bytes, 0) << extents;
    EXPECT_EQ(chosen.tile.m, device->facts().takes_occupancy ? m : 64) << extents;
    EXPECT_EQ(chosen.tile.n, 128) << extents;
  }
}

TEST_P(GemmChoices, ThinProductsAreSplitWhereTheWorkspaceAllows) {
  for (const char* const extents :
       {"m64n4096k4096", "m4096n64k4096", "m128n4096k4096", "m4096n128k4096", "m576n64k200704", "m256n256k100000"}) {
    const GemmChoice chosen = choice(extents), none = choice(extents, 0);
    EXPECT_GT(chosen.parts, 3) << extents;
    EXPECT_GE(chosen.part_k, 64) << extents;
    EXPECT_EQ(chosen.part_k % chosen.tile.k, 0) << extents;
    EXPECT_EQ(none.parts, 1) << extents;
    EXPECT_LT(chosen.cost, none.cost) << extents;
    for (std::int64_t limit = chosen.workspace_bytes; limit > 0; limit /= 3) {
      const GemmChoice within = choice(extents, limit);
      EXPECT_LE(within.workspace_bytes, limit) << extents;
      EXPECT_GE(within.cost, chosen.cost) << extents;
      EXPECT_EQ(offer_by(operations::gemm_tiled_gpu(), task_of(extents), device, limit).workspace_bytes,
                within.workspace_bytes);
    }
  }
}

// Products of a part end where the next begins, and none is empty.
TEST_P(GemmChoices, PartsCoverK) {
  for (const operations::GemmTile& tile : operations::gemm_tiles())
    for (const std::int64_t k : {1, 127, 128, 129, 1000, 4099})
      for (const std::int64_t parts : {1, 2, 3, 7, 64}) {
        const auto chosen = operations::choice_of(tile, parts, task_of("m50n60k" + std::to_string(k)), *device);
        if (!chosen) continue;
        EXPECT_GE(chosen->parts * chosen->part_k, k);
        EXPECT_LT((chosen->parts - 1) * chosen->part_k, k);
        EXPECT_EQ(chosen->workspace_bytes, chosen->parts == 1 ? 0 : chosen->parts * 50 * 60 * 4);
      }
}

// Of 64 products a part is worth its beginning, of 56 it is not.
TEST_P(GemmChoices, PartsHaveALeastLength) {
  const operations::GemmTile& tile = operations::gemm_tiles().front();
  ASSERT_EQ(tile.k, 8);
  const auto parts = [&](const std::string& extents) {
    return operations::choice_of(tile, 2, task_of(extents), *device);
  };
  ASSERT_TRUE(parts("m50n60k128"));
  EXPECT_EQ(parts("m50n60k128")->part_k, 64);
  EXPECT_FALSE(parts("m50n60k112"));
}

// Sums of parts are written and read again, beside what the products take.
TEST_P(GemmChoices, PartsPayForTheirWayThroughMemory) {
  const auto split = operations::choice_of(operations::gemm_tiles().front(), 2, task_of("m4096n4096k128"), *device);
  ASSERT_TRUE(split);
  const std::int64_t partial_bytes = std::int64_t{2} * 4096 * 4096 * 4;
  EXPECT_EQ(split->workspace_bytes, partial_bytes);
  EXPECT_GE(split->cost, 4096.0 * 4096 * 128 + static_cast<double>(2 * partial_bytes) * operations::byte_cost(*device));
}

// A tile that is never the best is one too many.
TEST_P(GemmChoices, EveryTileHasItsUse) {
  std::set<std::array<std::int64_t, 3>> taken;
  for (const char* const form : {"nn", "nt", "tn"})
    for (const std::int64_t m : {16, 32, 64, 128, 256, 700, 4096})
      for (const std::int64_t n : {16, 32, 64, 128, 256, 700, 4096, 20000})
        for (const std::int64_t k : {64, 576, 4096}) {
          const std::string extents = "m" + std::to_string(m) + "n" + std::to_string(n) + "k" + std::to_string(k);
          const operations::GemmTile tile = operations::choose_tiles(task_of(extents, form), *device, -1).tile;
          taken.insert({tile.m, tile.n, tile.group()});
        }
  for (const operations::GemmTile& tile : operations::gemm_tiles())
    EXPECT_TRUE(taken.contains({tile.m, tile.n, tile.group()}) ||
                (!device->facts().takes_occupancy && tile.quads_m * tile.quads_n > 4))
        << tile.m << " x " << tile.n << " of " << tile.group();
}

TEST_P(GemmChoices, GroupsAreAsLargeAsTheDeviceAllows) {
  for (const std::int64_t most : {64, 128, 255, 256}) {
    device->group_items = most;
    for (const char* const extents : {"m4096n4096k4096", "m5000n5000k5000", "m64n4096k4096", "m700n700k64"})
      EXPECT_LE(choice(extents).tile.group(), most) << extents;
    EXPECT_EQ(choice("m64n4096k4096").parts > 1, most >= 256);  // parts are added up by groups of 256
  }
  device->group_items = 32;
  EXPECT_EQ(refusal_of(operations::gemm_tiled_gpu(), task_of("m64n64k64"), device),
            "a group has 64 work items, and the device takes 32 at most");
}

TEST_P(GemmChoices, TilesFitIntoLocalMemory) {
  for (const operations::GemmTile& tile : operations::gemm_tiles()) {
    EXPECT_LE(tile.local_bytes(), 32 << 10);
    EXPECT_EQ(tile.m % (16 * tile.quads_m), 0);
    EXPECT_EQ(tile.n % (32 * tile.quads_n), 0);
    EXPECT_LE(tile.group(), 256);
    for (const std::int64_t lacking : {0, 1}) {  // bytes
      device->local_memory_bytes = tile.local_bytes() - lacking;
      EXPECT_EQ(operations::tiles_taken_by(*device, std::span(&tile, 1)).size(), lacking == 0 ? 1u : 0u);
    }
  }
}

TEST_P(GemmChoices, RefusalsNameTheReason) {
  operations::GemmTask task = task_of("m8n8k8");
  task.problem.type = DataType::f64;
  for (const operations::GemmSolver* const solver : {&operations::gemm_tiled_gpu(), &operations::gemm_plain_gpu()}) {
    EXPECT_EQ(refusal_of(*solver, task_of("m8n8k8"), device), "");
    EXPECT_NE(refusal_of(*solver, task, device).find("f64 matrices are multiplied on the CPU"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GemmChoices, testing::Values(devices::DeviceKind::cuda, devices::DeviceKind::opencl),
                         [](const auto& kind) { return kind.param == devices::DeviceKind::cuda ? "cuda" : "opencl"; });

}  // namespace
}  // namespace omniconv
