// The command: one program, one subcommand a use. Exit status: 0 done, 1 a check failed, 2 usage or bad input, 3 the
// device or the environment failed, 130 interrupted.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "common.h"
#include "core/build_info.h"
#include "core/suggest.h"
#include "omniconv/error.h"

namespace {

constexpr int usage_status = 2, environment_status = 3, interrupted_status = 130;

int complain(const std::string& message, int status) {
  // Where nobody can be told, the status says it.
  std::fputs(fmt::format("omniconv: error: {}\n", omniconv::cli::one_line(message)).c_str(), stderr);
  return status;
}

int flushed(int status) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return complain("stdout takes no more output", environment_status);
  return status;
}

// `omniconv` alone and `omniconv help [COMMAND]` are --help.
std::vector<const char*> spelt_out(int argc, char** argv) {
  std::vector<const char*> words(argv, argv + argc);
  const bool help = words.size() > 1 && words[1] == std::string_view("help");
  if (help) words.erase(words.begin() + 1);
  if (help || words.size() < 2) words.push_back("--help");
  return words;
}

// Without the value behind its =.
std::string option_name(std::string_view word) {
  return std::string(word.substr(0, word.find('=')));
}

// What an option that is not there may have been, and whose help has them.
std::string explained(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string help =
      fmt::format("omniconv {}{}--help", chosen.empty() ? "" : command.get_name(), chosen.empty() ? "" : " ");
  const std::vector<std::string> left = app.remaining(true);
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError) || left.empty())
    return fmt::format("{}; {} shows what there is", error.what(), help);
  const auto option =
      std::find_if(left.begin(), left.end(), [](const std::string& word) { return word.starts_with('-'); });
  if (option == left.end())
    return fmt::format("unexpected argument '{}': {} shows what {} takes", left.front(), help, command.get_name());
  const std::string unknown = option_name(*option);
  std::vector<std::string> names;
  for (const CLI::Option* known : command.get_options())
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string near = omniconv::suggest(unknown, known);
  return fmt::format("unknown option '{}': {}{} shows the options of {}", unknown,
                     near.starts_with("did you") ? near + " " : "", help, command.get_name());
}

// CLI11 itself only says that a subcommand is required.
void refuse_unknown_command(const CLI::App& app, const std::vector<const char*>& words) {
  if (words[1][0] == '-') {
    const std::string option = option_name(words[1]);
    if (app.get_option_no_throw(option) != nullptr) return;
    throw omniconv::bad_input(
        fmt::format("unknown option '{}' where a command is expected: omniconv --help shows them", option));
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), words[1]) != names.end()) return;
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw omniconv::bad_input(fmt::format("unknown command '{}': {}", words[1], omniconv::suggest(words[1], known)));
}

}  // namespace

int main(int argc, char** argv) {
  using omniconv::ErrorKind;
  CLI::App app("omniconv: convolution on any processor, with its exactness stated");
  app.set_version_flag("--version",
                       fmt::format("omniconv {} ({})", omniconv::build_version(), omniconv::build_commit()));
  app.name("omniconv");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  omniconv::cli::Body body;
  try {
    omniconv::cli::add_devices(app, body);
    omniconv::cli::add_filter(app, body);
    omniconv::cli::add_run(app, body);
    omniconv::cli::add_verify(app, body);
    omniconv::cli::add_bench(app, body);
    omniconv::cli::add_explain(app, body);
    const std::vector<const char*> words = spelt_out(argc, argv);
    refuse_unknown_command(app, words);
    omniconv::cli::watch_interrupts();  // before help is written, which a file-size limit may cut off
    app.parse(static_cast<int>(words.size()), words.data());
    return flushed(body());
  } catch (const CLI::Success& success) {
    return flushed(app.exit(success));  // --help, --version
  } catch (const CLI::ParseError& error) {
    return complain(explained(app, error), usage_status);
  } catch (const omniconv::Error& error) {
    switch (error.kind()) {
      case ErrorKind::bad_input: return complain(error.what(), usage_status);
      case ErrorKind::environment:
      case ErrorKind::out_of_memory: return complain(error.what(), environment_status);
      case ErrorKind::interrupted: return complain(error.what(), interrupted_status);
    }
    return environment_status;
  } catch (const std::bad_alloc&) {
    return complain("the machine's memory is exhausted: use a smaller problem, or --max-memory", environment_status);
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return flushed(environment_status);
    return complain(error.what(), environment_status);
  }
}
