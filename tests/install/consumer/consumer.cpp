// Shifts four pixels to the right with a 1x3 kernel, through the installed library.
#include <omniconv/filter2d.h>

#include <array>
#include <cstdint>
#include <iostream>

int main() {
  omniconv::Filter2dProblem problem;
  problem.h = 1;
  problem.w = 4;
  problem.r = 1;
  problem.s = 3;
  problem.border = omniconv::parse_border("constant:0");
  omniconv::Filter filter;
  filter.weights = {1, 0, 0};

  std::array<std::uint8_t, 4> input{10, 20, 30, 40}, output{};
  const omniconv::Context context({.device = "cpu"});
  const omniconv::Filter2dPlan plan(context, problem, filter);
  omniconv::Filter2dRun run;
  run.input = context.borrow(input.data(), input.size());
  run.output = context.borrow(output.data(), output.size());
  if (plan.workspace_bytes() > 0) run.workspace = context.allocate(plan.workspace_bytes());
  omniconv::Queue queue = context.make_queue();
  plan.run(queue, run).wait();
  for (std::size_t i = 0; i < output.size(); ++i) std::cout << (i ? " " : "") << int{output[i]};
  std::cout << '\n';
}
