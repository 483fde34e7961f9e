// omniconv beside oneDNN on the CPU: the same layers in fp32 or bf16, nchw in and out on both sides, in turns within
// one run. oneDNN runs its direct convolution, weights that are read reordered beforehand into the form it likes best.
//
//   conv2d_vs_onednn [--threads N] [--seconds S] [--solver ID|auto] [--pass fwd|bwd_data|bwd_filter]
//                    [--type f32|bf16] [--best] [--prepared] [--json FILE] [PROBLEM...]
//
// --best lets oneDNN's Winograd convolution compete too, --prepared has omniconv's filters prepared beforehand as well.
// By default the layers of data/problems/anchors.txt with at most four images, in that pass. Run it with
// OMP_NUM_THREADS=N.
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
#include <type_traits>
#include <vector>

#include "comparing.h"
#include "core/convert.h"
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
  Peer(const Conv2dProblem& p, std::byte* x, std::byte* w, std::byte* y, bool blocked, dnnl::algorithm algorithm)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using dnnl::memory;
    using Tag = memory::format_tag;
    const auto type = p.type == DataType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    const bool grouped = p.groups > 1;
    const memory::dims of_x{p.n, p.c, p.h, p.w}, of_y{p.n, p.k, P(p), Q(p)};
    const memory::dims of_w =
        grouped ? memory::dims{p.groups, p.k / p.groups, p.c / p.groups, p.r, p.s} : memory::dims{p.k, p.c, p.r, p.s};
    const Tag form = blocked ? Tag::any : Tag::nchw;
    const memory::desc x_desc(of_x, type, form), y_desc(of_y, type, form), w_any(of_w, type, Tag::any);
    const memory::dims strides{p.stride_h, p.stride_w}, dilations{p.dilation_h - 1, p.dilation_w - 1},
        before{p.pad_top, p.pad_left}, after{p.pad_bottom, p.pad_right};
    const bool forward = p.pass == Pass::forward;
    const auto kind = forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
    // Since version 3 primitives are described at once, no operation before them.
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_forward::primitive_desc forwards(engine_, kind, algorithm, x_desc, w_any, y_desc, strides,
                                                             dilations, before, after);
    const auto backwards = [&](auto tag) {
      return typename decltype(tag)::type(engine_, algorithm, x_desc, w_any, y_desc, strides, dilations, before, after,
                                          forwards);
    };
#else
    const dnnl::convolution_forward::primitive_desc forwards(
        {kind, algorithm, x_desc, w_any, y_desc, strides, dilations, before, after}, engine_);
    const auto backwards = [&](auto tag) {
      return typename decltype(tag)::type({algorithm, x_desc, w_any, y_desc, strides, dilations, before, after},
                                          engine_, forwards);
    };
#endif
    memory given_x({of_x, type, Tag::nchw}, engine_, x), given_y({of_y, type, Tag::nchw}, engine_, y),
        given_w({of_w, type, grouped ? Tag::goihw : Tag::oihw}, engine_, w);
    if (forward) {
      implementation = forwards.impl_info_str();
      const memory own_x = reordered(given_x, forwards.src_desc()), own_w = made(given_w, forwards.weights_desc()),
                   own_y = like(given_y, forwards.dst_desc());
      steps_.push_back({dnnl::convolution_forward(forwards),
                        {{DNNL_ARG_SRC, own_x}, {DNNL_ARG_WEIGHTS, own_w}, {DNNL_ARG_DST, own_y}}});
      give_back(own_y, given_y);
    } else if (p.pass == Pass::backward_data) {
      const auto how = backwards(std::type_identity<dnnl::convolution_backward_data::primitive_desc>());
      implementation = how.impl_info_str();
      const memory own_y = reordered(given_y, how.diff_dst_desc()), own_w = made(given_w, how.weights_desc()),
                   own_x = like(given_x, how.diff_src_desc());
      steps_.push_back({dnnl::convolution_backward_data(how),
                        {{DNNL_ARG_DIFF_DST, own_y}, {DNNL_ARG_WEIGHTS, own_w}, {DNNL_ARG_DIFF_SRC, own_x}}});
      give_back(own_x, given_x);
    } else {
      const auto how = backwards(std::type_identity<dnnl::convolution_backward_weights::primitive_desc>());
      implementation = how.impl_info_str();
      const memory own_x = reordered(given_x, how.src_desc()), own_y = reordered(given_y, how.diff_dst_desc()),
                   own_w = like(given_w, how.diff_weights_desc());
      steps_.push_back({dnnl::convolution_backward_weights(how),
                        {{DNNL_ARG_SRC, own_x}, {DNNL_ARG_DIFF_DST, own_y}, {DNNL_ARG_DIFF_WEIGHTS, own_w}}});
      give_back(own_w, given_w);
    }
    implementation += fmt::format(", {} steps", steps_.size());
  }

  void run() {
    for (Step& step : steps_) step.primitive.execute(stream_, step.arguments);
    stream_.wait();
  }

  std::string implementation;

 private:
  dnnl::memory like(const dnnl::memory& given, const dnnl::memory::desc& form) {
    return given.get_desc() == form ? given : dnnl::memory(form, engine_);
  }
  // In another form, made beforehand.
  dnnl::memory made(dnnl::memory given, const dnnl::memory::desc& form) {
    dnnl::memory own(form, engine_);
    dnnl::reorder(given, own).execute(stream_, given, own);
    stream_.wait();
    return own;
  }
  // And in each run.
  dnnl::memory reordered(const dnnl::memory& given, const dnnl::memory::desc& form) {
    const dnnl::memory own = like(given, form);
    give_back(given, own);
    return own;
  }
  void give_back(const dnnl::memory& own, const dnnl::memory& given) {
    if (own.get_desc() != given.get_desc())
      steps_.push_back({dnnl::reorder(own, given), {{DNNL_ARG_FROM, own}, {DNNL_ARG_TO, given}}});
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };
  std::vector<Step> steps_;
};

