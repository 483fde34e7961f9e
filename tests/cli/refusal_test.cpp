// Bad input gets one clear line and exit status 2, and nothing is written.
#include <algorithm>

#include "../image/handmade.h"
#include "command.h"
#include "devices/device.h"

namespace omniconv {
namespace {

class Refusal : public Command {};

TEST_F(Refusal, HelpIsShownAndThatItCouldNotBe) {
  const std::string help = run("--help").out;
  EXPECT_NE(help.find("omniconv [OPTIONS] SUBCOMMAND"), std::string::npos) << help;
  for (const char* words : {"", "help"}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_EQ(outcome.out, help) << words;
  }
  EXPECT_EQ(run("help filter").out, run("filter --help").out);
  for (const char* words : {"", "--help", "--version", "help", "filter --help"}) {
    const Outcome full = run(std::string(words) + " >/dev/full");
    EXPECT_EQ(full.status, 3) << words;
    EXPECT_EQ(full.error, "omniconv: error: stdout takes no more output\n") << words;
  }
}

// The first GPU, or why there is none.
TEST_F(Refusal, TheFirstGpu) {
  std::string first;
  const DeviceListing listing = list_devices();
  for (const DeviceInfo& info : listing.found)
    if (info.is_gpu && first.empty()) first = info.id;
  if (first.empty())
    return refuses("verify 'filter2d u8 h8w8r3s3' --device gpu", {"no GPU was found", "--device cpu"}, 3);
  const Outcome outcome = run("explain 'filter2d u8 h8w8r3s3' --device gpu");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("on " + first), std::string::npos) << outcome.out;
}

TEST_F(Refusal, Inputs) {
  refuses("filter nope.png out.png --kernel sobel-x", {"nope.png", "No such file"});
  refuses("filter . out.png --kernel sobel-x", {"folder"});
  write("text.png", "this is a text, not an image\n");
  refuses("filter text.png out.png --kernel sobel-x", {"text.png", "text"});
  write("empty.png", "");
  refuses("filter empty.png out.png --kernel sobel-x", {"empty.png"});
  write("short.pgm", "P5\n10 10\n255\nabc");
  refuses("filter short.pgm out.pgm --kernel sobel-x", {"short.pgm"});
  refuses("filter $'a\\x7Fb\\nc.pgm' out.pgm --kernel sobel-x", {"cannot read a b c.pgm"});  // one line of plain text
  write("huge.pgm", "P5\n999999999999 999999999999\n255\nabc");
  refuses("filter huge.pgm out.pgm --kernel sobel-x", {"huge.pgm"});
}

#ifndef OMNICONV_NO_IMAGE_MODULE
TEST_F(Refusal, TruncatedJpegAtAnyPoint) {
  const std::string photo = read(OMNICONV_SOURCE_DIR "/data/photo/raccoon.jpg");
  for (const double share : {0.001, 0.01, 0.1, 0.5, 0.9, 0.999}) {
    write("cut.jpg", photo.substr(0, static_cast<std::size_t>(share * static_cast<double>(photo.size()))));
    refuses("filter cut.jpg out.png --kernel sobel-x", {"cut.jpg"});
    refuses("filter cut.jpg cut.jpg --kernel sobel-x", {"cut.jpg"});  // the input itself is left as it was
  }
}

// A grey TIFF file with a strip for each row and its directory at the beginning, of which half the rows are there: its
// reader complains of each row that is not.
TEST_F(Refusal, TruncatedTiffIsOneShortLine) {
  using image::little_endian;
  constexpr std::uint32_t h = 600, w = 500, tags = 9, strips = 8 + 2 + 12 * tags + 4, counts = strips + 4 * h,
                          pixels = counts + 4 * h;
  const std::uint32_t entries[tags][3] = {{256, 1, w},      {257, 1, h}, {258, 1, 8}, {259, 1, 1},     {262, 1, 1},
                                          {273, h, strips}, {277, 1, 1}, {278, 1, 1}, {279, h, counts}};
  std::string file = "II" + little_endian(42, 2) + little_endian(8, 4) + little_endian(tags, 2);
  for (const auto& [tag, count, value] : entries)
    file += little_endian(tag, 2) + little_endian(4, 2) + little_endian(count, 4) + little_endian(value, 4);  // LONG
  file += little_endian(0, 4);
  for (std::uint32_t y = 0; y < h; ++y) file += little_endian(pixels + y * w, 4);
  for (std::uint32_t y = 0; y < h; ++y) file += little_endian(w, 4);
  write("whole.tif", file + std::string(h * w, '\0'));
  EXPECT_EQ(run("filter whole.tif out.pgm --kernel box:3").status, 0);
  write("cut.tif", file + std::string(h / 2 * w, '\0'));
  refuses("filter cut.tif no.pgm --kernel box:3", {"cut.tif is damaged or cut short"});
  EXPECT_LT(run("filter cut.tif no.pgm --kernel box:3").error.size(), 300u);
}

TEST_F(Refusal, Outputs) {
  refuses("filter $PHOTO missing/out.png --kernel sobel-x", {"missing", "folder"});
  refuses("filter $PHOTO /proc/out.png --kernel sobel-x", {"/proc/out.png"});
  refuses("filter $PHOTO out.xyz --kernel sobel-x", {"out.xyz", ".png"});
  refuses("filter $PHOTO out --kernel sobel-x", {"extension"});
  refuses("filter $PHOTO out.jpg --kernel sobel-x --depth f32", {"out.jpg", "f32", "u8"});
  refuses("filter $PHOTO out.png --kernel sobel-x --depth s16", {"out.png", "s16", "u16"});
  refuses("filter $PHOTO out.png --kernel sobel-x --depth u9", {"u9", "u16"});
  write("in.pgm", "P5\n3 2\n255\nabcdef");  // what is wrong is found as it is written
  refuses("filter in.pgm out.pbm --kernel identity", {"row 0, column 0 has the value 97; .pbm holds only 0 and 255"});
  std::filesystem::create_directory(folder_ / "folder.png");
  refuses("filter $PHOTO folder.png --kernel sobel-x", {"folder.png", "folder"});
}

// A file-size limit stands for a full disk: every format, limits from nothing to just below what is needed.
TEST_F(Refusal, FullTarget) {
  for (const std::string name :
       {"out.ppm", "out.npy", "out.png", "out.jpg", "out.tif", "out.bmp", "out.webp", "out.pam"}) {
    ASSERT_EQ(run("filter $PHOTO " + name + " --kernel sharpen").status, 0) << name;
    const auto kibibytes = static_cast<long>(std::filesystem::file_size(folder_ / name) / 1024);
    std::filesystem::remove(folder_ / name);
    for (const long limit : {1L, kibibytes / 2, kibibytes}) {
      const Outcome outcome =
          shell("ulimit -f " + std::to_string(limit) + "; $OMNICONV filter $PHOTO " + name + " --kernel sharpen");
      EXPECT_EQ(outcome.status, 2) << name << " " << limit << ": " << outcome.error;
      EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1)
          << name << " " << limit << ": " << outcome.error;
      EXPECT_TRUE(listing().empty()) << name << " " << limit;
    }
  }
}

