#include <fmt/format.h>

#include "pages.h"

namespace omniconv::cli {
namespace {

constexpr std::string_view head = R"(#compdef omniconv
# zsh completion of omniconv, made from the options that it has.

# Words; those that end with : or @ go on, and @ names a file.
_omniconv_words() {
  compset -P @ && { _files; return }
  local -a whole=(${@:#*[:@]}) begun=(${(M)@:#*[:@]})
  local added=1
  (( $#whole )) && compadd -- $whole && added=0
  (( $#begun )) && compadd -S '' -- $begun && added=0
  return added
}

# A list of words with commas between them.
_omniconv_list() {
  compset -P '*,'
  compadd -qS , -- $@
}

_omniconv() {
  local curcontext=$curcontext state line
  typeset -A opt_args
)";

constexpr std::string_view tail = R"(  esac
}

_omniconv "$@"
)";

// Within single quotes, with a backslash before each of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string all;
  for (const char c : text) {
    if (c == '\'')
      all += "'\\''";
    else
      all += special.find(c) == std::string_view::npos ? std::string(1, c) : std::string{'\\', c};
  }
  return all;
}

// What completes such a value.
std::string action(Values values, const std::vector<std::string>& words, bool is_list) {
  switch (values) {
    case Values::words:
      return fmt::format(" {} {}", is_list ? "_omniconv_list" : "_omniconv_words", escaped(joined(words, " "), ":\\"));
    case Values::files: return "_files";
    case Values::unknown: break;
  }
  return " ";
}

// As _arguments takes it: '(-k --kernel)'{-k+,--kernel=}'[meaning]:VALUE:action'.
std::string option_line(const OptionText& option) {
  std::vector<std::string> forms;
  for (const std::string& name : option.names)
    forms.push_back(option.value.empty() ? name : name + (name.starts_with("--") ? "=" : "+"));
  const std::string excluded = option.is_repeated ? "*" : fmt::format("({})", joined(option.names, " "));
  const std::string value = option.value.empty() ? ""
                                                 : fmt::format(":{}:{}", escaped(option.value, ":\\"),
                                                               action(values_of(option), option.words, option.is_list));
  return fmt::format(" \\\n    '{}'{}'[{}]{}'", excluded,
                     forms.size() > 1 ? fmt::format("{{{}}}", joined(forms, ",")) : forms.front(),
                     escaped(option.meaning, "]\\"), value);
}

std::string branch(const CommandText& command) {
  std::string text = fmt::format("  {})\n    _arguments", command.name);
  for (const OptionText& option : command.options) text += option_line(option);
  if (!command.operands.empty())
    text += fmt::format(" \\\n    '*:{}:{}'", escaped(command.operands.front().names.front(), ":\\"),
                        action(operand_values(command), operand_words(command), false));
  return text + "\n    ;;\n";
}

}  // namespace

std::string zsh_completion(const CommandText& command) {
  std::string text(head);
  text += "  _arguments -C";
  for (const OptionText& option : command.options) text += option_line(option);
  text +=
      " \\\n    '1:command:->command' '*::argument:->argument'\n  [[ $state == command ]] && {\n    local -a "
      "commands=(\n";
  for (const CommandText& one : command.commands)
    text += fmt::format("      '{}:{}'\n", one.name, escaped(one.meaning, "\\"));
  text += "    )\n    _describe command commands\n    return\n  }\n  [[ $state == argument ]] && case $words[1] in\n";
  for (const CommandText& one : command.commands) text += branch(one);
  text += tail;
  return text;
}

}  // namespace omniconv::cli
