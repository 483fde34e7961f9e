// run: one problem of any operation, on arrays from .npy files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include "arrays.h"
#include "choice/choose.h"
#include "choice/plan_record.h"
#include "common.h"
#include "core/half.h"
#include "core/problem_rules.h"
#include "core/suggest.h"
#include "image/atomic_file.h"
#include "image/formats/npy/npy_array.h"
#include "omniconv/error.h"
#include "omniconv/plan.h"
#include "operations/operation.h"
#include "problems.h"
#include "report.h"

namespace omniconv::cli {
namespace {

using operations::Operation;

struct RunOptions {
  Common common;
  ChoiceInput choice;
  std::string problem, output;
  ArrayFiles files;
  std::vector<std::string> scalars;  // "alpha=0.5"
};

// Their names are kept where `words` are.
std::vector<NamedScalar> scalars_of(const std::vector<std::string>& words) {
  std::vector<NamedScalar> scalars;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    double value = 0;
    const char* const end = word.data() + word.size();
    const char* const begin = equals == std::string::npos ? end : word.data() + equals + 1;
    const std::from_chars_result read = std::from_chars(begin, end, value);
    if (begin == end || read.ptr != end || read.ec != std::errc() || !std::isfinite(value))
      throw bad_input(fmt::format("--scalar {}: write NAME=NUMBER, as in alpha=0.5", shown(word)));
    const std::string_view name(word.data(), equals);
    if (std::any_of(scalars.begin(), scalars.end(), [&](const NamedScalar& one) { return one.name == name; }))
      throw bad_input(fmt::format("--scalar {} is given twice", shown(name)));
    scalars.push_back({name, value});
  }
  return scalars;
}

// The report would replace an array, or be mixed with the result.
void check_report(const RunOptions& options) {
  const std::string& json = options.common.json;
  if (json == "-" && options.output == "-")
    throw bad_input("--json - and -o - both write to the standard output: name a file for one of them");
  if (is_same_file(options.output, json))
    throw bad_input(fmt::format("--json {} is that of -o: name another file", json));
  for (const auto& [name, path] : options.files)
    if (is_same_file(path, json))
      throw bad_input(fmt::format("--json {} is that of --{}: name another file", json, name));
}

// Two of what is written would be one file, or be mixed on the standard output.
void check_outputs(const RunOptions& options, const std::vector<ArraySpec>& arrays, const ArrayFiles& files) {
  std::vector<std::pair<std::string, std::string>> written = {{"-o", options.output}};
  bool is_first = true;
  for (const ArraySpec& array : arrays) {
    const bool is_output = array.role != ArrayRole::in;
    const auto named = files.find(array.name);
    if (is_output && !is_first && named != files.end()) written.emplace_back("--" + array.name, named->second);
    is_first = is_first && !is_output;
  }
  if (!options.common.json.empty()) written.emplace_back("--json", options.common.json);
  for (std::size_t i = 0; i < written.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const auto& [later, path] = written[i];
      if (path == "-" && written[j].second == "-")
        throw bad_input(fmt::format("{} - and {} - both write to the standard output: name a file for one of them",
                                    later, written[j].first));
      if (is_same_file(path, written[j].second))
        throw bad_input(fmt::format("{} {} is that of {}: name another file", later, path, written[j].first));
    }
}

// Where the result goes: a file that appears whole or not at all, or the standard output.
class ArrayOutput {
 public:
  explicit ArrayOutput(const std::string& path) {
    if (path == "-") return;
    image::check_names_a_file(path);
    if (!path.ends_with(".npy"))
      throw bad_input(fmt::format("cannot write {}: arrays are written as .npy; name a file that ends so, or -", path));
    file_ = std::make_unique<image::AtomicFile>(path);
  }
  // What is written to a file appears with place().
  void write(const std::string& header, const std::vector<std::byte>& data) {
    if (!file_) {
      std::fwrite(header.data(), 1, header.size(), stdout);  // main() asks whether stdout took all
      std::fwrite(data.data(), 1, data.size(), stdout);
      return;
    }
    const auto begin = static_cast<std::int64_t>(header.size());
    file_->write_at(0, header.data(), begin);
    file_->write_at(begin, data.data(), std::ssize(data));
    file_->store();
  }
  void place() {
    if (file_) file_->place();
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
class Running {
 public:
  Running(const Plan& plan, const Context& context, const ArrayFiles& files, const std::vector<NamedScalar>& scalars,
          Times& times)
      : plan_(plan), context_(context), files_(files), scalars_(scalars), times_(times), queue_(context.make_queue()) {}

  // The outputs, by their places among the plan's arrays.
  std::map<std::size_t, std::vector<std::byte>> results() {
    std::vector<NamedOperand> operands;
    for (const ArraySpec& array : plan_.arrays()) operands.push_back({array.name, operand_for(array)});
    const Buffer workspace = context_.allocate(std::max<std::int64_t>(plan_.workspace_bytes(), 1));
    Event event = plan_.run(queue_, operands, workspace, scalars_);
    event.wait();
    times_.kernel = event.seconds();
    if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
    std::map<std::size_t, std::vector<std::byte>> results;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (plan_.arrays()[i].role == ArrayRole::in) continue;
      const Buffer& buffer = operands[i].operand.buffer;
      std::vector<std::byte>& data = results[i];
      data.resize(static_cast<std::size_t>(buffer.bytes()));
      Event copied = queue_.download(data.data(), buffer, 0, buffer.bytes());
      copied.wait();
      times_.copy_out += copied.seconds();
    }
    return results;
  }

 private:
  Operand operand_for(const ArraySpec& array) {
    if (array.role == ArrayRole::out) return {context_.allocate(array.bytes())};
    Clock clock;
    std::vector<std::byte> data =
        image::read_npy_array(files_.at(array.name), {array.name, array.axes, array.type, array.extents});
    // What TF32 units would read of factors; what is added is read as it is.
    if (array.type == DataType::tf32 && array.role == ArrayRole::in && array.extents.size() > 1) round_to_tf32(data);
    times_.read += clock.lap();
    const Operand operand{context_.allocate(std::ssize(data))};
    Event copied = queue_.upload(operand.buffer, 0, data.data(), std::ssize(data));
    copied.wait();
    times_.copy_in += copied.seconds();
    return operand;
  }

  const Plan& plan_;
  const Context& context_;
  const ArrayFiles& files_;
  std::vector<NamedScalar> scalars_;
  Times& times_;
  Queue queue_;
};

void add_to(Json& json, const Plan& plan, const Times& times) {
  json["problem"] = to_text(plan.problem());
  json["solver"] = plan.solver();
  json["bound"] = choice::describe(plan.record().bound);
  json["config"] = config_of(plan.record().tuning.to_text());
  for (const ArraySpec& array : plan.arrays())
    if (array.role != ArrayRole::in) json["shapes"][array.name] = array.extents;
  json["workspace_bytes"] = plan.workspace_bytes();
  json["context_ms"] = times.context * 1e3;
  json["compile_ms"] = times.compile * 1e3;
  json["plan_ms"] = times.plan * 1e3;
  json["read_ms"] = times.read * 1e3;
  json["copy_in_ms"] = times.copy_in * 1e3;
  json["kernel_ms"] = times.kernel * 1e3;
  json["copy_out_ms"] = times.copy_out * 1e3;
  json["write_ms"] = times.write * 1e3;
}

void check_scalars(const std::vector<operations::ScalarSpec>& known, const std::vector<NamedScalar>& given) {
  std::vector<std::string_view> names;
  for (const operations::ScalarSpec& scalar : known) names.push_back(scalar.name);
  for (const NamedScalar& scalar : given)
    if (std::find(names.begin(), names.end(), scalar.name) == names.end())
      throw bad_input(names.empty() ? fmt::format("--scalar {}: this operation has none", shown(scalar.name))
                                    : fmt::format("--scalar {}: {}", shown(scalar.name), suggest(scalar.name, names)));
}

// Where each output goes: the first where -o says, others where an option of their name does.
std::map<std::size_t, std::unique_ptr<ArrayOutput>> open_outputs(const std::vector<ArraySpec>& arrays,
                                                                 const ArrayFiles& files, const std::string& first) {
  std::map<std::size_t, std::unique_ptr<ArrayOutput>> outputs;
  bool is_first = true;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].role == ArrayRole::in) continue;
    const auto named = files.find(arrays[i].name);
    if (is_first && arrays[i].role == ArrayRole::out && named != files.end())
      throw bad_input(fmt::format("--{0} is what this problem writes, and does not read: name its file with -o alone",
                                  arrays[i].name));
    if (is_first)
      outputs[i] = std::make_unique<ArrayOutput>(first);
    else if (named != files.end())
      outputs[i] = std::make_unique<ArrayOutput>(named->second);
    is_first = false;
  }
  return outputs;
}

