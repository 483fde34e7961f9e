// Filtering from pageable host memory to pageable host memory, beside the same copies with the kernels left out: what
// the filter costs once an image has to travel. Both go through HostFilter2d, in turn; only the plan differs.
//
//   gpu_end_to_end [--device cuda[:0]|opencl[:0.0]] [--rounds N] [--direct] [--strip-rows N] [--in-flight N]
//                  [--copy-threads N] [--device-memory BYTES] [--json FILE] [PROBLEM...]
//
// The last line of each problem is a ratio: filter to copies. Outputs of integer images are compared with the CPU's;
// exit status 1 if one differs.
#include <algorithm>
#include <cstdlib>
#include <span>

#include "comparing.h"
#include "omniconv/filter2d_host.h"
#include "operations/filter2d/filter2d.h"
#include "operations/filter2d/kernels.h"
#include "operations/filter2d/random_image.h"

namespace {

using namespace omniconv;

// Copies as another plan's strips are copied, and leaves the output as it is.
class CopiesAlone final : public operations::Filter2dPlanBody {
 public:
  explicit CopiesAlone(const Filter2dPlan& other) : workspace_bytes_(other.workspace_bytes()) {
    task = other.impl()->task;
    solver_id = "copies alone";
    device = other.impl()->device;
  }
  std::int64_t workspace_bytes() const override { return workspace_bytes_; }
  Event run(devices::Queue&, const Filter2dRun&) const override { return {}; }

 private:
  std::int64_t workspace_bytes_;
};

nlohmann::json as_json(const timing::Summary& seconds, const HostFilter2dReport& last) {
  return {{"median_ms", seconds.median * 1e3},
          {"min_ms", seconds.minimum * 1e3},
          {"ci95_ms", {seconds.low * 1e3, seconds.high * 1e3}},
          {"samples", seconds.samples},
          {"last",
           {{"stage_in_ms", last.stage_in_seconds * 1e3},
            {"copy_in_ms", last.upload_seconds * 1e3},
            {"kernel_ms", last.kernel_seconds * 1e3},
            {"copy_out_ms", last.download_seconds * 1e3},
            {"stage_out_ms", last.stage_out_seconds * 1e3}}}};
}

void print(const char* name, const timing::Summary& seconds, const HostFilter2dReport& last, double bytes) {
  fmt::print(
      "  {:<7} {:8.2f} ms [{:.2f}, {:.2f}], {:5.1f} GB/s each way; in the last run, overlapping: staging in {:.1f} ms, "
      "copies in {:.1f}, kernels {:.1f}, copies out {:.1f}, staging out {:.1f}\n",
      name, seconds.median * 1e3, seconds.low * 1e3, seconds.high * 1e3, bytes / seconds.median / 1e9,
      last.stage_in_seconds * 1e3, last.upload_seconds * 1e3, last.kernel_seconds * 1e3, last.download_seconds * 1e3,
      last.stage_out_seconds * 1e3);
}

// Whether the output is the CPU's; floating images are not compared.
std::string verdict(const Filter2dProblem& problem, const Filter& filter, const std::vector<std::byte>& input,
                    const std::vector<std::byte>& output) {
  if (!is_integer(problem.input) || !is_integer(problem.output)) return "not compared";
  const Context cpu({.device = "cpu"});
  std::vector<std::byte> expected(output.size());
  HostFilter2d(cpu, Filter2dPlan(cpu, problem, filter)).run(input.data(), 0, expected.data(), 0);
  return output == expected ? "equal" : "DIFFERENT";
}

nlohmann::json measure(const Context& context, const std::string& text, const HostFilter2dOptions& options,
                       int rounds) {
  const auto problem = get<Filter2dProblem>(parse_problem(text));
  const Kernel kernel = kernel_for(problem, 1);
  const Filter filter{.weights = kernel.weights, .second_weights = kernel.second_weights};
  const Filter2dPlan plan(context, problem, filter);
  std::vector<std::byte> input(static_cast<std::size_t>(problem.h * problem.w * problem.c * size_of(problem.input)));
  std::vector<std::byte> output(
      static_cast<std::size_t>(P(problem) * Q(problem) * problem.c * size_of(problem.output)));
  // A part of it, over and over: making random numbers takes longer than all the rest.
  const std::size_t part = std::min<std::size_t>(input.size(), std::size_t{48} << 20);
  fill_random(plan.impl()->task, 1, std::span(input).first(part));
  for (std::size_t i = part; i < input.size(); ++i) input[i] = input[i - part];

  HostFilter2d with(context, plan, options);
  HostFilter2d without(context, Filter2dPlan(std::make_shared<CopiesAlone>(plan)), options);
  HostFilter2dReport filtered, copied;
  std::vector<double> with_seconds, without_seconds, ratios;
  for (int i = -1; i < rounds; ++i) {  // the first pair warms up
    copied = without.run(input.data(), 0, output.data(), 0);
    std::fill(output.begin(), output.end(), std::byte{0xA5});
    filtered = with.run(input.data(), 0, output.data(), 0);
    if (i < 0) continue;
    with_seconds.push_back(filtered.total_seconds);
    without_seconds.push_back(copied.total_seconds);
    ratios.push_back(filtered.total_seconds / copied.total_seconds);
  }
  const std::string bits = verdict(problem, filter, input, output);
  const timing::Summary a = timing::summarize(with_seconds), b = timing::summarize(without_seconds),
                        ratio = timing::summarize(ratios);
  const auto bytes = static_cast<double>(std::max(input.size(), output.size()));
  fmt::print("{} on {}, {}: {} strips of {} rows, {} staging, {:.0f} MB of the device; bits: {}\n", text,
             context.device().id, plan.solver(), filtered.strips, filtered.strip_rows,
             options.copies == HostCopies::direct ? "no" : (filtered.page_locked ? "page-locked" : "ordinary"),
             static_cast<double>(filtered.device_bytes) / 1e6, bits);
  print("copies", b, copied, bytes);
  print("filter", a, filtered, bytes);
  fmt::print("  filter / copies: {:.3f} [{:.3f}, {:.3f}]\n", ratio.median, ratio.low, ratio.high);
  std::fflush(stdout);
  return {{"problem", text},
          {"solver", plan.solver()},
          {"strips", filtered.strips},
          {"strip_rows", filtered.strip_rows},
          {"device_bytes", filtered.device_bytes},
          {"direct", options.copies == HostCopies::direct},
          {"page_locked", filtered.page_locked},
          {"bits", bits},
          {"copies", as_json(b, copied)},
          {"filter", as_json(a, filtered)},
          {"ratio", ratio.median},
          {"ratio_ci95", {ratio.low, ratio.high}}};
}

}  // namespace

