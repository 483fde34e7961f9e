// The output appears whole or not at all.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "files.h"
#include "image/atomic_file.h"

namespace omniconv::image {
namespace {

namespace fs = std::filesystem;

class Output : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = folder_.file("image.pgm");
  Image image_ = random_image(4, 4, 1, DataType::u8, 1);

  // Whether the file system can hold a file without a name.
  bool unnamed_files() const {
    const int descriptor = ::open(folder_.path().c_str(), O_TMPFILE | O_RDWR, 0600);
    return descriptor >= 0 && ::close(descriptor) == 0;
  }
};

TEST_F(Output, NothingAppearsBeforeFinish) {
  write_file(path_, "old");
  {
    const auto writer = create_image(path_, image_.info);
    writer->write_rows(0, 4, image_.pixels.data(), 4);
    EXPECT_EQ(read_file(path_), "old");
    EXPECT_EQ(folder_.names().size(), unnamed_files() ? 1u : 2u);
  }
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(folder_.names().size(), 1u);
  write_image(path_, image_);
  EXPECT_EQ(read_image(path_).pixels, image_.pixels);
  EXPECT_EQ(folder_.names().size(), 1u);
}

TEST_F(Output, FileSystemsWithoutUnnamedFiles) {
  for (const bool there : {false, true}) {
    {
      AtomicFile dropped(path_, Temporary::named);
      dropped.write_at(0, "new", 3);
      EXPECT_EQ(folder_.names().size(), there ? 2u : 1u);
      EXPECT_EQ(read_file(dropped.temporary_path()), "new");
    }
    EXPECT_EQ(fs::exists(path_), there);
    AtomicFile kept(path_, Temporary::named);
    kept.write_at(0, "new", 3);
    kept.commit();
    EXPECT_EQ(read_file(path_), "new");
    EXPECT_EQ(folder_.names().size(), 1u);
  }
}

TEST_F(Output, IsAlsoWrittenByName) {
  for (const Temporary temporary : {Temporary::named, Temporary::unnamed_if_possible}) {
    AtomicFile file(path_, temporary);
    write_file(file.temporary_path(), "by name");
    file.adopt();
    file.commit();
    EXPECT_EQ(read_file(path_), "by name");
    EXPECT_EQ(folder_.names().size(), 1u);
    fs::remove(path_);
  }
}

// As a disk that kept less than it was given: what was written is compared with what is there.
TEST_F(Output, AFileThatWasCutIsNotPutInPlace) {
  for (const Temporary temporary : {Temporary::unnamed_if_possible, Temporary::named}) {
    write_file(path_, "old");
    AtomicFile file(path_, temporary);
    file.write_at(0, "new content", 11);
    ASSERT_EQ(::truncate(file.temporary_path().c_str(), 10), 0);
    EXPECT_EQ(error_of([&] { file.commit(); }), "cannot write " + path_ + ": Input/output error");
    EXPECT_EQ(read_file(path_), "old");
    EXPECT_EQ(folder_.names().size(), 1u);
  }
}

TEST_F(Output, AKilledProcessLeavesNothing) {
  if (!unnamed_files()) GTEST_SKIP() << "this file system has no files without a name (O_TMPFILE)";
  for (const char* old : {"", "old"}) {
    if (*old != '\0') write_file(path_, old);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto writer = create_image(path_, image_.info);
      writer->write_rows(0, 3, image_.pixels.data(), 4);
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(folder_.names().size(), *old != '\0' ? 1u : 0u);
    EXPECT_EQ(read_file(path_), old);
  }
}

TEST_F(Output, MayBeTheInput) {
  write_image(path_, image_);
  const auto reader = open_image(path_);
  const auto writer = create_image(path_, reader->info());
  std::vector<std::byte> row(4);
  for (std::int64_t y = 0; y < 4; ++y) {
    reader->read_rows(y, 1, row.data(), 4);
    for (std::byte& pixel : row) pixel = ~pixel;
    writer->write_rows(y, 1, row.data(), 4);
  }
  writer->finish();
  for (std::byte& pixel : image_.pixels) pixel = ~pixel;
  EXPECT_EQ(read_image(path_).pixels, image_.pixels);
}

TEST_F(Output, LinksSurviveAndTheirTargetIsReplaced) {
  fs::create_directory(folder_.file("deep"));
  write_file(folder_.file("deep/real.pgm"), "old");
  fs::create_symlink("deep/real.pgm", folder_.file("middle.pgm"));
  fs::create_symlink(folder_.file("middle.pgm"), path_);
  write_image(path_, image_);
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(fs::is_symlink(folder_.file("middle.pgm")));
  EXPECT_EQ(read_image(folder_.file("deep/real.pgm")).pixels, image_.pixels);

  fs::create_symlink("deep/new.pgm", folder_.file("dangling.pgm"));
  write_image(folder_.file("dangling.pgm"), image_);
  EXPECT_EQ(read_image(folder_.file("deep/new.pgm")).pixels, image_.pixels);

  fs::create_symlink("loop.pgm", folder_.file("loop.pgm"));
  EXPECT_EQ(error_of([&] { create_image(folder_.file("loop.pgm"), image_.info); }),
            "cannot write " + folder_.file("loop.pgm") + ": Too many levels of symbolic links");
}

// Whoever finishes last has written the file; what the others wrote is gone, not mixed in.
TEST_F(Output, ManyWritersOfOneFileLeaveOneWhole) {
  constexpr int processes = 4, rounds = 25;
  for (const bool exists : {false, true})
    for (int round = 0; round < rounds; ++round) {
      if (exists) write_file(path_, "old");
      std::vector<pid_t> children;
      for (int i = 0; i < processes; ++i) {
        children.push_back(::fork());
        if (children.back() != 0) continue;
        bool written = false;
        try {
          Image mine = image_;
          std::fill(mine.pixels.begin(), mine.pixels.end(), static_cast<std::byte>(i));
          write_image(path_, mine, 1);
          written = true;
        } catch (...) {
        }
        ::_exit(written ? 0 : 1);
      }
      for (const pid_t child : children) {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
      }
      const Image left = read_image(path_);
      EXPECT_EQ(left.pixels, std::vector<std::byte>(image_.pixels.size(), left.pixels.front()));
      EXPECT_EQ(folder_.names().size(), 1u);
      fs::remove(path_);
    }
}

TEST_F(Output, ModesAreKept) {
  write_file(path_, "old");
  fs::permissions(path_, fs::perms(0640));
  write_image(path_, image_);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0640));

  const mode_t mask = ::umask(027);
  write_image(folder_.file("new.pgm"), image_);
  ::umask(mask);
  EXPECT_EQ(fs::status(folder_.file("new.pgm")).permissions(), fs::perms(0640));
}

