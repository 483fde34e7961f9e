// What is said when a file needs the image module and it is not installed.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "files.h"
#include "handmade.h"

namespace omniconv::image {
namespace {

// Run by the test below, in a process of its own.
TEST(ImageModule, DISABLED_SayWhatIsMissing) {
  const TemporaryFolder folder;
  write_file(folder.file("image.png"), "\x89PNG\r\n\x1a\n");
  std::printf("reading: %s\n", error_of([&] { open_image(folder.file("image.png")); }, ErrorKind::environment).c_str());
  const Image image = random_image(1, 1, 1, DataType::u8, 1);
  std::printf("writing: %s\n",
              error_of([&] { create_image(folder.file("copy.png"), image.info); }, ErrorKind::environment).c_str());
  for (const char* name : {"a.pgm", "a.pam", "a.npy"}) {
    write_image(folder.file(name), image);
    std::printf("%s: %s\n", name, read_image(folder.file(name)).pixels == image.pixels ? "same" : "different");
  }
}

TEST(ImageModule, IsNamedWhereItIsMissing) {
  // A copy of the library in a folder without the module.
  Dl_info library{};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>(&open_image), &library), 0);
  const std::filesystem::path path = library.dli_fname;
  if (path.filename().string().find(".so") == std::string::npos) GTEST_SKIP() << "the library is part of this program";
  const TemporaryFolder folder;
  std::filesystem::copy_file(path, folder.path() / path.filename());
  const std::string command = "LD_LIBRARY_PATH=" + folder.path().string() + " " +
                              std::filesystem::canonical("/proc/self/exe").string() +
                              " --gtest_also_run_disabled_tests --gtest_filter=ImageModule.DISABLED_SayWhatIsMissing";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> part{};
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe)) output.append(part.data(), count);
  ::pclose(pipe);
  if (output.find("beside the library") == std::string::npos && output.find("another version") == std::string::npos)
    GTEST_SKIP() << "an installed module was found: " << output;
  const std::string missing =
      " needs omniconv's image module, and there is no omniconv_image_oiio.so beside the library; PNM, PAM, PFM and "
      ".npy "
      "work without it; install the module or build with OMNICONV_IMAGE_MODULE=ON and OpenImageIO (Debian: "
      "libopenimageio-dev)\n";
  EXPECT_NE(output.find("/image.png" + missing), std::string::npos) << output;
  EXPECT_NE(output.find("/copy.png" + missing), std::string::npos) << output;
  for (const char* name : {"a.pgm", "a.pam", "a.npy"})
    EXPECT_NE(output.find(std::string(name) + ": same"), std::string::npos) << output;
}

// Run by the tests below, in a process of its own.
TEST(ImageModule, DISABLED_SayWhatIsServed) {
  const TemporaryFolder folder;
  write_file(folder.file("palette.tif"), palette_tiff());
  const Image image = random_image(1, 1, 1, DataType::u8, 1);
  for (const char* name : {"palette.tif", "a.tif", "a.jpg", "a.png"}) {
    try {
      if (name != std::string("palette.tif")) write_image(folder.file(name), image);
      std::printf("%s: %d rows\n", name, static_cast<int>(read_image(folder.file(name)).info.h));
    } catch (const Error& error) {
      std::printf("%s: refused %s\n", name, error.what());
    }
  }
}

// What that says when one of the modules stands beside a copy of the library; empty where there is no such module.
std::string served_with(const char* module) {
  Dl_info library{};
  EXPECT_NE(::dladdr(reinterpret_cast<const void*>(&open_image), &library), 0);
  const std::filesystem::path path = library.dli_fname;
  if (!std::filesystem::exists(path.parent_path() / module)) return "";
  const TemporaryFolder folder;
  std::filesystem::copy_file(path, folder.path() / path.filename());
  std::filesystem::copy_file(path.parent_path() / module, folder.path() / module);
  const std::string command = "LD_LIBRARY_PATH=" + folder.path().string() + " " +
                              std::filesystem::canonical("/proc/self/exe").string() +
                              " --gtest_also_run_disabled_tests --gtest_filter=ImageModule.DISABLED_SayWhatIsServed";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> part{};
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe)) output.append(part.data(), count);
  ::pclose(pipe);
  return output;
}

TEST(ImageModule, PlainFilesNeedOnlyTheSmallOne) {
  const std::string output = served_with("omniconv_image_plain.so");
  if (output.empty()) GTEST_SKIP() << "there is no module for plain files beside the library";
  for (const char* expected : {"a.tif: 1 rows\n", "a.jpg: 1 rows\n", "a.png: 1 rows\n"})
    EXPECT_NE(output.find(expected), std::string::npos) << output;
  if (output.find("palette.tif: 2 rows\n") != std::string::npos)
    GTEST_SKIP() << "an installed module was found: " << output;
  EXPECT_NE(output.find("palette.tif needs omniconv's image module, and "), std::string::npos) << output;
}

TEST(ImageModule, TheLargeOneServesAllFiles) {
  const std::string output = served_with("omniconv_image_oiio.so");
  if (output.empty()) GTEST_SKIP() << "there is no module for all formats beside the library";
  for (const char* expected : {"palette.tif: 2 rows\n", "a.tif: 1 rows\n", "a.jpg: 1 rows\n", "a.png: 1 rows\n"})
    EXPECT_NE(output.find(expected), std::string::npos) << output;
}

}  // namespace
}  // namespace omniconv::image
