// The folder of compiled programs, without a device: what is found again, what is not trusted, what a failing disk
// does.
#include "devices/program_cache.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace omniconv::devices {
namespace {

namespace fs = std::filesystem;

class ProgramsOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "omniconv-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    top = pattern;
    folder = top / "a/b";
  }
  void TearDown() override { fs::remove_all(top); }

  ProgramCache cache(std::int64_t limit_bytes = ProgramCache::usual_limit_bytes) {
    return ProgramCache(
        folder, [this](const std::string& message) { warnings.push_back(message); }, limit_bytes);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& item : fs::directory_iterator(folder)) found.push_back(item.path());
    return found;
  }
  // Of the one file there is.
  fs::path file() const {
    EXPECT_EQ(files().size(), 1u);
    return files().front();
  }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // With the file's mode, that of a new one as the umask says.
  static void write(const fs::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  void expect_one_warning(const std::string& part) const {
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings.front().find(part), std::string::npos) << warnings.front();
  }

  fs::path top, folder;
  std::vector<std::string> warnings;
};

constexpr char program_text[] = "code\0with a zero\n";
const std::string program(program_text, sizeof program_text - 1);

TEST_F(ProgramsOnDisk, FindsWhatWasStored) {
  EXPECT_EQ(cache().find("key"), std::nullopt);
  cache().store("key", program);
  cache().store("empty", "");
  EXPECT_EQ(cache().find("key"), program);
  EXPECT_EQ(cache().find("empty"), "");
  EXPECT_EQ(cache().find("other"), std::nullopt);
  cache().store("key", "newer");
  EXPECT_EQ(cache().find("key"), "newer");
  EXPECT_TRUE(warnings.empty());
}