TEST_F(Refusal, Memory) {
  for (const std::string size : {"nan", "0", "-1", "inf", "4194305T", "1e300", "1Q", "1KK", "K"})
    refuses("filter $PHOTO out.ppm --kernel sobel-x --max-memory " + size, {"'" + size + "' is no size in bytes"});
  refuses("filter $PHOTO out.ppm --kernel sobel-x --max-memory 100K", {"102400", "the least that works is"});
  const Outcome refused = run("filter $PHOTO out.ppm --kernel sobel-x --max-memory 100K");
  const std::string least = refused.error.substr(refused.error.find("the least that works is ") + 24);
  EXPECT_EQ(run("filter $PHOTO out.ppm --kernel sobel-x --max-memory " + least.substr(0, least.find(' '))).status, 0)
      << least;
}
#endif

TEST_F(Refusal, Kernels) {
  write("in.pgm", "P5\n2 2\n255\nabcd");
  const auto kernel = [&](const std::string& text, const std::vector<std::string>& parts) {
    refuses("filter in.pgm out.pgm --kernel " + text, parts);
  };
  kernel("gausian:5", {"gausian", "gaussian"});
  kernel("sobl", {"sobel"});
  kernel("sobel:5", {"sobel takes no arguments"});
  kernel("sobel --normalize", {"cannot be normalized", "pair"});
  kernel("sobel --solver filter2d/direct/cpu.1", {"magnitude of a pair"});
  kernel("gaussian", {"SIZE"});
  kernel("'3x1: 0,0,0'", {"zero"});
  kernel("'3x1: 1,nan,0'", {"nan"});
  kernel("'3x1: 1,2'", {"3 columns, 1 rows", "after 2 weights"});
  kernel("@missing.txt", {"missing.txt"});
  write("matrix.txt", "1 2 3\n4 x 6\n");
  kernel("@matrix.txt", {"matrix.txt:2:3", "x"});
  write("ragged.txt", "1 2 3\n4 5\n");
  kernel("@ragged.txt", {"ragged.txt:2"});
  write("zero.csv", "0,0\n0,0\n");
  kernel("@zero.csv", {"zero.csv", "zero"});
  write("inf.csv", "1,0\ninf,0\n");
  kernel("@inf.csv", {"inf.csv:2:1"});
  kernel("sobel-x --anchor 3,0", {"--anchor 3,0"});
  kernel("sobel-x --anchor x", {"--anchor"});
  kernel("sobel-x --scale nan", {"scale"});
}

