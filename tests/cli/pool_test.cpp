// `run` of pool2d: values worked out here, its second output, extents that arrays say, and refusals.
#include "array_command.h"

namespace omniconv {
namespace {

class Pool : public ArrayCommand {
 protected:
  void runs(const std::string& arguments) const {
    const Outcome outcome = run("run " + arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.error;
  }
};

TEST_F(Pool, MaximaGoBackWhereTheyCameFrom) {
  const Shape x_shape = {1, 1, 4, 4}, y_shape = {1, 1, 2, 2};
  write("x.npy", array(DataType::f32, x_shape, {1, 5, 2, 2, 3, 5, 2, 2, -1, -2, 0, 9, -3, -4, 9, 8}));
  write("dy.npy", array(DataType::f32, y_shape, {1, 2, 3, 4}));
  for (const std::string& device : devices_here()) {
    runs("'pool2d r2s2u2' --x x.npy -o y.npy --indices i.npy --device " + device);
    EXPECT_EQ(values_of(read_here("y.npy"), DataType::f32, y_shape), (std::vector<double>{5, 2, -1, 9}));
    EXPECT_EQ(values_of(read_here("i.npy"), DataType::s32, y_shape), (std::vector<double>{1, 0, 0, 1}));
    runs("'pool2d bwd n1c1h4w4r2s2u2' --dy dy.npy --indices i.npy -o dx.npy --device " + device);
    EXPECT_EQ(values_of(read_here("dx.npy"), DataType::f32, x_shape),
              (std::vector<double>{0, 1, 2, 0, 0, 0, 0, 0, 3, 0, 0, 4, 0, 0, 0, 0}));
    runs("'pool2d avg r2s2u2' --x x.npy -o y.npy --device " + device);
    EXPECT_EQ(values_of(read_here("y.npy"), DataType::f32, y_shape), (std::vector<double>{3.5, 2, -2.5, 6.5}));
  }
}

TEST_F(Pool, ArraysThatDoNotBelong) {
  write("x.npy", array(DataType::f32, {1, 1, 4, 4}, integers({1, 1, 4, 4}, 1)));
  write("y.npy", array(DataType::f32, {1, 1, 2, 2}, integers({1, 1, 2, 2}, 1)));
  write("i.npy", array(DataType::s32, {1, 1, 2, 3}, integers({1, 1, 2, 3}, 1)));
  refuses("run 'pool2d r2s2u2' -o y2.npy", {"column", "expected n"});
  refuses("run 'pool2d n1c1h4w4r2s2u2' -o y2.npy", {"reads --x (n, c, h, w)"});
  refuses("run 'pool2d r2s2u2' --x x.npy --w x.npy -o y2.npy", {"no array --w", "--x, --y, --indices"});
  refuses("run 'pool2d avg r2s2u2' --x x.npy --indices i2.npy -o y2.npy", {"no array --indices"});
  refuses("run 'pool2d n1c1h5w4r2s2u2' --x x.npy -o y2.npy", {"x.npy", "(1, 1, 5, 4)"});
  refuses("run 'pool2d bwd n1c1h4w4r2s2u2' --dy y.npy -o dx.npy", {"reads --indices"});
  refuses("run 'pool2d bwd n1c1h4w4r2s2u2' --dy y.npy --indices i.npy -o dx.npy", {"i.npy", "(1, 1, 2, 2)"});
  refuses("run 'pool2d bwd n1c1h4w4r2s2u2' --dy y.npy --indices y.npy -o dx.npy", {"y.npy", "<i4"});
  const std::string pool = "run 'pool2d r2s2u2' --x x.npy ";
  refuses(pool + "-o z.npy --indices z.npy", {"--indices z.npy is that of -o"});
  refuses(pool + "-o - --indices -", {"both write to the standard output"});
  refuses(pool + "-o z.npy --indices z2.npy --json ./z2.npy", {"is that of --indices"});
  refuses("run 'pool2d r6s2u2' --x x.npy -o y2.npy", {"r"});
  refuses("run 'pool2d r2s2p2' --x x.npy -o y2.npy", {"pad"});
  refuses("run 'pool2d s32 r2s2' --x x.npy -o y2.npy", {"s32"});
  refuses("run 'pool2d r2s2u2' --x x.npy -o y2.npy --prepared x", {"--prepared"});
}

}  // namespace
}  // namespace omniconv
