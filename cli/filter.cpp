#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "common.h"
#include "core/suggest.h"
#include "filter_files.h"
#include "image/image.h"
#include "image/kernel_text.h"
#include "image/paged_output.h"
#include "image/pipeline.h"
#include "omniconv/error.h"
#include "operations/filter2d/weights.h"
#include "problems.h"
#include "progress.h"
#include "report.h"

namespace omniconv::cli {
namespace {

struct FilterOptions {
  Common common;
  ChoiceInput choice;
  FileOptions files;
  image::FilterJob job;
  std::string kernel, border = "replicate", anchor, depth, alpha = "premultiply", memory = "1G", device_memory;
  bool correlate = false, convolve = false, normalize = false;
  bool list_kernels = false, print_kernel = false, explain = false, dry_run = false;
};

void parse_anchor(const std::string& text, Kernel& kernel) {
  std::int64_t x = 0, y = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, x);
  const bool comma = first.ec == std::errc() && first.ptr != end && *first.ptr == ',';
  const auto second = comma ? std::from_chars(first.ptr + 1, end, y) : first;
  if (!comma || second.ec != std::errc() || second.ptr != end)
    throw bad_input(fmt::format(
        "--anchor '{}' is no pair of integers: write X,Y, counted from the kernel's top left, as in 1,1", text));
  if (x < 0 || x >= kernel.s || y < 0 || y >= kernel.r)
    throw bad_input(fmt::format("--anchor {},{} lies outside the {}x{} kernel: X is from 0 to {}, Y from 0 to {}", x, y,
                                kernel.s, kernel.r, kernel.s - 1, kernel.r - 1));
  kernel.anchor_x = x;
  kernel.anchor_y = y;
}

constexpr std::array<std::string_view, 4> alpha_words = {"premultiply", "ignore", "filter", "drop"};
constexpr std::array<std::string_view, 7> depth_words = {"u8", "u16", "s16", "s32", "f16", "f32", "f64"};

image::Alpha parse_alpha(const std::string& text) {
  if (text == "premultiply") return image::Alpha::premultiply;
  if (text == "ignore") return image::Alpha::ignore;
  if (text == "filter") return image::Alpha::filter;
  if (text == "drop") return image::Alpha::drop;
  throw bad_input(fmt::format("unknown --alpha '{}': {}", text, suggest(text, alpha_words)));
}

DataType parse_depth(const std::string& text) {
  if (std::find(depth_words.begin(), depth_words.end(), text) == depth_words.end())
    throw bad_input(fmt::format("unknown --depth '{}': it is one of {}", text, fmt::join(depth_words, ", ")));
  return *parse_data_type(text);
}

// A named kernel of an even size, as gaussian:4, has no tap in its middle.
void tell_of_shift(const std::string& text, const Kernel& kernel) {
  const bool named = std::isalpha(static_cast<unsigned char>(text.front())) != 0;
  if (named && !kernel.anchor_x && (kernel.r % 2 == 0 || kernel.s % 2 == 0))
    fmt::print(stderr,
               "omniconv: note: {} has {} x {} weights and no middle one: the image moves by half a pixel; an odd size "
               "leaves it in place\n",
               text, kernel.r, kernel.s);
}

void complete(FilterOptions& options) {
  image::FilterJob& job = options.job;
  if (options.kernel.empty())
    throw bad_input("no kernel given: name one with --kernel (--list-kernels shows them), as in --kernel gaussian:9");
  job.kernel = image::parse_kernel(options.kernel);
  if (options.normalize) normalize(job.kernel);
  if (!options.anchor.empty()) parse_anchor(options.anchor, job.kernel);
  if (!options.common.quiet) tell_of_shift(options.kernel, job.kernel);
  if (job.rescale && options.depth.empty())
    throw bad_input("--rescale is of a change of depth: give --depth, or leave it out");
  if (options.correlate && options.convolve) throw bad_input("--correlate and --convolve exclude each other: give one");
  job.convolve = options.convolve;
  job.solver = solver_options_of_one(options.choice, "filter2d");
  job.border = parse_border(options.border);
  if (!options.depth.empty()) job.depth = parse_depth(options.depth);
  job.alpha = parse_alpha(options.alpha);
  job.max_memory_bytes = parse_bytes("--max-memory", options.memory);
  if (!options.device_memory.empty()) job.device_memory_bytes = parse_bytes("--device-memory", options.device_memory);
}

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

// What needs no image: the named kernels, or one's weights.
int list(const FilterOptions& options) {
  const bool print = options.common.json != "-";
  return with_report(options.common.json, "omniconv-kernels/1", [&](Json& json) {
    return options.list_kernels ? list_kernels(print, json) : list_weights(options.kernel, print, json);
  });
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
};

void filter_image(const Work& work, const image::FilterJob& job, Json& json) {
  const FilterOptions& options = work.options;
  // The report alone, or the image, goes to stdout.
  std::FILE* const text = options.common.json == "-" || work.files.is_to_stdout() ? stderr : stdout;
  image::FilterReport report;
  std::vector<Candidate> explained;
  if (options.dry_run || options.explain) {
    report = image::plan_filter(work.context, job);
    if (!options.common.quiet) print_plan(text, report, work.context);
    if (options.explain) explained = candidates(report, work.context, job.solver);
    if (options.explain && !options.common.quiet) print_candidates(text, explained);
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
  if (options.print_kernel)
    print_weights(options.common.json == "-" || files.is_to_stdout() ? stderr : stdout, options.job.kernel);
  const auto start = std::chrono::steady_clock::now();
  if (options.common.device == "auto" && are_small(options, files)) options.common.device = "cpu";
  const Context context(context_options(options.common));
  const std::chrono::duration<double> context_seconds = std::chrono::steady_clock::now() - start;
  ProgressBar bar(read_environment().progress && !options.common.quiet, files.count_images());
  const Work work{options, files, context, context_seconds.count(), bar};
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

// Names of kernels and, of those that take arguments, the colon; @, behind which a file is named.
std::vector<std::string> kernel_words() {
  std::vector<std::string> words;
  for (const KernelDescription& kernel : named_kernels()) {
    const std::size_t colon = kernel.usage.find(':');
    words.emplace_back(kernel.usage.substr(0, colon == std::string_view::npos ? colon : colon + 1));
  }
  words.push_back("@");
  return words;
}

std::vector<std::string_view> compression_words() {
  std::vector<std::string_view> words;
  for (const char* const extension : {"tif", "png", "webp"}) {
    const std::vector<std::string_view> more = image::compressions_of(extension);
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

CLI::Validator page_number() {
  return CLI::Validator(
      [](std::string& text) {
        if (text == "all" || whole_number(1, 1 << 30)(text).empty()) return std::string();
        return fmt::format("'{}' must be a page counted from 1, or all", text);
      },
      "");
}

std::vector<std::string> border_words() {
  std::vector<std::string> words;
  for (int mode = 0; mode <= static_cast<int>(BorderMode::valid); ++mode)
    words.emplace_back(name(static_cast<BorderMode>(mode)));
  words.front() += ':';  // constant:V
  return words;
}

}  // namespace

void add_filter(CLI::App& app, Body& body) {
  const auto options = std::make_shared<FilterOptions>();
  CLI::App* const command = app.add_subcommand("filter", "filter image files");
  command->footer(
      "Examples:\n"
      "  omniconv filter in.jpg out.png --kernel gaussian:9,1.5\n"
      "  omniconv filter scan.tif edges.tif --kernel sobel-x --depth f32\n"
      "  omniconv filter in.png out.png --kernel @mask.txt --border reflect101 --bias 0.5 --scale 0.25\n"
      "  omniconv filter in.png out.png --kernel \"3x3: 0,-1,0, -1,5,-1, 0,-1,0\"\n"
      "  omniconv filter *.jpg --into blurred --kernel blur:2\n"
      "  cat in.png | omniconv filter - - --kernel sharpen > sharp.png");
  command
      ->add_option("FILES", options->files.files,
                   "IN OUT: the image to read and the one to write, whose extension chooses the format; may be IN "
                   "itself; - is the standard input or output. With --into: any number of images to read")
      ->type_name("");
  command
      ->add_option("--into", options->files.into,
                   "a folder: each input becomes a file of its name there; those that fail are named, the others done")
      ->type_name("DIR")
      ->check(not_empty());
  command
      ->add_option("--format", options->files.format,
                   "an extension, such as png: the format of - as the output, and with --into; the input's by default")
      ->type_name("EXT")
      ->check(not_empty());
  const std::vector<std::string> kernels = kernel_words(), borders = border_words();
  command
      ->add_option(
          "--kernel,-k", options->kernel,
          "a name with arguments (--list-kernels); @FILE: a text matrix, CSV or .npy; or the matrix itself, as "
          "\"3x3: 0,-1,0, -1,5,-1, 0,-1,0\" (WIDTHxHEIGHT, then row by row)")
      ->type_name("KERNEL")
      ->check(not_empty())
      ->check(known_words({kernels.begin(), kernels.end()}));
  command->add_flag("--list-kernels", options->list_kernels, "show the named kernels");
  command->add_flag("--print-kernel", options->print_kernel, "show the weights");
  command->add_option("--border", options->border, "constant:V, replicate, reflect, reflect101, wrap or valid")
      ->capture_default_str()
      ->check(not_empty())
      ->check(known_words({borders.begin(), borders.end()}));
  command->add_flag("--correlate", options->correlate, "the kernel as written (the default)");
  command->add_flag("--convolve", options->convolve, "true convolution: the kernel turned by 180 degrees");
  command->add_option("--anchor", options->anchor, "the kernel's tap that meets the pixel; the middle by default")
      ->type_name("X,Y")
      ->check(not_empty());
  command->add_option("--scale", options->job.scale, "the sum is multiplied by it")
      ->capture_default_str()
      ->check(finite_number());
  command->add_option("--bias", options->job.bias, "and this is added, in stored pixel values")
      ->capture_default_str()
      ->check(finite_number());
  command->add_flag("--normalize", options->normalize, "divide the weights by their sum");
  command
      ->add_option("--depth", options->depth, "of the output: u8, u16, s16, s32, f16, f32, f64; the input's by default")
      ->check(not_empty())
      ->check(known_words({depth_words.begin(), depth_words.end()}));
  command->add_flag("--rescale", options->job.rescale, "map white to white when the depth changes");
  command
      ->add_option("--alpha", options->alpha,
                   "an opacity channel: premultiply colours by it while filtering, ignore (copy) it, filter it like "
                   "the colours, or drop it")
      ->capture_default_str()
      ->check(not_empty())
      ->check(known_words({alpha_words.begin(), alpha_words.end()}));
  command
      ->add_option("--page", options->files.page,
                   "of a file with several, counted from 1; all: every one, into one .tif or into numbered files")
      ->type_name("N|all")
      ->check(page_number())
      ->check(known_words({"all"}));
  command
      ->add_option("--quality", options->job.quality,
                   "of .jpg, .webp and TIFF's compression jpeg, 1 to 100; 95 by default")
      ->check(whole_number(1, 100));
  command
      ->add_option("--compression", options->job.compression,
                   "of .tif: none, lzw, zip, packbits or jpeg (the input's, or none, by default); of .png: 0 (fast) to "
                   "9 (small), 6 by default; "
                   "of .webp: lossless")
      ->type_name("NAME")
      ->check(not_empty())
      ->check(known_words(compression_words()));
  command->add_option("--max-memory", options->memory, "for strips, codecs and workspace")
      ->capture_default_str()
      ->check(not_empty());
  command
      ->add_option("--device-memory", options->device_memory,
                   "of a GPU, for strips, as in 512M; what is free by default")
      ->type_name("SIZE")
      ->check(not_empty());
  command
      ->add_option("--strip-rows", options->job.strip_rows,
                   "output rows worked on at a time; 0: chosen from the memory")
      ->check(whole_number(0, std::int64_t{1} << 40));
  command->add_option("--solver", options->choice.solver, "auto, or a solver's id")
      ->capture_default_str()
      ->check(not_empty())
      ->check(known_words(with_solver_ids({"auto"}, "filter2d")));
  add_choice(*command, options->choice, "filter2d");
  command->add_flag("--explain", options->explain, "show the plan and the candidates");
  command->add_flag("--dry-run", options->dry_run, "plan and check, write nothing");
  add_common(*command, options->common);
  command->callback([options, &body] {
    body = [options] {
      if (options->list_kernels || (options->print_kernel && options->files.files.empty())) return list(*options);
      refuse_report_over_images(options->files, options->common.json);
      return with_report(options->common.json, "omniconv-filter/1", [&](Json& json) { return run(*options, json); });
    };
  });
}

}  // namespace omniconv::cli
