// omniconv beside oneDNN on the CPU: the same layers forward in fp32, nchw in and out on both sides, in turns within
// one run. oneDNN runs its direct convolution, its weights reordered beforehand into the form it likes best.
//
//   conv2d_vs_onednn [--threads N] [--seconds S] [--solver ID] [--best] [--prepared] [--json FILE] [PROBLEM...]
//
// --best lets oneDNN's Winograd convolution compete too, --prepared has omniconv's filters prepared beforehand as well.
// By default the layers of data/problems/anchors.txt with at most four images. Run it with OMP_NUM_THREADS=N.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "comparing.h"
#include "devices/device.h"
#include "omniconv/conv2d.h"
#include "operations/random.h"

namespace {

using namespace omniconv;
using bench::seconds_of;

constexpr int runs_in_turn = 5;
// Before each turn: the other's threads are busy waiting for more work, those of libgomp for about 15 ms.
constexpr std::chrono::milliseconds pause(50);

// oneDNN's convolution of one problem, over memory of the caller's.
class Peer {
 public:
  Peer(const Conv2dProblem& p, float* x, float* w, float* y, bool blocked, dnnl::algorithm algorithm)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using dnnl::memory;
    const auto f32 = memory::data_type::f32;
    const bool grouped = p.groups > 1;
    const memory::dims of_x{p.n, p.c, p.h, p.w}, of_y{p.n, p.k, P(p), Q(p)};
    const memory::dims of_w =
        grouped ? memory::dims{p.groups, p.k / p.groups, p.c / p.groups, p.r, p.s} : memory::dims{p.k, p.c, p.r, p.s};
    const memory::format_tag form = blocked ? memory::format_tag::any : memory::format_tag::nchw;
    const memory::desc x_plain(of_x, f32, memory::format_tag::nchw), y_plain(of_y, f32, memory::format_tag::nchw),
        x_desc(of_x, f32, form), y_desc(of_y, f32, form), w_any(of_w, f32, memory::format_tag::any),
        w_plain(of_w, f32, grouped ? memory::format_tag::goihw : memory::format_tag::oihw);
    const dnnl::convolution_forward::desc what(dnnl::prop_kind::forward_inference, algorithm, x_desc, w_any, y_desc,
                                               {p.stride_h, p.stride_w}, {p.dilation_h - 1, p.dilation_w - 1},
                                               {p.pad_top, p.pad_left}, {p.pad_bottom, p.pad_right});
    const dnnl::convolution_forward::primitive_desc how(what, engine_);
    implementation = how.impl_info_str();
    memory plain(w_plain, engine_, w), liked(how.weights_desc(), engine_);
    dnnl::reorder(plain, liked).execute(stream_, plain, liked);
    stream_.wait();
    memory given_x(x_plain, engine_, x), given_y(y_plain, engine_, y), own_x = given_x, own_y = given_y;
    if (how.src_desc() != x_plain) {
      own_x = memory(how.src_desc(), engine_);
      steps_.push_back({dnnl::reorder(given_x, own_x), {{DNNL_ARG_FROM, given_x}, {DNNL_ARG_TO, own_x}}});
    }
    if (how.dst_desc() != y_plain) own_y = memory(how.dst_desc(), engine_);
    steps_.push_back(
        {dnnl::convolution_forward(how), {{DNNL_ARG_SRC, own_x}, {DNNL_ARG_WEIGHTS, liked}, {DNNL_ARG_DST, own_y}}});
    if (how.dst_desc() != y_plain)
      steps_.push_back({dnnl::reorder(own_y, given_y), {{DNNL_ARG_FROM, own_y}, {DNNL_ARG_TO, given_y}}});
    implementation += fmt::format(", {} steps", steps_.size());
  }

  void run() {
    for (Step& step : steps_) step.primitive.execute(stream_, step.arguments);
    stream_.wait();
  }

  std::string implementation;

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };
  std::vector<Step> steps_;
};

