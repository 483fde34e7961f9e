// conv2d on the CPU: every solver, pass, layout and type.
#include "conv2d_testing.h"

namespace omniconv {
namespace {

Context cpu() {
  return Context({.device = "cpu", .threads = 2});
}

TEST(Conv2d, Tails) {
  check_tails(cpu(), Layouts::both);
}

TEST(Conv2d, TypesAndWhatIsFused) {
  check_types(cpu(), {"f32", "f64", "f16", "bf16", "tf32"}, Layouts::both);
}

}  // namespace
}  // namespace omniconv
