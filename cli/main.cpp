// The command: one program, one subcommand a use. Exit status: 0 done, 1 a check failed, 2 usage or bad input, 3 the
// device or the environment failed, 130 interrupted.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

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

// CLI11 itself only says that a subcommand is required.
void refuse_unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw omniconv::bad_input(fmt::format("unknown command '{}': {}", argv[1], omniconv::suggest(argv[1], known)));
}

}  // namespace

int main(int argc, char** argv) {
  using omniconv::ErrorKind;
  CLI::App app("omniconv: convolution on any processor, with its exactness stated");
  app.set_version_flag("--version",
                       fmt::format("omniconv {} ({})", omniconv::build_version(), omniconv::build_commit()));
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
    refuse_unknown_command(app, argc, argv);
    app.parse(argc, argv);
    omniconv::cli::watch_interrupts();
    const int status = body();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return complain("stdout takes no more output", environment_status);
    return status;
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    return complain(fmt::format("{}; omniconv --help shows what there is", error.what()), usage_status);
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
    return complain(error.what(), environment_status);
  }
}
