// verify: what the solvers make of random data, against the references.
#include "ops/verify.h"

#include <fmt/format.h>

#include <memory>

#include "checks.h"
#include "ops/matrix_verify.h"

namespace omniconv::cli {
namespace {

std::vector<VerifyResult> verify_filter(const Context& context, const Filter2dProblem& problem, const Checks& checks) {
  const Filter filter = filter_for(problem, checks.input.seed);
  return results_or_refusal<VerifyResult>(checks.input.choice.solver, problem, [&] {
    return verify(context, problem, filter,
                  {.solver = checks.input.choice.solver,
                   .sampled = checks.sampled,
                   .samples = checks.samples,
                   .strip_rows = checks.strip_rows,
                   .seed = checks.input.seed});
  });
}

std::vector<VerifyResult> verify_any(const Context& context, const Problem& problem, const Checks& checks) {
  if (const auto* const filter = std::get_if<Filter2dProblem>(&problem)) return verify_filter(context, *filter, checks);
  return results_or_refusal<VerifyResult>(checks.input.choice.solver, problem, [&] {
    return verify(context, *work_for(problem),
                  {.solver = solver_options(checks.input.choice, problem),
                   .sampled = checks.sampled,
                   .samples = checks.samples,
                   .seed = checks.input.seed});
  });
}

void refuse_strips_of_matrices(const Checks& checks, const std::vector<Problem>& problems) {
  if (checks.strip_rows == 0) return;
  for (const Problem& problem : problems)
    if (!std::holds_alternative<Filter2dProblem>(problem))
      throw bad_input(
          fmt::format("--strip-rows is of filter2d problems, and {} is none: leave one of them out", to_text(problem)));
}

Json to_json(const Problem& problem, const VerifyResult& result) {
  return {{"problem", to_text(problem)},   {"name", name_of(problem)}, {"solver", result.solver},
          {"status", name(result.status)}, {"reason", result.reason},  {"checked", result.checked},
          {"error", result.error},         {"bound", result.bound}};
}

void print_result(const VerifyResult& result) {
  const std::string figures =
      result.bound == 0 ? "bit-equal" : fmt::format("error {:.3g} of bound {:.3g}", result.error, result.bound);
  if (result.status == Status::ok)
    fmt::print("  ok      {:<30} {} over {} elements\n", result.solver, figures, result.checked);
  else
    fmt::print("  {:<7} {:<30} {}\n", name(result.status), result.solver, result.reason);
}

int run_verify(const Checks& checks) {
  const std::vector<Problem> problems = read_problems(checks.input);
  refuse_strips_of_matrices(checks, problems);
  JsonOutput output(checks.common.json);
  const Context context(context_options(checks.common));
  Json json = report_head("omniconv-verify/1", context.device(), nullptr);
  json["results"] = Json::array();
  const bool print = prints(checks.common);
  int passed = 0, failed = 0, refused = 0;
  for (const Problem& problem : problems) {
    stop_if_interrupted();
    if (print) fmt::print("{}\n", to_text(problem));
    for (const VerifyResult& result : verify_any(context, problem, checks)) {
      json["results"].push_back(to_json(problem, result));
      passed += result.status == Status::ok;
      failed += result.status == Status::failed;
      refused += result.status == Status::refused;
      if (print) print_result(result);
    }
  }
  if (print) fmt::print("{} passed, {} failed, {} refused\n", passed, failed, refused);
  output.write(json);
  return failed > 0 ? 1 : 0;
}

}  // namespace

void add_verify(CLI::App& app, Body& body) {
  const auto checks = std::make_shared<Checks>();
  CLI::App* const command =
      add_command(app, "verify", "run solvers on random data and check every result against the references",
                  "  omniconv verify \"filter2d u8 h480w640c3r5s5 reflect101\" --solver all\n"
                  "  omniconv verify \"n2c16h14w14k32r3s3p1\" \"gemm f32 nt m64n48k100\" --solver all --pass all",
                  *checks);
  command->add_flag("--sampled", checks->sampled, "check a random sample of the outputs, edges among them");
  command->add_option("--samples", checks->samples, "how many")->capture_default_str()->check(whole_number(1, 1 << 30));
  command
      ->add_option("--strip-rows", checks->strip_rows, "of filter2d: run in strips of so many output rows; 0: at once")
      ->check(whole_number(0, std::int64_t{1} << 40));
  command->callback([checks, &body] { body = [checks] { return run_verify(*checks); }; });
}

}  // namespace omniconv::cli
