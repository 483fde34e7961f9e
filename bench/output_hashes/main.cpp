// Runs every solver of a device over problems, on inputs that are always the same, and prints hashes of their outputs:
//
//   output_hashes [--device ID] [--threads N] [--cache DIR] [--thorough] PROBLEM|@LIST...
//   output_hashes --as-written [--solver ID] [--runs N] ... PROBLEM|@LIST...
//
// LIST is a file of problems. Each is shrunk and varied as cases.h says, thoroughly on the CPU; --as-written leaves
// them as they are, --solver runs one solver alone, and --runs repeats its run, for measuring. What is printed is a
// line `PROBLEM <tab> SOLVER <tab> HASH` for each solver that serves it (references only where it is small), with an
// error in the hash's place where there is one; a line `every problem <tab> SOLVER <tab> known` for each id that was
// heard of; and at last how many outputs there were. Status 77: there is no such device.
//
// scripts/compare-commits.py builds this with two commits' headers and libraries: it uses nothing else of the project.
#include <omniconv/context.h>
#include <omniconv/error.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.h"
#include "compatible.h"
#include "data.h"

namespace omniconv::hashes {
namespace {

constexpr std::int64_t guard_bytes = 256;
constexpr std::byte poison{0xFF};  // NaN in every type of floating-point numbers

struct Options {
  ContextOptions context = {.device = "cpu"};
  bool as_written = false, thorough = false;
  std::string solver = {};  // empty: all
  int runs = 1;
  std::vector<std::string> problems = {};
};

std::size_t size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

class Program {
 public:
  explicit Program(const Options& options)
      : options_(options), context_(options.context), queue_(context_.make_queue()) {}

