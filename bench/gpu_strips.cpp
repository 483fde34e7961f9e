// What the tunables of filter2d_strips.kernel are worth on a GPU: from a starting point it changes one after the other,
// keeps what is fastest, and prints every step. Each variant's output must equal, byte by byte, that of the solver for
// the same weights that has a work item per element; exit status 1 where one does not.
//
//   gpu_strips [--device cuda[:0]|opencl[:0.0]] [--seconds S] [--rounds N] [--start NAME=VALUE,...] [PROBLEM...]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <sstream>

#include "comparing.h"
#include "gpu_study.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/kernels.h"
#include "operations/filter2d/strips.h"
#include "operations/filter2d/weights.h"

namespace {

using namespace omniconv;

using Tunables = std::map<std::string, std::int64_t>;

operations::StripTunables as_struct(const Tunables& t) {
  return {.v = t.at("V"),
          .prefetch = t.at("PREFETCH"),
          .ahead = t.at("AHEAD"),
          .halo = t.at("HALO"),
          .denormal = t.at("DENORMAL"),
          .ring = t.at("RING"),
          .dots = t.at("DOTS"),
          .group = t.at("STRIP_GROUP"),
          .rows = t.at("ROWS"),
          .rest = t.at("REST")};
}

struct Images {
  Buffer input, output;
};

class Study {
 public:
  Study(const Context& context, const std::string& text)
      : context_(context), queue_(context.make_queue()), problem_(get<Filter2dProblem>(parse_problem(text))) {
    const Kernel kernel = kernel_for(problem_, 1);
    task_ = task_for(problem_, {.weights = kernel.weights, .second_weights = kernel.second_weights});
    input_stride_ = problem_.w * problem_.c * size_of(problem_.input);
    output_stride_ = Q(problem_) * problem_.c * size_of(problem_.output);
    std::vector<std::byte> pixels(static_cast<std::size_t>(problem_.h * input_stride_));
    std::mt19937 random(7);
    if (is_integer(problem_.input)) {
      for (std::byte& byte : pixels) byte = static_cast<std::byte>(random() >> 11);
    } else if (problem_.input == DataType::f32) {
      for (std::size_t i = 0; i < pixels.size(); i += 4) {
        const float value = static_cast<float>(random() >> 8) / 65536 - 100;
        std::memcpy(&pixels[i], &value, 4);
      }
    } else {
      for (std::size_t i = 0; i < pixels.size(); i += 2) {
        const auto value = static_cast<std::uint16_t>(0x3000 + random() % 0x1800);
        std::memcpy(&pixels[i], &value, 2);
      }
    }
    for (int i = 0; i < 3; ++i) {
      Images images{context_.allocate(static_cast<std::int64_t>(pixels.size())),
                    context_.allocate(P(problem_) * output_stride_)};
      queue_.upload(images.input, 0, pixels.data(), static_cast<std::int64_t>(pixels.size())).wait();
      images_.push_back(std::move(images));
    }
    expected_.resize(static_cast<std::size_t>(P(problem_) * output_stride_));
    found_ = expected_;
  }

  // Milliseconds of the solver that strips are compared with.
  double reference() {
    const double milliseconds = timed(task_.second ? operations::gradient_gpu() : operations::direct_gpu());
    queue_.download(expected_.data(), images_[0].output, 0, static_cast<std::int64_t>(expected_.size())).wait();
    return milliseconds;
  }

  // The solvers by strips that serve the problem.
  std::vector<const operations::Filter2dSolver*> by_strips() const {
    std::vector<const operations::Filter2dSolver*> serving;
    for (const auto* const solver :
         {&operations::gradient_gpu_strips(), &operations::direct_gpu_strips(), &operations::integer_dot_gpu_strips()})
      if (serves(*solver)) serving.push_back(solver);
    return serving;
  }
  // Of one of them as it is.
  double shipped(const operations::Filter2dSolver& solver) {
    clear_output();
    const double milliseconds = timed(solver);
    compare();
    return milliseconds;
  }

  // Of strips; negative where the variant does not exist.
  double strips(const Tunables& tunables) {
    if (!exists(tunables)) return -1;
    prepare({tunables});
    const auto plan = plans_.find(key_of(tunables));
    if (plan == plans_.end()) return -1;
    clear_output();
    const double milliseconds = timed(plan->second);
    compare();
    return milliseconds;
  }

  // The texts of these variants, compiled side by side.
  void prepare(const std::vector<Tunables>& variants) {
    std::vector<std::future<void>> compiling;
    std::vector<std::string> keys;
    for (const Tunables& tunables : variants) {
      if (!exists(tunables)) continue;
      const std::string key = key_of(tunables);
      if (plans_.contains(key) || std::count(keys.begin(), keys.end(), key)) continue;
      keys.push_back(key);
      compiling.push_back(std::async(std::launch::async, [this, tunables] {
        try {
          compile(tunables);
        } catch (const std::exception& error) {
          fmt::print("{} failed: {}\n", key_of(tunables), error.what());
        }
      }));
    }
    for (std::future<void>& each : compiling) each.get();
  }