TEST_F(ProgramsOnDisk, IsOfItsUserAlone) {
  const mode_t before = umask(0);
  cache().store("key", program);
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  for (const fs::path& made : {folder, folder.parent_path()}) {
    ASSERT_EQ(stat(made.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u) << made;
  }
}

TEST_F(ProgramsOnDisk, KeysAreAllOfTheirParts) {
  const auto key = [](std::vector<std::string_view> parts) { return ProgramCache::key(parts); };
  EXPECT_EQ(key({"a", "b"}), key({"a", "b"}));
  EXPECT_NE(key({"a", "b"}), key({"ab"}));
  EXPECT_NE(key({"a", "b"}), key({"a", "", "b"}));
  EXPECT_NE(key({"ab", "c"}), key({"a", "bc"}));
  EXPECT_NE(key({"a\n1:b"}), key({"a", "b"}));
  EXPECT_NE(key({"a\nb"}), key({"a", "b"}));
}

// Another key of the same hash, as far as the file's name goes, is not this one; nor where it is as long.
TEST_F(ProgramsOnDisk, IsNotMistakenForAnotherProgram) {
  cache().store("first", program);
  const fs::path first = file();
  const std::string content = read(first);
  fs::remove(first);
  cache().store("third", "another");
  const fs::path third = file();
  write(third, content);
  EXPECT_EQ(cache().find("third"), std::nullopt);
  EXPECT_TRUE(warnings.empty());
  cache().store("third", "another");
  EXPECT_EQ(cache().find("third"), "another");
}

TEST_F(ProgramsOnDisk, EveryDamagedByteIsNoticed) {
  cache().store("key", program);
  const fs::path path = file();
  const std::string whole = read(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    warnings.clear();
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    write(path, damaged);
    chmod(path.c_str(), 0600);
    EXPECT_EQ(cache().find("key"), std::nullopt) << i;
    EXPECT_FALSE(fs::exists(path)) << i;
    expect_one_warning(path.string() + " is not used: it is damaged");
  }
}

TEST_F(ProgramsOnDisk, EveryOtherLengthIsNoticed) {
  cache().store("key", program);
  const fs::path path = file();
  const std::string whole = read(path);
  for (std::size_t length = 0; length <= whole.size() + 3; ++length) {
    if (length == whole.size()) continue;
    warnings.clear();
    write(path, (whole + "xxx").substr(0, length));
    chmod(path.c_str(), 0600);
    EXPECT_EQ(cache().find("key"), std::nullopt) << length;
    expect_one_warning("it is damaged");
  }
  cache().store("key", program);
  EXPECT_EQ(cache().find("key"), program);
}

TEST_F(ProgramsOnDisk, FilesOfOthersAreNotTrusted) {
  cache().store("key", program);
  const fs::path path = file();
  chmod(path.c_str(), 0620);
  EXPECT_EQ(cache().find("key"), std::nullopt);
  expect_one_warning("others than its owner may change it");

  warnings.clear();
  cache().store("key", program);
  fs::rename(path, top / "elsewhere");
  fs::create_symlink(top / "elsewhere", path);
  EXPECT_EQ(cache().find("key"), std::nullopt);
  expect_one_warning("it is no regular file");
  EXPECT_TRUE(fs::exists(top / "elsewhere"));

  warnings.clear();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(cache().find("key"), std::nullopt);
  expect_one_warning("it is no regular file");

  cache().store("key", program);
  EXPECT_EQ(cache().find("key"), program);
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  warnings.clear();
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  EXPECT_EQ(cache().find("key"), std::nullopt);
  expect_one_warning("it belongs to another user");
}

TEST_F(ProgramsOnDisk, WarnsOnce) {
  write(top / "a", "in the place of a folder");
  ProgramCache one = cache();
  for (int i = 0; i < 3; ++i) {
    one.store("key", program);
    EXPECT_EQ(one.find("key"), std::nullopt);
  }
  expect_one_warning("cannot be kept in " + folder.string() + ": Not a directory; they are compiled at every start");
  ProgramCache silent(folder, {});
  silent.store("key", program);
}

// What was stored before can still be read.
TEST_F(ProgramsOnDisk, AReadOnlyFolderIsReadAlone) {
  const bool is_root = geteuid() == 0;  // nothing is read-only to root
  if (is_root) {
    ASSERT_EQ(chown(top.c_str(), 65534, 65534), 0);
    ASSERT_EQ(seteuid(65534), 0);
  }
  cache().store("key", program);
  chmod(folder.c_str(), 0500);
  ProgramCache one = cache();
  EXPECT_EQ(one.find("key"), program);
  EXPECT_TRUE(warnings.empty());
  one.store("new", program);
  one.store("newer", program);
  expect_one_warning("cannot be kept in " + folder.string() + ": Permission denied");
  EXPECT_EQ(one.find("key"), program);
  EXPECT_EQ(files().size(), 1u);
  chmod(folder.c_str(), 0700);
  if (is_root) {
    ASSERT_EQ(seteuid(0), 0);
  }
}

// The write fails in its middle, as on a full disk.
TEST_F(ProgramsOnDisk, AFailedWriteLeavesNothing) {
  cache().store("old", program);
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 1000, before.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  cache().store("large", std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  expect_one_warning("cannot be kept in");
  EXPECT_EQ(files().size(), 1u);
  EXPECT_EQ(cache().find("large"), std::nullopt);
  EXPECT_EQ(cache().find("old"), program);
}

TEST_F(ProgramsOnDisk, AFullDiskLeavesNothing) {
  const fs::path disk = top / "disk";
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "a small disk cannot be mounted here: " << std::strerror(errno);
  folder = disk / "cache";
  cache().store("old", program);
  cache().store("large", std::string(100'000, 'x'));
  expect_one_warning("No space left on device");
  EXPECT_EQ(files().size(), 1u);
  EXPECT_EQ(cache().find("large"), std::nullopt);
  EXPECT_EQ(cache().find("old"), program);
  umount(disk.c_str());
}

TEST_F(ProgramsOnDisk, TheLongestUnusedGoFirst) {
  const std::int64_t bytes = 1000;
  ProgramCache one = cache(4 * bytes);
  const auto hours_ago = [](int hours) { return fs::file_time_type::clock::now() - std::chrono::hours(hours); };
  const std::string code(900, 'x');  // and the header, and the key
  for (int i = 0; i < 4; ++i) {
    one.store(std::to_string(i), code);
    for (const fs::path& path : files())
      if (fs::last_write_time(path) > hours_ago(1)) fs::last_write_time(path, hours_ago(100 - i));
  }
  EXPECT_EQ(files().size(), 4u);
  EXPECT_EQ(one.find("0"), code);  // used just now
  one.store("4", code);
  EXPECT_EQ(one.find("1"), std::nullopt);
  for (const char* const key : {"0", "2", "3", "4"}) EXPECT_EQ(one.find(key), code) << key;
  EXPECT_EQ(files().size(), 4u);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(ProgramsOnDisk, RemovesNothingButItsOwn) {
  ProgramCache one = cache(2000);
  one.store("0", std::string(900, 'x'));
  write(folder / "somebody's.txt", std::string(5000, 'x'));
  write(folder / ".new-old", "left by a process that was killed");
  write(folder / ".new-young", "just being written");
  fs::last_write_time(folder / ".new-old", fs::file_time_type::clock::now() - std::chrono::hours(2));
  fs::last_write_time(folder / "somebody's.txt", fs::file_time_type::clock::now() - std::chrono::hours(2));
  one.store("1", std::string(900, 'y'));
  EXPECT_TRUE(fs::exists(folder / "somebody's.txt"));
  EXPECT_FALSE(fs::exists(folder / ".new-old"));
  EXPECT_TRUE(fs::exists(folder / ".new-young"));
  EXPECT_EQ(one.find("0"), std::string(900, 'x'));
  EXPECT_EQ(one.find("1"), std::string(900, 'y'));
}

// Several processes write and read the same programs, with room for some of them: each finds a whole one, or none.
TEST_F(ProgramsOnDisk, ProcessesShareIt) {
  constexpr int processes = 4, rounds = 200, keys = 5;
  const auto code = [](int key) {
    return std::string(2000 + static_cast<std::size_t>(key), static_cast<char>('a' + key));
  };
  const auto work = [&](int seed) {
    bool is_good = true;
    ProgramCache one(
        folder, [&](const std::string&) { is_good = false; }, 7000);
    for (int i = 0; i < rounds; ++i) {
      const int key = (i * 7 + seed) % keys;
      const std::optional<std::string> found = one.find(std::to_string(key));
      if (found && *found != code(key)) is_good = false;
      if (!found) one.store(std::to_string(key), code(key));
    }
    return is_good;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(work(i) ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  for (const fs::path& path : files()) EXPECT_EQ(path.extension(), ".program");
  EXPECT_LE(files().size(), 3u);
}

TEST(ProgramsOnDiskOptions, NoFolderNoCache) {
  EXPECT_EQ(make_program_cache({}), nullptr);
  EXPECT_NE(make_program_cache({.program_cache = "/nowhere"}), nullptr);
}

}  // namespace
}  // namespace omniconv::devices
