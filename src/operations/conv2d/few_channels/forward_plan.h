// What the forward plans of conv2d/few_channels have in common: the look at both arrays, and the launch behind it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/few_channels/geometry.h"
#include "operations/split/products.h"

namespace omniconv::operations::few_channels {

// Cycles of the bytes that are moved but once, and of those that are looked at before.
struct Streams {
  double streamed, looked_at;
};
Streams streams_of(const Conv2dProblem& problem, const devices::Device& device);
// Of tiles that take a compute unit so many cycles; sums of so many bodies, of so many sixteens each.
Offer forward_offer(const Conv2dProblem& problem, const devices::Device& device, double cycles, std::int64_t bodies,
                    std::int64_t body);
// Numbers that the texts count in 32 bits.
std::string extent_refusal(const Conv2dShape& g);

class ForwardPlan : public Conv2dPlanBody, protected split_gemm::ProductLaunches {
 public:
  double compile_seconds() const override { return ProductLaunches::compile_seconds(); }

 protected:
  ForwardPlan(const Conv2dProblem& problem, const devices::Device& device, const Task& task, std::int64_t resident);
  // Behind parts.kernel and few_channels_patches.kernel, whose constants are given, and those of the texts alone.
  void build(devices::Device& device, std::string_view units, std::string_view text,
             const std::vector<std::pair<const char*, std::int64_t>>& constants);
  // The look at x and w, where numbers are scaled; then so many groups of the kernel, which some arguments stand before
  // those of few_channels_patches.kernel.
  void append_launch(devices::Sequence& sequence, const Conv2dRun& run, const char* kernel, std::int64_t groups,
                     std::int64_t items, std::int64_t local_bytes, std::vector<devices::KernelArgument> before) const;

  Task task_;
};

}  // namespace omniconv::operations::few_channels
