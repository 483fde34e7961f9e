// Images and masks of unusual extents: none, 2^31 pixels, a million channels, masks larger than the image.
#include <fmt/format.h>

#include <random>

#include "command.h"

namespace omniconv {
namespace {

class Extents : public Command {
 protected:
  static std::string array(const std::string& type, const std::string& shape) {
    std::string file = std::string("\x93NUMPY\x01", 7) + std::string(1, '\0') + std::string("v\0", 2) + "{'descr': '" +
                       type + "', 'fortran_order': False, 'shape': " + shape + ", }";
    file.resize(127, ' ');
    return file + "\n";
  }
  static std::string noise(std::size_t bytes) {
    std::mt19937 random(5);
    std::string result(bytes, '\0');
    for (char& byte : result) byte = static_cast<char>(random());
    return result;
  }
  // Takes no space on the disk.
  void write_sparse(const std::string& name, const std::string& header, std::uintmax_t pixel_bytes) const {
    write(name, header);
    std::filesystem::resize_file(folder_ / name, header.size() + pixel_bytes);
  }
  void write_mask(const std::string& name, int rows, int columns) const {
    std::mt19937 random(6);
    std::string text;
    for (int i = 0; i < rows * columns; ++i)
      text += fmt::format("{}{}", static_cast<int>(random() % 2001) / 65536.0 - 1 / 64.0,
                          (i + 1) % columns == 0 ? '\n' : ' ');
    write(name, text);
  }
  void expect_same_bits(const std::string& input, const std::string& kernel_and_border,
                        const std::vector<std::string>& variants) const {
    const std::string extension = std::filesystem::path(input).extension();
    const std::string command = "filter " + input + " ";
    const Outcome defined =
        run(command + "defined" + extension + kernel_and_border + " --device cpu --solver filter2d/definition/cpu.1");
    ASSERT_EQ(defined.status, 0) << kernel_and_border << ": " << defined.error;
    for (const std::string& variant : variants) {
      const Outcome outcome = run(command + "out" + extension + kernel_and_border + " " + variant);
      ASSERT_EQ(outcome.status, 0) << kernel_and_border << " " << variant << ": " << outcome.error;
      EXPECT_TRUE(read_here("out" + extension) == read_here("defined" + extension))
          << kernel_and_border << " " << variant;
    }
  }
};

TEST_F(Extents, None) {
  const auto refuse = [&](const std::string& name, const std::string& content, const std::vector<std::string>& parts) {
    write(name, content);
    refuses("filter " + name + " out.npy --kernel box:3", parts);
    refuses("filter " + name + " " + name + " --kernel box:3 --strip-rows 1", parts);
  };
  refuse("a.pgm", "P5\n0 5\n255\n", {"a.pgm", "'0' for the width", "a whole number from 1"});
  refuse("a.pgm", "P5\n5 0\n255\n", {"a.pgm", "'0' for the height", "a whole number from 1"});
  refuse("a.pgm", "P2\n0 0\n255\n", {"a.pgm", "'0' for the width", "a whole number from 1"});
  refuse("a.pbm", "P4\n8 0\n", {"a.pbm", "'0' for the height", "a whole number from 1"});
  refuse("a.pfm", "Pf\n0 2\n-1.0\n", {"a.pfm", "'0' for the width", "a whole number from 1"});
  const auto pam = [](int w, int h, int c) {
    return fmt::format("P7\nWIDTH {}\nHEIGHT {}\nDEPTH {}\nMAXVAL 255\nENDHDR\n", w, h, c);
  };
  refuse("a.pam", pam(0, 2, 1), {"a.pam", "'0' for the WIDTH", "a whole number from 1"});
  refuse("a.pam", pam(2, 0, 1), {"a.pam", "'0' for the HEIGHT", "a whole number from 1"});
  refuse("a.pam", pam(2, 2, 0), {"a.pam", "'0' for the DEPTH", "a whole number from 1"});
  refuse("a.npy", array("|u1", "(0, 4)"), {"a.npy", "0 rows, 4 columns and 1 channels has no pixels"});
  refuse("a.npy", array("<f4", "(4, 0, 3)"), {"a.npy", "4 rows, 0 columns and 3 channels has no pixels"});
  refuse("a.npy", array("<u2", "(4, 4, 0)"), {"a.npy", "4 rows, 4 columns and 0 channels has no pixels"});
  refuse("a.npy", array("|u1", "(0, 9223372036854775807)"), {"a.npy", "0 rows", "no pixels"});
  write("k.npy", array("<f8", "(0, 3)"));
  write("in.pgm", "P5\n2 2\n255\nabcd");
  refuses("filter in.pgm out.pgm --kernel @k.npy", {"k.npy", "0 x 3", "1 to 4096 rows and columns"});
}

TEST_F(Extents, TwoToThe31PixelsThatAreNotThere) {
  for (const std::string size : {"65536 32768", "2147483648 1", "1 2147483648", "4294967296 4294967295"})
    for (const std::string kind : {"P5", "P6", "P2", "P1"}) {
      write("a.pnm", kind + "\n" + size + (kind == "P1" ? "\n1 0" : "\n255\n12 "));
      refuses("filter a.pnm out.npy --kernel box:3", {"a.pnm"});
    }
  write("a.npy", array("|u1", "(65536, 32768)") + "abc");
  refuses("filter a.npy out.npy --kernel box:3", {"a.npy is cut short", "needs a file of 2147483776 bytes"});
  write("a.npy", array("<f8", "(4294967296, 4294967296, 4294967296)"));
  refuses("filter a.npy out.npy --kernel box:3", {"a.npy", "too large"});
}

// Whole, in strips of one row, and of one row that is too much for the memory.
TEST_F(Extents, TwoToThe31PixelsThatAreThere) {
  write_sparse("square.pgm", "P5\n65536 32768\n255\n", std::uintmax_t{1} << 31);
  write_sparse("tall.pgm", "P5\n1 2147483648\n255\n", std::uintmax_t{1} << 31);
  write_sparse("wide.pgm", "P5\n2147483648 1\n255\n", std::uintmax_t{1} << 31);
  write_sparse("wide.pbm", "P4\n4294967296 1\n", std::uintmax_t{1} << 29);
  write_sparse("deep.npy", array("|u1", "(1, 1, 2147483648)"), std::uintmax_t{1} << 31);
  for (const std::string& device : devices_here()) {
    const std::string options = " --kernel laplacian --dry-run --device " + device;
    for (const std::string input : {"square.pgm", "tall.pgm"}) {
      const Outcome whole = run("filter " + input + " out.pgm --max-memory 100M" + options);
      EXPECT_EQ(whole.status, 0) << device << ": " << whole.error;
      const Outcome rows = run("filter " + input + " out.pgm --strip-rows 1" + options);
      EXPECT_EQ(rows.status, 0) << device << ": " << rows.error;
      EXPECT_NE(rows.out.find(input == "tall.pgm" ? "2147483648 strips of 1 rows" : "32768 strips of 1 rows"),
                std::string::npos)
          << rows.out;
    }
    refuses("filter square.pgm out.pgm --max-memory 100K" + options, {"square.pgm", "the least that works is"});
    for (const std::string input : {"wide.pgm", "wide.pbm", "deep.npy"})
      refuses("filter " + input + " out.npy" + options,
              {input, "--max-memory of 1073741824", "the least that works is"});
  }
}

// PoCL takes its memory from this variable, in GiB: less than a row of the image takes.
TEST_F(Extents, ALimitIsHeldToOnADeviceOfLittleMemory) {
  if (const std::string reason = no_opencl(); !reason.empty()) GTEST_SKIP() << reason;
  write_sparse("wide.pgm", "P5\n2147483648 1\n255\n", std::uintmax_t{1} << 31);
  const std::string command = "filter wide.pgm out.npy --kernel laplacian --dry-run --device opencl";
  const Outcome usual = run(command);
  const Outcome little = shell("POCL_MEMORY_LIMIT=1 $OMNICONV " + command);
  EXPECT_EQ(little.status, 2);
  EXPECT_EQ(little.error, usual.error);
  EXPECT_NE(little.error.find("--max-memory of 1073741824"), std::string::npos) << little.error;
}

TEST_F(Extents, AMillionChannels) {
  constexpr std::size_t channels = 1'000'000;
  const std::string header = array("|u1", "(4, 4, 1000000)"), pixels = noise(16 * channels);
  write("in.npy", header + pixels);
  // By hand: each pixel becomes the one on its left, the first column stays.
  std::string shifted;
  for (std::size_t y = 0; y < 4; ++y)
    for (const std::size_t x : {0, 0, 1, 2}) shifted += pixels.substr((4 * y + x) * channels, channels);
  for (const std::string& device : devices_here()) {
    const Outcome outcome = run("filter in.npy out.npy --kernel '3x1: 1,0,0' --device " + device);
    ASSERT_EQ(outcome.status, 0) << device << ": " << outcome.error;
    EXPECT_TRUE(read_here("out.npy") == header + shifted) << device;
  }
  for (const std::string& device : devices_here())
    expect_same_bits("in.npy", " --kernel '3x3: 1,2,3,4,-5,6,7,8,9' --scale 0.03 --border wrap",
                     {"--device " + device, "--device " + device + " --strip-rows 1"});
  for (const std::string name : {"out.npy", "defined.npy"}) std::filesystem::remove(folder_ / name);
  refuses("filter in.npy out.npy --kernel box:3 --max-memory 1M", {"in.npy", "the least that works is"});
  refuses("filter in.npy out.ppm --kernel box:3", {"out.ppm", "1000000 channels"});
#ifndef OMNICONV_NO_IMAGE_MODULE
  refuses("filter in.npy out.png --kernel box:3", {"out.png", "1000000 channels"});
  refuses("filter in.npy out.tif --kernel box:3", {"out.tif", "4 x 4 x 1000000", ".npy"});
  refuses("filter in.npy out.exr --kernel box:3 --depth f16", {"out.exr", "4 x 4 x 1000000", ".npy"});
#endif
}

TEST_F(Extents, MasksLargerThanTheImage) {
  write("in.pgm", "P5\n3 2\n255\n" + noise(6));
  write("one.pgm", "P5\n1 1\n255\nx");
  write_mask("mask.txt", 128, 128);
  write_mask("tall.txt", 128, 1);
  write_mask("wide.txt", 1, 128);
  std::vector<std::string> variants;
  for (const std::string& device : devices_here()) variants.push_back("--device " + device + " --strip-rows 1");
  for (const std::string border : {"constant:50", "replicate", "reflect", "reflect101", "wrap"})
    expect_same_bits("in.pgm", " --kernel @mask.txt --bias 100 --border " + border, variants);
  for (const std::string border : {"reflect101", "wrap"}) {
    expect_same_bits("in.pgm", " --kernel @tall.txt --bias 100 --border " + border, variants);
    expect_same_bits("in.pgm", " --kernel @wide.txt --bias 100 --border " + border, variants);
    expect_same_bits("one.pgm", " --kernel @mask.txt --bias 100 --border " + border, variants);
  }
  std::filesystem::remove(folder_ / "out.pgm");
  for (const std::string mask : {"mask", "tall", "wide"})
    refuses("filter in.pgm out.pgm --border valid --kernel @" + mask + ".txt",
            {"in.pgm", "3x2 pixels", "window", "valid"});
}

TEST_F(Extents, LargeMasksInSmallMemory) {
  write("in.pgm", "P5\n140 130\n255\n" + noise(140 * 130));
  write_mask("mask.txt", 128, 128);
  for (const std::string border : {"reflect101", "wrap", "valid"}) {
    const std::string options = " --kernel @mask.txt --border " + border;
    const Outcome refused = run("filter in.pgm out.pgm --device cpu --max-memory 10K" + options);
    ASSERT_EQ(refused.status, 2);
    std::string least = refused.error.substr(refused.error.find("the least that works is ") + 24);
    least = least.substr(0, least.find(' '));
    expect_same_bits("in.pgm", options, {"--device cpu --strip-rows 1", "--device cpu --max-memory " + least});
  }
}

}  // namespace
}  // namespace omniconv
