// omniconv beside OpenCV: same image, same weights, same border, alternating in one run. The peer is what OpenCV has
// for the kernel: GaussianBlur, blur, Sobel twice with magnitude, else filter2D.
//
//   filter2d_vs_opencv [--threads N] [--seconds S] [--json FILE] [PROBLEM...]
//
// By default 24 megapixels of RGB in u8, u16 and f32; weights random (of full rank, no integers) and small integers,
// then the named kernels. OpenCV may use as many threads as omniconv.
#include <cstdlib>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "comparing.h"
#include "devices/device.h"
#include "omniconv/context.h"
#include "omniconv/filter2d.h"
#include "operations/filter2d/kernels.h"
#include "operations/filter2d/random_image.h"

namespace {

using namespace omniconv;
using bench::seconds_of;

int depth_of(DataType type) {
  switch (type) {
    case DataType::u8: return CV_8U;
    case DataType::u16: return CV_16U;
    default: return CV_32F;
  }
}

// The largest difference of two outputs, in stored values: a check that both did the same work.
double largest_difference(const cv::Mat& a, const cv::Mat& b) {
  return cv::norm(a.reshape(1), b.reshape(1), cv::NORM_INF);
}

constexpr int runs_in_turn = 5;

// What OpenCV has for a kernel.
struct Peer {
  std::string name;
  std::function<void(const cv::Mat& input, cv::Mat& output)> run;
};

Peer peer_for(const Filter2dProblem& problem, const Filter& filter) {
  constexpr int border = cv::BORDER_REPLICATE;
  const cv::Size size(static_cast<int>(problem.s), static_cast<int>(problem.r));
  const std::string kernel = problem.kernel;
  if (kernel == "sobel")
    return {"Sobel, Sobel, magnitude", [](const cv::Mat& input, cv::Mat& output) {
              static cv::Mat gx, gy, magnitude;
              cv::Sobel(input, gx, CV_32F, 1, 0, 3, 1, 0, border);
              cv::Sobel(input, gy, CV_32F, 0, 1, 3, 1, 0, border);
              cv::magnitude(gx, gy, magnitude);
              magnitude.convertTo(output, input.depth());
            }};
  if (kernel.starts_with("gaussian")) {
    // Given, since OpenCV would take another for small sizes: that of omniconv's default.
    const double sigma = 0.3 * ((static_cast<double>(problem.s) - 1) / 2 - 1) + 0.8;
    return {"GaussianBlur",
            [=](const cv::Mat& input, cv::Mat& output) { cv::GaussianBlur(input, output, size, sigma, 0, border); }};
  }
  if (kernel.starts_with("box"))
    return {"blur",
            [=](const cv::Mat& input, cv::Mat& output) { cv::blur(input, output, size, cv::Point(-1, -1), border); }};
  cv::Mat weights(size, CV_32F);
  for (std::size_t i = 0; i < filter.weights.size(); ++i)
    weights.ptr<float>()[i] = static_cast<float>(filter.weights[i]);
  return {"filter2D", [=](const cv::Mat& input, cv::Mat& output) {
            cv::filter2D(input, output, -1, weights, cv::Point(-1, -1), 0, border);
          }};
}

nlohmann::json compare(const Context& context, const std::string& text, double seconds) {
  const auto problem = get<Filter2dProblem>(parse_problem(text));
  const Kernel kernel = kernel_for(problem, 1);
  const Filter filter{.weights = kernel.weights, .second_weights = kernel.second_weights};
  const Filter2dPlan plan(context, problem, filter);
  const Filter2dTask task = task_for(problem, filter);
  const int type = CV_MAKETYPE(depth_of(problem.input), static_cast<int>(problem.c));
  cv::Mat input(static_cast<int>(problem.h), static_cast<int>(problem.w), type), theirs(input.size(), type),
      ours(input.size(), type);
  const std::size_t bytes = input.total() * input.elemSize();
  fill_random(task, 1, {reinterpret_cast<std::byte*>(input.data), bytes});
  const Peer peer = peer_for(problem, filter);

  Queue queue = context.make_queue();
  const Buffer x = context.borrow(input.data, static_cast<std::int64_t>(bytes));
  const Buffer y = context.borrow(ours.data, static_cast<std::int64_t>(bytes));
  const Buffer workspace = context.allocate(plan.workspace_bytes());
  const auto run_ours = [&] { plan.run(queue, {.input = x, .output = y, .workspace = workspace}).wait(); };
  const auto run_theirs = [&] { peer.run(input, theirs); };
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
  fmt::print("{:<55} {:>8.0f} {:>8.0f} {:>7.2f} [{:.2f}, {:.2f}] {:>10.3g}  {}, {}\n", text, megapixels / a.median,
             megapixels / b.median, b.median / a.median, b.low / a.high, b.high / a.low,
             largest_difference(ours, theirs), plan.solver(), peer.name);
  return {{"problem", text},
          {"solver", plan.solver()},
          {"peer", peer.name},
          {"median_ms", a.median * 1e3},
          {"opencv_median_ms", b.median * 1e3},
          {"ratio", b.median / a.median},
          {"ratio_ci95", {b.low / a.high, b.high / a.low}},
          {"samples", a.samples},
          {"largest_difference", largest_difference(ours, theirs)}};
}

}  // namespace