TEST_F(Output, OwnerAndGroupAreKeptWhereAllowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only the superuser can give files away";
  constexpr uid_t nobody = 65534;
  const auto owner = [&] {
    struct stat status {};
    EXPECT_EQ(::stat(path_.c_str(), &status), 0);
    return std::pair(status.st_uid, status.st_gid);
  };
  write_file(path_, "old");
  ASSERT_EQ(::chown(path_.c_str(), nobody, 1234), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 06750), 0);
  write_image(path_, image_);
  EXPECT_EQ(owner(), std::pair(nobody, gid_t{1234}));
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(06750));

  // Another user may replace the file, and owns the new one.
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  ASSERT_EQ(::seteuid(4321), 0);
  const int mine = ::access(path_.c_str(), R_OK);
  write_image(path_, image_);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(mine, 0);
  EXPECT_EQ(owner(), std::pair(uid_t{4321}, ::getegid()));
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0666));
}

TEST_F(Output, ImpossibleTargets) {
  const auto refusal = [&](const std::string& path) { return error_of([&] { create_image(path, image_.info); }); };
  EXPECT_EQ(refusal(folder_.file("missing/a.pgm")), "cannot write " + folder_.file("missing/a.pgm") +
                                                        ": there is no folder " + folder_.file("missing") +
                                                        "; make it first");
  write_file(folder_.file("file"), "");
  EXPECT_EQ(refusal(folder_.file("file/a.pgm")),
            "cannot write " + folder_.file("file/a.pgm") + ": " + folder_.file("file") + " is not a folder");
  fs::create_directory(folder_.file("folder.pgm"));
  EXPECT_EQ(refusal(folder_.file("folder.pgm")),
            "cannot write " + folder_.file("folder.pgm") + ": it is a folder; name a file in it");
  fs::create_symlink("/dev/null", folder_.file("device.pgm"));
  EXPECT_EQ(refusal(folder_.file("device.pgm")),
            "cannot write " + folder_.file("device.pgm") +
                ": it is a device or a pipe; results are written to regular files");
  EXPECT_TRUE(refusal("/proc/a.pgm").starts_with("cannot write /proc/a.pgm: "));
  EXPECT_EQ(refusal(folder_.file("a")),
            "the output " + folder_.file("a") + " has no extension to name its format; add one, such as .png");
  EXPECT_EQ(refusal(""), "the name of the output file is empty");
  for (const std::string& path : {std::string("."), folder_.path().string(), folder_.file("new.png/")})
    EXPECT_EQ(refusal(path), "cannot write " + path + ": it is a folder; name a file in it");
  EXPECT_EQ(refusal("/dev/null"),
            "cannot write /dev/null: it is a device or a pipe; results are written to regular files");
}

