// Compiled programs of GPU devices, kept on disk: what a second context finds is not compiled, and computes the same.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "devices/program_cache.h"
#include "gpu_testing.h"
#include "omniconv/filter2d.h"

namespace omniconv {
namespace {

namespace fs = std::filesystem;
using devices::Definition;
using devices::KernelArgument;

class GpuCache : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped()) return;
    std::string pattern = (fs::temp_directory_path() / "omniconv-programs-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override {
    if (!folder.empty()) fs::remove_all(folder);
  }

  ContextOptions options() {
    return {.device = device->info().id,
            .program_cache = folder,
            .warn = [this](const std::string& message) { warnings.push_back(message); },
            .quick_start = false};
  }
  // A new context each time, as in a new process.
  std::shared_ptr<devices::Device> open() { return Context(options()).impl(); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& item : fs::directory_iterator(folder)) found.push_back(item.path());
    return found;
  }
  // Builds the text for a new context, runs it, and tells whether it was compiled.
  bool compiles(const char* addend) {
    const auto opened = open();
    const Definition definitions[] = {{"ADDEND", addend}};
    const auto program = opened->build("KERNEL void add(GLOBAL float* x) { x[GLOBAL_ID_X] += ADDEND; }\n", definitions);
    const auto queue = opened->make_queue();
    const auto buffer = opened->allocate(16);
    std::vector<float> values = {1, 2, 3, 4};
    queue->upload(buffer, 0, values.data(), 16);
    const KernelArgument arguments[] = {buffer.get()};
    queue->launch(program, "add", {{4, 1}, {4, 1}}, arguments);
    queue->download(values.data(), buffer, 0, 16).wait();
    const auto a = std::stof(addend);
    EXPECT_EQ(values, (std::vector<float>{1 + a, 2 + a, 3 + a, 4 + a}));
    EXPECT_HAS(error_of(
                   [&] {
                     queue->launch(program, "subtract", {{4, 1}, {4, 1}}, arguments).wait();
                   },
                   ErrorKind::environment),
               "subtract");
    return program->compile_seconds() > 0;
  }

  fs::path folder;
  std::vector<std::string> warnings;
};

TEST_F(GpuCache, TheSecondContextCompilesNothing) {
  EXPECT_TRUE(compiles("8"));
  EXPECT_EQ(files().size(), 1u);
  EXPECT_FALSE(compiles("8"));
  EXPECT_TRUE(compiles("16"));
  EXPECT_EQ(files().size(), 2u);
  EXPECT_FALSE(compiles("16"));
  EXPECT_FALSE(compiles("8"));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(GpuCache, NoFolderKeepsNothing) {
  EXPECT_GT(device->build(add_text, {})->compile_seconds(), 0);
  EXPECT_GT(device->build(add_text, {})->compile_seconds(), 0);
}

TEST_F(GpuCache, ADamagedProgramIsCompiledAgain) {
  EXPECT_TRUE(compiles("8"));
  const fs::path path = files().at(0);
  const auto size = fs::file_size(path);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(size / 2));
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file.put(byte);
  }
  EXPECT_TRUE(compiles("8"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_HAS(warnings.back(), path.string() + " is not used: it is damaged; it is compiled again");
  EXPECT_FALSE(compiles("8"));
  fs::resize_file(path, size - 1);
  EXPECT_TRUE(compiles("8"));
  EXPECT_EQ(warnings.size(), 2u);
  EXPECT_FALSE(compiles("8"));
}

// Whole, and yet no program: what another driver of the same name and version would leave.
TEST_F(GpuCache, WhatTheDriverDoesNotTakeIsCompiledAgain) {
  EXPECT_TRUE(compiles("8"));
  std::string key;
  {
    std::ifstream file(files().at(0), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    const std::size_t begin = content.find("8:omniconv\n");
    ASSERT_NE(begin, std::string::npos);
    std::uint64_t key_bytes = 0;
    std::memcpy(&key_bytes, content.data() + 16, sizeof key_bytes);
    key = content.substr(begin, key_bytes);
  }
  // Entries of OpenCL begin with a line of registers.
  const std::string line = device->kind() == devices::DeviceKind::opencl ? "\n" : "";
  devices::ProgramCache(folder, {}).store(key, line + "no program of this device");
  EXPECT_TRUE(compiles("8"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_HAS(warnings.back(), "device " + device->info().id + " does not take it");
  EXPECT_FALSE(compiles("8"));
}

TEST_F(GpuCache, AFolderThatCannotBeMadeIsDoneWithout) {
  const fs::path file = folder / "file";
  std::ofstream(file) << "in the place of a folder";
  folder = file / "cache";
  EXPECT_TRUE(compiles("8"));
  EXPECT_TRUE(compiles("8"));
  EXPECT_EQ(warnings.size(), 2u);  // one for each context
  for (const std::string& warning : warnings) EXPECT_HAS(warning, "compiled programs cannot be kept in");
  folder = file.parent_path();
}

// Every program of the solvers' plans.
TEST_F(GpuCache, PlansOfASecondContextCompileNothing) {
  struct Case {
    const char* text;
    bool is_pair;
  };
  for (const auto& [text, is_pair] :
       {Case{"filter2d f32 h20w31r3s4", true}, Case{"filter2d u8 h20w31c4r3s3 alpha:3", false}}) {
    const auto problem = get<Filter2dProblem>(parse_problem(text));
    Filter filter;
    for (std::int64_t i = 0; i < problem.r * problem.s; ++i)
      filter.weights.push_back(0.25 + static_cast<double>(i * i % 7));
    if (is_pair) filter.second_weights = {filter.weights.rbegin(), filter.weights.rend()};
    const Filter2dPlan first(Context(options()), problem, filter), second(Context(options()), problem, filter);
    EXPECT_GT(first.compile_seconds(), 0) << text;
    EXPECT_EQ(second.compile_seconds(), 0) << text;
    EXPECT_EQ(first.solver(), second.solver());
  }
  EXPECT_TRUE(warnings.empty());
}

}  // namespace
}  // namespace omniconv