  // Of all outputs so far.
  bool all_equal() const { return all_equal_; }

  double megabytes() const {
    return 1e-6 * static_cast<double>(problem_.h * input_stride_ + P(problem_) * output_stride_);
  }
  double multiply_adds() const {
    const std::int64_t taps = (task_.second ? 2 : 1) * problem_.r * problem_.s;
    return static_cast<double>(P(problem_) * Q(problem_) * problem_.c * taps);
  }

 private:
  bool serves(const operations::Filter2dSolver& solver) const {
    return solver.offer(task_, context_.impl(), {}).offer() != nullptr;
  }
  operations::Answer offer_of(const Tunables& tunables) const {
    return operations::strip_offer(task_, context_.impl(), {.first = as_struct(tunables), .most = largest_kernel_side},
                                   {});
  }
  bool exists(const Tunables& tunables) const {
    return offer_of(tunables).offer() != nullptr && (!tunables.at("DENORMAL") || problem_.input == DataType::u8) &&
           (tunables.at("DOTS") < 2 || operations::has_lone_column(problem_)) &&
           (!tunables.at("DOTS") || serves(operations::integer_dot_gpu_strips()));
  }
  std::string key_of(const Tunables& tunables) const {
    std::string key;
    for (const auto& [name, value] : tunables) key += fmt::format("{}={},", name, value);
    return key;
  }
  void compile(const Tunables& tunables) {
    const operations::Answer answer = offer_of(tunables);
    Filter2dPlan plan(
        Plan(choice::record_of(context_, problem_, operations::AnyTask(task_), key_of(tunables), *answer.offer())));
    const std::lock_guard lock(mutex_);
    plans_.emplace(key_of(tunables), std::move(plan));
  }
  void clear_output() {
    std::memset(found_.data(), 0xA5, found_.size());
    queue_.upload(images_[0].output, 0, found_.data(), static_cast<std::int64_t>(found_.size())).wait();
  }
  void compare() {
    queue_.download(found_.data(), images_[0].output, 0, static_cast<std::int64_t>(found_.size())).wait();
    const auto different = std::mismatch(found_.begin(), found_.end(), expected_.begin());
    if (different.first == found_.end()) return;
    all_equal_ = false;
    const auto at = different.first - found_.begin();
    fmt::print("WRONG at byte {} of row {}: {} instead of {}\n", at % output_stride_, at / output_stride_,
               static_cast<int>(*different.first), static_cast<int>(*different.second));
  }
  double timed(const operations::Filter2dSolver& solver) {
    return timed(Filter2dPlan(bench::plan_of(context_, problem_, operations::AnyTask(task_), solver)));
  }
  double timed(const Filter2dPlan& plan) {
    const Buffer workspace = context_.allocate(plan.workspace_bytes());
    return timed([&](const Images& images) {
      return plan.run(queue_, {.input = images.input, .output = images.output, .workspace = workspace});
    });
  }
  // Median of milliseconds; the output of the first images is that of the last run on them.
  template <typename Run>
  requires std::invocable<Run, const Images&>
  double timed(const Run& run) {
    for (const Images& images : images_) run(images).wait();
    std::vector<double> all;
    for (int i = 0; i < 15; ++i) {
      Event event = run(images_[static_cast<std::size_t>(i) % images_.size()]);
      event.wait();
      all.push_back(1e3 * event.seconds());
    }
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }

  Context context_;
  Queue queue_;
  Filter2dProblem problem_;
  Filter2dTask task_;
  std::int64_t input_stride_ = 0, output_stride_ = 0;
  std::vector<Images> images_;
  std::vector<std::byte> expected_, found_;
  bool all_equal_ = true;
  std::mutex mutex_;
  std::map<std::string, Filter2dPlan> plans_;
};

// What each tunable may be, in the order in which they are changed.
const std::vector<std::pair<std::string, std::vector<std::int64_t>>> choices = {
    {"DOTS", {0, 1, 2}},     {"V", {4, 8, 16}},        {"ROWS", {0, 16, 32, 64, 128}},
    {"PREFETCH", {0, 1, 2}}, {"AHEAD", {0, 3, 6, 12}}, {"RING", {0, 1}},
    {"DENORMAL", {0, 1}},    {"HALO", {1, 2, 4}},      {"STRIP_GROUP", {64, 128, 256}},
    {"REST", {1, 2, 8}}};

// Whether all outputs were equal.
bool study(const Context& context, const std::string& text, const devices::Device::Peaks& peaks, int rounds,
           const Tunables& start) {
  const auto began = std::chrono::steady_clock::now();
  Study of(context, text);
  const double floor = std::max(of.megabytes() / peaks.gbps, 2e-9 * of.multiply_adds() / peaks.tflops);
  const double reference = of.reference();
  fmt::print("\n== {} on {}\nfloor {:.4f} ms ({} binds); one element a work item: {:.4f} ms, {:.1f} %\n", text,
             context.device().id, floor, floor > of.megabytes() / peaks.gbps ? "fma" : "memory", reference,
             100 * floor / reference);
  for (const operations::Filter2dSolver* const solver : of.by_strips()) {
    const double shipped = of.shipped(*solver);
    fmt::print("{}: {:.4f} ms, {:.1f} %\n", solver->id(), shipped, 100 * floor / shipped);
  }
  Tunables best = start;
  double fastest = 1e9;
  for (int round = 0; round < rounds; ++round)
    for (const auto& [name, values] : choices) {
      std::vector<Tunables> variants(values.size(), best);
      for (std::size_t i = 0; i < values.size(); ++i) variants[i][name] = values[i];
      of.prepare(variants);
      std::string line = fmt::format("{:<12}", name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool known = variants[i] == best && fastest < 1e9;
        const double milliseconds = known ? fastest : of.strips(variants[i]);
        line +=
            milliseconds < 0 ? fmt::format("  {}: -", values[i]) : fmt::format("  {}: {:.4f}", values[i], milliseconds);
        if (milliseconds > 0 && milliseconds < 0.995 * fastest) fastest = milliseconds, best = variants[i];
      }
      fmt::print("{}\n", line);
      std::fflush(stdout);
    }
  std::string found;
  for (const auto& [name, value] : best) found += fmt::format(" {}={}", name, value);
  fmt::print("BEST {} | {} | {:.4f} ms {:.1f} % of the floor, {:.0f} GB/s |{} | {:.1f} s\n", context.device().id, text,
             fastest, 100 * floor / fastest, of.megabytes() / fastest, found,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  return of.all_equal();
}

// Into `tunables`, which knows all names.
void parse_start(const std::string& text, Tunables& tunables) {
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) {
    const std::size_t equals = word.find('=');
    const auto tunable = tunables.find(word.substr(0, equals));
    if (equals == std::string::npos || tunable == tunables.end())
      throw bad_input(fmt::format("--start {}: must be NAME=VALUE of a tunable, as in ROWS=32,V=8", word));
    tunable->second = std::atoll(word.c_str() + equals + 1);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::string device_id = "cuda";
  double seconds = 100;
  int rounds = 1;
  Tunables start = {{"V", 16},       {"ROWS", 0},          {"PREFETCH", 1}, {"AHEAD", 0}, {"HALO", 1},
                    {"DENORMAL", 0}, {"STRIP_GROUP", 128}, {"REST", 8},     {"RING", 0},  {"DOTS", 0}};
  std::vector<std::string> problems =
      bench::parse_arguments(argc, argv,
                             {{"--device", [&](const std::string& value) { device_id = value; }},
                              {"--seconds", [&](const std::string& value) { seconds = std::atof(value.c_str()); }},
                              {"--rounds", [&](const std::string& value) { rounds = std::atoi(value.c_str()); }},
                              {"--start", [&](const std::string& value) { parse_start(value, start); }}});
  const Context context = bench::open_gpu(device_id);
  const devices::Device::Peaks peaks = context.impl()->measure_peaks(2);
  fmt::print("{} {}: {:.1f} TFLOP/s, {:.0f} GB/s\n", context.device().id, context.device().name, peaks.tflops,
             peaks.gbps);
  if (problems.empty())
    for (const char* const problem : {"u8 h5600w5600c3r3s3 kernel:random", "u8 h5600w5600c3r7s7 kernel:random",
                                      "u8 h5600w5600c3r3s3 kernel:sobel", "f32 h5600w5600c3r3s3 kernel:random",
                                      "u8 h5600w5600c3r5s5 kernel:random", "u16 h5600w5600c3r3s3 kernel:random",
                                      "f16 h5600w5600c3r3s3 kernel:random", "u8 h5600w5600c1r3s3 kernel:random",
                                      "f32 h5600w5600c3r7s7 kernel:random", "u8 h5600w5601c3r3s3 kernel:random",
                                      "u8 h5600w5600c3r5s5 kernel:integer", "u8 h5600w5600c3r7s7 kernel:integer"})
      problems.push_back(fmt::format("filter2d {}", problem));
  const auto began = std::chrono::steady_clock::now();
  bool equal = true;
  for (const std::string& problem : problems) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() > seconds) {
      fmt::print("out of time before {}\n", problem);
      continue;
    }
    Tunables own = start;
    const auto parsed = get<Filter2dProblem>(parse_problem(problem));
    own["V"] = std::min<std::int64_t>(own["V"], 16 / size_of(parsed.input));
    equal = study(context, problem, peaks, rounds, own) && equal;
  }
  return equal ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "gpu_strips: error: {}\n", error.what());
  return 2;
}
