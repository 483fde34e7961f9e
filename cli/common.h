// What the subcommands share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/context.h"

namespace omniconv::cli {

// The environment, read in one function.
struct Environment {
  bool colour = false;        // stdout is a terminal and NO_COLOR is not set
  bool progress = false;      // stderr is a terminal
  std::string program_cache;  // OMNICONV_CACHE_DIR, else omniconv in the user's cache folder; empty: none
  std::string data;           // OMNICONV_DATA_DIR, else share/omniconv beside the library; empty: none
};
Environment read_environment();

// Without what would break a line, whatever a library or the name of a file put into it.
std::string one_line(const std::string& message);

// The line on stderr. Where nobody can be told, the status says it.
void print_error(const std::string& message);

// Validators, since CLI11 takes an empty text for 0, reads 0x10, and lets nan pass: a whole number from `least` to
// `most`; a finite decimal number; a text that is not empty.
CLI::Validator whole_number(std::int64_t least, std::int64_t most);
CLI::Validator finite_number(double least = -1.7976931348623157e308);
CLI::Validator not_empty();

// The words that an option takes, for its completion: as a validator that checks nothing, and that --help does not
// show. One that ends with ":" or "@" goes on.
CLI::Validator known_words(const std::vector<std::string_view>& words);
std::vector<std::string> known_words_of(CLI::Option& option);

// Options that every subcommand takes.
struct Common {
  std::string device = "auto";
  int threads = 0;
  std::string json;
  bool quiet = false;
};
void add_common(CLI::App& app, Common& common);
// For a context as the options and the environment say. The first warning of all contexts together is a line on stderr.
ContextOptions context_options(const Common& common);

// An option's "512M", "2G", "1.5GiB", plain bytes. Powers of 1024.
std::int64_t parse_bytes(std::string_view option, std::string_view text);
std::string print_bytes(std::int64_t bytes);

// Set by SIGINT, SIGTERM and SIGHUP.
bool interrupted();
void watch_interrupts();

// A standard stream that is closed would become the first file that is opened: each gets one on which every call fails.
void hold_standard_streams();

// Subcommands add themselves; the chosen one's body returns the exit status.
using Body = std::function<int()>;
void add_devices(CLI::App& app, Body& body);
void add_filter(CLI::App& app, Body& body);
void add_run(CLI::App& app, Body& body);  // and conv
void add_verify(CLI::App& app, Body& body);
void add_bench(CLI::App& app, Body& body);
void add_explain(CLI::App& app, Body& body);
void add_train(CLI::App& app, Body& body);
void add_evaluate(CLI::App& app, Body& body);
void add_predict(CLI::App& app, Body& body);
void add_export(CLI::App& app, Body& body);
void add_import(CLI::App& app, Body& body);

// Of a file that need not be there yet, behind all links.
std::string place_of(const std::string& path);
// Two names of one file, that may not be there yet; - and no name are none.
bool is_same_file(const std::string& a, const std::string& b);

}  // namespace omniconv::cli
