// Writes the manual page and the completion scripts, while omniconv is built.
//
//   omniconv_pages FOLDER
#include "pages.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>

namespace omniconv::cli {

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string all;
  for (const std::string& word : words) {
    if (!all.empty()) all += between;
    all += word;
  }
  return all;
}

Values values_of(const OptionText& option) {
  if (!option.words.empty()) return Values::words;
  return option.value == "FILE" || option.value == "DIR" ? Values::files : Values::unknown;
}

Values operand_values(const CommandText& command) {
  if (command.operands.empty()) return Values::unknown;
  return operand_words(command).empty() ? Values::files : Values::words;
}

std::vector<std::string> operand_words(const CommandText& command) {
  std::vector<std::string> all;
  for (const OptionText& operand : command.operands) all.insert(all.end(), operand.words.begin(), operand.words.end());
  return all;
}

}  // namespace omniconv::cli

namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace omniconv::cli;
  if (argc != 2) throw std::runtime_error("name the folder to write to: omniconv_pages FOLDER");
  const std::string folder = argv[1];
  const CommandText command = command_text();
  write(folder + "/omniconv.1", manual_page(command));
  write(folder + "/omniconv.bash", bash_completion(command));
  write(folder + "/_omniconv", zsh_completion(command));
} catch (const std::exception& error) {
  std::fprintf(stderr, "omniconv_pages: %s\n", error.what());
  return 1;
}
