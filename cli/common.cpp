#include "common.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <filesystem>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <sstream>

#include "command.h"
#include "devices/device.h"
#include "omniconv/dataset.h"
#include "omniconv/error.h"

namespace omniconv::cli {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

constexpr const char* known_words_name = "known words";

}  // namespace

Environment read_environment() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  Environment environment;
  environment.colour = isatty(STDOUT_FILENO) == 1 && variable("NO_COLOR").empty();
  environment.progress = isatty(STDERR_FILENO) == 1;
  // The XDG Base Directory Specification: a relative path is as good as none.
  if (std::getenv("OMNICONV_CACHE_DIR") != nullptr)
    environment.program_cache = variable("OMNICONV_CACHE_DIR");
  else if (variable("XDG_CACHE_HOME").starts_with('/'))
    environment.program_cache = variable("XDG_CACHE_HOME") + "/omniconv";
  else if (variable("HOME").starts_with('/'))
    environment.program_cache = variable("HOME") + "/.cache/omniconv";
  environment.data = std::getenv("OMNICONV_DATA_DIR") != nullptr ? variable("OMNICONV_DATA_DIR") : bundled_datasets();
  return environment;
}

std::vector<NameText> environment_variables() {
  return {{"NO_COLOR", "set and not empty: no colours on a terminal"},
          {"OMNICONV_CACHE_DIR", "the folder of compiled programs; set and empty: none are kept"},
          {"OMNICONV_DATA_DIR", "the folder of the data sets that come along; else share/omniconv beside the library"},
          {"XDG_CACHE_HOME, HOME", "where that folder is otherwise (FILES)"},
          {"TMPDIR", "where a standard input or output is kept that can be read or written only once; else /tmp"}};
}

std::vector<NameText> kept_files() {
  return {{"$XDG_CACHE_HOME/omniconv, or else ~/.cache/omniconv",
           "compiled programs of GPU devices, 256 MiB at most; they may be removed at any time"}};
}

std::string one_line(const std::string& message) {
  std::string line;
  for (const char c : message) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

void print_error(const std::string& message) {
  std::fputs(fmt::format("omniconv: error: {}\n", one_line(message)).c_str(), stderr);
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [=](const std::string& text) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
          return std::string();
        return fmt::format("'{}' must be a whole number from {} to {}", text, least, most);
      },
      "");
}

CLI::Validator finite_number(double least) {
  return CLI::Validator(
      [=](const std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value >= least)
          return std::string();
        return fmt::format("'{}' must be a finite decimal number{}", text,
                           least > -1e300 ? fmt::format(", at least {}", least) : "");
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator([](const std::string& text) { return text.empty() ? "'' must not be empty" : std::string(); },
                        "");
}

CLI::Validator known_words(const std::vector<std::string_view>& words) {
  const CLI::Validator named([](const std::string&) { return std::string(); }, fmt::format("{}", fmt::join(words, " ")),
                             known_words_name);
  return named.active(false);
}

std::vector<std::string> known_words_of(CLI::Option& option) try {
  const CLI::Validator named = *option.get_validator(known_words_name);
  std::istringstream words(named.active(true).get_description());
  return {std::istream_iterator<std::string>(words), {}};
} catch (const CLI::OptionNotFound&) {
  return {};
}

void add_common(CLI::App& app, Common& common) {
  app.add_option("--device", common.device, "auto, cpu, gpu (the first), cuda[:I] or opencl[:PLATFORM.DEVICE]")
      ->capture_default_str()
      ->check(not_empty())
      ->check(known_words({"auto", "gpu", devices::cpu_backend().prefix, devices::cuda_backend().prefix,
                           devices::opencl_backend().prefix}));
  app.add_option("--threads", common.threads, "threads of the CPU device; 0: one per core")
      ->capture_default_str()
      ->check(whole_number(0, 1 << 16));
  app.add_option("--json", common.json, "write the result as JSON to FILE (- for stdout)")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_flag("--quiet,-q", common.quiet, "print nothing but errors");
}

ContextOptions context_options(const Common& common) {
  ContextOptions options{.device = common.device, .threads = common.threads};
  options.quick_start = false;  // a process of the command runs once
  options.program_cache = read_environment().program_cache;
  if (!common.quiet)
    options.warn = [](const std::string& message) {
      static std::once_flag once;
      std::call_once(once, [&] {
        fmt::print(stderr, "omniconv: warning: {}; OMNICONV_CACHE_DIR names another folder, or none if it is empty\n",
                   one_line(message));
      });
    };
  return options;
}

std::int64_t parse_bytes(std::string_view option, std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  std::string_view unit = std::string_view(copy).substr(static_cast<std::size_t>(end - copy.c_str()));
  if (unit.ends_with("iB"))
    unit.remove_suffix(2);
  else if (unit.ends_with("B"))
    unit.remove_suffix(1);
  static constexpr std::string_view units = "KMGT";
  double factor = 1;
  bool known = unit.empty();
  if (unit.size() == 1) {
    const auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
    if (const auto at = units.find(upper); at != std::string_view::npos) {
      known = true;
      factor = std::ldexp(1.0, 10 * (static_cast<int>(at) + 1));
    }
  }
  if (end == copy.c_str() || !known || !(number >= 1) || number * factor > 0x1p62)
    throw bad_input(fmt::format(
        "{} '{}' is no size in bytes: write a number from 1 with K, M, G or T behind it, as in 512M", option, text));
  return static_cast<std::int64_t>(number * factor);
}

std::string print_bytes(std::int64_t bytes) {
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return *unit == 'B' ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, unit);
}

bool interrupted() {
  return interrupt_seen != 0;
}

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupt_seen = 1; };
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESETHAND;  // the second one ends the program at once
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    const bool is_kept = signal == SIGHUP && before.sa_handler == SIG_IGN;  // as nohup asks
    if (!is_kept) sigaction(signal, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of the write, as a full disk is
}

void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the lowest number that is free
}

std::string place_of(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored).string();
}

bool is_same_file(const std::string& a, const std::string& b) {
  if (a == "-" || b == "-" || a.empty() || b.empty()) return false;
  return place_of(a) == place_of(b);
}

}  // namespace omniconv::cli
