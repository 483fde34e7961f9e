#include "report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <new>

#include "common.h"
#include "core/build_info.h"
#include "image/atomic_file.h"
#include "omniconv/error.h"
#include "operations/tuning.h"

namespace omniconv::cli {

Json describe(const DeviceInfo& device) {
  return {{"id", device.id},
          {"name", device.name},
          {"gpu", device.is_gpu},
          {"driver", device.driver},
          {"compute_units", device.compute_units},
          {"memory_bytes", device.memory_bytes}};
}

void set_device(Json& report, const DeviceInfo& device, const devices::Device::Peaks* peaks) {
  // Not list_devices(), which would load every OpenCL driver, and their compilers, for the processor's name.
  const DeviceInfo host = device.id == "cpu" ? device : Context({.device = "cpu"}).device();
  report["host"] = {{"cpu", host.name}, {"threads", host.compute_units}};
  report["device"] = describe(device);
  if (peaks == nullptr) return;
  report["device"]["peak_tflops"] = peaks->tflops;
  report["device"]["peak_gbps"] = peaks->gbps;
}

namespace {

Json report_head(std::string_view schema) {
  return {{"schema", schema},
          {"version", build_version()},
          {"commit", build_commit()},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
}

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::bad_input: return "bad_input";
    case ErrorKind::environment: return "environment";
    case ErrorKind::interrupted: return "interrupted";
    case ErrorKind::out_of_memory: return "out_of_memory";
  }
  return "";
}

}  // namespace

Json describe(const Error& error) {
  return {{"kind", name_of(error.kind())}, {"message", one_line(error.what())}};
}

namespace {

void add_error(Json& report, const std::exception& exception) {
  const auto* const error = dynamic_cast<const Error*>(&exception);
  if (error != nullptr && error->kind() == ErrorKind::interrupted)
    report["interrupted"] = true;
  else if (error != nullptr)
    report["error"] = describe(*error);
  else if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr)
    report["error"] = {{"kind", "out_of_memory"}, {"message", "the machine's memory is exhausted"}};
  else
    report["error"] = {{"kind", "environment"}, {"message", one_line(exception.what())}};
}

// What failed first is what the user is told, whatever becomes of the report.
void write_after_error(JsonOutput& output, const Json& report) {
  try {
    output.write(report);
  } catch (const std::exception&) {
  }
}

}  // namespace

int with_report(const std::string& path, std::string_view schema, const std::function<int(Json&)>& body) {
  return with_growing_report(path, schema, [&](Json& report, const Keep&) { return body(report); });
}

int with_growing_report(const std::string& path, std::string_view schema,
                        const std::function<int(Json&, const Keep&)>& body) {
  JsonOutput output(path);
  Json report = report_head(schema);
  int status = 0;
  try {
    status = body(report, [&] { output.keep(report); });
  } catch (const std::exception& exception) {
    add_error(report, exception);
    write_after_error(output, report);
    throw;
  }
  output.write(report);
  return status;
}

int terminal_columns(std::FILE* stream) {
  winsize size{};
  return isatty(fileno(stream)) == 1 && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

namespace {

void put(image::AtomicFile& file, const Json& json) {
  const std::string text = json.dump(2) + "\n";
  file.write_at(0, text.data(), static_cast<std::int64_t>(text.size()));
  file.commit();
}

}  // namespace

JsonOutput::JsonOutput(const std::string& path) : path_(path) {
  if (!path.empty() && path != "-") file_ = std::make_unique<image::AtomicFile>(path);
}

JsonOutput::~JsonOutput() = default;

void JsonOutput::write(const Json& json) {
  if (path_.empty()) return;
  if (path_ == "-") return fmt::print("{}\n", json.dump(2));
  put(*file_, json);
}

void JsonOutput::keep(Json json) {
  if (!file_) return;
  json["interrupted"] = true;
  image::AtomicFile so_far(path_);
  put(so_far, json);
}

Json config_of(const std::string& tuning) {
  Json config = Json::object();
  const operations::Tuning parsed = operations::Tuning::parse(tuning);
  for (const auto& [name, value] : parsed.values()) config[name] = value;
  return config;
}

void print_line(std::string line, std::FILE* to) {
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print(to, "{}\n", line);
}

void print_table(const std::vector<std::vector<std::string>>& rows, std::FILE* to) {
  const int terminal = to == stdout ? terminal_columns() : 0;
  std::size_t columns = 0;
  for (const auto& row : rows) columns = std::max(columns, row.size());
  std::vector<std::size_t> widths(columns, 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      if (i + 1 < row.size() || row.size() == columns) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string& cell = row[i];
      if (terminal > 0 && i > 1 && line.size() + widths[i] > static_cast<std::size_t>(terminal)) {
        print_line(line, to);
        line = std::string(6, ' ');
      }
      const bool number = !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 || cell[0] == '-');
      line += number ? fmt::format("{:>{}}", cell, widths[i]) : fmt::format("{:<{}}", cell, widths[i]);
      line += "  ";
    }
    print_line(line, to);
  }
}

Json describe(const Candidate& c) {
  return {
      {"solver", c.solver}, {"applicable", c.applicable}, {"reason", c.reason}, {"workspace_bytes", c.workspace_bytes},
      {"cost", c.cost},     {"counted", c.counted},       {"bound", c.bound},   {"tuning", c.tuning}};
}

std::vector<std::string> candidate_row(const Candidate& c, const std::vector<std::string>& times) {
  if (!c.applicable) return {"  no", c.solver, c.reason};
  std::vector<std::string> row = {"  yes", c.solver, fmt::format("cost {:.3g} multiply-adds", c.cost)};
  row.insert(row.end(), times.begin(), times.end());
  row.insert(row.end(), {"workspace " + print_bytes(c.workspace_bytes), c.bound});
  return row;
}

}  // namespace omniconv::cli
