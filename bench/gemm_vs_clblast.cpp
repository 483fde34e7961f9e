// omniconv beside CLBlast on one OpenCL device: the same fp32 products of the same arrays through the same queue, in
// turns within one run.
//
//   gemm_vs_clblast [--device opencl[:0.0]] [--seconds S] [--solver ID] [--json FILE] [PROBLEM...]
//
// By default squares of 4096, nn, nt and tn, one of 8192, and products of which one extent is 64 or 128. Either side
// has several runs in flight: a turn is timed from the first submission until the queue is empty, and divided by its
// runs. On small integers both must give the same bits first, for every sum of them is exact; exit status 1 where they
// do not. CLBlast is found at run time (Debian's package is libclblast1) and used as it is, with its own tuned
// parameters.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "checking/verify.h"
#include "comparing.h"
#include "devices/opencl/opencl_device.h"
#include "omniconv/gemm.h"
#include "omniconv/opencl.h"

namespace {

using namespace omniconv;
namespace cl = devices::opencl;

// As clblast_c.h of CLBlast 1.5 declares them.
constexpr int row_major = 101, as_it_is = 111, transposed = 112;
using Sgemm = int (*)(int layout, int a_transpose, int b_transpose, std::size_t m, std::size_t n, std::size_t k,
                      float alpha, cl::cl_mem a, std::size_t a_offset, std::size_t a_ld, cl::cl_mem b,
                      std::size_t b_offset, std::size_t b_ld, float beta, cl::cl_mem c, std::size_t c_offset,
                      std::size_t c_ld, cl::cl_command_queue* queue, cl::cl_event* event);

class ClBlast {
 public:
  ClBlast() {
    void* const library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      throw environment_error(
          fmt::format("CLBlast is not there (scripts/setup.sh --bench installs it): {}", dlerror()));
    void* const symbol = dlsym(library, "CLBlastSgemm");
    Dl_info info;
    if (!symbol || dladdr(symbol, &info) == 0) throw environment_error("libclblast.so.1 has no CLBlastSgemm");
    std::memcpy(&sgemm_, &symbol, sizeof sgemm_);
    // The library does not tell its version; the file is named after it.
    const std::string file = std::filesystem::canonical(info.dli_fname).filename();
    const std::size_t number = file.find(".so.");
    version = number == std::string::npos ? file : file.substr(number + 4);
  }

  void multiply(const GemmProblem& p, cl::cl_mem a, cl::cl_mem b, cl::cl_mem c, cl::cl_command_queue queue) const {
    const auto size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
    const int status = sgemm_(row_major, p.transpose_a ? transposed : as_it_is, p.transpose_b ? transposed : as_it_is,
                              size(p.m), size(p.n), size(p.k), 1, a, 0, size(p.transpose_a ? p.m : p.k), b, 0,
                              size(p.transpose_b ? p.k : p.n), 0, c, 0, size(p.n), &queue, nullptr);
    if (status != 0) throw environment_error(fmt::format("CLBlastSgemm of {} returned {}", to_text(p), status));
  }

  std::string version;

 private:
  Sgemm sgemm_ = nullptr;
};

// A queue that both sides use, with the context's device.
class SharedQueue {
 public:
  explicit SharedQueue(const Context& context) {
    const auto* const device = dynamic_cast<const cl::OpenClDevice*>(context.impl().get());
    if (!device)
      throw bad_input(
          fmt::format("device {} is none of OpenCL's: name one, as in --device opencl:0.0 (omniconv devices "
                      "lists them)",
                      context.device().id));
    cl::cl_device_id id = nullptr;
    cl::check("clGetContextInfo",
              cl::api().GetContextInfo(device->context(), cl::CL_CONTEXT_DEVICES, sizeof id, &id, nullptr));
    cl::cl_int code = cl::CL_SUCCESS;
    handle_.reset(cl::api().CreateCommandQueue(device->context(), id, cl::CL_QUEUE_PROFILING_ENABLE, &code));
    cl::check("clCreateCommandQueue", code);
    queue = opencl::borrow_queue(context, handle_.get());
  }
  cl::cl_command_queue handle() const { return handle_.get(); }
  void finish() const { cl::check("clFinish", cl::api().Finish(handle_.get())); }

  Queue queue;

