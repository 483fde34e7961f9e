// Files that are cut, or whose bytes are changed at random: an error, or the image that the bytes mean; never a crash.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "files.h"
#include "handmade.h"
#include "image/formats/icc_profile.h"

namespace omniconv::image {
namespace {

using namespace std::string_literals;

// One small file of every kind that needs no module.
std::map<std::string, std::string> small_files() {
  const TemporaryFolder folder;
  std::map<std::string, std::string> files = {
      {"P1", "P1\n# bits\n3 2\n1 0 1\n0 1 0"},
      {"P2", "P2 # gray\n3 2\n100\n0 10 100\n7 8 9\n"},
      {"P3", "P3\n2 1\n1000\n0 10 100 1000 8 9\n"},
      {"P4", "P4\n10 2\n\xA5\x40\x00\x80"s},
  };
  const auto add = [&](const std::string& name, const Image& image) {
    write_image(folder.file(name), image);
    files[name] = read_file(folder.file(name));
  };
  Image gray = random_image(3, 4, 1, DataType::u16, 1);
  gray.info.max_value = 1023;
  add("gray16.pgm", gray);
  add("gray.pgm", random_image(3, 4, 1, DataType::u8, 1));
  add("color.ppm", random_image(3, 4, 3, DataType::u8, 1));
  add("four.pam", random_image(3, 4, 4, DataType::u16, 1));
  add("float.pfm", random_image(3, 4, 3, DataType::f32, 1));
  add("u8.npy", random_image(3, 4, 1, DataType::u8, 1));
  add("f64.npy", random_image(3, 4, 3, DataType::f64, 1));
  return files;
}

TEST(HostileImages, CutAtEveryByte) {
  const TemporaryFolder folder;
  for (const auto& [name, content] : small_files()) {
    const std::string path = folder.file("cut-" + name);
    write_file(path, content);
    EXPECT_NO_THROW(read_image(path)) << name;
    for (std::size_t length = 0; length < content.size(); ++length) {
      write_file(path, content.substr(0, length));
      EXPECT_THROW(read_image(path), Error) << name << " cut to " << length << " of " << content.size();
    }
  }
}

TEST(HostileImages, ChangedBytes) {
  const TemporaryFolder folder;
  std::mt19937 random(20240607);
  for (const auto& [name, content] : small_files()) {
    const std::string path = folder.file("changed-" + name);
    for (int round = 0; round < 1000; ++round) {
      std::string changed = content;
      // Mostly within the first bytes, where the header is.
      const std::size_t range = round % 4 == 0 ? content.size() : std::min<std::size_t>(content.size(), 80);
      for (int change = 0; change <= round % 3; ++change) changed[random() % range] = static_cast<char>(random());
      write_file(path, changed);
      try {
        const Image image = read_image(path, round % 2);
        // Plain bits take most: a byte each in the file and in memory, raw bits an eighth.
        EXPECT_LE(image.pixels.size(), 8 * changed.size()) << name;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()), "");
      }
    }
  }
}

TEST(HostileImages, FilesThatAreNone) {
  const TemporaryFolder folder;
  const std::string path = folder.file("image.pgm");
  EXPECT_EQ(error_of([&] { open_image(path); }), "cannot read " + path + ": No such file or directory");
  EXPECT_EQ(error_of([&] { open_image(folder.path()); }), folder.path().string() + " is a folder; name a file in it");
  EXPECT_EQ(error_of([] { open_image("/dev/null"); }),
            "/dev/null is a pipe or a device; images are read from regular files, so save it as one first");
  // A pipe that nobody writes is not waited for.
  const std::string pipe = folder.file("pipe.pgm");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { open_image(pipe); }),
            pipe + " is a pipe or a device; images are read from regular files, so save it as one first");
  EXPECT_EQ(error_of([] { open_image(""); }), "the name of the input file is empty");
  write_file(path, "");
  EXPECT_EQ(error_of([&] { open_image(path); }), path + " is empty");
}

TEST(HostileImages, ProfilesThatWouldHarm) {
  const std::string profile = color_profile();  // 132 bytes, one tag of 12, and its 612
  EXPECT_TRUE(is_valid_profile(profile, 3));
  EXPECT_TRUE(is_valid_profile(profile, 4));
  EXPECT_FALSE(is_valid_profile(profile, 1));
  std::string gray = profile;
  gray.replace(16, 4, "GRAY");
  EXPECT_TRUE(is_valid_profile(gray, 2));
  EXPECT_FALSE(is_valid_profile(gray, 3));
  const auto with = [&](std::size_t at, std::uint32_t number) {
    std::string changed = profile;
    changed.replace(at, 4, big_endian(number));
    return is_valid_profile(changed, 3);
  };
  EXPECT_TRUE(with(136, 143));  // where the tag begins
  EXPECT_FALSE(with(136, 145));
  EXPECT_FALSE(with(136, 0xFFFFFFFF));
  EXPECT_TRUE(with(140, 611));  // its bytes
  EXPECT_FALSE(with(140, 613));
  EXPECT_FALSE(with(140, 756));
  EXPECT_FALSE(with(128, 53));  // tags, of which 52 would fit
  EXPECT_FALSE(with(0, 755));
}

TEST(HostileImages, AFileThatShrinksWhileItIsRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("image.pgm");
  write_file(path, "P5 2 2 255\nabcd");
  const auto reader = open_image(path);
  std::filesystem::resize_file(path, 13);
  std::byte rows[4];
  EXPECT_EQ(error_of([&] { reader->read_rows(0, 2, rows, 2); }),
            path + " ends at byte 13, but 2 more are needed there");
}

}  // namespace
}  // namespace omniconv::image
