// `run` of batch_norm: running moments go back into the files that they were read from.
#include "array_command.h"

namespace omniconv {
namespace {

class BatchNormCommand : public ArrayCommand {};

TEST_F(BatchNormCommand, RunningMomentsAreWrittenBack) {
  const Shape c = {2}, x = {2, 2, 1, 1};
  for (const std::string& device : devices_here()) {
    write("x.npy", array(DataType::f16, x, {1, -6, 3, 2}));
    write("g.npy", array(DataType::f32, c, {2, 0.5}));
    write("b.npy", array(DataType::f32, c, {1, -1}));
    write("m.npy", array(DataType::f32, c, {4, 8}));
    write("v.npy", array(DataType::f32, c, {0, 16}));
    const std::string inputs =
        " --x x.npy --gamma g.npy --beta b.npy --running_mean m.npy --running_var v.npy --device " + device;
    const Outcome outcome =
        run("run 'batch_norm relu f16 n2c2h1w1' --scalar epsilon=0 --scalar momentum=0.5 -o y.npy "
            "--mean mean.npy --invstd s.npy" +
            inputs);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_EQ(values_of(read_here("y.npy"), DataType::f16, x), (std::vector<double>{0, 0, 3, 0}));
    EXPECT_EQ(values_of(read_here("mean.npy"), DataType::f32, c), (std::vector<double>{2, -2}));
    EXPECT_EQ(values_of(read_here("s.npy"), DataType::f32, c), (std::vector<double>{1, 0.25}));
    EXPECT_EQ(values_of(read_here("m.npy"), DataType::f32, c), (std::vector<double>{3, 3}));
    EXPECT_EQ(values_of(read_here("v.npy"), DataType::f32, c), (std::vector<double>{1, 24}));
    const Outcome inference =
        run("run 'batch_norm inference f16 n2c2h1w1' --scalar epsilon=3 -o y.npy" + inputs);  // roots of 4 and 27
    EXPECT_EQ(inference.status, 0) << inference.error;
    const std::vector<double> y = values_of(read_here("y.npy"), DataType::f16, x);
    EXPECT_EQ(y[0], -1);
    EXPECT_EQ(y[2], 1);
    EXPECT_EQ(values_of(read_here("v.npy"), DataType::f32, c), (std::vector<double>{1, 24}));
  }
}

TEST_F(BatchNormCommand, WhatItCannotUseIsRefused) {
  const Shape c = {2};
  write("x.npy", array(DataType::f32, {2, 2, 1, 1}, {1, 2, 3, 4}));
  for (const char* const name : {"g.npy", "b.npy", "m.npy", "v.npy"}) write(name, array(DataType::f32, c, {1, 1}));
  write("short.npy", array(DataType::f32, {3}, {1, 2, 3}));
  const std::string some = "run 'batch_norm' --x x.npy --gamma g.npy --beta b.npy --running_mean m.npy ";
  refuses(some + "-o y.npy", {"reads --running_var"});
  refuses(some + "--running_var short.npy -o y.npy", {"c is 2 by --x and 3 by --running_var"});
  refuses(some + "--running_var v.npy --dgamma d.npy -o y.npy", {"no array --dgamma"});
  refuses(some + "--running_var v.npy --scalar rate=1 -o y.npy", {"rate"});
}

}  // namespace
}  // namespace omniconv
