// The fuzz targets over their committed corpus: small files of which each once took a path of its own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "targets.h"

namespace omniconv::fuzz {
namespace {

void run_corpus(const std::string& name, void (*target)(std::string_view)) {
  std::uintmax_t files = 0, bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OMNICONV_SOURCE_DIR "/tests/fuzz/corpus/" + name)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    EXPECT_LE(content.size(), 4096u) << entry.path();
    EXPECT_NO_THROW(target(content)) << entry.path();
    ++files;
    bytes += content.size();
  }
  EXPECT_GE(files, 20u);
  EXPECT_LE(bytes, 400'000u) << "the corpus is to stay small";
}

TEST(FuzzCorpus, ProblemText) {
  run_corpus("problem_text", problem_text);
}
TEST(FuzzCorpus, KernelFile) {
  run_corpus("kernel_file", kernel_file);
}
TEST(FuzzCorpus, ImageFile) {
  run_corpus("image_file", image_file);
}
TEST(FuzzCorpus, NpyArray) {
  run_corpus("npy_array", npy_array);
}

// The property must be able to fail.
TEST(FuzzCorpus, BrokenPromisesAreSeen) {
  EXPECT_THROW(require(false, "x"), Broken);
  EXPECT_THROW(refused([] { throw bad_input("two\nlines"); }), Broken);
  EXPECT_THROW(refused([] { throw bad_input(std::string(2000, 'x')); }), Broken);
  EXPECT_THROW(refused([] { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_TRUE(refused([] { throw bad_input("one line"); }));
  EXPECT_FALSE(refused([] {}));
}

}  // namespace
}  // namespace omniconv::fuzz
