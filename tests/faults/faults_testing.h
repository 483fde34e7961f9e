// Runs the command with calls that fail (injection.cpp), and looks at the folder that it writes to.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "../cli/command.h"

namespace omniconv {

// The calls of a kind from `first` on, counted from 1, that fail.
struct Fault {
  std::string kind;
  int first = 1, count = 1, error = EIO;
  bool is_short = false;  // the first writes half, those behind it fail

  std::string injected() const {
    return fmt::format("{}:{}:{}:{}{}", kind, first, count, error, is_short ? ":short" : "");
  }
  std::string described() const {
    return fmt::format("{} number {}{}: {}", kind, first, is_short ? ", the half of it, and what follows" : "",
                       std::strerror(error));
  }
};

constexpr int all_that_follow = 1'000'000;

// What a call's failure may lead to.
enum class Effect {
  refusal,   // an error, and nothing changed
  none,      // the whole and right output, and status 0
  whichever  // the one or the other
};

struct Harmless {
  const char* kind;
  int error;  // 0: any
  Effect effect;
  const char* reason;
};

// Of files that appear whole or not at all.
inline const std::vector<Harmless> harmless_of_files = {
    {"open-unnamed", 0, Effect::none, "a file with a name serves as well"},
    {"access", 0, Effect::none, "where /proc is missing, a file with a name serves as well"},
    {"fallocate", EOPNOTSUPP, Effect::none, "not every file system can; a full disk is found by the write"},
    {"fallocate", EINTR, Effect::none, "it is called again"},
    {"write", EINTR, Effect::none, "it is called again"},
    {"fchown", 0, Effect::none, "who is not the superuser may not give files away"},
    {"close", 0, Effect::none, "fsync, and the close of a copy, have said that all is stored"},
    {"open-folder", 0, Effect::none, "the file is in place"},
    {"fsync-folder", 0, Effect::none, "the file is in place"},
    {"close-folder", 0, Effect::none, "the file is in place"},
    {"stat", 0, Effect::whichever, "what one look does not see, a later one or the opening does"},
};

class Faults : public Command {
 protected:
  using Files = std::map<std::string, std::string>;

  struct Run {
    Outcome outcome;
    std::map<std::string, int> calls;  // of each kind
    bool is_injected = false;
    Files files;  // of the folder out/
  };

  void SetUp() override {
    Command::SetUp();
    folder_ = std::filesystem::canonical(folder_);
    const int unnamed = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (unnamed < 0) GTEST_SKIP() << folder_ << " is on a file system without unnamed files: TMPDIR names another";
    ::close(unnamed);
    write("in.ppm", "P6\n3 2\n255\nabcdefghijklmnopqr");
  }
  void TearDown() override {
    std::filesystem::remove(log_file());
    Command::TearDown();
  }

  // With out/ as `before` says.
  Run run_with(const std::string& faults, const Files& before, const std::string& arguments) const {
    restore(before);
    std::filesystem::remove(log_file());
    Run run;
    run.outcome = shell(fmt::format(
        "OMNICONV_FAULTS_FOLDER='{}' OMNICONV_FAULTS_LOG='{}' OMNICONV_FAULTS='{}' LD_PRELOAD='{}' \"$OMNICONV\" {}",
        out().string(), log_file(), faults, OMNICONV_FAULT_INJECTION, arguments));
    std::istringstream log(read(log_file()));
    for (std::string kind, fate; log >> kind && std::getline(log, fate);) {
      ++run.calls[kind];
      run.is_injected = run.is_injected || fate != " succeeds";
    }
    run.files = files();
    return run;
  }

  Files files() const {
    Files files;
    for (const auto& entry : std::filesystem::directory_iterator(out()))
      files[entry.path().filename().string()] = read(entry.path());
    return files;
  }
  std::filesystem::path out() const { return folder_ / "out"; }

  static void expect_one_error_line(const Outcome& outcome, int status, const std::string& what) {
    EXPECT_EQ(outcome.status, status) << what << "\n" << outcome.error;
    EXPECT_EQ(outcome.error.rfind("omniconv: error: ", 0), 0u) << what << "\n" << outcome.error;
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << what << "\n" << outcome.error;
  }

  // Those to try of the calls that a good run makes.
  static std::vector<Fault> faults_of(const std::map<std::string, int>& calls) {
    std::vector<Fault> faults;
    for (const auto& [kind, count] : calls)
      for (const int first : some_of(count, 20)) {
        if (kind == "fallocate")
          for (const int error : {ENOSPC, EOPNOTSUPP, EINTR}) faults.push_back({kind, first, 1, error});
        else if (kind == "fchown")
          faults.push_back({kind, first, 2, EPERM});  // with the owner, and without
        else
          faults.push_back({kind, first, 1, kind == "open-unnamed" ? EOPNOTSUPP : EIO});
      }
    for (const int first : some_of(calls.at("write"), 5)) {
      faults.push_back({"write", first, all_that_follow, ENOSPC});
      faults.push_back({"write", first, all_that_follow, ENOSPC, true});
      faults.push_back({"write", first, 1, EINTR});
    }
    return faults;
  }

  static Effect effect_of(const Fault& fault, const std::vector<Harmless>& harmless) {
    for (const Harmless& one : harmless)
      if (fault.kind == one.kind && (one.error == 0 || one.error == fault.error)) return one.effect;
    return Effect::refusal;
  }

 private:
  // The first, the last, and at most so many in all.
  static std::vector<int> some_of(int count, int most) {
    std::vector<int> numbers;
    for (int i = 0; i < std::min(count, most); ++i)
      numbers.push_back(count <= most ? i + 1 : 1 + i * (count - 1) / (most - 1));
    return numbers;
  }

  std::string log_file() const { return folder_.string() + ".calls"; }

  void restore(const Files& before) const {
    std::filesystem::remove_all(out());
    std::filesystem::create_directory(out());
    for (const auto& [name, content] : before) write("out/" + name, content);
  }
};

}  // namespace omniconv
