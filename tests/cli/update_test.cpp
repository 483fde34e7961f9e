// `run` of update: what it changes goes back into the files that it was read from.
#include "array_command.h"

namespace omniconv {
namespace {

class UpdateCommand : public ArrayCommand {};

TEST_F(UpdateCommand, WhatIsChangedIsWrittenBack) {
  const Shape n = {4}, one = {1};
  for (const std::string& device : devices_here()) {
    write("g.npy", array(DataType::f16, n, {-4, 0, 2, 1}));
    write("w.npy", array(DataType::f32, n, {1, 1, 1, 0}));
    write("m.npy", array(DataType::f32, n, {2, 2, 2, 2}));
    write("f.npy", array(DataType::f32, one, {0.5}));
    write("s.npy", array(DataType::s32, one, {0}));
    const std::string arguments =
        "run 'update scaled guarded f16' --g g.npy --w w.npy --m m.npy --factor f.npy --stop s.npy ";
    const Outcome outcome =
        run(arguments + "--scalar rate=0.25 --scalar momentum=0.5 -o w2.npy --copy c.npy --device " + device);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_EQ(values_of(read_here("m.npy"), DataType::f32, n), (std::vector<double>{-1, 1, 2, 1.5}));
    const std::vector<double> w = {1.25, 0.75, 0.5, -0.375};
    EXPECT_EQ(values_of(read_here("w2.npy"), DataType::f32, n), w);
    EXPECT_EQ(values_of(read_here("c.npy"), DataType::f16, n), w);
    EXPECT_EQ(values_of(read_here("w.npy"), DataType::f32, n), (std::vector<double>{1, 1, 1, 0}));

    write("f.npy", array(DataType::f32, one, {0x1p127}));  // 4 and 2 times that are infinite
    const std::string again = arguments + "--scalar rate=0.25 --scalar momentum=0.5 --device " + device + " -o ";
    const Outcome stopped = run(again + "w3.npy");
    EXPECT_EQ(stopped.status, 0) << stopped.error;
    EXPECT_EQ(values_of(read_here("s.npy"), DataType::s32, one), (std::vector<double>{1}));
    EXPECT_EQ(values_of(read_here("w3.npy"), DataType::f32, n), (std::vector<double>{1, 0.875, 1, -0x1p125}));
    EXPECT_EQ(values_of(read_here("m.npy"), DataType::f32, n), (std::vector<double>{-1, 0.5, 2, 0x1p127}));
    EXPECT_EQ(run(again + "w4.npy --scalar number=2").status, 0);
    EXPECT_EQ(values_of(read_here("w4.npy"), DataType::f32, n), (std::vector<double>{1, 1, 1, 0}));
    EXPECT_EQ(values_of(read_here("m.npy"), DataType::f32, n), (std::vector<double>{-1, 0.5, 2, 0x1p127}));
  }
}

TEST_F(UpdateCommand, WhatItCannotUseIsRefused) {
  const Shape n = {4};
  for (const char* const name : {"g.npy", "w.npy", "m.npy", "v.npy"})
    write(name, array(DataType::f32, n, {1, 2, 3, 4}));
  write("short.npy", array(DataType::f32, {3}, {1, 2, 3}));
  const std::string some = "run 'update adam' --g g.npy --w w.npy --m m.npy ";
  refuses(some + "-o w2.npy", {"reads --v"});
  refuses(some + "--v short.npy -o w2.npy", {"n is 4 by --g and 3 by --v"});
  refuses(some + "--v v.npy --copy c.npy -o w2.npy", {"no array --copy"});
  refuses(some + "--v v.npy --scalar momentum=1 -o w2.npy", {"momentum"});
  refuses(some + "--v v.npy -o m.npy", {"--m m.npy is that of -o"});
  EXPECT_EQ(values_of(read_here("m.npy"), DataType::f32, n), (std::vector<double>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace omniconv