 private:
  cl::Owned<cl::cl_command_queue> handle_;
};

cl::cl_mem handle_of(const Buffer& buffer) {
  return dynamic_cast<const cl::OpenClBuffer&>(*buffer.impl()).memory();
}

// One product of both, over the same a and b.
class Pair {
 public:
  Pair(const Context& context, SharedQueue& shared, const ClBlast& clblast, const GemmProblem& problem,
       const std::string& solver)
      : problem_(problem),
        shared_(shared),
        clblast_(clblast),
        plan_(context, problem, {.solver = solver, .units = Units::fma}),
        a_(context.allocate(problem.m * problem.k * 4)),
        b_(context.allocate(problem.k * problem.n * 4)),
        c_(context.allocate(problem.m * problem.n * 4)),
        other_(context.allocate(problem.m * problem.n * 4)),
        workspace_(context.allocate(std::max<std::int64_t>(plan_.workspace_bytes(), 1))) {}

  const std::string& solver() const { return plan_.solver(); }
  Event ours() { return plan_.run(shared_.queue, {.a = {a_}, .b = {b_}, .c = {c_}, .workspace = workspace_}); }
  void theirs() { clblast_.multiply(problem_, handle_of(a_), handle_of(b_), handle_of(other_), shared_.handle()); }

  // Both outputs, from arrays of multiples of 1 in [-most, most], or (0) of random numbers in [-1, 1].
  std::pair<std::vector<float>, std::vector<float>> run_on(int most) {
    fill(a_, most, 1);
    fill(b_, most, 2);
    const std::vector<float> nan(static_cast<std::size_t>(c_.bytes() / 4), NAN);
    for (const Buffer* const output : {&c_, &other_})
      shared_.queue.upload(*output, 0, nan.data(), output->bytes()).wait();
    ours().wait();
    theirs();
    shared_.finish();
    return {content(c_), content(other_)};
  }

 private:
  void fill(const Buffer& buffer, int most, std::uint64_t seed) {
    std::vector<std::byte> data(static_cast<std::size_t>(buffer.bytes()));
    fill_random(DataType::f32, most, seed, data);
    shared_.queue.upload(buffer, 0, data.data(), buffer.bytes()).wait();
  }
  std::vector<float> content(const Buffer& buffer) {
    std::vector<float> values(static_cast<std::size_t>(buffer.bytes() / 4));
    shared_.queue.download(values.data(), buffer, 0, buffer.bytes()).wait();
    return values;
  }

  GemmProblem problem_;
  SharedQueue& shared_;
  const ClBlast& clblast_;
  GemmPlan plan_;
  Buffer a_, b_, c_, other_, workspace_;
};

struct Times {
  std::vector<double> ours, theirs, ratios;  // seconds of a run, turn by turn
  int runs = 0;                              // of a turn
};

// Turns long enough that submitting and the wait at the end do not count.
Times take_turns(Pair& pair, const SharedQueue& shared, double seconds) {
  constexpr double least_turn = 0.03;
  const auto turn = [&](const std::function<void()>& submit, int runs) {
    return bench::seconds_of([&] {
             for (int i = 0; i < runs; ++i) submit();
             shared.finish();
           }) /
           runs;
  };
  const auto ours = [&] { pair.ours(); };
  const auto theirs = [&] { pair.theirs(); };
  const double one = std::min(turn(ours, 2), turn(theirs, 2));
  Times times;
  times.runs = static_cast<int>(std::clamp(std::ceil(least_turn / one), 1.0, 1000.0));
  double spent = 0;
  for (int i = 0; spent < seconds || i < 3; ++i) {
    for (const int which : {i % 2, 1 - i % 2})
      (which == 0 ? times.ours : times.theirs)
          .push_back(which == 0 ? turn(ours, times.runs) : turn(theirs, times.runs));
    spent += times.runs * (times.ours.back() + times.theirs.back());
    times.ratios.push_back(times.theirs.back() / times.ours.back());
  }
  return times;
}

GemmProblem gemm_of(const std::string& text) {
  const Problem problem = parse_problem(text);
  const auto* const gemm = problem.get_if<GemmProblem>();
  if (!gemm || gemm->type != DataType::f32 || gemm->batch != 1)
    throw bad_input(fmt::format("{}: the comparison is of f32 products of one matrix each, as gemm f32 nn m64n64k64",
                                to_text(problem)));
  return *gemm;
}

nlohmann::json compare(const Context& context, SharedQueue& shared, const ClBlast& clblast, const GemmProblem& problem,
                       const std::string& solver, double seconds) {
  Pair pair(context, shared, clblast, problem, solver);
  const auto [exact, other_exact] = pair.run_on(static_cast<double>(problem.k) * 9 < 0x1p24 ? 3 : 1);
  const auto [real, other_real] = pair.run_on(0);
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < real.size(); ++i) {
    difference = std::max(difference, std::fabs(static_cast<double>(real[i]) - static_cast<double>(other_real[i])));
    largest = std::max(largest, std::fabs(static_cast<double>(other_real[i])));
  }
  std::vector<double> events;  // of the device's own clock, one run at a time
  for (int i = 0; i < 5; ++i) {
    Event event = pair.ours();
    event.wait();
    events.push_back(event.seconds());
  }
  const Times times = take_turns(pair, shared, seconds);
  const timing::Summary time = timing::summarize(times.ours), peer = timing::summarize(times.theirs),
                        ratio = timing::summarize(times.ratios);
  const double flops =
      2 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  const char* const integers = exact == other_exact ? "equal" : "DIFFERENT";
  fmt::print("{:<34} {:>9.3f} {:>9.3f} {:>7.2f} {:.2f}..{:.2f} {:>9} {:>9.2g}  {}\n", to_text(problem),
             flops / time.median / 1e12, flops / peer.median / 1e12, ratio.median, ratio.low, ratio.high, integers,
             difference / largest, pair.solver());
  std::fflush(stdout);
  return {{"problem", to_text(problem)},
          {"solver", pair.solver()},
          {"tflops", flops / time.median / 1e12},
          {"clblast_tflops", flops / peer.median / 1e12},
          {"median_ms", time.median * 1e3},
          {"clblast_median_ms", peer.median * 1e3},
          {"events_ms", timing::summarize(events).median * 1e3},
          {"ratio", ratio.median},
          {"ratio_ci95", {ratio.low, ratio.high}},
          {"runs_in_turn", times.runs},
          {"turns", time.samples},
          {"integers", integers},
          {"largest_difference", difference / largest}};
}

}  // namespace

