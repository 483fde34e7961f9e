// What verify, bench and explain share: they do something with the solvers of each problem of a list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "checking/verify.h"
#include "common.h"
#include "omniconv/error.h"
#include "problems.h"
#include "report.h"

namespace omniconv::cli {

struct Checks {
  Common common;
  ProblemInput input;
  bool sampled = false;
  std::int64_t samples = 4096, strip_rows = 0;
  double budget = 1;
  std::string versus;
  bool measure = false, vendors = false, also_prepared = false;

  // How long peaks are measured: a second, or what twenty results take.
  double peak_seconds() const { return std::min(1.0, 20 * budget); }
};

CLI::App* add_command(CLI::App& app, const char* name, const char* meaning, const char* examples, Checks& checks);

// Whether the command's findings go to stdout as text.
bool prints(const Common& common);

void stop_if_interrupted();

// Calls serve(), which reports results as they come. Where it refuses the problem, or memory does not suffice, one more
// result says so, and the others of a list are served all the same.
template <typename Result, typename Serve, typename Report>
void serve_or_refuse(const std::string& solver, const Problem& problem, const Serve& serve, const Report& report) {
  Result result{.solver = solver, .status = checking::Status::refused, .reason = foreign_solver(solver, problem)};
  if (result.reason.empty()) try {
      return serve();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input && error.kind() != ErrorKind::out_of_memory) throw;
      if (error.kind() == ErrorKind::out_of_memory) result.status = checking::Status::failed;
      result.reason = error.what();
    } catch (const std::bad_alloc&) {
      result.status = checking::Status::failed;
      result.reason = "the machine's memory does not hold this problem's arrays: use a smaller one";
    }
  report(result);
}

// How many results had each status.
struct Tally {
  int passed = 0, failed = 0, refused = 0;

  void count(checking::Status status);
  std::string text() const;
  // 1 where something failed, or nothing was served.
  int exit_status() const { return failed > 0 || passed == 0 ? 1 : 0; }
};

}  // namespace omniconv::cli
