// verify --random: what it draws, runs, prints and reports.
#include <nlohmann/json.hpp>
#include <set>

#include "command.h"

namespace omniconv {
namespace {

using nlohmann::json;

class Random : public Command {
 protected:
  json report(const std::string& arguments) const {
    const Outcome outcome = run("verify --device cpu --json r.json " + arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.out << outcome.error;
    return json::parse(read_here("r.json"));
  }
  static std::set<std::string> operations(const json& random) {
    std::set<std::string> names;
    for (const json& one : random["solvers"]) {
      const std::string id = one["solver"];
      names.insert(id.substr(0, id.find('/')));
    }
    return names;
  }
};

TEST_F(Random, RunsEverySolverOnEveryOperation) {
  const Outcome outcome = run("verify --random 60 --seed 4 --device cpu --json r.json");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  EXPECT_EQ(outcome.error, "");
  const json report = json::parse(read_here("r.json")), random = report["random"];
  EXPECT_EQ(report["schema"], "omniconv-verify/1");
  EXPECT_TRUE(report["results"].empty());  // what failed
  EXPECT_EQ(random["seed"], 4);
  EXPECT_EQ(random["problems"], 60);
  EXPECT_EQ(random["unserved"], 0);
  EXPECT_FALSE(random["given_up"].get<bool>());
  EXPECT_FALSE(random.contains("under_way"));
  EXPECT_EQ(operations(random),
            (std::set<std::string>{"activation", "add", "batch", "batch_norm", "bias_add", "conv2d", "dropout",
                                   "filter2d", "gemm", "loss", "norm", "pool2d", "update"}));
  int passed = 0, refused = 0;
  double largest = 0;
  for (const json& one : random["solvers"]) {
    passed += one["passed"].get<int>();
    refused += one["refused"].get<int>();
    largest = std::max(largest, one["largest_ratio"].get<double>());
    EXPECT_EQ(one["failed"], 0) << one;
    EXPECT_EQ(one["problem"] == "", one["largest_ratio"] == 0.0) << one;
    EXPECT_NE(outcome.out.find("  " + one["solver"].get<std::string>() + " "), std::string::npos) << outcome.out;
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(largest, 1);
  EXPECT_NE(outcome.out.find("60 problems of seed 4, of which no solver served 0\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("largest error: "), std::string::npos) << outcome.out;
  EXPECT_TRUE(
      outcome.out.ends_with(std::to_string(passed) + " passed, 0 failed, " + std::to_string(refused) + " refused\n"))
      << outcome.out;
}

TEST_F(Random, ASeedGivesTheSameReportWhateverTheThreads) {
  const json one = report("--random 30 --seed 5 --threads 1")["random"];
  EXPECT_EQ(report("--random 30 --seed 5 --threads 3")["random"], one);
  EXPECT_NE(report("--random 30 --seed 6 --threads 1")["random"], one);
}

TEST_F(Random, OptionsComposeAndRestrict) {
  EXPECT_EQ(operations(report("--random 10 --operation gemm,pool2d")["random"]),
            (std::set<std::string>{"gemm", "pool2d"}));
  const json packed = report("--random 10 --solver gemm/packed/cpu.1")["random"];
  ASSERT_EQ(packed["solvers"].size(), 1u) << packed;  // of the solver's operation alone
  EXPECT_EQ(packed["solvers"][0]["passed"], 10);
  const json automatic = report("--random 10 --operation conv2d --solver auto")["random"];
  for (const json& one : automatic["solvers"]) EXPECT_EQ(one["refused"], 0) << one;
  const json passes = report("--random 5 --operation conv2d --pass all --type f64 --allow conv2d/double")["random"];
  EXPECT_EQ(passes["problems"], 15);
  for (const json& one : passes["solvers"])
    EXPECT_EQ(one["passed"], one["solver"] == "conv2d/double/cpu.1" ? 15 : 0) << one;
  EXPECT_EQ(report("--random 5 --operation filter2d --strip-rows 3 --sampled --samples 9")["random"]["problems"], 5);
  EXPECT_EQ(run("verify --random 3 --operation gemm --device cpu --quiet").out, "");
  EXPECT_EQ(run("verify --random 3 --operation gemm --deny gemm --device cpu").status, 1);  // nothing was served
}

TEST_F(Random, WhatItCannotUseIsRefused) {
  for (const char* const count : {"0", "-1", "1.5", "x", "''", "1000001"})
    refuses(std::string("verify --random ") + count, {"--random", "must be a whole number from 1 to 1000000"});
  write("list.txt", "n1c1h1w1k1r1s1\n");
  refuses("verify --random 5 --problems list.txt", {"--random", "'list.txt' is given too: leave one of them out"});
  refuses("verify --random 5 n1c1h1w1k1r1s1", {"--random", "'n1c1h1w1k1r1s1' is given too", "leave one of them out"});
  refuses("verify --random 5 --operation gem", {"unknown --operation 'gem'", "gemm"});
  refuses("verify --random 5 --operation gemm,gemm", {"--operation", "stands twice"});
  refuses("verify n1c1h1w1k1r1s1 --operation gemm", {"--operation", "--random"});
  refuses("verify --random 5 --operation conv2d --solver gemm/packed/cpu.1", {"gemm/packed/cpu.1 is of gemm"});
  refuses("verify --random 5 --operation gemm --strip-rows 2", {"--strip-rows", "filter2d"});
  refuses("verify --random 5 --solver gemm/paked/cpu.1", {"unknown solver", "gemm/packed/cpu.1"});
  refuses("bench --random 5", {"unknown option '--random'"});
}

}  // namespace
}  // namespace omniconv
