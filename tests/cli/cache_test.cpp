// Compiled programs that the command keeps from one run to the next.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "command.h"

namespace omniconv {
namespace {

using nlohmann::json;

class Cache : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (const std::string reason = no_opencl(); !reason.empty()) GTEST_SKIP() << reason;
    write("in.pgm", "P5 8 4 255\n" + std::string(32, 'x'));
  }
  // Filters on a device that compiles, where `environment` says what is kept; `more` is options.
  Outcome filter(const std::string& environment, const std::string& more = "") const {
    return shell(environment + " $OMNICONV filter in.pgm out.pgm --kernel sharpen --device opencl --json report.json " +
                 more);
  }
  double compile_ms() const { return json::parse(read_here("report.json"))["compile_ms"]; }
  // Files below the folder.
  int kept(const std::string& folder) const {
    int count = 0;
    if (std::filesystem::exists(folder_ / folder))
      for (const auto& item : std::filesystem::recursive_directory_iterator(folder_ / folder))
        count += item.path().extension() == ".program";
    return count;
  }
  static void expect_quiet_success(const Outcome& outcome) {
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.error, "");
  }
};

TEST_F(Cache, TheSecondRunCompilesNothing) {
  expect_quiet_success(filter("OMNICONV_CACHE_DIR=$PWD/kept"));
  const std::string output = read_here("out.pgm");
  EXPECT_GT(compile_ms(), 0);
  EXPECT_GE(json::parse(read_here("report.json"))["plan_ms"].get<double>(), compile_ms());
  EXPECT_GT(json::parse(read_here("report.json"))["context_ms"].get<double>(), 0);
  EXPECT_EQ(kept("kept"), 1);
  expect_quiet_success(filter("OMNICONV_CACHE_DIR=$PWD/kept"));
  EXPECT_EQ(compile_ms(), 0);
  EXPECT_EQ(read_here("out.pgm"), output);
  EXPECT_EQ(kept("kept"), 1);
}

TEST_F(Cache, BenchTellsTheFirstCompilation) {
  const std::string command =
      "OMNICONV_CACHE_DIR=kept $OMNICONV bench 'filter2d u8 h16w16r3s3' --device opencl --budget 0.02 --json b.json";
  const auto compiled = [&] {
    EXPECT_EQ(shell(command).status, 0);
    return json::parse(read_here("b.json"))["results"][0]["compile_ms"].get<double>();
  };
  EXPECT_GT(compiled(), 0);
  EXPECT_EQ(compiled(), 0);
}

TEST_F(Cache, BenchCompilesAListAtOnce) {
  const std::string command =
      "OMNICONV_CACHE_DIR= $OMNICONV bench 'filter2d u8 h16w16r3s3' 'gemm f32 nn m17n17k17' n1c3h9w9k3r3s3 --vs "
      "gemm/tiled/gpu.1 --device opencl --budget 0.02 --json b.json";
  EXPECT_EQ(shell(command).status, 0);
  const json report = json::parse(read_here("b.json"));
  EXPECT_GE(report["compiled_at_once"].get<int>(), 1);
  ASSERT_EQ(report["results"].size(), 3U);
  for (const json& result : report["results"]) {
    EXPECT_EQ(result["status"], "ok") << result;
    EXPECT_GT(result["compile_ms"], 0.0) << result;
    EXPECT_GE(result["plan_ms"], result["compile_ms"]) << result;
    EXPECT_EQ(result["vs"]["status"] == "ok", result["problem"].get<std::string>().starts_with("gemm")) << result;
  }
}

TEST_F(Cache, ItsFolderIsTheUsers) {
  const std::string unset = "env -u OMNICONV_CACHE_DIR POCL_CACHE_DIR=$PWD ";  // PoCL's own would move with HOME
  expect_quiet_success(filter(unset + "HOME=$PWD/home XDG_CACHE_HOME=$PWD/xdg"));
  EXPECT_EQ(kept("xdg/omniconv"), 1);
  EXPECT_EQ(kept("home"), 0);
  expect_quiet_success(filter(unset + "HOME=$PWD/home XDG_CACHE_HOME=relative"));
  EXPECT_EQ(kept("home/.cache/omniconv"), 1);
  EXPECT_EQ(kept("relative"), 0);
  expect_quiet_success(filter("env OMNICONV_CACHE_DIR= POCL_CACHE_DIR=$PWD HOME=$PWD/other XDG_CACHE_HOME=$PWD/third"));
  EXPECT_EQ(kept("other") + kept("third"), 0);
  EXPECT_GT(compile_ms(), 0);
}

// One line, whatever else goes on, and the work is done.
TEST_F(Cache, AFolderThatCannotBeUsedIsOneWarning) {
  const Outcome outcome = filter("OMNICONV_CACHE_DIR=$PWD/in.pgm/kept");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.error.find("omniconv: warning: compiled programs cannot be kept in "), 0u) << outcome.error;
  EXPECT_NE(outcome.error.find("Not a directory"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("OMNICONV_CACHE_DIR"), std::string::npos) << outcome.error;
  EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
  EXPECT_GT(compile_ms(), 0);
  EXPECT_EQ(filter("OMNICONV_CACHE_DIR=$PWD/in.pgm/kept", "--quiet").error, "");

  // Several contexts, several programs.
  const Outcome more = shell(
      "OMNICONV_CACHE_DIR=$PWD/in.pgm/kept $OMNICONV verify 'filter2d u8 h16w16r3s3' "
      "'filter2d f32 h16w16r3s3' --device opencl");
  EXPECT_EQ(more.status, 0);
  EXPECT_EQ(std::count(more.error.begin(), more.error.end(), '\n'), 1) << more.error;
}

TEST_F(Cache, ADamagedProgramIsOneWarning) {
  expect_quiet_success(filter("OMNICONV_CACHE_DIR=$PWD/kept"));
  const std::string output = read_here("out.pgm");
  ASSERT_EQ(shell("for file in kept/*; do truncate --size=-1 $file; done").status, 0);
  const Outcome outcome = filter("OMNICONV_CACHE_DIR=$PWD/kept");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.error.find("is damaged; it is compiled again"), std::string::npos) << outcome.error;
  EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
  EXPECT_EQ(read_here("out.pgm"), output);
  expect_quiet_success(filter("OMNICONV_CACHE_DIR=$PWD/kept"));
  EXPECT_EQ(compile_ms(), 0);
}

}  // namespace
}  // namespace omniconv
