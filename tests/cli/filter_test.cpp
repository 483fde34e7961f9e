// omniconv filter on small images whose results are known by hand.
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"

namespace omniconv {
namespace {

class Filter : public Command {
 protected:
  std::string pgm(int w, int h, const std::string& pixels) const {
    return "P5\n" + std::to_string(w) + " " + std::to_string(h) + "\n255\n" + pixels;
  }
  std::string result(const std::string& options) const {
    const Outcome outcome = run("filter in.pgm out.pgm " + options);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_EQ(outcome.error, "");
    const std::string file = read_here("out.pgm");
    return file.substr(file.find("255\n") + 4);
  }
};

TEST_F(Filter, ByHand) {
  write("in.pgm", pgm(3, 2, {1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(result("--kernel identity"), std::string({1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(result("--kernel '3x1: 1,0,0'"), std::string({1, 1, 2, 10, 10, 20}));
  EXPECT_EQ(result("--kernel '3x1: 1,0,0' --convolve"), std::string({2, 3, 3, 20, 30, 30}));
  EXPECT_EQ(result("--kernel '3x1: 1,0,0' --border wrap"), std::string({3, 1, 2, 30, 10, 20}));
  EXPECT_EQ(result("--kernel '3x1: 1,0,0' --border constant:9"), std::string({9, 1, 2, 9, 10, 20}));
  EXPECT_EQ(result("--kernel '3x1: 1,0,0' --border reflect101"), std::string({2, 1, 2, 20, 10, 20}));
  EXPECT_EQ(result("--kernel '3x1: 1,0,0' --anchor 0,0"), std::string({1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(result("--kernel '3x1: 1,1,1' --normalize"), std::string({1, 2, 3, 13, 20, 27}));
  EXPECT_EQ(result("--kernel '3x1: 1,1,1' --border valid"), std::string({6, 60}));
  EXPECT_EQ(result("--kernel identity --scale 0.5 --bias 3"), std::string({4, 4, 4, 8, 13, 18}));  // 3.5 4 4.5: to even
}

TEST_F(Filter, SameBitsInStripsThreadsAndDevices) {
  ASSERT_EQ(run("filter $PHOTO whole.ppm --kernel gaussian:9,1.7 --strip-rows 100000 --threads 1").status, 0);
  const std::string whole = read_here("whole.ppm");
  ASSERT_GT(whole.size(), 2'000'000u);
  std::vector<std::string> variants = {"--strip-rows 1", "--strip-rows 7 --threads 2", "--strip-rows 64 --threads 3",
                                       "--threads 4", "--max-memory 2M"};
  for (const std::string& device : devices_here())
    for (const char* const strips : {"", " --strip-rows 100"}) variants.push_back("--device " + device + strips);
  for (const std::string& options : variants) {
    ASSERT_EQ(run("filter $PHOTO part.ppm --kernel gaussian:9,1.7 " + options).status, 0) << options;
    EXPECT_TRUE(read_here("part.ppm") == whole) << options;
  }
}

#ifndef OMNICONV_NO_IMAGE_MODULE
TEST_F(Filter, PngBytesDoNotDependOnMemoryAndThreads) {
  ASSERT_EQ(run("filter $PHOTO whole.png --kernel sharpen").status, 0);
  for (const std::string options : {"--max-memory 16M", "--strip-rows 50", "--threads 1", "--threads 3"}) {
    const Outcome outcome = run("filter $PHOTO part.png --kernel sharpen " + options);
    ASSERT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_TRUE(read_here("part.png") == read_here("whole.png")) << options;
  }
}
#endif

TEST_F(Filter, EveryBorderInStrips) {
  for (const std::string border : {"constant:50", "replicate", "reflect", "reflect101", "wrap", "valid"})
    for (const std::string anchor : {"", " --anchor 0,0", " --anchor 4,30"}) {
      const std::string options = " --kernel @k.txt --border " + border + anchor;
      std::string kernel;
      for (int i = 0; i < 31; ++i)
        kernel += "0.01 -0.02 0.01" + std::to_string(i) + " 0.004 0.00" + std::to_string(i * i) + "\n";
      write("k.txt", kernel);
      ASSERT_EQ(run("filter $PHOTO whole.ppm --strip-rows 100000" + options).status, 0);
      ASSERT_EQ(run("filter $PHOTO part.ppm --strip-rows 13" + options).status, 0);
      EXPECT_TRUE(read_here("part.ppm") == read_here("whole.ppm")) << options;
    }
}

TEST_F(Filter, OutputMayBeTheInput) {
  write("in.pgm", pgm(3, 1, {10, 20, 60}));
  ASSERT_EQ(run("filter in.pgm in.pgm --kernel '3x1: 1,0,0'").status, 0);
  EXPECT_EQ(read_here("in.pgm"), pgm(3, 1, {10, 10, 20}));
}

TEST_F(Filter, DepthSaturatesAndRescaleMapsWhiteToWhite) {
  write("in.pgm", pgm(2, 1, {100, std::string(1, '\xff')[0]}));
  ASSERT_EQ(run("filter in.pgm out.npy --kernel identity --depth u16").status, 0);
  EXPECT_EQ(read_here("out.npy").substr(128), std::string({100, 0, '\xff', 0}));
  ASSERT_EQ(run("filter in.pgm out.npy --kernel identity --depth u16 --rescale").status, 0);
  EXPECT_EQ(read_here("out.npy").substr(128), std::string({'\x64', '\x64', '\xff', '\xff'}));
  ASSERT_EQ(run("filter in.pgm out.npy --kernel '1x1: -1' --depth s16").status, 0);
  EXPECT_EQ(read_here("out.npy").substr(128), std::string({'\x9c', '\xff', '\x01', '\xff'}));
}

TEST_F(Filter, AlphaIsFilteredOrCopied) {
  const std::string head = "P7\nWIDTH 3\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n";
  write("in.pam", head + std::string({10, 1, 20, 2, 30, 3}));
  ASSERT_EQ(run("filter in.pam out.pam --kernel '3x1: 1,0,0' --alpha filter").status, 0);
  EXPECT_EQ(read_here("out.pam").substr(read_here("out.pam").find("ENDHDR\n") + 7), std::string({10, 1, 10, 1, 20, 2}));
  ASSERT_EQ(run("filter in.pam out.pam --kernel '3x1: 1,0,0' --alpha ignore").status, 0);
  EXPECT_EQ(read_here("out.pam").substr(read_here("out.pam").find("ENDHDR\n") + 7), std::string({10, 1, 10, 2, 20, 3}));
  refuses("filter in.pam no.pam --kernel sobel-x --alpha copy", {"--alpha 'copy'", "premultiply"});
}

TEST_F(Filter, OpacityThatSaysNothingIsDropped) {
  const auto head = [](int depth, const std::string& type) {
    return "P7\nWIDTH 2\nHEIGHT 1\nDEPTH " + std::to_string(depth) + "\nMAXVAL 255\nTUPLTYPE " + type + "\nENDHDR\n";
  };
  write("opaque.pam", head(4, "RGB_ALPHA") + std::string({1, 2, 3, -1, 4, 5, 6, -1}));
  write("half.pam", head(4, "RGB_ALPHA") + std::string({1, 2, 3, -1, 4, 5, 6, 77}));
  const std::string colors({1, 2, 3, 4, 5, 6});
  ASSERT_EQ(run("filter opaque.pam out.ppm --kernel identity").status, 0);
  EXPECT_EQ(read_here("out.ppm"), "P6\n2 1\n255\n" + colors);
  ASSERT_EQ(run("filter opaque.pam out.ppm --kernel '3x1: 1,0,0' --border wrap").status, 0);
  EXPECT_EQ(read_here("out.ppm"), "P6\n2 1\n255\n" + std::string({4, 5, 6, 1, 2, 3}));
  ASSERT_EQ(run("filter opaque.pam out.pam --kernel identity").status, 0);  // which holds it
  EXPECT_EQ(read_here("out.pam"), read_here("opaque.pam"));
  refuses("filter half.pam no.ppm --kernel identity", {"no.ppm", "half.pam is not opaque", "--alpha drop"});
  write("below.pam", "P7\nWIDTH 1\nHEIGHT 2\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" +
                         std::string({1, 2, 3, -1, 4, 5, 6, 77}));
  refuses("filter below.pam no.ppm --kernel identity", {"below.pam is not opaque"});
  for (const char* input : {"half.pam", "opaque.pam"}) {
    ASSERT_EQ(run(std::string("filter ") + input + " out.ppm --kernel identity --alpha drop").status, 0);
    EXPECT_EQ(read_here("out.ppm"), "P6\n2 1\n255\n" + colors);
    ASSERT_EQ(run(std::string("filter ") + input + " out.pam --kernel identity --alpha drop").status, 0);
    EXPECT_EQ(read_here("out.pam"), head(3, "RGB") + colors);
  }
  write("grey.pam", head(2, "GRAYSCALE_ALPHA") + std::string({7, -1, 8, -1}));
  ASSERT_EQ(run("filter grey.pam out.pgm --kernel identity").status, 0);
  EXPECT_EQ(read_here("out.pgm"), pgm(2, 1, {7, 8}));
#ifndef OMNICONV_NO_IMAGE_MODULE
  ASSERT_EQ(run("filter half.pam half.png --kernel identity").status, 0);
  ASSERT_EQ(run("filter opaque.pam opaque.png --kernel identity").status, 0);
  EXPECT_EQ(run("filter opaque.png out.jpg --kernel identity").status, 0);
  refuses("filter half.png no.jpg --kernel identity", {"half.png is not opaque"});
  ASSERT_EQ(run("filter half.png half.webp --kernel identity --compression lossless").status, 0);  // which holds it
  ASSERT_EQ(run("filter half.webp again.pam --kernel identity --alpha ignore").status, 0);
  EXPECT_EQ(read_here("again.pam"), read_here("half.pam"));
#endif
}

// Whether there is a GPU is not even asked; of a larger image it is.
TEST_F(Filter, SmallImagesAreDoneOnTheCpu) {
  write("in.pgm", pgm(3, 1, {10, 20, 60}));
  const auto asks = [this](const std::string& arguments) {
    const Outcome outcome = shell("LD_DEBUG=files $OMNICONV " + arguments);  // of the loader: what it looks for
    EXPECT_EQ(outcome.status, 0) << arguments;
    return outcome.error.find("file=libcuda.so") != std::string::npos ||
           outcome.error.find("file=libOpenCL.so") != std::string::npos;
  };
  EXPECT_FALSE(asks("filter in.pgm out.pgm --kernel box:3"));
#if defined(OMNICONV_HAS_GPU_BACKENDS)
  EXPECT_TRUE(asks("filter in.pgm out.pgm --kernel box:3 --deny filter2d/box"));
  write("large.pgm", pgm(4000, 4000, std::string(16000000, 'a')));
  EXPECT_TRUE(asks("filter large.pgm out.pgm --kernel box:3"));
#endif
}

TEST_F(Filter, ColorsCountByTheirOpacity) {
  const std::string head = "P7\nWIDTH 3\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n";
  const auto pixels = [&](std::vector<int> values) { return head + std::string(values.begin(), values.end()); };
  write("in.pam", pixels({100, 255, 200, 0, 50, 255}));
  for (const char* alpha : {"", " --alpha premultiply"}) {
    const Outcome outcome =
        run(std::string("filter in.pam out.pam --kernel '3x1: 1,1,1' --normalize --explain") + alpha);
    ASSERT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("h1w3c2r1s3 alpha:1"), std::string::npos) << outcome.out;
    EXPECT_EQ(read_here("out.pam"), pixels({100, 170, 75, 170, 50, 170}));
  }
  // Weights that sum to zero leave opacity as it is, and every solver may serve.
  ASSERT_EQ(run("filter in.pam edges.pam --kernel '3x1: -1,0,1' --bias 60 --solver filter2d/direct/cpu.1").status, 0);
  EXPECT_EQ(read_here("edges.pam"), pixels({160, 255, 10, 0, 0, 255}));
  // Opacity stays opacity when the depth changes; colours keep their stored values, unless --rescale is given.
  ASSERT_EQ(run("filter in.pam deep.pam --kernel identity --depth u16").status, 0);
  EXPECT_EQ(read_here("deep.pam").substr(read_here("deep.pam").find("ENDHDR\n") + 7),
            std::string({0, 100, -1, -1, 0, 0, 0, 0, 0, 50, -1, -1}));
  ASSERT_EQ(run("filter in.pam deep.pam --kernel identity --depth u16 --rescale").status, 0);
  EXPECT_EQ(read_here("deep.pam").substr(read_here("deep.pam").find("ENDHDR\n") + 7),
            std::string({100, 100, -1, -1, 0, 0, 0, 0, 50, 50, -1, -1}));
}

TEST_F(Filter, GradientMagnitudes) {
  write("in.pgm", pgm(3, 3, {10, 10, 10, 10, 10, 10, 13, 10, 10}));
  // At the middle gx = 0 - 3, gy = 3: sqrt(18) = 4.24.
  ASSERT_EQ(run("filter in.pgm out.pgm --kernel sobel --border valid").status, 0);
  EXPECT_EQ(read_here("out.pgm"), pgm(1, 1, {4}));
  ASSERT_EQ(run("filter in.pgm out.pgm --kernel scharr --border valid --scale 0.5 --bias 1").status, 0);
  EXPECT_EQ(read_here("out.pgm"), pgm(1, 1, {7}));  // sqrt(9^2 + 9^2) / 2 + 1
  const std::string head = "P7\nWIDTH 3\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n";
  write("in.pam", head + std::string({10, 1, 20, 2, 30, 3}));
  ASSERT_EQ(run("filter in.pam out.pam --kernel prewitt --alpha ignore").status, 0);
  EXPECT_EQ(read_here("out.pam").substr(read_here("out.pam").find("ENDHDR\n") + 7), std::string({30, 1, 60, 2, 30, 3}));
  EXPECT_EQ(run("filter --print-kernel --kernel prewitt").out, "-1 0 1\n-1 0 1\n-1 0 1\n\n-1 -1 -1\n0 0 0\n1 1 1\n");
  EXPECT_NE(run("filter --list-kernels").out.find("magnitude of sobel-x and sobel-y"), std::string::npos);
}

TEST_F(Filter, DryRunExplainAndLists) {
  const Outcome dry = run("filter $PHOTO out.png --kernel sobel-x --dry-run");
  EXPECT_EQ(dry.status, 0);
  EXPECT_EQ(dry.error, "");
  EXPECT_NE(dry.out.find("filter2d u8 h768w1024c3r3s3"), std::string::npos);
  EXPECT_TRUE(listing().empty());
  EXPECT_NE(run("filter --list-kernels").out.find("gaussian:SIZE[,SIGMA]"), std::string::npos);
  EXPECT_EQ(run("filter --print-kernel --kernel laplacian").out, "0 1 0\n1 -4 1\n0 1 0\n");
  EXPECT_NE(run("filter --help").out.find("Example"), std::string::npos);
}

TEST_F(Filter, ReportsOfKernelsAndCandidates) {
  const auto list = nlohmann::json::parse(run("filter --list-kernels --json -").out);
  EXPECT_EQ(list["schema"], "omniconv-kernels/1");
  EXPECT_EQ(list["kernels"][0]["usage"], "identity");
  const auto sobel = nlohmann::json::parse(run("filter --print-kernel --kernel sobel --json -").out);
  EXPECT_EQ(sobel["weights"], nlohmann::json({-1, 0, 1, -2, 0, 2, -1, 0, 1}));
  EXPECT_EQ(sobel["second_weights"], nlohmann::json({-1, -2, -1, 0, 0, 0, 1, 2, 1}));
  write("in.pgm", pgm(3, 2, {1, 2, 3, 10, 20, 30}));
  const Outcome outcome = run("filter in.pgm out.pgm --kernel box:3x1 --device cpu --explain -q --json r.json");
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.out, "");
  const auto report = nlohmann::json::parse(read_here("r.json"));
  EXPECT_EQ(report["candidates"][0]["solver"], report["solver"]);
  EXPECT_EQ(report["candidates"][0]["applicable"], true);
  for (const char* key : {"version", "commit", "schema"})
    EXPECT_TRUE(nlohmann::json::parse(run("devices --device cpu --json -").out).contains(key)) << key;
}

TEST_F(Filter, EvenKernelsSayThatTheyShift) {
  write("in.pgm", pgm(3, 2, {1, 2, 3, 10, 20, 30}));
  const Outcome even = run("filter in.pgm out.pgm --kernel gaussian:4");
  EXPECT_EQ(even.status, 0);
  EXPECT_NE(even.error.find("note: gaussian:4 has 4 x 4 weights"), std::string::npos) << even.error;
  EXPECT_NE(even.error.find("half a pixel"), std::string::npos) << even.error;
  for (const char* kernel : {"gaussian:4 -q", "gaussian:4 --anchor 1,1", "gaussian:5", "'2x2: 1,1,1,1'"})
    EXPECT_EQ(run(std::string("filter in.pgm out.pgm --kernel ") + kernel).error, "") << kernel;
}

// On terminals of all widths lines of progress never reach the last column. 900 megapixels that take no space on the
// disk, interrupted once progress is shown, however long that takes.
TEST_F(Filter, ProgressFitsTheTerminal) {
  if (shell("script -qec true /dev/null </dev/null").status != 0) GTEST_SKIP() << "no pseudo-terminal can be opened";
  for (const int columns : {30, 80}) {
    const Outcome outcome = shell(
        "export OMNICONV; rm -f tty pid; printf 'P5\\n30000 30000\\n255\\n' > big.pgm; truncate -s 900000019 big.pgm\n"
        "script -qfec 'stty cols " +
        std::to_string(columns) +
        "; echo $$ > pid; exec \"$OMNICONV\" filter big.pgm out.pgm --kernel gaussian:31 --device cpu' tty </dev/null "
        ">/dev/null & terminal=$!\n"
        "until grep -q 'left' tty; do kill -0 $terminal || exit 1; sleep 0.05; done\n"
        "kill -INT $(cat pid); wait $terminal; cat tty");
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.error;
    std::istringstream lines(outcome.out.substr(0, outcome.out.find("omniconv: error: interrupted")));
    int shown = 0;
    for (std::string line; std::getline(lines, line, '\r');) {
      if (!line.starts_with("\x1b[K") || line.find(" s left") == std::string::npos) continue;
      ++shown;
      EXPECT_LT(line.size() - 3, static_cast<std::size_t>(columns)) << line;
    }
    EXPECT_GT(shown, 0) << outcome.out;
  }
}

TEST_F(Filter, AnyNumberOfStrips) {
  std::string file = std::string("\x93NUMPY\x01", 7) + std::string(1, '\0') + std::string("v\0", 2) +
                     "{'descr': '|u1', 'fortran_order': False, 'shape': (4000000000, 1), }";
  file += std::string(127 - file.size(), ' ') + "\n";
  write("tall.npy", file);
  std::filesystem::resize_file(folder_ / "tall.npy", 4000000000u + 128u);  // takes no space
  const Outcome outcome = run("filter tall.npy out.npy --kernel gaussian:5 --strip-rows 1 --max-memory 64M --dry-run");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("4000000000 strips of 1 rows"), std::string::npos) << outcome.out;
  refuses("filter tall.npy out.npy --kernel gaussian:5 --max-memory 100", {"the least that works is"});
}

// 900 megapixels of zeros that take no space on the disk; `signals` come once a thousandth of the output is written,
// however long that takes.
std::string interrupting(const std::string& signals, const std::string& before = "") {
  return "printf 'P5\\n30000 30000\\n255\\n' > big.pgm; truncate -s 900000019 big.pgm\n" + before +
         "$OMNICONV filter big.pgm out.pgm --kernel gaussian:15 & pid=$!\n"
         "written() { sed -n 's/^wchar: //p' /proc/$pid/io; }\n"
         "while kill -0 $pid && (($(written) < 900000)); do sleep 0.01; done\n" +
         signals + "\nwait $pid";
}

TEST_F(Filter, InterruptedLeavesNothing) {
  for (const std::string signal : {"INT", "TERM", "HUP"}) {
    const Outcome outcome = shell(interrupting("kill -" + signal + " $pid"));
    EXPECT_EQ(outcome.status, 130) << signal << outcome.error;
    EXPECT_EQ(outcome.error.rfind("omniconv: error: interrupted", 0), 0u) << signal << outcome.error;
    EXPECT_EQ(listing(), std::vector<std::string>{"big.pgm 900000019"}) << signal;
  }
}

TEST_F(Filter, OutlivesItsTerminalWhereItIsTold) {
  const Outcome outcome =
      shell(interrupting("kill -HUP $pid; sleep 0.2; kill -0 $pid && echo alive; kill -INT $pid", "trap '' HUP\n"));
  EXPECT_EQ(outcome.out, "alive\n");
  EXPECT_EQ(outcome.status, 130) << outcome.error;
}

}  // namespace
}  // namespace omniconv