int main(int argc, char** argv) try {
  int threads = 2;
  double seconds = 3;
  std::string json_path;
  std::vector<std::string> problems =
      bench::parse_arguments(argc, argv,
                             {{"--threads", [&](const std::string& value) { threads = std::atoi(value.c_str()); }},
                              {"--seconds", [&](const std::string& value) { seconds = std::atof(value.c_str()); }},
                              {"--json", [&](const std::string& value) { json_path = value; }}});
  if (problems.empty())
    for (const char* filter : {"u8 r3s3",
                               "u8 r5s5",
                               "u8 r7s7",
                               "u8 r15s15",
                               "u16 r3s3",
                               "u16 r5s5",
                               "u16 r7s7",
                               "f32 r3s3",
                               "f32 r5s5",
                               "f32 r7s7",
                               "f32 r15s15",
                               "u8 r3s3 kernel:integer",
                               "u8 r5s5 kernel:integer",
                               "u8 r7s7 kernel:integer",
                               "u8 r15s15 kernel:integer",
                               "u16 r3s3 kernel:integer",
                               "u16 r7s7 kernel:integer",
                               "u8 r5s5 kernel:gaussian:5",
                               "u8 r9s9 kernel:gaussian:9",
                               "f32 r9s9 kernel:gaussian:9",
                               "u8 r31s31 kernel:box:31",
                               "f32 r31s31 kernel:box:31",
                               "u8 r3s3 kernel:sobel"})
      problems.push_back(to_text(parse_problem(fmt::format("filter2d h4000w6000c3 {}", filter))));
  const Context context({.device = "cpu", .threads = threads});
  cv::setNumThreads(threads);
  const auto peaks = context.impl()->measure_peaks(1);
  nlohmann::json json = bench::report_head("omniconv-compare/1");
  json.update({{"cpu", context.device().name},
               {"threads", threads},
               {"opencv", CV_VERSION},
               {"peak_tflops", peaks.tflops},
               {"peak_gbps", peaks.gbps}});
  fmt::print("{}, {} threads, {:.3f} TFLOP/s of multiply-adds, {:.1f} GB/s of copying; OpenCV {}\n",
             context.device().name, threads, peaks.tflops, peaks.gbps, CV_VERSION);
  fmt::print("{:<55} {:>8} {:>8} {:>7} {:<14} {:>8}\n", "problem", "Mpixel/s", "OpenCV", "ratio", "95 %", "max diff");
  for (const std::string& problem : problems) json["results"].push_back(compare(context, problem, seconds));
  bench::write_report(json_path, json);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "filter2d_vs_opencv: error: {}\n", error.what());
  return 2;
}
