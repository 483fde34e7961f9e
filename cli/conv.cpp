// conv: one convolution on arrays from .npy files.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "common.h"
#include "core/half.h"
#include "image/atomic_file.h"
#include "image/formats/npy/npy_array.h"
#include "omniconv/conv2d.h"
#include "omniconv/error.h"
#include "ops/matrix_work.h"
#include "problems.h"
#include "report.h"

namespace omniconv::cli {
namespace {

struct ConvOptions {
  Common common;
  ChoiceInput choice;
  std::string problem, output;
  // Files of what a pass may read; empty where the option is not given.
  std::string x, w, dy, bias, old_output;
};

const char* words_of(Pass pass) {
  switch (pass) {
    case Pass::forward: return "the forward pass";
    case Pass::backward_data: return "bwd_data";
    case Pass::backward_filter: return "bwd_filter";
  }
  return "";
}

// Arrays of a problem, as they stand in files.
image::NpyWanted x_of(const Conv2dProblem& p) {
  if (p.layout == Layout::nhwc) return {"x", "n, h, w, c", p.type, {p.n, p.h, p.w, p.c}};
  return {"x", "n, c, h, w", p.type, {p.n, p.c, p.h, p.w}};
}
image::NpyWanted w_of(const Conv2dProblem& p) {
  const std::int64_t channels = p.c / p.groups;
  if (p.layout == Layout::nhwc) return {"w", "k, r, s, c/g", p.type, {p.k, p.r, p.s, channels}};
  return {"w", "k, c/g, r, s", p.type, {p.k, channels, p.r, p.s}};
}
image::NpyWanted y_of(const Conv2dProblem& p, const char* name) {
  if (p.layout == Layout::nhwc) return {name, "n, P, Q, k", p.type, {p.n, P(p), Q(p), p.k}};
  return {name, "n, k, P, Q", p.type, {p.n, p.k, P(p), Q(p)}};
}
image::NpyWanted output_of(const Conv2dProblem& p) {
  if (p.pass == Pass::backward_data) return x_of(p);
  return p.pass == Pass::backward_filter ? w_of(p) : y_of(p, "y");
}

struct Input {
  const char* option;
  const std::string& path;
  bool needed;
  const char* why;  // it is needed, or not
};

std::vector<Input> inputs_of(const ConvOptions& options, const Conv2dProblem& p) {
  const char* const pass = words_of(p.pass);
  return {{"--x", options.x, p.pass != Pass::backward_data, pass},
          {"--w", options.w, p.pass != Pass::backward_filter, pass},
          {"--dy", options.dy, p.pass != Pass::forward, pass},
          {"--bias-array", options.bias, p.bias, p.bias ? "the word bias" : "a problem without the word bias"},
          {"--y0", options.old_output, p.accumulate, p.accumulate ? "the word acc" : "a problem without the word acc"}};
}

void check_inputs(const ConvOptions& options, const Conv2dProblem& problem) {
  const char* from_stdin = nullptr;
  for (const Input& input : inputs_of(options, problem)) {
    if (input.needed && input.path.empty())
      throw bad_input(fmt::format("{}: {} needs {}: name its .npy file", to_text(problem), input.why, input.option));
    if (!input.needed && !input.path.empty())
      throw bad_input(fmt::format("{}: {} reads no {}: leave it out", to_text(problem), input.why, input.option));
    if (input.path != "-") continue;
    if (from_stdin != nullptr)
      throw bad_input(fmt::format("{} and {} are both -: the standard input holds one array; name a file for the other",
                                  from_stdin, input.option));
    from_stdin = input.option;
  }
}

// The report would replace an array, or be mixed with it.
void check_report(const ConvOptions& options, const Conv2dProblem& problem) {
  const std::string& json = options.common.json;
  if (json.empty()) return;
  if (json == "-" && options.output == "-")
    throw bad_input("--json - and -o - both write to the standard output: name a file for one of them");
  const auto same = [&](const std::string& path) {
    std::error_code ignored;
    return path != "-" && json != "-" && !path.empty() &&
           std::filesystem::weakly_canonical(path, ignored) == std::filesystem::weakly_canonical(json, ignored);
  };
  for (const Input& input : inputs_of(options, problem))
    if (same(input.path))
      throw bad_input(fmt::format("--json {} is that of {}: name another file", json, input.option));
  if (same(options.output)) throw bad_input(fmt::format("--json {} is that of -o: name another file", json));
}

Conv2dProblem parse_convolution(const std::string& text) {
  const Problem problem = parse_problem(text);
  const auto* const conv = std::get_if<Conv2dProblem>(&problem);
  if (conv == nullptr)
    throw bad_input(fmt::format("{} is no convolution: name one as n8c64h56w56k64r3s3p1", to_text(problem)));
  const char* const word = conv->bias ? "bias" : conv->relu ? "relu" : nullptr;
  if (conv->pass != Pass::forward && word != nullptr)
    throw bad_input(fmt::format("{}: {} is of the forward pass: leave it out", text, word));
  return *conv;
}

// Where the result goes: a file that appears whole or not at all, or the standard output.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (path != "-") file_ = std::make_unique<image::AtomicFile>(path);
  }
  void write(const std::string& header, const std::vector<std::byte>& data) {
    if (!file_) {
      std::fwrite(header.data(), 1, header.size(), stdout);  // main() asks whether stdout took all
      std::fwrite(data.data(), 1, data.size(), stdout);
      return;
    }
    const auto begin = static_cast<std::int64_t>(header.size());
    file_->write_at(0, header.data(), begin);
    file_->write_at(begin, data.data(), std::ssize(data));
    file_->commit();
  }