int main(int argc, char** argv) try {
  std::string device = "opencl", json_path, solver = "auto";
  double seconds = 1;
  std::vector<std::string> problems =
      bench::parse_arguments(argc, argv,
                             {{"--device", [&](const std::string& value) { device = value; }},
                              {"--seconds", [&](const std::string& value) { seconds = std::atof(value.c_str()); }},
                              {"--solver", [&](const std::string& value) { solver = value; }},
                              {"--json", [&](const std::string& value) { json_path = value; }}});
  if (problems.empty())
    for (const char* const extents :
         {"nn m4096n4096k4096", "nt m4096n4096k4096", "tn m4096n4096k4096", "nn m8192n8192k8192", "nn m64n4096k4096",
          "nn m128n4096k4096", "nn m4096n64k4096", "nn m4096n128k4096", "nt m4096n64k4096", "tn m64n4096k4096"})
      problems.push_back(fmt::format("gemm f32 {}", extents));
  const Context context({.device = device});
  SharedQueue shared(context);
  const ClBlast clblast;
  const auto peaks = context.impl()->measure_peaks(1);
  nlohmann::json json = bench::report_head("omniconv-compare-gemm/1");
  json.update(
      {{"device", {{"id", context.device().id}, {"name", context.device().name}, {"driver", context.device().driver}}},
       {"clblast", clblast.version},
       {"peak_tflops", peaks.tflops}});
  fmt::print("{} ({}), {:.3f} TFLOP/s of multiply-adds; CLBlast {}\n{:<34} {:>9} {:>9} {:>7} {:<10} {:>9} {:>9}\n",
             context.device().id, context.device().name, peaks.tflops, clblast.version, "problem", "TFLOP/s", "CLBlast",
             "ratio", "95 %", "integers", "reals");
  double logarithms = 0;
  bool equal = true;
  for (const std::string& text : problems) {
    json["results"].push_back(compare(context, shared, clblast, gemm_of(text), solver, seconds));
    logarithms += std::log(json["results"].back()["ratio"].get<double>());
    equal = equal && json["results"].back()["integers"] == "equal";
  }
  json["geometric_mean"] = std::exp(logarithms / static_cast<double>(problems.size()));
  fmt::print("geometric mean of the ratios: {:.3f}\n", json["geometric_mean"].get<double>());
  bench::write_report(json_path, json);
  return equal ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "gemm_vs_clblast: error: {}\n", error.what());
  return 2;
}
