#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <vector>

#include "filter_options.h"
#include "image/image.h"
#include "image/kernel_text.h"
#include "image/paged_output.h"
#include "omniconv/error.h"
#include "progress.h"
#include "report.h"

namespace omniconv::cli {
namespace {

int list_kernels(bool print, Json& json) {
  std::vector<std::vector<std::string>> table;
  json["kernels"] = Json::array();
  for (const auto& [usage, meaning] : named_kernels()) {
    table.push_back({std::string(usage), std::string(meaning)});
    json["kernels"].push_back({{"usage", usage}, {"meaning", meaning}});
  }
  if (print) print_table(table);
  return 0;
}

void print_matrix(std::FILE* to, const std::vector<double>& weights, std::int64_t r, std::int64_t s) {
  for (std::int64_t i = 0; i < r; ++i) {
    std::string line;
    for (std::int64_t j = 0; j < s; ++j)
      line += fmt::format("{}{}", j > 0 ? " " : "", weights[static_cast<std::size_t>(i * s + j)]);
    fmt::print(to, "{}\n", line);
  }
}

void print_weights(std::FILE* to, const Kernel& kernel) {
  print_matrix(to, kernel.weights, kernel.r, kernel.s);
  if (kernel.second_weights.empty()) return;
  fmt::print(to, "\n");
  print_matrix(to, kernel.second_weights, kernel.r, kernel.s);
}

int list_weights(const std::string& text, bool print, Json& json) {
  if (text.empty()) throw bad_input("no kernel given: name one with --kernel, as in --kernel gaussian:9");
  const Kernel kernel = image::parse_kernel(text);
  if (print) print_weights(stdout, kernel);
  json["kernel"] = text;
  json["rows"] = kernel.r;
  json["columns"] = kernel.s;
  json["weights"] = kernel.weights;
  if (!kernel.second_weights.empty()) json["second_weights"] = kernel.second_weights;
  return 0;
}

void add_to(Json& json, const image::FilterReport& report, const DeviceInfo& device, double context_seconds) {
  set_device(json, device, nullptr);
  json["problem"] = to_text(report.problem);
  json["solver"] = report.solver;
  json["config"] = config_of(report.tuning);
  json["strip_rows"] = report.strip_rows;
  json["strips"] = report.strips;
  json["planned_bytes"] = report.planned_bytes;
  json["device_bytes"] = report.device_bytes;
  json["context_ms"] = context_seconds * 1e3;
  json["compile_ms"] = report.compile_seconds * 1e3;
  json["plan_ms"] = report.plan_seconds * 1e3;
  json["read_ms"] = report.read_seconds * 1e3;
  json["compute_ms"] = report.compute_seconds * 1e3;
  json["copy_in_ms"] = report.upload_seconds * 1e3;
  json["kernel_ms"] = report.kernel_seconds * 1e3;
  json["copy_out_ms"] = report.download_seconds * 1e3;
  json["write_ms"] = report.write_seconds * 1e3;
  json["total_ms"] = report.total_seconds * 1e3;
}

void print_plan(std::FILE* to, const image::FilterReport& report, const Context& context) {
  fmt::print(to, "{}\n", to_text(report.problem));
  fmt::print(to, "  on {} ({}), solver {}\n", context.device().id, context.device().name, report.solver);
  fmt::print(to, "  {} strips of {} rows, at most {} of memory for strips, codecs and workspace\n", report.strips,
             report.strip_rows, print_bytes(report.planned_bytes));
  if (report.device_bytes > 0) fmt::print(to, "  {} of the device's memory\n", print_bytes(report.device_bytes));
}

// All, not the one of --solver alone.
std::vector<Candidate> candidates(const image::FilterReport& report, const Context& context, SolverOptions options) {
  options.solver = "auto";
  options.tuning.clear();
  return explain(context, report.problem, report.filter, options);
}

void add_to(Json& json, const std::vector<Candidate>& candidates) {
  json["candidates"] = Json::array();
  for (const Candidate& candidate : candidates) json["candidates"].push_back(describe(candidate));
}

void print_candidates(std::FILE* to, const std::vector<Candidate>& candidates) {
  std::vector<std::vector<std::string>> table;
  for (const Candidate& candidate : candidates) table.push_back(candidate_row(candidate));
  print_table(table, to);
}

// The report would replace an image, or what it was made from.
void refuse_report_over_images(const FileOptions& files, const std::string& report) {
  if (report == "-" && files.into.empty() && files.files.size() == 2 && files.files[1] == "-")
    throw bad_input("--json - and the output - are both the standard output: name a file for one of them");
  for (const std::string& name : names_of(files))
    if (is_same_file(name, report))
      throw bad_input(fmt::format("--json {} is the image {}: name another file", report, name));
}

void refuse_report_over_pages(const FilterFiles& files, const std::string& report) {
  for (const FilterFile& file : files.files())
    for (int page = 1; file.is_numbered && page <= file.pages; ++page)
      if (is_same_file(file.page_path(page), report))
        throw bad_input(fmt::format("--json {} is page {} of {}: name another file", report, page, file.input));
}

// Finding a GPU and opening it takes longer than the CPU needs for so few multiply-adds: some thirty milliseconds of
// one core. Where a solver is asked for, its device may be, too. What decodes much to say its extents is not small.
bool are_small(const FilterOptions& options, const FilterFiles& files) {
  constexpr double few = 1e8;
  constexpr std::int64_t little_memory = 64 << 20;
  if (options.choice.solver != "auto" || !options.choice.allow.empty() || !options.choice.deny.empty()) return false;
  const Kernel& kernel = options.job.kernel;
  const auto taps = static_cast<double>(kernel.weights.size() + kernel.second_weights.size());
  double multiply_adds = 0;
  try {
    for (const FilterFile& file : files.files()) {
      const image::ImageInfo input = image::open_image(file.input_path, file.first_page, little_memory)->info();
      multiply_adds += static_cast<double>(input.h) * static_cast<double>(input.w) * static_cast<double>(input.c) *
                       taps * file.pages;
      if (multiply_adds > few) return false;
    }
  } catch (const Error&) {
    return false;  // is said when its turn comes
  }
  return true;
}

// All that filtering the images takes.
struct Work {
  const FilterOptions& options;
  const FilterFiles& files;
  const Context& context;
  double context_seconds = 0;
  ProgressBar& bar;
  std::FILE* text;  // where what is for people goes
};

void filter_image(const Work& work, const image::FilterJob& job, Json& json) {
  const FilterOptions& options = work.options;
  image::FilterReport report;
  std::vector<Candidate> explained;
  if (options.dry_run || options.explain) {
    report = image::plan_filter(work.context, job);
    if (!options.common.quiet) print_plan(work.text, report, work.context);
    if (options.explain) explained = candidates(report, work.context, job.solver);
    if (options.explain && !options.common.quiet) print_candidates(work.text, explained);
  }
  if (!options.dry_run) {
    const auto progress = [&](std::int64_t rows, std::int64_t all, std::int64_t columns) {
      work.bar.update(rows, all, columns);
      return !interrupted();
    };
    report = image::filter_file(work.context, job, progress);
  }
  add_to(json, report, work.context.device(), work.context_seconds);
  if (options.explain) add_to(json, explained);
  work.bar.next_image();
}

// All pages that are asked for, into one file where the format holds pages, else each into its own.
void filter_pages(const Work& work, const FilterFile& file, Json& results) {
  if (file.failure) throw *file.failure;
  std::optional<image::PagedOutput> together;
  if (file.pages > 1 && !file.is_numbered) together.emplace(file.output_path, file.pages);
  for (int i = 0; i < file.pages; ++i) {
    image::FilterJob job = work.options.job;
    job.input = file.input_path;
    job.page = file.first_page + i;
    job.output = file.page_path(job.page);
    job.pages = together ? &*together : nullptr;
    Json result = {{"input", file.input}};
    if (job.page > 0) result["page"] = job.page;
    result["output"] = file.is_numbered ? job.output : file.output;
    try {
      filter_image(work, job, result);
    } catch (const Error& error) {
      if (file.pages == 1) throw;
      throw Error(error.kind(), fmt::format("page {} of {}: {}", job.page, file.pages, error.what()));
    }
    results.push_back(result);
  }
}

void filter_one(const Work& work, const FilterFile& file, Json& results) {
  try {
    filter_pages(work, file, results);
  } catch (const Error& error) {
    throw file.with_names(error);
  }
}

// Each, whatever becomes of the others; their errors are lines of their own.
int filter_into_folder(const Work& work, Json& json) {
  Json& results = json["results"] = Json::array();
  int status = 0;
  for (const FilterFile& file : work.files.files()) {
    try {
      filter_one(work, file, results);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted || error.kind() == ErrorKind::environment) throw;
      work.bar.clear();
      print_error(error.what());
      results.push_back({{"input", file.input}, {"error", describe(error)}});
      status = 1;
      work.bar.next_image();
    }
  }
  return status;
}

int run(FilterOptions& options, Json& json) {
  check_operands(options.files);
  complete(options);
  FilterFiles files(options.files, options.job.max_memory_bytes);
  refuse_report_over_pages(files, options.common.json);
  // The report alone, or the image, goes to stdout.
  std::FILE* const text = options.common.json == "-" || files.is_to_stdout() ? stderr : stdout;
  if (options.print_kernel) print_weights(text, options.job.kernel);
  const auto start = std::chrono::steady_clock::now();
  if (options.common.device == "auto" && are_small(options, files)) options.common.device = "cpu";
  const Context context(context_options(options.common));
  const std::chrono::duration<double> context_seconds = std::chrono::steady_clock::now() - start;
  ProgressBar bar(read_environment().progress && !options.common.quiet, files.count_images());
  const Work work{options, files, context, context_seconds.count(), bar, text};
  if (files.is_into_folder()) return filter_into_folder(work, json);
  Json results = Json::array();
  filter_one(work, files.files().front(), results);
  if (files.is_to_stdout() && !options.dry_run) files.send_to_stdout();
  if (options.files.page == "all")
    json["results"] = results;
  else
    json.update(results.front());
  return 0;
}

}  // namespace

int run_list(const FilterOptions& options) {
  const bool print = options.common.json != "-";
  return with_report(options.common.json, "omniconv-kernels/1", [&](Json& json) {
    return options.list_kernels ? list_kernels(print, json) : list_weights(options.kernel, print, json);
  });
}

int run_filter(FilterOptions& options) {
  refuse_report_over_images(options.files, options.common.json);
  return with_report(options.common.json, "omniconv-filter/1", [&](Json& json) { return run(options, json); });
}

}  // namespace omniconv::cli
