// Filters an array in the caller's own memory: problem -> plan -> run.
//
//   filter_array [DEVICE]      (auto, cpu, opencl, ...)
#include <omniconv/omniconv.h>

#include <cstdint>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) try {
  using namespace omniconv;
  const Context context({.device = argc > 1 ? argv[1] : "cpu"});

  // What: a named kernel, 0 -1 0, -1 5 -1, 0 -1 0, on an 8-bit image of 480 rows, 640 columns, 3 interleaved channels;
  // the edge's pixels repeat outside.
  const Kernel sharpen = named_kernel("sharpen");
  Filter2dProblem problem;
  problem.input = problem.output = DataType::u8;
  problem.h = 480;
  problem.w = 640;
  problem.c = 3;
  problem.r = sharpen.r;
  problem.s = sharpen.s;
  problem.border = {BorderMode::replicate};

  // How: once. The plan names its solver and the workspace that a run needs.
  const Filter2dPlan plan(context, problem, filter_of(sharpen));
  std::printf("%s on %s: %s, %lld bytes of workspace\n", to_text(problem).c_str(), context.device().name.c_str(),
              plan.solver().c_str(), static_cast<long long>(plan.workspace_bytes()));

  // Run: as often as wanted, asynchronously, without allocating. Here one bright pixel on grey.
  std::vector<std::uint8_t> x(480 * 640 * 3, 100), y(x.size());
  const std::size_t pixel = (240 * 640 + 320) * 3;
  x[pixel] = 120;
  const auto bytes = static_cast<std::int64_t>(x.size());
  const Buffer input = context.allocate(bytes), output = context.allocate(bytes);
  const Buffer workspace = context.allocate(plan.workspace_bytes());
  Queue queue = context.make_queue();
  queue.upload(input, 0, x.data(), bytes);
  plan.run(queue, {.input = input, .output = output, .workspace = workspace});
  queue.download(y.data(), output, 0, bytes).wait();

  // 5 * 120 - 4 * 100 = 200 at the pixel, 5 * 100 - 3 * 100 - 120 = 80 beside it, 100 elsewhere.
  const bool right =
      y[pixel] == 200 && y[pixel - 3] == 80 && y[pixel + 640 * 3] == 80 && y[pixel + 1] == 100 && y[0] == 100;
  std::printf("the bright pixel became %d, its neighbours %d: %s\n", y[pixel], y[pixel - 3], right ? "right" : "WRONG");
  return right ? 0 : 1;
} catch (const omniconv::Error& error) {
  std::fprintf(stderr, "filter_array: %s\n", error.what());
  return 2;
}
