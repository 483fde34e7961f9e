#include "command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "common.h"
#include "core/build_info.h"
#include "core/suggest.h"
#include "omniconv/error.h"

namespace omniconv::cli {
namespace {

constexpr int usage_status = 2, environment_status = 3, interrupted_status = 130;

int complain(const std::string& message, int status) {
  print_error(message);
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
  const std::size_t given = words.size();
  while (words.size() > 1 && words[1] == std::string_view("help")) words.erase(words.begin() + 1);
  if (words.size() < given || words.size() < 2) words.push_back("--help");
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
  if (std::error_code ignored; std::filesystem::exists(*option, ignored))
    return fmt::format("unknown option '{0}': the file of that name is written ./{0}", *option);
  const std::string unknown = option_name(*option);
  std::vector<std::string> names;
  for (const CLI::Option* known : command.get_options())
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string near = suggest(unknown, known);
  return fmt::format("unknown option '{}': {}{} shows the options of {}", unknown,
                     near.starts_with("did you") ? near + " " : "", help, command.get_name());
}

// CLI11 itself only says that a subcommand is required.
void refuse_unknown_command(const CLI::App& app, const std::vector<const char*>& words) {
  if (words[1][0] == '-') {
    const std::string option = option_name(words[1]);
    if (app.get_option_no_throw(option) != nullptr) return;
    throw bad_input(fmt::format("unknown option '{}' where a command is expected: omniconv --help shows them", option));
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), words[1]) != names.end()) return;
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw bad_input(fmt::format("unknown command '{}': {}", words[1], suggest(words[1], known)));
}

// Of `omniconv` itself, with all that it has.
std::unique_ptr<CLI::App> make_app(Body& body) {
  auto app = std::make_unique<CLI::App>("omniconv: convolution on any processor, with its exactness stated");
  app->set_version_flag("--version", fmt::format("omniconv {} ({})", build_version(), build_commit()));
  app->name("omniconv");
  app->require_subcommand(1);
  app->get_formatter()->column_width(34);
  add_devices(*app, body);
  add_filter(*app, body);
  add_run(*app, body);
  add_verify(*app, body);
  add_bench(*app, body);
  add_explain(*app, body);
  add_train(*app, body);
  add_evaluate(*app, body);
  add_predict(*app, body);
  add_export(*app, body);
  add_import(*app, body);
  return app;
}

OptionText text_of(CLI::Option& option) {
  OptionText text{.meaning = option.get_description(), .words = known_words_of(option)};
  if (option.get_positional()) {
    text.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  }
  if (option.get_type_size_max() > 0) text.value = option.get_type_name();
  text.default_value = option.get_default_str();
  text.is_list = option.get_delimiter() != '\0';
  text.is_repeated = option.get_expected_max() > 1;
  text.is_required = option.get_required();
  return text;
}

CommandText text_of(CLI::App& app) {
  CommandText text{.name = app.get_name(), .meaning = app.get_description(), .examples = app.get_footer()};
  for (CLI::Option* const option : app.get_options())
    (option->get_positional() ? text.operands : text.options).push_back(text_of(*option));
  for (CLI::App* const command : app.get_subcommands([](CLI::App*) { return true; }))
    text.commands.push_back(text_of(*command));
  return text;
}

}  // namespace

CommandText command_text() {
  Body body;
  CommandText text = text_of(*make_app(body));
  // spelt_out() takes it for --help.
  OptionText which{.names = {"COMMAND"}, .meaning = "the one whose options are shown"};
  for (const CommandText& command : text.commands) which.words.push_back(command.name);
  text.commands.push_back({.name = "help", .meaning = "show the commands, or the options of one", .operands = {which}});
  return text;
}

std::vector<NameText> exit_statuses() {
  return {{"0", "done"},
          {"1", "a check failed, every problem was refused, or a file of several failed"},
          {std::to_string(usage_status), "usage or bad input"},
          {std::to_string(environment_status), "the device or the environment failed"},
          {std::to_string(interrupted_status), "interrupted"}};
}

int run_command(int argc, char** argv) {
  hold_standard_streams();
  Body body;
  std::unique_ptr<CLI::App> app;
  try {
    app = make_app(body);
    const std::vector<const char*> words = spelt_out(argc, argv);
    refuse_unknown_command(*app, words);
    watch_interrupts();  // before help is written, which a file-size limit may cut off
    app->parse(static_cast<int>(words.size()), words.data());
    return flushed(body());
  } catch (const CLI::Success& success) {
    return flushed(app->exit(success));  // --help, --version
  } catch (const CLI::ParseError& error) {
    return complain(explained(*app, error), usage_status);
  } catch (const Error& error) {
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

}  // namespace omniconv::cli