  void run() {
    for (const std::string& text : options_.problems) {
      if (!text.starts_with('@')) {
        add(parse_problem(text), 0);
        continue;
      }
      std::ifstream file(text.substr(1));
      if (!file) throw std::runtime_error(text.substr(1) + ": no such file, or it cannot be read");
      const std::string list{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      std::size_t place = 0;
      for (const Problem& problem : parse_problem_list(list, text.substr(1))) place += add(problem, place);
    }
    for (const std::string& id : ids_) std::printf("every problem\t%s\tknown\n", id.c_str());
    std::printf("%d outputs\n", outputs_);
  }

 private:
  // Where the problem's cases are others than those before: 1, else 0.
  std::size_t add(const Problem& problem, std::size_t place) {
    if (const auto* filter = get_if<Filter2dProblem>(problem)) return add_cases(*filter, place);
    if (const auto* convolution = get_if<Conv2dProblem>(problem)) return add_cases(*convolution, place);
    if (const auto* product = get_if<GemmProblem>(problem)) return add_cases(*product, place);
#if HAS_POOL2D
    if (const auto* pooling = get_if<Pool2dProblem>(problem)) return add_cases(*pooling, place);
#endif
#if HAS_ACTIVATION
    if (const auto* activation = get_if<ActivationProblem>(problem)) return add_cases(*activation, place);
#endif
#if HAS_BIAS_ADD
    if (const auto* bias = get_if<BiasAddProblem>(problem)) return add_cases(*bias, place);
#endif
#if HAS_ADD
    if (const auto* sum = get_if<AddProblem>(problem)) return add_cases(*sum, place);
#endif
#if HAS_DROPOUT
    if (const auto* dropout = get_if<DropoutProblem>(problem)) return add_cases(*dropout, place);
#endif
#if HAS_BATCH_NORM
    if (const auto* norm = get_if<BatchNormProblem>(problem)) return add_cases(*norm, place);
#endif
#if HAS_LOSS
    if (const auto* loss = get_if<LossProblem>(problem)) return add_cases(*loss, place);
#endif
#if HAS_NORM
    if (const auto* clipped = get_if<NormProblem>(problem)) return add_cases(*clipped, place);
#endif
#if HAS_UPDATE
    if (const auto* update = get_if<UpdateProblem>(problem)) return add_cases(*update, place);
#endif
#if HAS_BATCH
    if (const auto* batch = get_if<BatchProblem>(problem)) return add_cases(*batch, place);
#endif
    throw std::runtime_error(to_text(problem) +
                             ": no filter, convolution, product, pooling, activation, bias, shortcut, batch "
                             "normalisation, dropout, loss, norm, update "
                             "or batch");
  }

  template <typename T>
  std::size_t add_cases(const T& problem, std::size_t place) {
    const bool thorough = options_.thorough || context_.device().id == "cpu";
    if (options_.as_written) {
      add_case(problem);
    } else if (thorough || shapes_.insert(to_text(cases_of(problem, 0, false).front())).second) {
      for (const T& one : cases_of(problem, place, thorough)) add_case(one);
    } else {
      return 0;
    }
    return 1;
  }

  template <typename T>
  void add_case(const T& problem) {
    if (seen_.insert(to_text(problem)).second) run_case(problem);
  }

  // Without scale and bias, and with them; each as a whole, and by one run for each half of the rows.
  void run_case(const Filter2dProblem& problem) {
    const std::vector<bool> ways = options_.as_written ? std::vector{false} : std::vector{false, true};
    for (const bool scaled : ways) {
      const Filter filter = filter_for(problem, scaled);
      for (const std::string& id : applicable(explain(context_, problem, filter), multiply_adds(problem))) {
        std::optional<Filter2dPlan> plan;
        for (const bool halves : ways)
          report(to_text(problem) + (scaled ? ", scaled" : "") + (halves ? ", by halves" : ""), id, [&] {
            if (!plan) plan.emplace(context_, problem, filter, Filter2dPlan::Options{.solver = id});
            return filtered(*plan, problem, halves);
          });
      }
    }
  }

  // What the output hashes to. Of halves the rows are one pixel longer than the image's, which no solver may heed.
  std::uint64_t filtered(const Filter2dPlan& plan, const Filter2dProblem& problem, bool halves) {
    const bool valid = problem.border.mode == BorderMode::valid;
    const std::int64_t rows = valid ? problem.h - problem.r + 1 : problem.h;
    const std::int64_t columns = valid ? problem.w - problem.s + 1 : problem.w;
    const std::int64_t gap = halves ? 1 : 0;
    Filter2dRun run;
    run.input_stride_bytes = (problem.w + gap) * problem.c * size_of(problem.input);
    run.output_stride_bytes = (columns + gap) * problem.c * size_of(problem.output);
    std::vector<std::byte> image(size(problem.h * run.input_stride_bytes));
    fill_random(problem.input, 4, problem.c, problem.alpha_channel, image);
    run.input = put(image);
    run.output = poisoned(2 * guard_bytes + rows * run.output_stride_bytes);
    run.workspace = poisoned(plan.workspace_bytes());
    for (int i = 0; i < options_.runs; ++i) run_parts(plan, run, rows, halves && rows > 1 ? 2 : 1);
    return hash_of(run.output);
  }

  void run_parts(const Filter2dPlan& plan, Filter2dRun run, std::int64_t rows, std::int64_t parts) {
    for (std::int64_t part = 0; part < parts; ++part) {
      run.output_first = rows * part / parts;
      run.output_rows = rows * (part + 1) / parts - run.output_first;
      run.output_offset_bytes = guard_bytes + run.output_first * run.output_stride_bytes;
      plan.run(queue_, run).wait();
    }
  }

  void run_case(const Conv2dProblem& problem) {
    const Conv2dElements elements = elements_of(problem);
    Conv2dRun run;
    run.x = operand(elements.x, problem.type, 0);
    run.w = operand(elements.w, problem.type, 1);
    run.y = operand(elements.y, problem.type, 2);
    if (problem.bias) run.bias = operand(problem.k, problem.type, 3);
    Operand& output = problem.pass == Pass::forward ? run.y : problem.pass == Pass::backward_data ? run.x : run.w;
    run_matrix<Conv2dPlan>(problem, problem.accumulate, run, output);
  }

  void run_case(const GemmProblem& problem) {
    GemmRun run;
    run.a = operand(problem.batch * problem.m * problem.k, problem.type, 0);
    run.b = operand(problem.batch * problem.k * problem.n, problem.type, 1);
    run.c = operand(problem.batch * problem.m * problem.n, problem.type, 2);
    run_matrix<GemmPlan>(problem, false, run, run.c);
  }

#if HAS_POOL2D
  // Indices are within the window, of which some name padding. Forward the hash is of y and the indices.
  void run_case(const Pool2dProblem& problem) {
    const std::int64_t outputs = problem.n * problem.c * P(problem) * Q(problem);
    std::vector<std::byte> within(size(4 * outputs));
    Random random(1);
    for (std::size_t i = 0; i < within.size(); i += 4) {
      const auto index = static_cast<std::int32_t>(random.below(problem.r * problem.s));
      std::memcpy(within.data() + i, &index, sizeof index);
    }
    Pool2dRun run;
    run.x = operand(problem.n * problem.c * problem.h * problem.w, problem.type, 0);
    run.y = operand(outputs, problem.type, 1);
    for (const std::string& id : applicable(explain(context_, problem), multiply_adds(problem)))
      report(to_text(problem), id, [&] {
        const Pool2dPlan plan(context_, problem, {.solver = id});
        Operand& output = problem.backward ? run.x : run.y;
        output.buffer = poisoned(output.buffer.bytes());
        if (problem.pooling == Pooling::maximum)
          run.indices.buffer = problem.backward ? put(within) : poisoned(4 * outputs);
        run.workspace = poisoned(plan.workspace_bytes());
        for (int i = 0; i < options_.runs; ++i) plan.run(queue_, run).wait();
        const std::uint64_t state = hash_of(output.buffer);
        return run.indices.buffer ? hash(download(run.indices.buffer), state) : state;
      });
  }
#endif

#if HAS_ACTIVATION
  void run_case(const ActivationProblem& problem) {
    const std::int64_t elements = problem.n * problem.c * problem.h * problem.w;
    ActivationRun run;
    run.x = operand(elements, problem.type, 0);
    run.y = operand(elements, problem.type, 1);
    if (problem.backward) run.dy = operand(elements, problem.type, 2);
    run_matrix<ActivationPlan>(problem, false, run, problem.backward ? run.x : run.y);
  }
#endif

#if HAS_BIAS_ADD
  void run_case(const BiasAddProblem& problem) {
    const std::int64_t elements = problem.n * problem.c * problem.h * problem.w;
    BiasAddRun run;
    if (!problem.backward) run.x = operand(elements, problem.type, 0);
    run.b = operand(problem.c, problem.type, 1);
    run.y = operand(elements, problem.type, 2);
    run_matrix<BiasAddPlan>(problem, false, run, problem.backward ? run.b : run.y);
  }
#endif
#if HAS_ADD
  void run_case(const AddProblem& problem) {
    const std::int64_t of_shortcut = problem.n * problem.c * problem.h * problem.w,
                       of_output = problem.n * problem.k * P(problem) * Q(problem);
    AddRun run;
    run.s = operand(of_shortcut, problem.type, 0);
    run.y = operand(of_output, problem.type, 1);
    if (problem.backward)
      run.d = operand(of_shortcut, problem.type, 2);
    else
      run.x = operand(of_output, problem.type, 2);
    run_matrix<AddPlan>(problem, false, run, problem.backward ? run.s : run.y);
  }
#endif
#if HAS_DROPOUT
  void run_case(const DropoutProblem& problem) {
    DropoutRun run;
    run.x = operand(problem.n, problem.type, 0);
    run.y = operand(problem.n, problem.type, 1);
    run.rate = 0.3, run.seed = 0x123456789ABCDEF0, run.stream = 7, run.step = 5;
    run_matrix<DropoutPlan>(problem, false, run, run.y);
  }
#endif
#if HAS_BATCH_NORM
  // Variances that inference reads may be less than 0 here: an epsilon of 4 keeps what is under the root above it.
  void run_case(const BatchNormProblem& problem) {
    using Pass = BatchNormProblem::Pass;
    const std::int64_t elements = problem.n * problem.c * problem.h * problem.w;
    const DataType type = problem.type == DataType::f64 ? DataType::f64 : DataType::f32;
    BatchNormRun run;
    run.x = operand(elements, problem.type, 0);
    run.gamma = operand(problem.c, type, 1), run.beta = operand(problem.c, type, 2);
    if (problem.pass == Pass::backward) {
      run.mean = operand(problem.c, type, 3), run.invstd = operand(problem.c, type, 4);
      run.dy = operand(elements, problem.type, 5), run.dx = operand(elements, problem.type, 6);
      run.dgamma = operand(problem.c, type, 7), run.dbeta = operand(problem.c, type, 8);
    } else {
      run.running_mean = operand(problem.c, type, 3), run.running_var = operand(problem.c, type, 4);
      run.y = operand(elements, problem.type, 5);
      if (problem.pass == Pass::forward)
        run.mean = operand(problem.c, type, 6), run.invstd = operand(problem.c, type, 7);
      run.epsilon = 4;
    }
    run_matrix<BatchNormPlan>(problem, false, run, problem.pass == Pass::backward ? run.dx : run.y);
  }
#endif
#if HAS_LOSS
  void run_case(const LossProblem& problem) {
    const std::int64_t elements = problem.n * problem.c;
    LossRun run;
    run.x = operand(elements, problem.type, 0);
    if (problem.loss == Loss::mse) {
      run.t = operand(elements, problem.type, 1);
    } else {
      std::vector<std::byte> classes(size(4 * problem.n));
      Random random(1);
      for (std::size_t i = 0; i < classes.size(); i += 4) {
        const auto label = static_cast<std::int32_t>(random.below(problem.c));
        std::memcpy(classes.data() + i, &label, sizeof label);
      }
      run.labels.buffer = put(classes);
    }
    const DataType of_loss = problem.type == DataType::f64 ? DataType::f64 : DataType::f32;
    run.y = operand(problem.n, of_loss, 2);  // backward of sums
    if (problem.backward) run.dx = operand(elements, problem.type, 2);
    run_matrix<LossPlan>(problem, false, run, problem.backward ? run.dx : run.y);
  }
#endif
#if HAS_NORM
  // The hash is of the factor, which is less than 1 of all but the shortest, and of the sum.
  void run_case(const NormProblem& problem) {
    const DataType type = problem.type == DataType::f64 ? DataType::f64 : DataType::f32;
    for (const std::string& id : applicable(explain(context_, problem), multiply_adds(problem)))
      report(to_text(problem), id, [&] {
        const NormPlan plan(context_, problem, {.solver = id});
        NormRun run;
        run.g = operand(problem.n, problem.type, 0);
        run.factor = {poisoned(size_of(type))};
        run.sum = {put(std::vector<std::byte>(size(size_of(type))))};
        run.workspace = poisoned(plan.workspace_bytes());
        run.most = 1.5, run.scale = 0.3;
        for (int i = 0; i < options_.runs; ++i) plan.run(queue_, run).wait();
        return hash(download(run.sum.buffer), hash_of(run.factor.buffer));
      });
  }
#endif
#if HAS_UPDATE
  // Two steps, or as many as runs are asked for, with every scalar; the hash is of all that they changed.
  void run_case(const UpdateProblem& problem) {
    const DataType state = problem.type == DataType::f64 ? DataType::f64 : DataType::f32;
    const bool is_adam = problem.rule == UpdateProblem::Rule::adam;
    const bool has_copy = problem.type == DataType::f16 || problem.type == DataType::bf16;
    for (const std::string& id : applicable(explain(context_, problem), multiply_adds(problem)))
      report(to_text(problem), id, [&] {
        const UpdatePlan plan(context_, problem, {.solver = id});
        UpdateRun run;
        run.g = operand(problem.n, problem.type, 0);
        run.w = operand(problem.n, state, 1);
        run.m = operand(problem.n, state, 2);
        if (is_adam) run.v = {put(std::vector<std::byte>(size(problem.n * size_of(state))))};
        if (has_copy) run.copy = {poisoned(problem.n * size_of(problem.type))};
        if (problem.scaled) run.factor = operand(1, state, 4);
        if (problem.guarded) run.stop = {put(std::vector<std::byte>(4))};
        run.rate = 0.013, run.l1 = 0.003, run.l2 = 0.07, run.clip = 3, run.momentum = 0.9;
        const AdamCorrections corrections = adam_corrections(3);
        run.correction1 = corrections.first, run.correction2 = corrections.second;
        for (int i = 0; i < std::max(options_.runs, 2); ++i) plan.run(queue_, run).wait();
        std::uint64_t state_of_hash = hash_of(run.w.buffer);
        for (const Operand* const changed : {&run.m, &run.v, &run.copy, &run.stop})
          if (changed->buffer) state_of_hash = hash(download(changed->buffer), state_of_hash);
        return state_of_hash;
      });
  }
#endif

#if HAS_BATCH
  // Of the second batch of an order of which one entry in eight names no image; the hash is of the classes, too.
  void run_case(const BatchProblem& problem) {
    std::vector<std::byte> order(size(4 * problem.m));
    Random random(1);
    for (std::size_t i = 0; i < order.size(); i += 4) {
      const auto image = static_cast<std::int32_t>(random.below(8) == 0 ? -1 : random.below(problem.m));
      std::memcpy(order.data() + i, &image, sizeof image);
    }
    const std::int64_t pixels = problem.c * problem.h * problem.w;
    BatchRun run;
    run.images = operand(problem.m * pixels, DataType::u8, 0);
    run.labels = operand(problem.m, DataType::u8, 1);
    run.order = {put(order)};
    run.table = operand(256 * problem.c, DataType::f32, 3);
    run.first = static_cast<double>(std::min(problem.n, problem.m - 1)), run.epoch = 2, run.seed = 0x123456789ABCDEF;
    for (const std::string& id : applicable(explain(context_, problem), multiply_adds(problem)))
      report(to_text(problem), id, [&] {
        const BatchPlan plan(context_, problem, {.solver = id});
        run.y = {poisoned(problem.n * pixels * size_of(problem.type))};
        run.classes = {poisoned(4 * problem.n)};
        run.workspace = poisoned(plan.workspace_bytes());
        for (int i = 0; i < options_.runs; ++i) plan.run(queue_, run).wait();
        return hash(download(run.classes.buffer), hash_of(run.y.buffer));
      });
  }
#endif

  // `output` is an operand of `run`.
  template <typename Plan, typename T, typename Run>
  void run_matrix(const T& problem, bool accumulates, Run& run, Operand& output) {
    const std::vector<std::byte> old(accumulates ? download(output.buffer) : std::vector<std::byte>{});
    for (const std::string& id : applicable(explain(context_, problem), multiply_adds(problem)))
      report(to_text(problem), id, [&] {
        const Plan plan(context_, problem, {.solver = id});
        if (accumulates)
          queue_.upload(output.buffer, 0, old.data(), output.buffer.bytes()).wait();
        else
          output.buffer = poisoned(output.buffer.bytes());
        run.workspace = poisoned(plan.workspace_bytes());
        for (int i = 0; i < options_.runs; ++i) plan.run(queue_, run).wait();
        return hash_of(output.buffer);
      });
  }

  // The ids to run. All that were heard of are remembered: which of them serve is the lines' affair.
  template <typename Candidates>
  std::vector<std::string> applicable(const Candidates& candidates, double work) {
    std::vector<std::string> ids;
    for (const auto& candidate : candidates) {
      const std::string& id = candidate.solver;
      ids_.insert(id);
      const bool is_reference =
          id.find("/definition/") != std::string::npos || id.find("/double/") != std::string::npos;
      const bool is_wanted =
          options_.solver.empty() ? !is_reference || work <= most_of_references : id == options_.solver;
      if (candidate.applicable && is_wanted) ids.push_back(id);
    }
    return ids;
  }

  template <typename Work>
  void report(const std::string& label, const std::string& id, const Work& work) {
    try {
      std::printf("%s\t%s\t%016llx\n", label.c_str(), id.c_str(), static_cast<unsigned long long>(work()));
    } catch (const Error& error) {
      std::printf("%s\t%s\terror: %s\n", label.c_str(), id.c_str(), error.what());
    }
    std::fflush(stdout);  // what comes next may end the process
    ++outputs_;
  }

  Buffer put(const std::vector<std::byte>& data) {
    const Buffer buffer = context_.allocate(static_cast<std::int64_t>(data.size()));
    queue_.upload(buffer, 0, data.data(), buffer.bytes()).wait();
    return buffer;
  }
  Buffer poisoned(std::int64_t bytes) {
    return put(std::vector(size(std::max<std::int64_t>(bytes, 1)), poison));
  }
  Operand operand(std::int64_t elements, DataType type, std::uint64_t seed) {
    const std::int64_t bytes = elements * size_of(type);
    std::vector<std::byte> data(size(bytes + 2 * guard_bytes), poison);
    fill_random(type, seed, 1, -1, std::span(data).subspan(size(guard_bytes), size(bytes)));
    return {put(data), guard_bytes};
  }
  std::vector<std::byte> download(const Buffer& buffer) {
    std::vector<std::byte> data(size(buffer.bytes()));
    queue_.download(data.data(), buffer, 0, buffer.bytes()).wait();
    return data;
  }
  // With the guards: who writes there changes it.
  std::uint64_t hash_of(const Buffer& buffer) {
    return hash(download(buffer));
  }

  Options options_;
  Context context_;
  Queue queue_;
  std::set<std::string> shapes_, seen_, ids_;
  int outputs_ = 0;
};

Options parse_arguments(int argc, char** argv) {
  Options options;
  compile_once(options.context);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      if (++i == argc) throw std::runtime_error(word + " needs a value");
      return std::string(argv[i]);
    };
    if (word == "--device")
      options.context.device = value();
    else if (word == "--threads")
      options.context.threads = std::stoi(value());
    else if (word == "--cache")
      options.context.program_cache = value();
    else if (word == "--as-written")
      options.as_written = true;
    else if (word == "--thorough")
      options.thorough = true;
    else if (word == "--solver")
      options.solver = value();
    else if (word == "--runs")
      options.runs = std::stoi(value());
    else if (word.starts_with("--"))
      throw std::runtime_error("unknown option " + word +
                               ": --device, --threads, --cache, --thorough, --as-written, --solver, --runs");
    else
      options.problems.push_back(word);
  }
  if (options.problems.empty()) throw std::runtime_error("no problem: give a problem, or @LIST");
  return options;
}

std::optional<Program> open(const Options& options) try {
  return std::optional<Program>(std::in_place, options);
} catch (const Error& error) {
  std::fprintf(stderr, "output_hashes: %s\n", error.what());
  return std::nullopt;
}

}  // namespace
}  // namespace omniconv::hashes

int main(int argc, char** argv) try {
  using namespace omniconv::hashes;
  constexpr int no_device = 77;
  std::optional<Program> program = open(parse_arguments(argc, argv));
  if (!program) return no_device;
  program->run();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "output_hashes: error: %s\n", error.what());
  return 1;
}