 private:
  std::unique_ptr<image::AtomicFile> file_;
};

class Clock {
 public:
  // Seconds since it was asked before.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

struct Times {
  double context = 0, plan = 0, compile = 0, read = 0, copy_in = 0, kernel = 0, copy_out = 0, write = 0;
};

// What TF32 units would read of factors.
void round_to_tf32(std::vector<std::byte>& data) {
  for (std::size_t at = 0; at < data.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, data.data() + at, sizeof value);
    value = to_tf32(value);
    std::memcpy(data.data() + at, &value, sizeof value);
  }
}

// Runs a plan on arrays from files.
class Convolving {
 public:
  Convolving(const ConvOptions& options, const Conv2dProblem& problem, const Context& context, const Conv2dPlan& plan,
             Times& times)
      : options_(options),
        problem_(problem),
        context_(context),
        plan_(plan),
        times_(times),
        queue_(context.make_queue()) {}

  std::vector<std::byte> result() {
    const Conv2dRun run = arrays();
    const Operand& output = problem_.pass == Pass::forward         ? run.y
                            : problem_.pass == Pass::backward_data ? run.x
                                                                   : run.w;
    Event event = plan_.run(queue_, run);
    event.wait();
    times_.kernel = event.seconds();
    if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
    std::vector<std::byte> data(static_cast<std::size_t>(output.buffer.bytes()));
    Event copied = queue_.download(data.data(), output.buffer, 0, output.buffer.bytes());
    copied.wait();
    times_.copy_out = copied.seconds();
    return data;
  }

 private:
  Conv2dRun arrays() {
    Conv2dRun run;
    const bool forward = problem_.pass == Pass::forward, of_data = problem_.pass == Pass::backward_data;
    const Operand old = problem_.accumulate ? array(options_.old_output, output_of(problem_), false) : empty();
    run.x = of_data ? old : array(options_.x, x_of(problem_), true);
    run.w = forward || of_data ? array(options_.w, w_of(problem_), true) : old;
    run.y = forward ? old : array(options_.dy, y_of(problem_, "dy"), true);
    if (problem_.bias) run.bias = array(options_.bias, {"bias", "k", problem_.type, {problem_.k}}, false);
    run.workspace = context_.allocate(std::max<std::int64_t>(plan_.workspace_bytes(), 1));
    return run;
  }

  Operand array(const std::string& path, const image::NpyWanted& wanted, bool is_factor) {
    Clock clock;
    std::vector<std::byte> data = image::read_npy_array(path, wanted);
    if (wanted.type == DataType::tf32 && is_factor) round_to_tf32(data);
    times_.read += clock.lap();
    const Operand operand{context_.allocate(std::ssize(data))};
    Event copied = queue_.upload(operand.buffer, 0, data.data(), std::ssize(data));
    copied.wait();
    times_.copy_in += copied.seconds();
    return operand;
  }

  Operand empty() const {
    std::int64_t elements = 1;
    for (const std::int64_t extent : output_of(problem_).shape) elements *= extent;  // validated with the problem
    return {context_.allocate(elements * size_of(problem_.type))};
  }

