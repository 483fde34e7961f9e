// omniconv's direct filter beside OpenCV's filter2D: same image, same weights, same border, alternating in one run.
//
//   filter2d_vs_opencv [--threads N] [--seconds S] [--json FILE] [PROBLEM...]
//
// By default 24 megapixels of RGB in u8, u16 and f32; random full-rank weights that are no integers. OpenCV may use as
// many threads as omniconv.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

#include "core/build_info.h"
#include "devices/device.h"
#include "image/kernels.h"
#include "omniconv/context.h"
#include "omniconv/filter2d.h"
#include "ops/random_image.h"
#include "timing/stopwatch.h"

namespace {

using namespace omniconv;

int depth_of(DataType type) {
  switch (type) {
    case DataType::u8: return CV_8U;
    case DataType::u16: return CV_16U;
    default: return CV_32F;
  }
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The largest difference of two outputs, in stored values: a check that both did the same work.
double largest_difference(const cv::Mat& a, const cv::Mat& b) {
  return cv::norm(a.reshape(1), b.reshape(1), cv::NORM_INF);
}

constexpr int runs_in_turn = 5;

nlohmann::json compare(const Context& context, const std::string& text, double seconds) {
  const auto problem = std::get<Filter2dProblem>(parse_problem(text));
  const image::Kernel kernel = image::kernel_for(problem, 1);
  Filter filter{.weights = kernel.weights};
  const Filter2dPlan plan(context, problem, filter);
  const Filter2dTask task = task_for(problem, filter);
  const int type = CV_MAKETYPE(depth_of(problem.input), static_cast<int>(problem.c));
  cv::Mat input(static_cast<int>(problem.h), static_cast<int>(problem.w), type), theirs(input.size(), type),
      ours(input.size(), type);
  const std::size_t bytes = input.total() * input.elemSize();
  fill_random(task, 1, {reinterpret_cast<std::byte*>(input.data), bytes});
  cv::Mat weights(static_cast<int>(problem.r), static_cast<int>(problem.s), CV_32F);
  for (std::size_t i = 0; i < filter.weights.size(); ++i)
    weights.ptr<float>()[i] = static_cast<float>(filter.weights[i]);

  Queue queue = context.make_queue();
  const Buffer x = context.borrow(input.data, static_cast<std::int64_t>(bytes));
  const Buffer y = context.borrow(ours.data, static_cast<std::int64_t>(bytes));
  const Buffer workspace = context.allocate(plan.workspace_bytes());
  const auto run_ours = [&] { plan.run(queue, {.input = x, .output = y, .workspace = workspace}).wait(); };
  const auto run_theirs = [&] { cv::filter2D(input, theirs, -1, weights, cv::Point(-1, -1), 0, cv::BORDER_REPLICATE); };
  run_ours();
  run_theirs();
  std::vector<double> our_seconds, their_seconds;
  // Several runs of one, then of the other: a second core that slept through a peer's single thread is slow to wake,
  // which would be counted against every run that follows one of the peer's.
  for (double spent = 0; spent < seconds || our_seconds.size() < runs_in_turn;) {
    for (int i = 0; i < runs_in_turn; ++i) spent += our_seconds.emplace_back(seconds_of(run_ours));
    for (int i = 0; i < runs_in_turn; ++i) spent += their_seconds.emplace_back(seconds_of(run_theirs));
  }
  const timing::Summary a = timing::summarize(our_seconds), b = timing::summarize(their_seconds);
  const double megapixels = static_cast<double>(problem.h * problem.w) / 1e6;
  fmt::print("{:<40} {:>8.0f} {:>8.0f} {:>7.2f} [{:.2f}, {:.2f}] {:>10.3g}  {}\n", text, megapixels / a.median,
             megapixels / b.median, b.median / a.median, b.low / a.high, b.high / a.low,
             largest_difference(ours, theirs), plan.solver());
  return {{"problem", text},
          {"solver", plan.solver()},
          {"median_ms", a.median * 1e3},
          {"opencv_median_ms", b.median * 1e3},
          {"ratio", b.median / a.median},
          {"ratio_ci95", {b.low / a.high, b.high / a.low}},
          {"samples", a.samples},
          {"largest_difference", largest_difference(ours, theirs)}};
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 2;
  double seconds = 3;
  std::string json_path;
  std::vector<std::string> problems;
  for (int i = 1; i < argc; ++i) {
    const bool value = i + 1 < argc;
    if (value && std::strcmp(argv[i], "--threads") == 0)
      threads = std::atoi(argv[++i]);
    else if (value && std::strcmp(argv[i], "--seconds") == 0)
      seconds = std::atof(argv[++i]);
    else if (value && std::strcmp(argv[i], "--json") == 0)
      json_path = argv[++i];
    else
      problems.emplace_back(argv[i]);
  }
  if (problems.empty())
    for (const char* type : {"u8", "u16", "f32"})
      for (const char* size : {"r3s3", "r5s5", "r7s7"})
        problems.push_back(fmt::format("filter2d {} h4000w6000c3{}", type, size));
  const Context context({.device = "cpu", .threads = threads});
  cv::setNumThreads(threads);
  const auto peaks = context.impl()->measure_peaks(1);
  nlohmann::json json = {
      {"schema", "omniconv-compare/1"}, {"version", build_version()},
      {"commit", build_commit()},       {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"cpu", context.device().name},   {"threads", threads},
      {"opencv", CV_VERSION},           {"peak_tflops", peaks.tflops},
      {"peak_gbps", peaks.gbps},        {"results", nlohmann::json::array()}};
  fmt::print("{}, {} threads, {:.3f} TFLOP/s of multiply-adds, {:.1f} GB/s of copying; OpenCV {}\n",
             context.device().name, threads, peaks.tflops, peaks.gbps, CV_VERSION);
  fmt::print("{:<40} {:>8} {:>8} {:>7} {:<14} {:>8}\n", "problem", "Mpixel/s", "OpenCV", "ratio", "95 %", "max diff");
  for (const std::string& problem : problems) json["results"].push_back(compare(context, problem, seconds));
  if (!json_path.empty()) std::ofstream(json_path) << json.dump(2) << "\n";
}