int main(int argc, char** argv) try {
  std::string device = "cuda", json_path;
  int rounds = 9;
  HostFilter2dOptions options;
  std::vector<std::string> problems = bench::parse_arguments(
      argc, argv,
      {{"--device", [&](const std::string& value) { device = value; }},
       {"--json", [&](const std::string& value) { json_path = value; }},
       {"--rounds", [&](const std::string& value) { rounds = std::max(std::atoi(value.c_str()), 1); }},
       {"--strip-rows", [&](const std::string& value) { options.strip_rows = std::atoll(value.c_str()); }},
       {"--in-flight", [&](const std::string& value) { options.in_flight = std::atoi(value.c_str()); }},
       {"--copy-threads", [&](const std::string& value) { options.copy_threads = std::atoi(value.c_str()); }},
       {"--device-memory", [&](const std::string& value) { options.device_memory_bytes = std::atoll(value.c_str()); }}},
      {{"--direct", [&] { options.copies = HostCopies::direct; }}});
  if (problems.empty())
    for (const char* const rest : {"u8 h22400w22400c3r3s3 kernel:random", "u8 h22400w22400c3r7s7 kernel:random",
                                   "f32 h11200w11200c3r3s3 kernel:random"})
      problems.push_back(fmt::format("filter2d {}", rest));
  const Context context({.device = device});
  nlohmann::json json = bench::report_head("omniconv-end-to-end/1");
  json.update({{"device", {{"id", context.device().id}, {"name", context.device().name}}},
               {"in_flight", options.in_flight},
               {"copy_threads", options.copy_threads}});
  bool equal = true;
  for (const std::string& problem : problems) {
    json["results"].push_back(measure(context, problem, options, rounds));
    equal = equal && json["results"].back()["bits"] != "DIFFERENT";
  }
  bench::write_report(json_path, json);
  return equal ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "gpu_end_to_end: error: {}\n", error.what());
  return 1;
}