TEST_F(Output, ProtectedFilesAndFoldersAreNotReplaced) {
  // The superuser may write everywhere, so such a user becomes another for this test.
  constexpr uid_t nobody = 65534;
  write_file(path_, "old");
  fs::permissions(path_, fs::perms(0400));
  const uid_t user = ::geteuid();
  if (user == 0) {
    ASSERT_EQ(::chown(folder_.path().c_str(), nobody, nobody), 0);
    ASSERT_EQ(::chown(path_.c_str(), nobody, nobody), 0);
    ASSERT_EQ(::seteuid(nobody), 0);
  }
  const std::string file = error_of([&] { create_image(path_, image_.info); });
  fs::permissions(folder_.path(), fs::perms(0500));
  const std::string folder = error_of([&] { create_image(folder_.file("new.pgm"), image_.info); });
  fs::permissions(folder_.path(), fs::perms(0700));
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_EQ(file, "cannot write " + path_ + ": Permission denied");
  EXPECT_EQ(folder, "cannot write " + folder_.file("new.pgm") + ": Permission denied");
  EXPECT_EQ(read_file(path_), "old");
}

TEST_F(Output, LongNames) {
  const std::string path = folder_.file(std::string(251, 'x') + ".pgm");
  write_image(path, image_);
  EXPECT_EQ(read_image(path).pixels, image_.pixels);
}

TEST_F(Output, ExtentsThatAreNone) {
  image_.info.h = 0;
  EXPECT_EQ(error_of([&] { create_image(path_, image_.info); }),
            path_ + ": an image of 0 rows, 4 columns and 1 channels has no pixels");
}

// A file system of 256 KiB.
class FullDisk : public Output {
 protected:
  void SetUp() override {
    if (::mount("omniconv-test", folder_.path().c_str(), "tmpfs", 0, "size=256k") != 0)
      GTEST_SKIP() << "mounting a small file system needs the superuser";
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount(folder_.path().c_str());
  }
  bool mounted_ = false;
};

