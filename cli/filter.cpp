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

#include "common.h"
#include "core/suggest.h"
#include "image/image.h"
#include "image/kernel_text.h"
#include "image/pipeline.h"
#include "omniconv/error.h"
#include "operations/filter2d/weights.h"
#include "problems.h"
#include "report.h"

namespace omniconv::cli {
namespace {

struct FilterOptions {
  Common common;
  ChoiceInput choice;
  image::FilterJob job;
  std::string kernel, border = "replicate", anchor, depth, alpha = "premultiply", memory = "1G", device_memory;
  bool correlate = false, convolve = false, normalize = false;
  bool list_kernels = false, print_kernel = false, explain = false, dry_run = false;
};

// One line on a terminal, drawn again at most ten times a second, and only for work of more than a second.
class ProgressBar {
 public:
  explicit ProgressBar(bool enabled) : enabled_(enabled) {}
  ~ProgressBar() {
    if (drawn_) fmt::print(stderr, "\r\x1b[K");
  }

  void update(std::int64_t rows, std::int64_t all_rows, std::int64_t columns) {
    if (!enabled_) return;
    const double elapsed = seconds(start_);
    if (elapsed < 1 || (drawn_ && seconds(last_) < 0.1)) return;
    const double share = static_cast<double>(rows) / static_cast<double>(all_rows);
    const double rate = static_cast<double>(rows) * static_cast<double>(columns) / elapsed / 1e6;
    fmt::print(stderr, "\r\x1b[K{}", line(share, rate, elapsed * (1 - share) / share, terminal_columns(stderr)));
    std::fflush(stderr);
    drawn_ = true;
    last_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // What a terminal of so many columns has room for (0: not known), with its last column left free: a line that fills
  // it would wrap.
  static std::string line(double share, double rate, double left, int terminal) {
    const int room = terminal > 0 ? terminal - 1 : 79;
    constexpr int widest = 30, narrowest = 5;
    const std::string text = fmt::format("{:3.0f} %  {:.0f} Mpixel/s  {:.0f} s left", 100 * share, rate, left);
    const int bar = std::min(widest, room - static_cast<int>(text.size()) - 3);
    if (bar < narrowest)
      return fmt::format("{:3.0f} %  {:.0f} s left", 100 * share, left).substr(0, static_cast<std::size_t>(room));
    const int full = static_cast<int>(share * bar);
    return fmt::format("[{:=<{}}{:<{}}] {}", "", full, "", bar - full, text);
  }

  static double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

  bool enabled_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
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

// The report would replace the image, or what it was made from.
void refuse_report_over_image(const FilterOptions& options) {
  if (options.common.json.empty() || options.common.json == "-") return;
  for (const std::string& image : {options.job.input, options.job.output})
    if (is_same_file(image, options.common.json))
      throw bad_input(fmt::format("--json {} is the image {}: name another file", options.common.json, image));
}

// What needs no image: the named kernels, or one's weights.
int list(const FilterOptions& options) {
  const bool print = options.common.json != "-";
  return with_report(options.common.json, "omniconv-kernels/1", [&](Json& json) {
    return options.list_kernels ? list_kernels(print, json) : list_weights(options.kernel, print, json);
  });
}

void check_paths(const FilterOptions& options) {
  if (options.job.input.empty() || options.job.output.empty())
    throw bad_input("filter needs an input and an output file: omniconv filter IN OUT --kernel K");
  refuse_report_over_image(options);
}

// Finding a GPU and opening it takes longer than the CPU needs for so few multiply-adds: some thirty milliseconds of
// one core. Where a solver is asked for, its device may be, too.
bool is_small(const FilterOptions& options) {
  constexpr double few = 1e8;
  if (options.choice.solver != "auto" || !options.choice.allow.empty() || !options.choice.deny.empty()) return false;
  const image::FilterJob& job = options.job;
  const image::ImageInfo input = image::open_image(job.input, job.page, job.max_memory_bytes)->info();
  const auto taps = static_cast<double>(job.kernel.weights.size() + job.kernel.second_weights.size());
  return static_cast<double>(input.h) * static_cast<double>(input.w) * static_cast<double>(input.c) * taps <= few;
}

int run(FilterOptions& options, Json& json) {
  complete(options);
  std::FILE* const text = options.common.json == "-" ? stderr : stdout;  // the report alone goes to stdout
  if (options.print_kernel) print_weights(text, options.job.kernel);
  const auto start = std::chrono::steady_clock::now();
  if (options.common.device == "auto" && is_small(options)) options.common.device = "cpu";
  const Context context(context_options(options.common));
  const std::chrono::duration<double> context_seconds = std::chrono::steady_clock::now() - start;
  image::FilterReport report;
  std::vector<Candidate> explained;
  if (options.dry_run || options.explain) {
    report = image::plan_filter(context, options.job);
    if (!options.common.quiet) print_plan(text, report, context);
    if (options.explain) explained = candidates(report, context, options.job.solver);
    if (options.explain && !options.common.quiet) print_candidates(text, explained);
  }
  if (!options.dry_run) {
    ProgressBar bar(read_environment().progress && !options.common.quiet);
    report = image::filter_file(context, options.job, [&](std::int64_t rows, std::int64_t all, std::int64_t columns) {
      bar.update(rows, all, columns);
      return !interrupted();
    });
  }
  add_to(json, report, context.device(), context_seconds.count());
  if (options.explain) add_to(json, explained);
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
  CLI::App* const command = app.add_subcommand("filter", "filter an image file");
  command->footer(
      "Examples:\n"
      "  omniconv filter in.jpg out.png --kernel gaussian:9,1.5\n"
      "  omniconv filter scan.tif edges.tif --kernel sobel-x --depth f32\n"
      "  omniconv filter in.png out.png --kernel @mask.txt --border reflect101 --bias 0.5 --scale 0.25\n"
      "  omniconv filter in.png out.png --kernel \"3x3: 0,-1,0, -1,5,-1, 0,-1,0\"");
  command->add_option("IN", options->job.input, "the image to read");
  command->add_option("OUT", options->job.output,
                      "the image to write; its extension chooses the format; may be IN itself");
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
  command->add_option("--page", options->job.page, "of a file with several, counted from 1")
      ->check(whole_number(1, 1 << 30));
  command->add_option("--quality", options->job.quality, "of .jpg and .webp, 1 to 100; 95 by default")
      ->check(whole_number(1, 100));
  command
      ->add_option("--compression", options->job.compression,
                   "of .tif: none, lzw, zip, packbits or jpeg; of .png: 0 (fast) to 9 (small); of .webp: lossless")
      ->type_name("NAME")
      ->check(not_empty());
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
      if (options->list_kernels || (options->print_kernel && options->job.input.empty())) return list(*options);
      check_paths(*options);
      return with_report(options->common.json, "omniconv-filter/1", [&](Json& json) { return run(*options, json); });
    };
  });
}

}  // namespace omniconv::cli
