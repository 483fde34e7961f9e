#include "ops/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/checked.h"
#include "ops/random_image.h"

namespace omniconv {
namespace {

// Images in turn, together larger than any cache, so that each repetition finds its own gone from there.
constexpr std::int64_t rotation_bytes = std::int64_t{256} << 20;
constexpr std::int64_t most_images = 32;

struct Images {
  std::vector<Buffer> inputs, outputs;
  double upload_seconds = 0;  // of one input
};

Images make_images(const Context& context, Queue& queue, const Filter2dTask& task, std::uint64_t seed) {
  const Filter2dProblem& problem = task.problem;
  const auto bytes_of = [&](std::int64_t rows, std::int64_t columns, DataType type) {
    return checked_multiply(checked_multiply(checked_multiply(rows, columns, "the image"), problem.c, "the image"),
                            size_of(type), "the image");
  };
  const std::int64_t input_bytes = bytes_of(problem.h, problem.w, problem.input);
  const std::int64_t output_bytes = bytes_of(P(problem), Q(problem), problem.output);
  const std::int64_t count =
      std::clamp(rotation_bytes / (input_bytes + output_bytes) + 1, std::int64_t{1}, most_images);
  std::vector<std::byte> image(static_cast<std::size_t>(input_bytes));
  const std::vector<std::byte> poison(static_cast<std::size_t>(output_bytes), std::byte{0xA5});
  Images images;
  for (std::int64_t i = 0; i < count; ++i) {
    fill_random(task, seed + static_cast<std::uint64_t>(i), image);
    images.inputs.push_back(context.allocate(input_bytes));
    images.outputs.push_back(context.allocate(output_bytes));
    Event event = queue.upload(images.inputs.back(), 0, image.data(), input_bytes);
    event.wait();
    images.upload_seconds = event.seconds();
    queue.upload(images.outputs.back(), 0, poison.data(), output_bytes).wait();
  }
  return images;
}

}  // namespace

std::vector<MeasureResult> measure(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                                   const devices::Device::Peaks& peaks, const MeasureOptions& options) {
  const Filter2dTask task = task_for(problem, filter);
  const double outputs =
      static_cast<double>(P(problem)) * static_cast<double>(Q(problem)) * static_cast<double>(problem.c);
  const double inputs =
      static_cast<double>(problem.h) * static_cast<double>(problem.w) * static_cast<double>(problem.c);
  Queue queue = context.make_queue();
  Images images;
  std::vector<MeasureResult> results;
  for (const VerifyResult& checked :
       verify(context, problem, filter, {.solver = options.solver, .sampled = true, .seed = options.seed})) {
    MeasureResult result;
    result.solver = checked.solver;
    result.status = checked.status;
    result.reason = checked.reason;
    result.error = checked.error;
    result.bound = checked.bound;
    results.push_back(result);
    if (checked.status != Status::ok) continue;
    if (images.inputs.empty()) images = make_images(context, queue, task, options.seed);

    MeasureResult& r = results.back();
    const auto start = std::chrono::steady_clock::now();
    const Filter2dPlan plan(context, problem, filter, {.solver = checked.solver});
    r.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    r.compile_seconds = plan.compile_seconds();
    r.workspace_bytes = plan.workspace_bytes();
    r.transfer_seconds = images.upload_seconds;
    const double kernels = task.second ? 2 : 1;
    r.operations = 2 * kernels * outputs * static_cast<double>(problem.r) * static_cast<double>(problem.s);
    r.bytes =
        inputs * static_cast<double>(size_of(problem.input)) + outputs * static_cast<double>(size_of(problem.output));
    const Buffer workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
    r.seconds = timing::sample(
        [&](int i) {
          const std::size_t image = static_cast<std::size_t>(i) % images.inputs.size();
          return plan.run(queue,
                          {.input = images.inputs[image], .output = images.outputs[image], .workspace = workspace});
        },
        {.budget_seconds = options.budget_seconds});
    if (peaks.tflops <= 0 || peaks.gbps <= 0) continue;
    const double memory_floor = r.bytes / (peaks.gbps * 1e9);
    r.floor_seconds = std::max(r.operations / (peaks.tflops * 1e12), memory_floor);
    if (r.seconds.minimum < memory_floor / 2) {  // a copy that first reads its target moves half as much again
      r.status = Status::failed;
      r.reason = fmt::format("{:.3g} ms beats half of the memory floor of {:.3g} ms: the timing is not to be trusted",
                             r.seconds.minimum * 1e3, memory_floor * 1e3);
    }
  }
  return results;
}

}  // namespace omniconv
