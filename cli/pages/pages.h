// What is installed beside the command, and made from the description that --help prints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command.h"

namespace omniconv::cli {

// omniconv(1), in the language of man(7).
std::string manual_page(const CommandText& command);
// Completion scripts.
std::string bash_completion(const CommandText& command);
std::string zsh_completion(const CommandText& command);

// What may stand where an option's value, or an operand, is expected.
enum class Values { words, files, unknown };
Values values_of(const OptionText& option);
// Of a command's operands together. An operand without words is a file.
Values operand_values(const CommandText& command);
std::vector<std::string> operand_words(const CommandText& command);

std::string joined(const std::vector<std::string>& words, std::string_view between);

}  // namespace omniconv::cli
