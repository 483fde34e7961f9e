// A folder of a test's own, which is gone behind it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace omniconv {

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() /
             fmt::format("omniconv-{}-{}", testing::UnitTest::GetInstance()->current_test_info()->name(), getpid());
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // A file in it, in folders that are made.
  void put(const std::string& name, std::string_view bytes) const {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << bytes;
  }

  std::filesystem::path folder;
};

}  // namespace omniconv