// Elements of a type, in memory.
std::vector<std::byte> random_values(DataType type, std::int64_t count, std::uint64_t seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * size_of(type)));
  operations::fill_random(type, 0, seed, bytes);
  return bytes;
}

// The fastest of oneDNN's forms: nchw as it is, or its blocked forms with both reorderings in the run.
std::unique_ptr<Peer> best_peer(const Conv2dProblem& problem, std::byte* x, std::byte* w, std::byte* y,
                                bool with_winograd) {
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
  const DataType type = problem.type;
  std::vector<std::byte> x = random_values(type, elements.x, 1), w = random_values(type, elements.w, 2),
                         y = random_values(type, elements.y, 3);
  std::vector<std::byte>& written = problem.pass == Pass::forward ? y : problem.pass == Pass::backward_data ? x : w;
  std::vector<std::byte> other(written.size());
  const auto theirs_of = [&](std::vector<std::byte>& values) { return (&values == &written ? other : values).data(); };
  const auto borrow = [&](std::vector<std::byte>& values) {
    return Operand{context.borrow(values.data(), static_cast<std::int64_t>(values.size()))};
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
  const std::unique_ptr<Peer> peer = best_peer(problem, theirs_of(x), theirs_of(w), theirs_of(y), asked.best);
  const auto ours = [&] { plan.run(queue, run).wait(); };
  const auto theirs = [&] { peer->run(); };
  ours(), theirs();
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < other.size(); i += static_cast<std::size_t>(size_of(type))) {
    const double there = load_element(type, other.data() + i);
    difference = std::max(difference, std::fabs(load_element(type, written.data() + i) - there));
    largest = std::max(largest, std::fabs(there));
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
  if ((problem.type != DataType::f32 && problem.type != DataType::bf16) || problem.layout != Layout::nchw ||
      problem.flip || problem.bias || problem.relu || problem.accumulate)
    throw bad_input(fmt::format(
        "{}: the comparison is of convolutions in f32 or bf16 and nchw alone, as n1c64h28w28k64r3s3p1", text));
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
  std::string json_path, pass = "fwd", type = "f32";
  const std::vector<std::string> texts = bench::parse_arguments(
      argc, argv,
      {{"--threads", [&](const std::string& value) { threads = std::atoi(value.c_str()); }},
       {"--seconds", [&](const std::string& value) { asked.seconds = std::atof(value.c_str()); }},
       {"--solver", [&](const std::string& value) { asked.solver = value; }},
       {"--pass", [&](const std::string& value) { pass = value; }},
       {"--type", [&](const std::string& value) { type = value; }},
       {"--json", [&](const std::string& value) { json_path = value; }}},
      {{"--best", [&] { asked.best = true; }}, {"--prepared", [&] { asked.prepared = true; }}});
  std::vector<Conv2dProblem> problems;
  for (const std::string& text : texts) problems.push_back(layer_of(pass + ' ' + type + ' ' + text));
  if (problems.empty()) {
    const Conv2dProblem like = layer_of(pass + ' ' + type + " n1c1h1w1k1r1s1");
    for (Conv2dProblem& problem : problems = anchors()) problem.pass = like.pass, problem.type = like.type;
  }
  const Context context({.device = "cpu", .threads = threads});
  const auto peaks = context.impl()->measure_peaks(1);
  const dnnl_version_t* const version = dnnl_version();
  const std::string onednn = fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
  nlohmann::json json = bench::report_head("omniconv-compare-conv2d/1");
  json.update({{"cpu", context.device().name},
               {"threads", threads},
               {"onednn", onednn},
               {"peak_tflops", peaks.tflops},
               {"pass", pass},
               {"type", type},
               {"peer", asked.best ? "best" : "direct"},
               {"prepared", asked.prepared}});
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
