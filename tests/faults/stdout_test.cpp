// The standard output takes a part of what is written to it, or nothing.
#include "faults_testing.h"
#include "image/formats/npy/npy.h"

namespace omniconv {
namespace {

class FullStdout : public Faults, public testing::WithParamInterface<const char*> {};

// A limit of file size cuts a write off in the middle: it takes what is left, and the next one nothing.
TEST_P(FullStdout, IsAnErrorWhereverItEnds) {
  write("x.npy", image::npy_header_text(DataType::f32, std::vector<std::int64_t>{1, 1, 4, 4}) + std::string(64, '\0'));
  std::filesystem::create_directory(out());
  const std::string arguments = GetParam();
  const Outcome whole = run(arguments);
  ASSERT_EQ(whole.status, 0) << whole.error;
  ASSERT_FALSE(whole.out.empty());
  const Files written = files();
  const auto size = static_cast<int>(whole.out.size());
  for (const int taken : {0, 1, size / 2, size * 9 / 10}) {  // times have not always as many digits
    const int limit = taken / 1024 + 1;
    write("stdout", std::string(static_cast<std::size_t>(limit * 1024 - taken), '.'));
    const Outcome outcome = shell(fmt::format("ulimit -f {}; $OMNICONV {} >> stdout", limit, arguments));
    EXPECT_EQ(outcome.status, 3) << taken;
    EXPECT_EQ(outcome.error, "omniconv: error: stdout takes no more output\n") << taken;
    EXPECT_EQ(read_here("stdout").size(), static_cast<std::size_t>(limit * 1024)) << taken;
    EXPECT_TRUE(files() == written) << taken;  // an image that is written is whole
  }
  const Outcome nothing = shell(fmt::format("$OMNICONV {} > /dev/full", arguments));
  EXPECT_EQ(nothing.status, 3);
  EXPECT_EQ(nothing.error, "omniconv: error: stdout takes no more output\n");
}

INSTANTIATE_TEST_SUITE_P(Of, FullStdout,
                         testing::Values("--help", "help filter", "--version", "filter --list-kernels",
                                         "filter --list-kernels --json -", "filter --print-kernel --kernel gaussian:41",
                                         "filter in.ppm out/y.ppm --kernel identity --device cpu --json -",
                                         "run 'pool2d n1c1h4w4r2s2u2' --x x.npy -o - --device cpu --quiet",
                                         "verify 'filter2d u8 h8w8r3s3' --device cpu",
                                         "verify 'filter2d u8 h8w8r3s3' --device cpu --json -"));

}  // namespace
}  // namespace omniconv