std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * sizeof(float));
  operations::fill_random(DataType::f32, 0, seed, bytes);
  std::vector<float> values(static_cast<std::size_t>(count));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The fastest of oneDNN's forms: nchw as it is, or its blocked forms with both reorderings in the run.
std::unique_ptr<Peer> best_peer(const Conv2dProblem& problem, float* x, float* w, float* y, bool with_winograd) {
  const auto best_of_three = [](Peer& one) {
    double best = seconds_of([&] { one.run(); });
    for (int i = 0; i < 3; ++i) best = std::min(best, seconds_of([&] { one.run(); }));
    return best;
  };
  std::unique_ptr<Peer> fastest;
  double least = 0;
  const auto try_one = [&](bool blocked, dnnl::algorithm algorithm) {
    auto peer = std::make_unique<Peer>(problem, x, w, y, blocked, algorithm);
    const double seconds = best_of_three(*peer);
    if (fastest && seconds >= least) return;
    fastest = std::move(peer);
    least = seconds;
  };
  for (const bool blocked : {false, true}) try_one(blocked, dnnl::algorithm::convolution_direct);
  for (const bool blocked : {false, true}) try {
      if (with_winograd) try_one(blocked, dnnl::algorithm::convolution_winograd);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
  return fastest;
}

// What is asked for on the command line.
struct Asked {
  std::string solver = "conv2d/im2col_gemm";
  double seconds = 1.5;
  bool best = false, prepared = false;
};

nlohmann::json compare(const Context& context, const Conv2dProblem& problem, const Asked& asked) {
  const Conv2dElements elements = elements_of(problem);
  std::vector<float> x = random_values(elements.x, 1), w = random_values(elements.w, 2),
                     y(static_cast<std::size_t>(elements.y)), other(y.size());
  const auto borrow = [&](std::vector<float>& values) {
    return Operand{context.borrow(values.data(), static_cast<std::int64_t>(values.size() * sizeof(float)))};
  };
  SolverOptions options;
  if (asked.solver != "auto") options.allow = {asked.solver};
  if (asked.prepared) options.prepared = {"w"};
  const Conv2dPlan plan(context, problem, options);
  Conv2dRun run{.x = borrow(x),
                .w = borrow(w),
                .y = borrow(y),
                .workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))};
  Queue queue = context.make_queue();
  if (asked.prepared) {
    const auto format = plan.plan().format("w");
    const Buffer prepared = context.allocate(format->bytes);
    plan.plan().prepare(queue, "w", run.w, prepared).wait();
    run.w = {prepared, 0, format};
  }
  const std::unique_ptr<Peer> peer = best_peer(problem, x.data(), w.data(), other.data(), asked.best);
  const auto ours = [&] { plan.run(queue, run).wait(); };
  const auto theirs = [&] { peer->run(); };
  ours(), theirs();
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    difference = std::max(difference, std::fabs(static_cast<double>(y[i]) - static_cast<double>(other[i])));
    largest = std::max(largest, std::fabs(static_cast<double>(other[i])));
  }
  std::vector<double> of_ours, of_theirs, ratios;
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> budget(asked.seconds);
  while (std::chrono::steady_clock::now() - begin < budget || ratios.size() < 3) {
    std::vector<double> a, b;
    std::this_thread::sleep_for(pause);
    for (int i = 0; i < runs_in_turn; ++i) a.push_back(seconds_of(ours));
    std::this_thread::sleep_for(pause);
    for (int i = 0; i < runs_in_turn; ++i) b.push_back(seconds_of(theirs));
    of_ours.insert(of_ours.end(), a.begin(), a.end());
    of_theirs.insert(of_theirs.end(), b.begin(), b.end());
    ratios.push_back(timing::summarize(b).median / timing::summarize(a).median);
  }
  const timing::Summary time = timing::summarize(of_ours), peer_time = timing::summarize(of_theirs),
                        ratio = timing::summarize(ratios);
  const double flops =
      2 * static_cast<double>(elements.y) * static_cast<double>(problem.c / problem.groups * problem.r * problem.s);
  fmt::print("{:<34} {:>8.1f} {:>8.1f} {:>7.2f} {:.2f}..{:.2f} {:>9.2g} {} | {}\n", to_text(problem),
             flops / time.median / 1e9, flops / peer_time.median / 1e9, ratio.median, ratio.low, ratio.high,
             difference / largest, plan.solver(), peer->implementation);
  std::fflush(stdout);
  return {{"problem", to_text(problem)},
          {"solver", plan.solver()},
          {"gflops", flops / time.median / 1e9},
          {"onednn_gflops", flops / peer_time.median / 1e9},
          {"median_ms", time.median * 1e3},
          {"onednn_median_ms", peer_time.median * 1e3},
          {"ratio", ratio.median},
          {"ratio_ci95", {ratio.low, ratio.high}},
          {"onednn", peer->implementation},
          {"largest_difference", difference / largest}};
}

