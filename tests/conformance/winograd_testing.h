// What conv2d/winograd must do on every device.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "conv2d_testing.h"

namespace omniconv {

// Of images of other sizes, where the tuning says the tile.
inline void expect_filters_shared(const Context& context, const std::string& solver, const std::string& tuning) {
  const auto format = [&](const char* text) {
    const Plan plan(context, parse_problem(text), {.solver = solver, .tuning = tuning, .prepared = {"w"}});
    return plan.format("w")->text;
  };
  const std::string of_w = format("n1c16h20w20k24r3s3p1");
  EXPECT_EQ(of_w, format("bias n4c16h7w31k24r3s3"));
  EXPECT_NE(of_w, format("nhwc n1c16h20w20k24r3s3p1"));
  EXPECT_NE(of_w, format("bwd_data n1c16h20w20k24r3s3p1"));
  EXPECT_NE(of_w, format("flip n1c16h20w20k24r3s3p1"));
  EXPECT_NE(of_w, format("n1c16h20w20k24r3s3p1g2"));
}

// <conv(x, w), dy> = <x, dx> = <w, dw>, exactly, since all are small integers.
inline void expect_passes_adjoint(const Context& context, const std::string& solver, const std::string& tuning,
                                  const char* geometry) {
  Queue queue = context.make_queue();
  const Conv2dProblem forward = conv2d_problem(geometry);
  const Conv2dElements elements = elements_of(forward);
  const auto integers = [&](std::int64_t count, std::uint64_t seed) {
    std::vector<float> values(static_cast<std::size_t>(count));
    operations::fill_random(DataType::f32, 3, seed, std::as_writable_bytes(std::span(values)));
    return values;
  };
  const auto put = [&](const std::vector<float>& values) {
    const Buffer buffer = context.allocate(static_cast<std::int64_t>(values.size() * 4));
    queue.upload(buffer, 0, values.data(), buffer.bytes()).wait();
    return buffer;
  };
  const std::vector<float> x = integers(elements.x, 1), w = integers(elements.w, 2), dy = integers(elements.y, 3);
  const auto product = [&](Pass pass, const std::vector<float>& other) {
    const Conv2dPlan plan(context, with_pass(forward, pass), {.solver = solver, .tuning = tuning});
    std::vector<float> made(other.size());
    const Buffer output = put(made);
    plan.run(queue, {.x = {pass == Pass::backward_data ? output : put(x)},
                     .w = {pass == Pass::backward_filter ? output : put(w)},
                     .y = {pass == Pass::forward ? output : put(dy)},
                     .workspace = context.allocate(plan.workspace_bytes())})
        .wait();
    queue.download(made.data(), output, 0, output.bytes()).wait();
    double sum = 0;
    for (std::size_t i = 0; i < made.size(); ++i) sum += double{made[i]} * double{other[i]};
    return sum;
  };
  const double of_outputs = product(Pass::forward, dy);
  EXPECT_EQ(of_outputs, product(Pass::backward_data, x)) << geometry;
  EXPECT_EQ(of_outputs, product(Pass::backward_filter, w)) << geometry;
}

}  // namespace omniconv
