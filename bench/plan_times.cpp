// How long plans take to make, and the host's part of a run: the plans of a problem list in all passes, made at once
// with an empty cache of programs, again from that cache, and asked for again of a context that remembers them; then
// runs of one small convolution in batches of 32, without timing. With `alone`, each problem and pass by itself: plan
// and first run on an open context with an empty cache, until the device is done, and two more runs. With
// `together`, all problems of the list, forward, their plans made at once, and one more run of each. With `once`, in
// contexts without quick starts. NVRTC's own cache is never used.
//
//   plan_times DEVICE PROBLEM_LIST CACHE_FOLDER [alone|together [once]]
#include <omniconv/conv2d.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "comparing.h"

namespace {

using namespace omniconv;

// Of zeros.
Conv2dRun arrays_of(const Context& context, const Conv2dProblem& problem) {
  const Conv2dElements elements = elements_of(problem);
  Queue queue = context.make_queue();
  const auto zeros = [&](std::int64_t count) {
    const std::vector<float> values(static_cast<std::size_t>(count));
    const Buffer buffer = context.allocate(count * 4);
    queue.upload(buffer, 0, values.data(), count * 4);
    queue.finish();
    return Operand{buffer};
  };
  return {.x = zeros(elements.x), .w = zeros(elements.w), .y = zeros(elements.y), .bias = {}, .workspace = {}};
}

void time_each_alone(const ContextOptions& options, const std::vector<Conv2dProblem>& problems) {
  for (std::size_t i = 0; i < problems.size(); ++i) {
    ContextOptions own = options;
    own.program_cache += "/" + std::to_string(i);
    const Context context(own);
    const Conv2dProblem& problem = problems[i];
    Conv2dRun run = arrays_of(context, problem);
    Queue queue = context.make_queue();
    queue.finish();
    std::optional<Conv2dPlan> plan;
    const double planning = bench::seconds_of([&] { plan.emplace(context, problem); });
    const auto run_once = [&] {
      plan->run(queue, run);
      queue.finish();
    };
    const double first = bench::seconds_of([&] {
      run.workspace = context.allocate(plan->workspace_bytes());
      run_once();
    });
    const double second = bench::seconds_of(run_once), third = bench::seconds_of(run_once);
    std::printf("%.3f s (plan %.3f; then runs of %.4f, %.4f)  %s\n", planning + first, planning, second, third,
                to_text(problem).c_str());
    std::fflush(stdout);
  }
}

void time_all_together(const ContextOptions& options, const std::vector<Conv2dProblem>& problems) {
  const Context context(options);
  Queue queue = context.make_queue();
  std::vector<Conv2dRun> runs;
  for (const Conv2dProblem& problem : problems) runs.push_back(arrays_of(context, problem));
  queue.finish();
  std::vector<Conv2dPlan> plans;
  const double planning = bench::seconds_of([&] {
    make_plans(context, std::vector<Problem>(problems.begin(), problems.end()));
    for (const Conv2dProblem& problem : problems) plans.emplace_back(context, problem);  // which it remembers
  });
  const auto run_all = [&] {
    for (std::size_t i = 0; i < plans.size(); ++i) plans[i].run(queue, runs[i]);
    queue.finish();
  };
  const double first = bench::seconds_of([&] {
    for (std::size_t i = 0; i < plans.size(); ++i) runs[i].workspace = context.allocate(plans[i].workspace_bytes());
    run_all();
  });
  const double second = bench::seconds_of(run_all);
  std::printf("%zu first runs together: %.3f s (plans %.3f; then runs of %.3f)\n", plans.size(), planning + first,
              planning, second);
}

double host_microseconds_of_a_run(const Context& context) {
  const Conv2dPlan plan(context, get<Conv2dProblem>(parse_problem("n1c8h8w8k8r1s1")), {.allow = {"conv2d/direct"}});
  Conv2dRun run = arrays_of(context, plan.problem());
  run.workspace = context.allocate(plan.workspace_bytes());
  Queue queue = context.make_queue({.timing = false});
  double best = 1e9;
  for (int batch = 0; batch < 200; ++batch) {
    queue.finish();
    constexpr int runs = 32;
    const double all = bench::seconds_of([&] {
      for (int i = 0; i < runs; ++i) plan.run(queue, run);
    });
    best = std::min(best, all / runs * 1e6);
  }
  return best;
}

}  // namespace

int main(int count, char** arguments) {
  // NVRTC keeps what it compiled for other processes, too: no time of a second run would be that of a first.
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  const std::string_view mode = count > 4 ? arguments[4] : "", start = count > 5 ? arguments[5] : "";
  if (count < 4 || count > 6 || (count > 4 && mode != "alone" && mode != "together") || (count > 5 && start != "once"))
    return std::fputs("plan_times DEVICE PROBLEM_LIST CACHE_FOLDER [alone|together [once]]\n", stderr), 2;
  ContextOptions options{.device = arguments[1], .program_cache = arguments[3]};
  if (start == "once") options.quick_start = false;
  const std::vector<Conv2dProblem> layers = bench::in_all_passes(arguments[2]);
  const std::vector<Problem> problems(layers.begin(), layers.end());
  if (mode == "alone") return time_each_alone(options, layers), 0;
  if (mode == "together") {
    std::vector<Conv2dProblem> forward;
    for (const Conv2dProblem& layer : layers)
      if (layer.pass == Pass::forward) forward.push_back(layer);
    return time_all_together(options, forward), 0;
  }
  for (const char* const what : {"with an empty cache", "from the cache"}) {
    const Context context(options);
    context.make_queue().finish();
    std::printf("%zu plans %s: %.3f s\n", problems.size(), what,
                bench::seconds_of([&] { make_plans(context, problems); }));
    const double again = bench::seconds_of([&] {
      for (const Problem& problem : problems) Plan(context, problem);
    });
    std::printf("a plan that the context remembers: %.2f us\n", again / static_cast<double>(problems.size()) * 1e6);
  }
  const Context context(options);
  std::printf("the host's part of a run, batches of 32, timing off: %.2f us\n", host_microseconds_of_a_run(context));
  return 0;
}
