// A convolutional layer, forward and backward, on arrays of the caller's: problem -> plan -> run.
//
//   conv2d_layer [DEVICE]      (auto, cpu, cuda, opencl, ...)
#include <omniconv/context.h>
#include <omniconv/conv2d.h>
#include <omniconv/error.h>

#include <cstdio>
#include <vector>

namespace {

using namespace omniconv;

Buffer put(const Context& context, Queue& queue, const std::vector<float>& values) {
  const Buffer buffer = context.allocate(static_cast<std::int64_t>(values.size() * sizeof(float)));
  queue.upload(buffer, 0, values.data(), buffer.bytes()).wait();
  return buffer;
}

std::vector<float> get(Queue& queue, const Buffer& buffer) {
  std::vector<float> values(static_cast<std::size_t>(buffer.bytes()) / sizeof(float));
  queue.download(values.data(), buffer, 0, buffer.bytes()).wait();
  return values;
}

// Makes the plan of one pass, and runs it. Plans are made once and run often; so is the workspace.
void run(const Context& context, Queue& queue, const Conv2dProblem& problem, Conv2dRun arrays) {
  const Conv2dPlan plan(context, problem, {.units = Units::fma, .max_error = 1});  // exact on small integers
  arrays.workspace = context.allocate(plan.workspace_bytes());
  std::printf("%s on %s: %s, %lld bytes of workspace\n", to_text(problem).c_str(), context.device().id.c_str(),
              plan.solver().c_str(), static_cast<long long>(plan.workspace_bytes()));
  plan.run(queue, arrays).wait();
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

}  // namespace

int main(int argc, char** argv) try {
  const Context context({.device = argc > 1 ? argv[1] : "cpu"});
  Queue queue = context.make_queue();

  // What: 2 images of 3 channels and 8 x 8 pixels, 4 filters of 3 x 3, one pixel of zeros around.
  Conv2dProblem layer;
  layer.n = 2, layer.c = 3, layer.h = layer.w = 8, layer.k = 4, layer.r = layer.s = 3;
  layer.pad_top = layer.pad_bottom = layer.pad_left = layer.pad_right = 1;
  const Conv2dElements elements = elements_of(layer);
  std::vector<float> x(static_cast<std::size_t>(elements.x)), w(static_cast<std::size_t>(elements.w)),
      dy(static_cast<std::size_t>(elements.y));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 5) - 2;
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<float>(i % 3) - 1;
  const Operand of_x{put(context, queue, x)}, of_w{put(context, queue, w)}, of_dy{put(context, queue, dy)};
  const Operand of_y{context.allocate(elements.y * 4)}, of_dx{context.allocate(elements.x * 4)},
      of_dw{context.allocate(elements.w * 4)};

  // How, and run: forward, then the gradients of x and w from that of y.
  run(context, queue, layer, {.x = of_x, .w = of_w, .y = of_y});
  layer.pass = Pass::backward_data;
  run(context, queue, layer, {.x = of_dx, .w = of_w, .y = of_dy});
  layer.pass = Pass::backward_filter;
  run(context, queue, layer, {.x = of_x, .w = of_dw, .y = of_dy});

  // <conv(x, w), dy> = <x, dx> = <w, dw>, exactly, since all are small integers.
  const double forward = dot(get(queue, of_y.buffer), dy), data = dot(x, get(queue, of_dx.buffer)),
               filter = dot(w, get(queue, of_dw.buffer));
  const bool right = forward == data && forward == filter;
  std::printf("<y, dy> = %g, <x, dx> = %g, <w, dw> = %g: %s\n", forward, data, filter, right ? "equal" : "WRONG");
  return right ? 0 : 1;
} catch (const omniconv::Error& error) {
  std::fprintf(stderr, "conv2d_layer: %s\n", error.what());
  return 2;
}
