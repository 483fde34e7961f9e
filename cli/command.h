// The command: one program, one subcommand a use.
#pragma once

#include <string>
#include <vector>

namespace omniconv::cli {

// Returns the exit status.
int run_command(int argc, char** argv);

// What --help is made of, for the manual page and for completion (cli/pages/).
struct OptionText {
  std::vector<std::string> names = {};  // "-k", "--kernel"; of an operand the one that stands in the usage, "IN"
  std::string value = {};               // "KERNEL"; empty for a flag
  std::string default_value = {};       // empty where there is none
  std::string meaning = {};
  std::vector<std::string> words =
      {};                // that it takes, as far as they are known; one that ends with ":" or "@" goes on
  bool is_list = false;  // of words with commas between them
  bool is_repeated = false, is_required = false;
};
struct CommandText {
  std::string name = {}, meaning = {};
  std::string examples = {};  // and what else is said at the end, a line each; examples are indented
  std::vector<OptionText> options = {}, operands = {};
  std::vector<CommandText> commands = {};
};
CommandText command_text();

// A name and what it means: exit statuses, variables of the environment that are read, files that are kept.
struct NameText {
  std::string name, meaning;
};
std::vector<NameText> exit_statuses();
std::vector<NameText> environment_variables();
std::vector<NameText> kept_files();

}  // namespace omniconv::cli