Conv2dProblem layer_of(const std::string& text) {
  const auto problem = get<Conv2dProblem>(parse_problem(text));
  if (problem.pass != Pass::forward || problem.type != DataType::f32 || problem.layout != Layout::nchw ||
      problem.flip || problem.bias || problem.relu || problem.accumulate)
    throw bad_input(fmt::format(
        "{}: the comparison is of forward convolutions in fp32 and nchw alone, as n1c64h28w28k64r3s3p1", text));
  return problem;
}

std::vector<Conv2dProblem> anchors() {
  const std::string path = OMNICONV_SOURCE_DIR "/data/problems/anchors.txt";
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::vector<Conv2dProblem> problems;
  for (const Problem& problem : parse_problem_list(text.str(), path)) {
    problems.push_back(get<Conv2dProblem>(problem));
    problems.back().n = std::min<std::int64_t>(problems.back().n, 4);
    problems.back().name.clear();
  }
  return problems;
}

}  // namespace

int main(int argc, char** argv) try {
  int threads = 2;
  Asked asked;
  std::string json_path;
  const std::vector<std::string> texts = bench::parse_arguments(
      argc, argv,
      {{"--threads", [&](const std::string& value) { threads = std::atoi(value.c_str()); }},
       {"--seconds", [&](const std::string& value) { asked.seconds = std::atof(value.c_str()); }},
       {"--solver", [&](const std::string& value) { asked.solver = value; }},
       {"--json", [&](const std::string& value) { json_path = value; }}},
      {{"--best", [&] { asked.best = true; }}, {"--prepared", [&] { asked.prepared = true; }}});
  std::vector<Conv2dProblem> problems;
  for (const std::string& text : texts) problems.push_back(layer_of(text));
  if (problems.empty()) problems = anchors();
  const Context context({.device = "cpu", .threads = threads});
  const auto peaks = context.impl()->measure_peaks(1);
  const dnnl_version_t* const version = dnnl_version();
  const std::string onednn = fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
  nlohmann::json json = bench::report_head("omniconv-compare-conv2d/1");
  json.update(
      {{"cpu", context.device().name}, {"threads", threads}, {"onednn", onednn}, {"peak_tflops", peaks.tflops}});
  fmt::print("{}, {} threads, {:.3f} TFLOP/s of multiply-adds; oneDNN {}\n{:<34} {:>8} {:>8} {:>7} {:<10} {:>9}\n",
             context.device().name, threads, peaks.tflops, onednn, "problem", "GFLOP/s", "oneDNN", "ratio", "95 %",
             "difference");
  double logarithms = 0;
  for (const Conv2dProblem& problem : problems) {
    json["results"].push_back(compare(context, problem, asked));
    logarithms += std::log(json["results"].back()["ratio"].get<double>());
  }
  json["geometric_mean"] = std::exp(logarithms / static_cast<double>(problems.size()));
  fmt::print("geometric mean of the ratios: {:.3f}\n", json["geometric_mean"].get<double>());
  bench::write_report(json_path, json);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "conv2d_vs_onednn: error: %s\n", error.what());
  return 2;
}
