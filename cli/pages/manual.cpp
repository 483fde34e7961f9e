#include <fmt/format.h>

#include <sstream>

#include "core/build_info.h"
#include "omniconv/kernels.h"
#include "pages.h"

namespace omniconv::cli {
namespace {

// So that each character is printed as it is, and can be copied.
std::string escaped(std::string_view text) {
  std::string all;
  for (const char c : text) switch (c) {
      case '\\': all += "\\e"; break;
      case '-': all += "\\-"; break;
      case '\'': all += "\\(aq"; break;
      case '"': all += "\\(dq"; break;
      case '`': all += "\\(ga"; break;
      case '^': all += "\\(ha"; break;
      case '~': all += "\\(ti"; break;
      default: all += c;
    }
  return all;
}

std::string bold(std::string_view text) {
  return fmt::format("\\fB{}\\fR", escaped(text));
}
std::string italic(std::string_view text) {
  return fmt::format("\\fI{}\\fR", escaped(text));
}

// Lines of at most 78 characters where there are blanks to break at; each ends with a newline.
std::string wrapped(const std::string& text) {
  std::istringstream words(text);
  std::string all, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > 78) {
      all += line + "\n";
      line.clear();
    }
    // A period that begins a line would begin a macro.
    if (line.empty() && word.front() == '.') word.insert(0, "\\&");
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? all : all + line + "\n";
}

std::string section(std::string_view name) {
  return fmt::format(".SH {}\n", name);
}

std::string entry(const std::string& what, std::string_view meaning) {
  return ".TP\n" + what + "\n" + wrapped(escaped(meaning));
}

std::string entries(const std::vector<NameText>& all) {
  std::string text;
  for (const auto& [name, meaning] : all) text += entry(bold(name), meaning);
  return text;
}

std::string option_entry(const OptionText& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(bold(name));
  std::string what = joined(names, ", ");
  if (!option.value.empty()) what += " " + italic(option.value);
  const std::string default_value =
      option.default_value.empty() ? "" : fmt::format(" (default: {})", option.default_value);
  return entry(what, option.meaning + default_value);
}

// "omniconv filter [OPTIONS] [IN] [OUT]"
std::string usage(const CommandText& command) {
  std::string text = bold("omniconv " + command.name);
  if (!command.options.empty()) text += " [" + italic("OPTIONS") + "]";
  for (const OptionText& operand : command.operands) {
    const std::string name = italic(operand.names.front()) + (operand.is_repeated ? "..." : "");
    text += operand.is_required ? " " + name : " [" + name + "]";
  }
  return text;
}

// A line that is indented is an example, and printed as it is.
std::string examples(const std::string& lines) {
  std::istringstream all(lines);
  std::string text;
  bool are_examples = false;
  for (std::string line; std::getline(all, line);) {
    const bool is_example = line.starts_with("  ");
    if (is_example && !are_examples) text += ".PP\n.RS 4\n.nf\n";
    if (!is_example && are_examples) text += ".fi\n.RE\n";
    are_examples = is_example;
    text += is_example ? escaped(line.substr(2)) + "\n" : ".PP\n" + wrapped(escaped(line));
  }
  return text + (are_examples ? ".fi\n.RE\n" : "");
}

std::string command_section(const CommandText& command) {
  std::string text = section("\"omniconv " + command.name + "\"");
  text += wrapped(usage(command)) + ".PP\n" + wrapped(escaped(command.meaning));
  for (const OptionText& operand : command.operands) text += entry(italic(operand.names.front()), operand.meaning);
  for (const OptionText& option : command.options) text += option_entry(option);
  return text + examples(command.examples);
}

}  // namespace

std::string manual_page(const CommandText& command) {
  const std::string& meaning = command.meaning;
  std::string text = fmt::format(".TH OMNICONV 1 \"\" \"omniconv {}\" \"User Commands\"\n", build_version());
  text += section("NAME") + wrapped("omniconv \\- " + escaped(meaning.substr(meaning.find(": ") + 2)));
  text += section("SYNOPSIS");
  for (const CommandText& one : command.commands)
    text += (text.ends_with("SYNOPSIS\n") ? "" : ".br\n") + wrapped(usage(one));
  text += section("DESCRIPTION") + "Each use names a command:\n";
  for (const CommandText& one : command.commands) text += entry(bold(one.name), one.meaning);
  for (const OptionText& option : command.options) text += option_entry(option);
  for (const CommandText& one : command.commands) text += command_section(one);
  text += section("\"NAMED KERNELS\"");
  for (const KernelDescription& kernel : named_kernels()) text += entry(bold(kernel.usage), kernel.meaning);
  text += section("\"EXIT STATUS\"") + entries(exit_statuses());
  text += section("ENVIRONMENT") + entries(environment_variables());
  text += section("FILES") + entries(kept_files());
  text += section("\"SEE ALSO\"");
  text += wrapped("README.md and the documents that it names, docs/cli.md first, in the folder " +
                  italic("share/doc/omniconv") + " beside that of the command.");
  return text;
}

}  // namespace omniconv::cli
