#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <memory>

#include "core/suggest.h"
#include "filter_options.h"
#include "image/image.h"
#include "image/kernel_text.h"
#include "omniconv/error.h"
#include "operations/filter2d/weights.h"

namespace omniconv::cli {
namespace {

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
      const bool lists = options->list_kernels || (options->print_kernel && options->files.files.empty());
      return lists ? run_list(*options) : run_filter(*options);
    };
  });
}

}  // namespace omniconv::cli