TEST_F(Refusal, Borders) {
  write("in.pgm", "P5\n2 2\n255\nabcd");
  refuses("filter in.pgm out.pgm --kernel sobel-x --border refelct", {"refelct", "reflect"});
  for (const std::string name : {"mirror", "symmetric"})
    refuses("filter in.pgm out.pgm --kernel sobel-x --border " + name, {"ambiguous", "SciPy", "OpenCV", "reflect101"});
  refuses("filter in.pgm out.pgm --kernel sobel-x --border constant:nan", {"constant"});
  refuses("filter in.pgm out.pgm --kernel sobel-x --border valid", {"in.pgm", "window"});
}

TEST_F(Refusal, Versus) {
  const std::string bench = "bench 'filter2d u8 h8w8r3s3' --device cpu ";
  refuses(bench + "--vs filter2d/drect/cpu.1", {"unknown solver 'filter2d/drect/cpu.1'", "filter2d/direct/cpu.1"});
  refuses(bench + "--vs ''", {"--vs", "empty"});
  refuses(bench + "--also-prepared --prepared w", {"--prepared excludes --also-prepared"});
  refuses(bench + "--vs all", {"unknown solver 'all'"});
  refuses(bench + "--vs auto", {"unknown solver 'auto'"});
  refuses("explain 'filter2d u8 h8w8r3s3' --measure --budget 0", {"--budget", "'0'"});
}

TEST_F(Refusal, Sweeps) {
  const auto sweep = [&](const std::string& text, const std::vector<std::string>& parts) {
    for (const char* command : {"bench", "verify", "explain"})
      refuses(std::string(command) + " 'filter2d u8 h8w8r3s3' --sweep '" + text + "'", parts);
  };
  for (const char* text : {"", "rs", "rs=3", "rs=3:31", "rs:3=31:+2"}) sweep(text, {"--sweep", "rs=3:31:+2"});
  sweep("=3:5:+1", {"no letter"});
  sweep("rn=3:5:+1", {"'n'", "h, w, c, r, s"});
  sweep("rsr=3:5:+1", {"'r' stands twice"});
  for (const char* first : {"0", "-1", "", "x", "1.5", "99999999999999999999"})
    sweep(std::string("r=") + first + ":5:+1", {"FIRST must be a whole number from 1"});
  for (const char* last : {"2", "", "5x", "99999999999999999999"})
    sweep(std::string("r=3:") + last + ":+1", {"LAST must be a whole number not below FIRST"});
  for (const char* step : {"", "2", "+", "x", "+0", "x1", "-1", "+-1", "+1.5", "*2"})
    sweep(std::string("r=3:5:") + step, {"the step must be"});
  refuses("bench n1c1h4w4k1r3s3 --sweep p=0:4:x2", {"FIRST must be a whole number from 1"});
  sweep("w=1:99999:+1", {"more than 10000 values"});
  refuses("bench 'filter2d u8 h8w8r3s3' --sweep w=1:200:+1 --sweep h=1:200:+1", {"more than 10000 problems"});
  refuses("bench 'filter2d u8 h8w8r3s3 valid' --sweep rs=3:9:+2", {"r"});                 // no whole window
  refuses("bench 'filter2d u8 h8w8r3s3' --sweep c=1:9223372036854775807:x2", {"bytes"});  // no array is so large
  const Outcome outcome = run("verify 'filter2d u8 h8w8r3s3 kernel:gaussian:3' --device cpu --sweep rs=3:5:+2");
  EXPECT_EQ(outcome.status, 0) << outcome.error;  // 3 x 3 is served
  EXPECT_NE(outcome.out.find("has 3 x 3 weights and the problem says r5s5"), std::string::npos) << outcome.out;
}