TEST_F(FullDisk, IsFoundByTheFirstRow) {
  const std::string full = ": No space left on device; free some space or write elsewhere";
  for (const char* extension : {".pgm", ".pbm", ".pam", ".npy"}) {
    const std::string path = folder_.file("image") + extension;
    write_file(path, "old");
    // In bits, too, more than the disk has.
    Image image = random_image(8000, 300, 1, DataType::u8, 1);
    const auto writer = create_image(path, image.info);
    EXPECT_EQ(error_of([&] { writer->write_rows(0, 1, image.pixels.data(), 300); }), "cannot write " + path + full);
    EXPECT_EQ(read_file(path), "old");
    fs::remove(path);
  }
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(FullDisk, AWriterWithoutRowsTakesNoDisk) {
  const std::uintmax_t before = fs::space(folder_.path()).available;
  for (const char* extension : {".pgm", ".pbm", ".pam", ".npy"}) {
    const auto writer = create_image(folder_.file("image") + extension, image_.info);
    EXPECT_EQ(fs::space(folder_.path()).available, before) << extension;
  }
}

TEST_F(FullDisk, IsFoundByAWrite) {
  const std::string path = folder_.file("file");
  const std::vector<std::byte> block(100000);
  AtomicFile file(path);
  file.write_at(0, block.data(), 100000);
  file.write_at(100000, block.data(), 100000);
  EXPECT_EQ(error_of([&] { file.write_at(200000, block.data(), 100000); }),
            "cannot write " + path + ": No space left on device; free some space or write elsewhere");
}

TEST_F(FullDisk, ReadOnlyFileSystem) {
  ASSERT_EQ(::mount("omniconv-test", folder_.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
  EXPECT_EQ(error_of([&] { create_image(path_, image_.info); }), "cannot write " + path_ + ": Read-only file system");
}

TEST(Orientation, PixelsAreTurned) {
  // Stored so that each, once turned, shows
  //   1 2 3
  //   4 5 6
  struct Case {
    int orientation;
    std::int64_t h, w;
    std::vector<std::uint8_t> pixels;
  };
  const Case cases[] = {{1, 2, 3, {1, 2, 3, 4, 5, 6}}, {2, 2, 3, {3, 2, 1, 6, 5, 4}}, {3, 2, 3, {6, 5, 4, 3, 2, 1}},
                        {4, 2, 3, {4, 5, 6, 1, 2, 3}}, {5, 3, 2, {1, 4, 2, 5, 3, 6}}, {6, 3, 2, {3, 6, 2, 5, 1, 4}},
                        {7, 3, 2, {6, 3, 5, 2, 4, 1}}, {8, 3, 2, {4, 1, 5, 2, 6, 3}}, {9, 2, 3, {1, 2, 3, 4, 5, 6}}};
  const TemporaryFolder folder;
  for (const Case& turned : cases) {
    Image image;
    image.info.h = turned.h;
    image.info.w = turned.w;
    image.info.orientation = turned.orientation;
    for (const std::uint8_t pixel : turned.pixels) image.pixels.push_back(std::byte{pixel});
    write_image(folder.file("a.pgm"), image, 1);
    const Image back = read_image(folder.file("a.pgm"));
    EXPECT_EQ(back.info.h, 2) << turned.orientation;
    EXPECT_EQ(back.info.w, 3) << turned.orientation;
    EXPECT_EQ(values<std::uint8_t>(back), (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6})) << turned.orientation;
  }
}

TEST(Orientation, WholePixelsAreTurned) {
  const TemporaryFolder folder;
  Image image = random_image(5, 4, 3, DataType::u16, 1);
  image.info.orientation = 6;
  write_image(folder.file("a.npy"), image, 2);
  const Image back = read_image(folder.file("a.npy"));
  ASSERT_EQ(back.info.h, 4);
  ASSERT_EQ(back.info.w, 5);
  for (std::int64_t y = 0; y < 5; ++y)
    for (std::int64_t x = 0; x < 4; ++x)
      EXPECT_EQ(std::memcmp(&image.pixels[static_cast<std::size_t>((y * 4 + x) * 6)],
                            &back.pixels[static_cast<std::size_t>((x * 5 + 4 - y) * 6)], 6),
                0);
  EXPECT_GE(create_image(folder.file("b.npy"), image.info)->resident_bytes(), 5 * 4 * 6);
}

}  // namespace
}  // namespace omniconv::image
