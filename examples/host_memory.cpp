// A matrix product and a convolution in the caller's own memory, nothing copied: problem -> plan -> run.
#include <omniconv/conv2d.h>
#include <omniconv/error.h>
#include <omniconv/gemm.h>

#include <cstdio>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace {

using namespace omniconv;

// The workspace is the caller's: one for each run that is under way, at a multiple of 64 bytes, as large as the plan
// says.
struct Free {
  void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t(64)); }
};
std::unique_ptr<std::byte[], Free> aligned_bytes(std::int64_t bytes) {
  return std::unique_ptr<std::byte[], Free>(
      static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), std::align_val_t(64))));
}

bool multiply(const Context& context, Queue& queue) {
  const auto problem = get<GemmProblem>(parse_problem("gemm f32 nn m100n200k300"));
  std::vector<float> a(100 * 300, 1), b(300 * 200, 2), c(100 * 200);
  const GemmPlan plan(context, problem);
  const auto workspace = aligned_bytes(plan.workspace_bytes());
  plan.run(queue, {.a = {context.borrow(std::span(a))},
                   .b = {context.borrow(std::span(b))},
                   .c = {context.borrow(std::span(c))},
                   .workspace = context.borrow(workspace.get(), plan.workspace_bytes())})
      .wait();
  std::printf("gemm: %s, %lld bytes of workspace, c[0] = %g\n", plan.solver().c_str(),
              static_cast<long long>(plan.workspace_bytes()), static_cast<double>(c[0]));
  return c == std::vector<float>(c.size(), 600);
}

// Three images of a larger array, by the offset of the first. Here the context has the workspace, which outlives runs.
bool convolve(const Context& context, Queue& queue) {
  const auto problem = get<Conv2dProblem>(parse_problem("n3c8h10w10k4r3s3"));
  const std::int64_t image = 8 * 10 * 10;
  std::vector<float> images(static_cast<std::size_t>(5 * image), 1), y(3 * 4 * 8 * 8);
  const std::vector<float> w(4 * 8 * 3 * 3, 0.5f);
  // Solvers that amplify no rounding errors: sums of small integers are then exact.
  const Conv2dPlan plan(context, problem, {.max_error = 1});
  const Buffer workspace = context.allocate(plan.workspace_bytes());
  const Operand x{context.borrow(std::span(images)), 2 * image * static_cast<std::int64_t>(sizeof(float))};
  // A run only reads its filter.
  const Operand filter{
      context.borrow(const_cast<float*>(w.data()), static_cast<std::int64_t>(w.size() * sizeof(float)))};
  for (int i = 0; i < 2; ++i)
    plan.run(queue, {.x = x, .w = filter, .y = {context.borrow(std::span(y))}, .workspace = workspace}).wait();
  std::printf("conv2d: %s, %lld bytes of workspace, y[0] = %g\n", plan.solver().c_str(),
              static_cast<long long>(plan.workspace_bytes()), static_cast<double>(y[0]));
  return y == std::vector<float>(y.size(), 36);
}

}  // namespace

int main() try {
  const Context context({.device = "cpu"});
  Queue queue = context.make_queue();
  const bool right = multiply(context, queue) && convolve(context, queue);
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
} catch (const omniconv::Error& error) {
  std::fprintf(stderr, "host_memory: %s\n", error.what());
  return 2;
}