TEST_F(Refusal, Usage) {
  refuses("--kernel sobel", {"unknown option '--kernel'", "a command is expected"});
  refuses("help fliter", {"fliter", "filter"});
  refuses("fliter a b", {"fliter", "filter"});
  refuses("filter", {"input and an output"});
  refuses("filter a.pgm b.pgm", {"--kernel"});
  refuses("filter a.pgm b.pgm --kernel sobel-x --bordr wrap", {"--bordr", "did you mean --border?", "filter --help"});
  refuses("filter a.pgm b.pgm --kernel sobel-x --xyzzy=3", {"unknown option '--xyzzy': omniconv filter --help"});
  refuses("filter a.pgm b.pgm c.pgm --kernel sobel-x", {"unexpected argument 'c.pgm'", "--into DIR"});
  refuses("filter a.pgm b.pgm --kernel", {"--kernel", "filter --help"});
  write("-dash.pgm", "");
  refuses("filter -dash.pgm b.pgm --kernel sobel-x", {"the file of that name is written ./-dash.pgm"});
  refuses("filter a.pgm b.pgm --kernel sobel-x --rescale", {"--rescale", "--depth"});
  refuses("verify 'filter2d u8 h8w8r3s3' --samples 5", {"--samples", "--sampled"});
  refuses("verify n1c3h8w8k4r3s3 --pass foo", {"'foo'", "fwd, bwd_data, bwd_filter, all"});
  refuses("filter a.pgm b.pgm --kernel sobel-x --max-memory lots", {"lots"});
  refuses("devices --device gpo", {"'gpo'", "gpu"});
  refuses("verify", {"problem"});
  refuses("verify 'filter2d u8 h0w3r3s3'", {"column", "h"});
  refuses("verify --problems missing.txt", {"missing.txt"});
  refuses("bench 'filter2d u8 h8w8r3s3' --solver filter2d/drect/cpu.1", {"filter2d/direct/cpu.1"});
  refuses("explain 'filter2d u8 h8w8r3s3 kernel:gausian:3'", {"gaussian"});
  for (const std::string option : {"--scale ''", "--scale 0x10", "--scale nan", "--bias ''", "--strip-rows ''",
                                   "--strip-rows 99999999999999999999", "--page -1", "--page 0", "--threads ''",
                                   "--depth ''", "--anchor ''", "--alpha ''", "--border ''", "--json ''"})
    refuses("filter a.pgm b.pgm --kernel sobel-x " + option, {option.substr(0, option.find(' '))});
  refuses("bench 'filter2d u8 h8w8r3s3' --budget nan", {"--budget"});
  refuses("verify 'filter2d u8 h8w8r3s3' --samples 0", {"--samples", "'0'"});
}

// Status 3 where there is none of the kind, and then the reason instead of a list.
TEST_F(Refusal, DevicesThatDoNotExistNameThoseThatDo) {
  for (const std::string id : {"opencl:77.0", "opencl:0.77", "cuda:77", "cuda:99999999999999999999"}) {
    DeviceListing of_kind;
    (id[0] == 'o' ? devices::opencl_backend() : devices::cuda_backend()).list(of_kind);
    std::vector<std::string> parts = {"device " + id};
    for (const DeviceInfo& info : of_kind.found) parts.push_back(info.id + " (" + info.name + ")");
    if (of_kind.found.empty()) parts.push_back(of_kind.missing.front().reason);
    const int status = of_kind.found.empty() ? 3 : 2;
    refuses("devices --device " + id, parts, status);
    refuses("verify 'filter2d u8 h8w8r3s3' --device " + id, parts, status);
  }
}

// What no device can be called is bad usage, whatever the machine has.
TEST_F(Refusal, DevicesThatAreMisspelt) {
  for (const std::string id : {"cuda:", "cuda:x", "cuda:-1", "cuda:0.0", "cuda:0x1", "cuda: 1"})
    for (const char* command : {"devices", "verify 'filter2d u8 h8w8r3s3'"})
      refuses(std::string(command) + " --device '" + id + "'", {"device '" + id + "'", "cuda:I", "there are: cpu ("});
  for (const std::string id :
       {"opencl:", "opencl:x", "opencl:0", "opencl:0.", "opencl:.0", "opencl:0.0.0", "opencl:-1.0"})
    refuses("devices --device " + id, {"device '" + id + "'", "opencl:PLATFORM.DEVICE", "there are: cpu ("});
  for (const std::string id : {"cpu:", "cpu:0"}) refuses("devices --device " + id, {id, "one CPU device, cpu"});
}

TEST_F(Refusal, SolversThatDoNotExist) {
  for (const char* command : {"verify", "bench", "explain"})
    refuses(std::string(command) + " 'filter2d u8 h8w8r3s3' --device cpu --solver filter2d/drect/cpu.1",
            {"unknown solver 'filter2d/drect/cpu.1'", "filter2d/direct/cpu.1"});
}

}  // namespace
}  // namespace omniconv
