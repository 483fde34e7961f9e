// `run` of add and dropout: arrays from files, extents from the arrays, numbers by --scalar.
#include "array_command.h"

namespace omniconv {
namespace {

class ResidualCommand : public ArrayCommand {};

TEST_F(ResidualCommand, AddsAShortcut) {
  const Shape x = {1, 4, 1, 2}, s = {1, 2, 2, 3};
  write("x.npy", array(DataType::f32, x, {1, -1, 2, -2, 3, -30, 4, -4}));
  write("s.npy", array(DataType::f32, s, {10, 20, 30, 7, 7, 7, 11, 21, 31, 7, 7, 7}));
  for (const std::string& device : devices_here()) {
    const Outcome outcome = run("run 'add relu h2w3u2' --x x.npy --s s.npy -o y.npy --device " + device);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_EQ(values_of(read_here("y.npy"), DataType::f32, x), (std::vector<double>{1, 0, 12, 28, 14, 1, 4, 0}));
  }
  write("dy.npy", array(DataType::f32, x, {1, 2, 3, 4, 5, 6, 7, 8}));
  const Outcome back = run("run 'add bwd u2' --d s.npy --dy dy.npy -o ds.npy");
  EXPECT_EQ(back.status, 0) << back.error;
  EXPECT_EQ(values_of(read_here("ds.npy"), DataType::f32, s),
            (std::vector<double>{13, 20, 34, 7, 7, 7, 16, 21, 37, 7, 7, 7}));
}

TEST_F(ResidualCommand, DropsElements) {
  const Shape n = {8};
  write("x.npy", array(DataType::f32, n, {1, 2, 3, 4, 5, 6, 7, 8}));
  const std::string arguments = "run 'dropout' --x x.npy -o y.npy --scalar seed=3 --scalar stream=2 --scalar step=5 ";
  for (const std::string& device : devices_here()) {
    EXPECT_EQ(run(arguments + "--scalar rate=0 --device " + device).status, 0);
    EXPECT_EQ(values_of(read_here("y.npy"), DataType::f32, n), (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(run(arguments + "--scalar rate=0.5 --device " + device).status, 0);
    for (double i = 1; const double y : values_of(read_here("y.npy"), DataType::f32, n)) {
      EXPECT_TRUE(y == 0 || y == 2 * i) << y;
      ++i;
    }
  }
}

TEST_F(ResidualCommand, WhatItCannotUseIsRefused) {
  write("x.npy", array(DataType::f32, {4}, {1, 2, 3, 4}));
  refuses("run dropout --x x.npy --scalar rate=1 -o y.npy", {"rate is 1: must be from 0 to less than 1"});
  refuses("run dropout --x x.npy --scalar momentum=1 -o y.npy", {"momentum"});
  refuses("run 'dropout n5' --x x.npy -o y.npy", {"its shape is (4,), and x (n) must be (5,)"});
  refuses("run 'add n1c1h2w2k1' --x x.npy -o y.npy", {"--s"});
}

}  // namespace
}  // namespace omniconv
