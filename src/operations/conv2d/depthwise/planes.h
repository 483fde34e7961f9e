// What the tilings of conv2d/depthwise share, and those of small planes, which go through local memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "devices/device.h"
#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/depthwise/tiling.h"
#include "operations/conv2d/shape.h"

namespace omniconv::operations {

constexpr std::int64_t most_depthwise_block = 8;  // rows, and columns

// What a pass goes over, and what it reads for it; of the filter's gradient y, and x.
struct DepthwiseSides {
  explicit DepthwiseSides(const Conv2dProblem& problem) : g(problem) {
    const bool data = problem.pass == Pass::backward_data;
    out_h = data ? g.h : g.p, out_w = data ? g.w : g.q;
    in_h = data ? g.p : g.h, in_w = data ? g.q : g.w;
    out_channels = data ? g.c : g.k;
    out_group = data ? g.c_group : g.k_group, in_group = data ? g.k_group : g.c_group;
  }
  Conv2dShape g;
  std::int64_t out_h, out_w, in_h, in_w, out_channels, out_group, in_group;
};

// Sets what follows from what is tuned.
void fill_depthwise(const Conv2dProblem& problem, DepthwiseTiling& tiling);
// Of a group's weights in local memory, under NHWC.
std::int64_t depthwise_staged_bytes(const Conv2dProblem& problem, const DepthwiseTiling& tiling);
// Whether a work item can read its weights by itself, all of them by vectors.
bool depthwise_may_hold_alone(const Conv2dProblem& problem, const DepthwiseTiling& tiling);
// Why a tiling cannot be had; empty if it can.
std::string depthwise_tiling_refusal(const Conv2dProblem& problem, const DepthwiseTiling& tiling,
                                     const devices::Device& device);

// Why planes cannot go through local memory by a tiling; empty if they can.
std::string depthwise_planes_refusal(const Conv2dProblem& problem, const DepthwiseTiling& tiling,
                                     const devices::Device& device);
// The tiling of small planes by which they take the fewest modelled cycles, with the channels of `tiling`; none where
// they are not to go through local memory.
std::optional<DepthwiseTiling> depthwise_planes_tiling(const Conv2dProblem& problem, DepthwiseTiling tiling,
                                                       const devices::Device& device);
// Of a work item, about.
double depthwise_planes_instructions(const Conv2dProblem& problem, const DepthwiseTiling& tiling,
                                     const devices::Device& device);

}  // namespace omniconv::operations
