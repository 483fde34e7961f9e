// The mean of 3x1 pixels, by the kernel's name, through the installed library; and a name that there is not.
#include <omniconv/omniconv.h>

#include <array>
#include <cstdint>
#include <iostream>

int main() {
  const omniconv::Kernel mean = omniconv::named_kernel("box:3x1");
  omniconv::Filter2dProblem problem;
  problem.h = 1;
  problem.w = 4;
  problem.r = mean.r;
  problem.s = mean.s;
  problem.border = omniconv::parse_border("constant:0");

  std::array<std::uint8_t, 4> input{30, 60, 90, 150}, output{};
  const omniconv::Context context({.device = "cpu"});
  const omniconv::Filter2dPlan plan(context, problem, omniconv::filter_of(mean));
  omniconv::Filter2dRun run;
  run.input = context.borrow(input.data(), input.size());
  run.output = context.borrow(output.data(), output.size());
  if (plan.workspace_bytes() > 0) run.workspace = context.allocate(plan.workspace_bytes());
  omniconv::Queue queue = context.make_queue();
  plan.run(queue, run).wait();
  for (std::size_t i = 0; i < output.size(); ++i) std::cout << (i ? " " : "") << int{output[i]};
  std::cout << '\n';
  try {
    omniconv::named_kernel("gausian:9");
  } catch (const omniconv::Error& error) {
    std::cout << error.what() << '\n';
  }
}
