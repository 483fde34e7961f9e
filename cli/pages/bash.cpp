#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pages.h"

namespace omniconv::cli {
namespace {

constexpr std::string_view head = R"(# bash completion of omniconv, made from the options that it has.

_omniconv() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  local options='' words='' list='' files='' begun='' IFS=$' \t\n'
  COMPREPLY=()
  # bash takes --option=value, name:argument and @file apart; what is completed of the last has its @ all the same.
  if [[ $current == @* || $before == @ ]]; then
    mapfile -t COMPREPLY < <(compgen -P @ -f -- "${current#@}")
    if ((${#COMPREPLY[@]} == 1)) && [[ -d ${COMPREPLY[0]#@} ]]; then
      COMPREPLY=("${COMPREPLY[0]}/")
      compopt -o nospace 2>/dev/null  # outside of completion there is nothing to set
    fi
    return 0
  elif [[ $current == = ]]; then
    current=''
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $current == : || $before == : ]]; then
    return
  fi
  ((COMP_CWORD > 1)) || command='' before=''
  case $command in
)";

constexpr std::string_view tail = R"(    *) return ;;
  esac
  [[ $current == -* ]] && words=$options list='' files=''
  if [[ $files ]]; then
    compopt -o default 2>/dev/null
    return
  fi
  if [[ $list && $current == *,* ]]; then
    begun=${current%,*},
    current=${current##*,}
  fi
  mapfile -t COMPREPLY < <(compgen -P "$begun" -W "$words" -- "$current")
  [[ ${COMPREPLY[0]-} == *[:@] ]] && compopt -o nospace 2>/dev/null
  return 0
}

complete -F _omniconv omniconv
)";

std::string option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return joined(names, " ");
}

// What the shell is to do where such a value is expected.
std::string to_do(Values values, const std::vector<std::string>& words, bool is_list) {
  switch (values) {
    case Values::words: return fmt::format("words='{}'{}", joined(words, " "), is_list ? " list=yes" : "");
    case Values::files: return "files=yes";
    case Values::unknown: break;
  }
  return "words=''";
}

// What follows the options that take a value, those of one kind together. Of a value that is not known, nothing is
// offered, no option either.
std::string branch(const CommandText& command) {
  std::vector<std::pair<std::string, std::string>> cases;  // what is to do, and after which options
  for (const OptionText& option : command.options) {
    if (option.value.empty()) continue;
    const Values values = values_of(option);
    const std::string what = values == Values::unknown ? "return" : to_do(values, option.words, option.is_list);
    const std::string names = joined(option.names, " | ");
    const auto known = std::find_if(cases.begin(), cases.end(), [&](const auto& one) { return one.first == what; });
    if (known == cases.end())
      cases.emplace_back(what, names);
    else
      known->second += " | " + names;
  }
  std::string text = fmt::format("    {})\n      options='{}'\n", command.name, option_names(command));
  text += "      case $before in\n";
  for (const auto& [what, names] : cases) text += fmt::format("        {}) {} ;;\n", names, what);
  text += fmt::format("        *) {} ;;\n      esac\n      ;;\n",
                      to_do(operand_values(command), operand_words(command), false));
  return text;
}

}  // namespace

std::string bash_completion(const CommandText& command) {
  std::vector<std::string> names;
  for (const CommandText& one : command.commands) names.push_back(one.name);
  std::string text(head);
  text += fmt::format("    '') options='{}' words='{}' ;;\n", option_names(command), joined(names, " "));
  for (const CommandText& one : command.commands) text += branch(one);
  text += tail;
  return text;
}

}  // namespace omniconv::cli
