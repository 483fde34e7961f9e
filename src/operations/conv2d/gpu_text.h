// What the GPU variants of the conv2d solvers share: the problem as constants of kernel text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/checked.h"
#include "devices/device.h"
#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/shape.h"
#include "operations/gpu_limits.h"
#include "text/device_text.h"

namespace omniconv::operations {

// Why a GPU variant whose groups have so many work items does not serve the problem or the device; empty if it may.
inline std::string conv2d_gpu_refusal(const Conv2dProblem& problem, const devices::Device& device,
                                      std::int64_t group_items) {
  if (device.kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
  if (problem.type == DataType::f64) return "f64 is convolved on the CPU, since not every GPU has double precision";
  return group_refusal(device, group_items);
}

// The constants of gemm_elements.kernel and conv2d_shape.kernel.
inline std::vector<devices::Definition> conv2d_definitions(const Conv2dProblem& problem) {
  const Conv2dShape shape(problem);
  const std::string type = fmt::format("TYPE_{}", name(problem.type == DataType::tf32 ? DataType::f32 : problem.type));
  std::vector<devices::Definition> definitions = {{"TYPE", type}, {"OUTPUT", type}};
  const auto add = [&](const char* symbol, std::int64_t value) {
    definitions.push_back({symbol, fmt::format("{}L", value)});
  };
  add("CONV_N", shape.n), add("CONV_C", shape.c), add("CONV_H", shape.h), add("CONV_W", shape.w),
      add("CONV_K", shape.k);
  add("CONV_R", shape.r), add("CONV_S", shape.s), add("CONV_P", shape.p), add("CONV_Q", shape.q);
  add("C_GROUP", shape.c_group), add("K_GROUP", shape.k_group);
  add("STRIDE_H", shape.stride_h), add("STRIDE_W", shape.stride_w);
  add("DILATION_H", shape.dilation_h), add("DILATION_W", shape.dilation_w);
  add("PAD_TOP", shape.pad_top), add("PAD_LEFT", shape.pad_left);
  const auto choose = [&](const char* symbol, bool value) { definitions.push_back({symbol, value ? "1" : "0"}); };
  choose("NHWC", shape.nhwc), choose("FLIP", shape.flip);
  choose("BIAS", problem.bias), choose("ACCUMULATE", problem.accumulate), choose("RELU", problem.relu);
  return definitions;
}

}  // namespace omniconv::operations
