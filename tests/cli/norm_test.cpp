// `run` of norm: the factor first, and the sum where it is asked for, with acc back into the file that it was read
// from.
#include "array_command.h"

namespace omniconv {
namespace {

class NormCommand : public ArrayCommand {};

TEST_F(NormCommand, SumsOfTwoArraysClipTogether) {
  const Shape one = {1};
  write("g.npy", array(DataType::f16, {2}, {3, -4}));
  write("h.npy", array(DataType::f32, {3}, {12, 0, 0}));
  for (const std::string& device : devices_here()) {
    const Outcome first = run("run 'norm f16' --g g.npy --sum s.npy -o f.npy --device " + device);
    ASSERT_EQ(first.status, 0) << first.error;
    EXPECT_EQ(values_of(read_here("s.npy"), DataType::f32, one), (std::vector<double>{25}));
    EXPECT_EQ(values_of(read_here("f.npy"), DataType::f32, one), (std::vector<double>{1}));
    const Outcome second =
        run("run 'norm acc' --g h.npy --sum s.npy --scalar most=13 --scalar scale=4 -o f.npy --device " + device);
    ASSERT_EQ(second.status, 0) << second.error;
    EXPECT_EQ(values_of(read_here("s.npy"), DataType::f32, one), (std::vector<double>{169}));
    // 4 * 13 / (4 * 13 + 1e-6) of f32 is 13 / 52, times 4.
    EXPECT_EQ(values_of(read_here("f.npy"), DataType::f32, one), (std::vector<double>{1}));
  }
}

TEST_F(NormCommand, WhatItCannotUseIsRefused) {
  write("g.npy", array(DataType::f32, {2}, {3, 4}));
  write("s.npy", array(DataType::f32, {2}, {3, 4}));
  refuses("run 'norm n2' -o f.npy", {"reads --g"});
  refuses("run 'norm acc' --g g.npy -o f.npy", {"reads --sum"});
  refuses("run 'norm acc' --g g.npy --sum s.npy -o f.npy", {"its shape is (2,), and sum (one) must be (1,)"});
  refuses("run norm --g g.npy --scalar most=-1 -o f.npy", {"most is -1: must be at least 0"});
  refuses("run norm --g g.npy --scalar clip=1 -o f.npy", {"clip"});
}

}  // namespace
}  // namespace omniconv
