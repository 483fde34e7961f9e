// What the programs here share: their command line, and turns of one side and the other.
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/build_info.h"
#include "omniconv/conv2d.h"
#include "omniconv/error.h"
#include "timing/stopwatch.h"

namespace omniconv::bench {

// Takes a value each, as in {"--seconds", [&](const std::string& value) { ... }}.
using Options = std::map<std::string, std::function<void(const std::string&)>>;

using Flags = std::map<std::string, std::function<void()>>;

// The words that are no options: problems.
inline std::vector<std::string> parse_arguments(int argc, char** argv, const Options& options,
                                                const Flags& flags = {}) {
  std::vector<std::string> problems;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto option = options.find(word);
    if (const auto flag = flags.find(word); flag != flags.end()) {
      flag->second();
    } else if (option == options.end() && word.starts_with("--")) {
      std::string known;
      for (const auto& [name, set] : options) known += (known.empty() ? "" : ", ") + name;
      for (const auto& [name, set] : flags) known += ", " + name;
      throw bad_input(fmt::format("unknown option '{}': known are {}", word, known));
    } else if (option == options.end()) {
      problems.push_back(word);
    } else if (++i < argc) {
      option->second(argv[i]);
    } else {
      throw bad_input(fmt::format("{} needs a value", word));
    }
  }
  return problems;
}

// With an empty list of results.
inline nlohmann::json report_head(const char* schema) {
  return {{"schema", schema},
          {"version", build_version()},
          {"commit", build_commit()},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"results", nlohmann::json::array()}};
}

// Where a path is given.
inline void write_report(const std::string& path, const nlohmann::json& report) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << report.dump(2) << "\n";
  if (!file.flush()) throw environment_error(fmt::format("{}: the report cannot be written", path));
}

// The convolutions of a list, each in every pass, backward without bias and relu.
inline std::vector<Conv2dProblem> in_all_passes(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw bad_input(fmt::format("{}: cannot be read", path));
  std::stringstream text;
  text << file.rdbuf();
  std::vector<Conv2dProblem> problems;
  for (const Problem& problem : parse_problem_list(text.str(), path))
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_filter}) {
      auto conv = get<Conv2dProblem>(problem);
      conv.pass = pass;
      if (pass != Pass::forward) conv.bias = conv.relu = false;
      problems.push_back(conv);
    }
  return problems;
}

inline double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace omniconv::bench