  const ConvOptions& options_;
  const Conv2dProblem& problem_;
  const Context& context_;
  const Conv2dPlan& plan_;
  Times& times_;
  Queue queue_;
};

Json to_json(const Conv2dPlan& plan, const Context& context, const std::string& bound, const Times& times) {
  Json json = report_head("omniconv-conv/1", context.device(), nullptr);
  json["problem"] = to_text(plan.problem());
  json["solver"] = plan.solver();
  json["bound"] = bound;
  json["shape"] = output_of(plan.problem()).shape;
  json["workspace_bytes"] = plan.workspace_bytes();
  json["context_ms"] = times.context * 1e3;
  json["compile_ms"] = times.compile * 1e3;
  json["plan_ms"] = times.plan * 1e3;
  json["read_ms"] = times.read * 1e3;
  json["copy_in_ms"] = times.copy_in * 1e3;
  json["kernel_ms"] = times.kernel * 1e3;
  json["copy_out_ms"] = times.copy_out * 1e3;
  json["write_ms"] = times.write * 1e3;
  return json;
}

int run(const ConvOptions& options) {
  const Conv2dProblem problem = parse_convolution(options.problem);
  check_inputs(options, problem);
  if (options.output.empty()) throw bad_input("conv needs an output file: name one with -o, as in -o y.npy");
  check_report(options, problem);
  if (options.choice.solver != "auto") require_solver_for(options.choice.solver, {problem});
  SolverOptions choice = solver_options(options.choice, problem);
  Output output(options.output);
  JsonOutput report(options.common.json);

  Times times;
  Clock clock;
  const Context context(context_options(options.common));
  times.context = clock.lap();
  const Conv2dPlan plan(context, problem, choice);
  times.plan = clock.lap();
  times.compile = plan.compile_seconds();
  choice.solver = plan.solver();
  const std::string bound = explain(context, problem, choice).front().bound;
  std::vector<std::byte> data = Convolving(options, problem, context, plan, times).result();
  clock.lap();
  const std::string header = image::npy_file_header(problem.type, output_of(problem).shape, data);
  output.write(header, data);
  times.write = clock.lap();
  if (!options.common.quiet)
    fmt::print(options.common.json == "-" || options.output == "-" ? stderr : stdout,
               "{}\n  on {} ({}), solver {}\n  {:.3f} ms, {:.3g} TFLOP/s, workspace {}\n  error bound {}\n",
               to_text(problem), context.device().id, context.device().name, plan.solver(), times.kernel * 1e3,
               2 * make_work(problem)->multiply_adds / times.kernel / 1e12, print_bytes(plan.workspace_bytes()), bound);
  report.write(to_json(plan, context, bound, times));
  return 0;
}

}  // namespace

void add_conv(CLI::App& app, Body& body) {
  const auto options = std::make_shared<ConvOptions>();
  CLI::App* const command = app.add_subcommand("conv", "run one convolution on arrays from .npy files");
  command->footer(
      "Examples:\n"
      "  omniconv conv \"n8c64h56w56k64r3s3p1\" --x x.npy --w w.npy -o y.npy\n"
      "  omniconv conv \"bwd_data n8c64h56w56k64r3s3p1\" --w w.npy --dy dy.npy -o dx.npy\n"
      "Arrays have the problem's type, layout and four extents (bf16 and tf32: float32, rounded when read); - is the "
      "standard input or output.");
  const auto file = [&](const char* name, std::string& path, const char* meaning) {
    command->add_option(name, path, meaning)->type_name("FILE")->check(not_empty());
  };
  command->add_option("PROBLEM", options->problem, "a convolution in the notation of docs/notation.md, as one word")
      ->required()
      ->check(not_empty());
  file("--x", options->x, "the input; of the forward pass and bwd_filter");
  file("--w", options->w, "the filter; of the forward pass and bwd_data");
  file("--dy", options->dy, "the output's gradient; of bwd_data and bwd_filter");
  file("--bias-array", options->bias, "k numbers, where the problem says bias");
  file("--y0", options->old_output, "what the output held, where the problem says acc");
  file("--output,-o", options->output, "where the result is written");
  command->add_option("--solver", options->choice.solver, "auto, or a solver's id")
      ->capture_default_str()
      ->check(not_empty());
  add_choice(*command, options->choice);
  add_common(*command, options->common);
  command->callback([options, &body] { body = [options] { return run(*options); }; });
}

}  // namespace omniconv::cli
