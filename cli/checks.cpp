#include "checks.h"

#include <fmt/format.h>

namespace omniconv::cli {

CLI::App* add_command(CLI::App& app, const char* name, const char* meaning, const char* examples, Checks& checks) {
  CLI::App* const command = app.add_subcommand(name, meaning);
  command->footer(std::string("Examples:\n") + examples);
  add_common(*command, checks.common);
  add_problems(*command, checks.input);
  return command;
}

bool prints(const Common& common) {
  return !common.quiet && common.json != "-";
}

void stop_if_interrupted() {
  if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
}

void Tally::count(checking::Status status) {
  passed += status == checking::Status::ok;
  failed += status == checking::Status::failed;
  refused += status == checking::Status::refused;
}

std::string Tally::text() const {
  return fmt::format("{} passed, {} failed, {} refused", passed, failed, refused);
}

}  // namespace omniconv::cli