int run(const RunOptions& options, const char* alias, Json& json) {
  if (options.output.empty())
    throw bad_input(fmt::format("{} needs an output file: name one with -o, as in -o y.npy", alias));
  const Problem problem = completed_problem(options.problem, options.files);
  const ArrayFiles files = by_name(problem, options.files);
  const Operation& operation = problem.operation();
  const operations::AnyTask task = operation.task(problem, 1);  // refuses what cannot run before files are touched
  const std::vector<ArraySpec> arrays = operation.arrays(problem);
  check_files(problem, arrays, files);
  check_outputs(options, arrays, files);
  if (options.choice.solver != "auto") require_solver_for(options.choice.solver, {problem});
  const std::vector<NamedScalar> scalars = scalars_of(options.scalars);
  check_scalars(operation.scalars(task), scalars);
  const SolverOptions choice = solver_options_of_one(options.choice, problem.operation_name());
  const auto outputs = open_outputs(arrays, files, options.output);

  Times times;
  Clock clock;
  const Context context(context_options(options.common));
  set_device(json, context.device(), nullptr);
  times.context = clock.lap();
  const Plan plan(context, problem, choice);
  times.plan = clock.lap();
  times.compile = plan.compile_seconds();
  auto results = Running(plan, context, files, scalars, times).results();
  clock.lap();
  for (const auto& [i, output] : outputs) {
    const std::string header = image::npy_file_header(arrays[i].type, arrays[i].extents, results[i]);
    output->write(header, results[i]);
  }
  for (const auto& [i, output] : outputs) output->place();
  times.write = clock.lap();
  if (!options.common.quiet)
    fmt::print(options.common.json == "-" || options.output == "-" ? stderr : stdout,
               "{}\n  on {} ({}), solver {}\n  {:.3f} ms, {:.3g} TFLOP/s, workspace {}\n  error bound {}\n",
               to_text(problem), context.device().id, context.device().name, plan.solver(), times.kernel * 1e3,
               operation.figures(task).operations / times.kernel / 1e12, print_bytes(plan.workspace_bytes()),
               choice::describe(plan.record().bound));
  add_to(json, plan, times);
  return 0;
}

