// `run` of batch: arrays of bytes, extents that they say, and two outputs.
#include "array_command.h"

namespace omniconv {
namespace {

class BatchCommand : public ArrayCommand {
 protected:
  static std::string bytes(const Shape& shape, const std::vector<double>& values) {
    return image::npy_header_text(DataType::u8, shape) +
           stored<std::uint8_t>(values, [](double v) { return static_cast<std::uint8_t>(v); });
  }
  // Three images of 1 x 2 x 2 pixels, and a table that adds 1000.
  void write_set() {
    write("images.npy", bytes({3, 1, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40, 100, 150, 200, 255}));
    write("labels.npy", bytes({3}, {7, 8, 9}));
    write("order.npy", array(DataType::s32, {3}, {2, 0, 1}));
    std::vector<double> table;
    for (int i = 0; i < 256; ++i) table.push_back(1000 + i);
    write("table.npy", array(DataType::f32, {1, 256}, table));
  }
  const std::string arrays = " --images images.npy --labels labels.npy --order order.npy --table table.npy ";
};

TEST_F(BatchCommand, ABatchAndItsClasses) {
  write_set();
  for (const std::string& device : devices_here()) {
    const Outcome outcome =
        run("run 'batch n2'" + arrays + "--scalar first=1 -o y.npy --classes c.npy --device " + device);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_EQ(values_of(read_here("y.npy"), DataType::f32, {2, 1, 2, 2}),
              (std::vector<double>{1001, 1002, 1003, 1004, 1010, 1020, 1030, 1040}));
    EXPECT_EQ(values_of(read_here("c.npy"), DataType::s32, {2}), (std::vector<double>{7, 8}));
    const Outcome behind =
        run("run 'batch f16 n2'" + arrays + "--scalar first=2 -o y.npy --classes c.npy --device " + device);
    EXPECT_EQ(behind.status, 0) << behind.error;
    EXPECT_EQ(values_of(read_here("y.npy"), DataType::f16, {2, 1, 2, 2}),
              (std::vector<double>{1010, 1020, 1030, 1040, 1000, 1000, 1000, 1000}));
    EXPECT_EQ(values_of(read_here("c.npy"), DataType::s32, {2}), (std::vector<double>{8, -1}));
  }
}

TEST_F(BatchCommand, WhatItCannotUseIsRefused) {
  write_set();
  write("two.npy", bytes({2}, {7, 8}));
  refuses("run 'batch'" + arrays + "-o y.npy", {"n (batch size)"});
  refuses("run 'batch n2' --images images.npy --labels labels.npy --order order.npy -o y.npy", {"reads --table"});
  refuses("run 'batch n2' --images images.npy --labels two.npy --order order.npy --table table.npy -o y.npy",
          {"m is 3 by --images and 2 by --labels"});
  refuses("run 'batch n2'" + arrays + "--scalar epoch=1 -o y.npy", {"--scalar 'epoch'"});
}

}  // namespace
}  // namespace omniconv
