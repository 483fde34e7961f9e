// conv2d on GPU devices: every solver, pass, layout and type.
#include "../conformance/conv2d_testing.h"
#include "gpu_testing.h"

namespace omniconv {
namespace {

using GpuConv2d = Gpu;

TEST_F(GpuConv2d, Tails) {
  check_tails(Context(device), Layouts::in_turn);
}

TEST_F(GpuConv2d, TypesAndWhatIsFused) {
  check_types(Context(device), {"f32", "f16", "bf16"}, Layouts::in_turn);
}

}  // namespace
}  // namespace omniconv
