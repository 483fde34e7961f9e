// Ten rounds of a filter, a convolution and a product, each reading what the one before wrote.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "omniconv/conv2d.h"
#include "omniconv/filter2d.h"
#include "omniconv/gemm.h"
#include "operations/random.h"

namespace omniconv {

struct Round {
  explicit Round(const Context& context)
      : filter(context, get<Filter2dProblem>(parse_problem("filter2d f32 h12w16r3s3")),
               {.weights = {0, 0.25, 0, 0.25, -0.5, 0.25, 0, 0.25, 0}}),
        conv(context, get<Conv2dProblem>(parse_problem("n1c1h12w16k1r3s3p1"))),
        gemm(context, get<GemmProblem>(parse_problem("gemm f32 nn m12n16k16"))) {
    for (Buffer* const buffer : {&x, &filtered, &convolved}) *buffer = context.allocate(12 * 16 * 4);
    w = context.allocate(9 * 4);
    b = context.allocate(16 * 16 * 4);
    for (std::int64_t bytes : {filter.workspace_bytes(), conv.workspace_bytes(), gemm.workspace_bytes()})
      workspaces.push_back(context.allocate(bytes));
  }
  Filter2dRun filtering() const { return {.input = x, .output = filtered, .workspace = workspaces[0]}; }
  Conv2dRun convolving() const {
    return {.x = {filtered}, .w = {w}, .y = {convolved}, .bias = {}, .workspace = workspaces[1]};
  }
  GemmRun multiplying() const {
    return {.a = {convolved}, .b = {b}, .c = {x}, .alpha = alpha, .workspace = workspaces[2]};
  }

  Filter2dPlan filter;
  Conv2dPlan conv;
  GemmPlan gemm;
  Buffer x, filtered, convolved, w, b;
  std::vector<Buffer> workspaces;
  Scalar alpha = Scalar::changing(1);
};

// Recorded work gives the bits of single runs, again and again, from what the buffers and scalars hold when it is
// replayed.
inline void expect_replays(const Context& context) {
  Round round(context);
  Queue queue = context.make_queue();
  const auto put = [&](const Buffer& to, std::uint64_t seed) {
    std::vector<std::byte> values(static_cast<std::size_t>(to.bytes()));
    operations::fill_random(DataType::f32, 0, seed, values);
    queue.upload(to, 0, values.data(), to.bytes()).wait();
  };
  const auto x_now = [&] {
    std::vector<float> values(static_cast<std::size_t>(round.x.bytes()) / 4);
    queue.download(values.data(), round.x, 0, round.x.bytes()).wait();
    return values;
  };
  put(round.b, 3);
  Sequence sequence = context.make_sequence();
  for (int i = 0; i < 10; ++i) {
    round.filter.append(sequence, round.filtering());
    round.conv.append(sequence, round.convolving());
    round.gemm.append(sequence, round.multiplying());
  }
  const Recording recording = context.record(std::move(sequence));
  for (const std::uint64_t seed : {11, 12, 13}) {
    const double alpha = seed == 12 ? 0.75 : 1;
    round.alpha.set(alpha);
    put(round.x, seed);
    put(round.w, seed + 1);
    for (int i = 0; i < 10; ++i) {
      round.filter.run(queue, round.filtering());
      round.conv.run(queue, round.convolving());
      round.gemm.run(queue, round.multiplying());
    }
    const std::vector<float> expected = x_now();
    put(round.x, seed);
    const Event replayed = recording.replay(queue);
    round.alpha.set(-3);  // what was submitted has read it
    EXPECT_EQ(x_now(), expected) << context.device().id;
    round.alpha.set(alpha);
    put(round.x, seed);
    recording.replay(queue).wait();
    EXPECT_EQ(x_now(), expected) << context.device().id << ", again";
  }
}

}  // namespace omniconv
