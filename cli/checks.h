// What verify, bench and explain share: they do something with the solvers of each problem of a list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common.h"
#include "omniconv/error.h"
#include "ops/matrix_work.h"
#include "ops/verify.h"
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
  bool measure = false;
};

CLI::App* add_command(CLI::App& app, const char* name, const char* meaning, const char* examples, Checks& checks);

// Whether the command's findings go to stdout as text.
bool prints(const Common& common);

void stop_if_interrupted();

// Why no solver at all serves a problem, or empty: the others of a list are served all the same.
template <typename Serve>
std::string refusal_of(const Serve& serve) {
  try {
    serve();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
    return error.what();
  }
  return {};
}

// `serve` the problem with its results, or one result that says why it was not.
template <typename Result, typename Serve>
std::vector<Result> results_or_refusal(const std::string& solver, const Problem& problem, const Serve& serve) {
  std::vector<Result> results;
  std::string reason = foreign_solver(solver, problem);
  if (reason.empty()) reason = refusal_of([&] { results = serve(); });
  if (!reason.empty()) {
    results.resize(1);
    results.front().solver = solver;
    results.front().status = Status::refused;
    results.front().reason = reason;
  }
  return results;
}

// Of a convolution or a matrix product.
std::unique_ptr<MatrixWork> work_for(const Problem& problem);

}  // namespace omniconv::cli
