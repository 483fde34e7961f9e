#include <optional>
#include <vector>

#include "omniconv/problem.h"
#include "targets.h"

namespace omniconv::fuzz {
namespace {

void check_round_trip(const Problem& problem) {
  const std::string printed = to_text(problem);
  require(printed.size() <= 4096 && printed.find('\n') == std::string::npos,
          "a problem prints as one line: " + printed);
  validate(problem);
  const Problem again = parse_problem(printed);
  require(again == problem, "the printed problem is the same problem: " + printed);
  require(again.name() == problem.name(), "the name is kept: " + printed);
  require(to_text(again) == printed, "printing is canonical: " + printed + " became " + to_text(again));
}

}  // namespace

void problem_text(std::string_view content) {
  std::optional<Problem> one;
  if (!refused([&] { one = parse_problem(content); })) check_round_trip(*one);

  std::vector<Problem> problems;
  if (refused([&] { problems = parse_problem_list(content, "list"); })) return;
  std::string printed;
  for (const Problem& problem : problems) {
    check_round_trip(problem);
    printed += to_text(problem) + "\n";
  }
  require(parse_problem_list(printed, "printed") == problems, "a printed list is the same list");
}

}  // namespace omniconv::fuzz
