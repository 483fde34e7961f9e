// verify: what the solvers make of random data, against the references.
#include "checking/verify.h"

#include <fmt/format.h>

#include <memory>

#include "checking/host.h"
#include "checks.h"
#include "omniconv/filter2d.h"
#include "verify_random.h"

namespace omniconv::cli {
namespace {

using checking::Status;
using checking::VerifyResult;

void refuse_strips_of_others(const Checks& checks, const std::vector<Problem>& problems) {
  if (checks.strip_rows == 0) return;
  for (const Problem& problem : problems)
    if (!problem.is<Filter2dProblem>())
      throw bad_input(
          fmt::format("--strip-rows is of filter2d problems, and {} is none: leave one of them out", to_text(problem)));
}

void print_result(const VerifyResult& result) {
  const std::string figures = result.bound == 0 ? "bit-equal"
                                                : fmt::format("error {:.3g} of bound {:.3g}, in units of {},",
                                                              result.error, result.bound, result.unit);
  if (result.status == Status::ok)
    fmt::print("  ok      {:<30} {} over {} elements\n", result.solver, figures, result.checked);
  else
    fmt::print("  {:<7} {:<30} {}\n", name(result.status), result.solver, result.reason);
  std::fflush(stdout);
}

int run_verify(const Checks& checks, Json& json, const Keep& keep) {
  const std::vector<Problem> problems = read_problems(checks.input);
  refuse_strips_of_others(checks, problems);
  const Context context(context_options(checks.common));
  set_device(json, context.device(), nullptr);
  json["results"] = Json::array();
  if (checks.input.random > 0) return run_random(checks, problems, context, json, keep);
  const bool print = prints(checks.common);
  const auto host = std::make_shared<checking::Host>(context);
  Tally tally;
  for (const Problem& problem : problems) {
    stop_if_interrupted();
    if (&problem != problems.data()) keep();  // this one may exhaust the machine's memory
    if (print) fmt::print("{}\n", to_text(problem));
    const auto report = [&](const VerifyResult& result) {
      json["results"].push_back(result_json(problem, result));
      tally.count(result.status);
      if (print) print_result(result);
      stop_if_interrupted();
    };
    const auto serve = [&] {
      checking::VerifyOptions options = verify_options(checks, problem);
      options.host = host;
      checking::verify(context, problem, options, report);
    };
    serve_or_refuse<VerifyResult>(checks.input.choice.solver, problem, serve, report);
  }
  if (print) fmt::print("{}\n", tally.text());
  return tally.exit_status();
}

}  // namespace

Json result_json(const Problem& problem, const VerifyResult& result) {
  return {{"problem", to_text(problem)}, {"name", problem.name()},
          {"solver", result.solver},     {"status", name(result.status)},
          {"reason", result.reason},     {"checked", result.checked},
          {"error", result.error},       {"bound", result.bound},
          {"unit", result.unit},         {"config", config_of(result.tuning)}};
}

checking::VerifyOptions verify_options(const Checks& checks, const Problem& problem) {
  return {.solver = solver_options(checks.input.choice, problem.operation_name()),
          .sampled = checks.sampled,
          .samples = checks.samples,
          .strip_rows = checks.strip_rows,
          .seed = checks.input.seed};
}

void add_verify(CLI::App& app, Body& body) {
  const auto checks = std::make_shared<Checks>();
  CLI::App* const command =
      add_command(app, "verify", "run solvers on random data and check every result against the references",
                  "  omniconv verify \"filter2d u8 h480w640c3r5s5 reflect101\" --solver all\n"
                  "  omniconv verify \"n2c16h14w14k32r3s3p1\" \"gemm f32 nt m64n48k100\" --solver all --pass all\n"
                  "  omniconv verify --random 1000 --seed 1 --device cpu",
                  *checks);
  add_random_problems(*command, checks->input);
  CLI::Option* const sampled =
      command->add_flag("--sampled", checks->sampled, "check a random sample of the outputs, edges among them");
  command->add_option("--samples", checks->samples, "how many")
      ->capture_default_str()
      ->needs(sampled)
      ->check(whole_number(1, 1 << 30));
  command
      ->add_option("--strip-rows", checks->strip_rows, "of filter2d: run in strips of so many output rows; 0: at once")
      ->check(whole_number(0, std::int64_t{1} << 40));
  command->callback([checks, command, &body] {
    if (checks->input.random > 0 && command->get_option("--solver")->empty()) checks->input.choice.solver = "all";
    body = [checks] {
      return with_growing_report(checks->common.json, "omniconv-verify/1",
                                 [&](Json& json, const Keep& keep) { return run_verify(*checks, json, keep); });
    };
  });
}

}  // namespace omniconv::cli
