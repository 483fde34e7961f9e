// Runs the command as a user would, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "devices/device.h"

namespace omniconv {

struct Outcome {
  int status = -1;
  std::string out, error;
};

// Why the command finds no OpenCL device; empty where it finds one.
inline std::string no_opencl() {
  DeviceListing listing;
  devices::opencl_backend().list(listing);
  if (!listing.found.empty()) return {};
  return "no OpenCL device: " + listing.missing.front().reason;
}

class Command : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "omniconv-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // `arguments` as a shell reads them; $OMNICONV is the command itself, $PHOTO the bundled photograph. Compiled
  // programs are not kept, unless the line says where.
  Outcome shell(const std::string& line) const {
    const std::string error_file = folder_.string() + ".stderr";
    const std::string command = environment_ + "cd '" + folder_.string() +
                                "' && OMNICONV='" OMNICONV_COMMAND "' PHOTO='" OMNICONV_SOURCE_DIR
                                "/data/photo/raccoon.jpg'; export OMNICONV_CACHE_DIR=; { " +
                                line + "\n} 2>'" + error_file + "'";
    Outcome outcome;
    FILE* const pipe = popen(("bash -c " + quoted(command)).c_str(), "r");
    std::array<char, 4096> block;
    for (std::size_t n = 0; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
      outcome.out.append(block.data(), n);
    const int status = pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.error = read(error_file);
    std::filesystem::remove(error_file);
    return outcome;
  }
  Outcome run(const std::string& arguments) const { return shell("$OMNICONV " + arguments); }

  // PoCL takes most of its time to optimize kernels. Tests of what is computed leave that out, others test what users
  // run.
  void leave_kernels_unoptimized() { environment_ = "export POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable; "; }
  // The CPU, and OpenCL where a device is found.
  static std::vector<std::string> devices_here() {
    const std::string reason = no_opencl();
    if (reason.empty()) return {"cpu", "opencl"};
    std::cout << reason << "\n";
    return {"cpu"};
  }

  // One line on stderr that holds every part, status 2, and no file left or changed.
  void refuses(const std::string& arguments, const std::vector<std::string>& parts, int status = 2) const {
    const auto before = listing();
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.error;
    EXPECT_EQ(outcome.error.rfind("omniconv: error: ", 0), 0u) << arguments << "\n" << outcome.error;
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << arguments << "\n" << outcome.error;
    EXPECT_EQ(outcome.out, "") << arguments;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.error.find(part), std::string::npos) << arguments << ": no '" << part << "' in\n"
                                                             << outcome.error;
    EXPECT_EQ(listing(), before) << arguments;
  }

  std::vector<std::string> listing() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename().string() + " " +
                      (entry.is_regular_file() ? std::to_string(entry.file_size()) : "-"));
    std::sort(names.begin(), names.end());
    return names;
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  static std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
  }
  std::string read_here(const std::string& name) const { return read(folder_ / name); }

  std::filesystem::path folder_;

 private:
  static std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
  }

  std::string environment_;  // of every command, as a shell sets it
};

}  // namespace omniconv
