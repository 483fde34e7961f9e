// conv2d on GPU devices: every solver, pass, layout and type.
#include "../conformance/conv2d_testing.h"
#include "gpu_testing.h"

namespace omniconv {
namespace {

using GpuConv2d = Gpu;

TEST_F(GpuConv2d, Tails) {
  check_tails(Context(device), Variants::in_turn);
}

TEST_F(GpuConv2d, TypesAndWhatIsFused) {
  check_types(Context(device), {"f32", "f16", "bf16"}, Variants::in_turn);
}

TEST_F(GpuConv2d, PassesAreAdjoint) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 6; ++i) {
    const Conv2dProblem problem = random_conv2d(random);
    expect_adjoint(Context(device), problem, i % 2 == 0 ? "conv2d/direct" : "conv2d/im2col_gemm",
                   static_cast<std::uint64_t>(i));
  }
}

}  // namespace
}  // namespace omniconv
