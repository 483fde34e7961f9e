// Results as JSON (docs/cli.md) and as tables.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "devices/device.h"
#include "omniconv/context.h"
#include "omniconv/error.h"
#include "omniconv/solver_options.h"

namespace omniconv::image {
class AtomicFile;
}

namespace omniconv::cli {

// Keys stay in the order in which they are set.
using Json = nlohmann::ordered_json;

Json describe(const DeviceInfo& device);
Json describe(const Error& error);
// The head of a report gets host and device.
void set_device(Json& report, const DeviceInfo& device, const devices::Device::Peaks* peaks);

// Where --json writes: nowhere for an empty path, to stdout for "-", else to a file that appears whole or not at all.
// Made before the work begins, so that a target that cannot be written stops it in time.
class JsonOutput {
 public:
  explicit JsonOutput(const std::string& path);
  ~JsonOutput();
  void write(const Json& json);
  // What there is until then, where that is a file.
  void keep(Json json);

 private:
  std::string path_;
  std::unique_ptr<image::AtomicFile> file_;
};

// Runs body(report), whose report has its head: schema, version, commit, date. It is written whatever becomes of the
// body: after an interruption with "interrupted": true and what was reported until then, after another error with
// "error": {"kind", "message"}. Returns what the body returns.
int with_report(const std::string& path, std::string_view schema, const std::function<int(Json&)>& body);
// The same of a report that grows: keep() writes what there is, as an interrupted report, so that it outlives even a
// process that is killed.
using Keep = std::function<void()>;
int with_growing_report(const std::string& path, std::string_view schema,
                        const std::function<int(Json&, const Keep&)>& body);

// Columns of the terminal that `stream` is; 0 where it is none.
int terminal_columns(std::FILE* stream = stdout);

// Without blanks at its end.
void print_line(std::string line, std::FILE* to = stdout);

// A tuning's text, as names and numbers.
Json config_of(const std::string& tuning);

// Columns as wide as their widest cell; numbers (cells that begin with a digit or a minus) to the right. The last cell
// of a row that is shorter than others, a reason, may run over the columns that the row lacks.
// On a terminal, cells that do not fit beside the others follow below them.
void print_table(const std::vector<std::vector<std::string>>& rows, std::FILE* to = stdout);

Json describe(const Candidate& candidate);
// A candidate's row of such a table; `times` stand between its cost and its workspace.
std::vector<std::string> candidate_row(const Candidate& candidate, const std::vector<std::string>& times = {});

}  // namespace omniconv::cli