// `conv` is the same command by its first name.
void add(CLI::App& app, Body& body, const char* name, const char* meaning, const char* examples) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* const command = app.add_subcommand(name, meaning);
  command->footer(
      std::string("Examples:\n") + examples +
      "Arrays have the problem's type, layout and extents (bf16 and tf32: float32, rounded when read); extents that "
      "arrays say may be left out of the text. - is the standard input or output.");
  command->add_option("PROBLEM", options->problem, "in the notation of docs/notation.md, as one word")
      ->required()
      ->check(not_empty())
      ->check(known_words(problem_words()));
  add_array_options(*command, options->files);
  command->add_option("--output,-o", options->output, "where the (first) result is written")
      ->type_name("FILE")
      ->check(not_empty());
  command->add_option("--scalar", options->scalars, "NAME=NUMBER: a number of the run, as alpha=0.5 of gemm")
      ->type_name("SCALAR")
      ->allow_extra_args(false);
  command->add_option("--solver", options->choice.solver, "auto, or a solver's id")
      ->capture_default_str()
      ->check(not_empty())
      ->check(known_words(with_solver_ids({"auto"})));
  add_choice(*command, options->choice);
  add_common(*command, options->common);
  command->callback([options, name, &body] {
    body = [options, name] {
      check_report(*options);
      return with_report(options->common.json, "omniconv-run/1", [&](Json& json) { return run(*options, name, json); });
    };
  });
}

}  // namespace

void add_run(CLI::App& app, Body& body) {
  add(app, body, "run", "run one problem of any operation on arrays from .npy files",
      "  omniconv run \"n8c64h56w56k64r3s3p1\" --x x.npy --w w.npy -o y.npy\n"
      "  omniconv run \"bwd_data n8c64h56w56k64r3s3p1\" --w w.npy --dy dy.npy -o dx.npy\n"
      "  omniconv run \"gemm f32 nn\" --a a.npy --b b.npy -o c.npy\n");
  add(app, body, "conv", "the same as run", "  omniconv conv \"p1\" --x x.npy --w w.npy -o y.npy\n");
}

}  // namespace omniconv::cli
