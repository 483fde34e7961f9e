// What the GPU variants of gemm share: which tasks they serve, the task as constants of kernel text, and arguments.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/checked.h"
#include "operations/gemm/gemm.h"
#include "operations/gpu_limits.h"
#include "text/device_text.h"

namespace omniconv::operations {

// What ends of sums move: c, and what it held where it is added to.
inline double stored_bytes(const GemmTask& task) {
  const GemmProblem& problem = task.problem;
  return static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.batch) *
         static_cast<double>(size_of(task.output)) * (task.accumulate ? 2 : 1);
}

// Each array once.
inline double least_bytes(const GemmTask& task) {
  const GemmProblem& problem = task.problem;
  const auto m = static_cast<double>(problem.m), n = static_cast<double>(problem.n), k = static_cast<double>(problem.k),
             batch = static_cast<double>(problem.batch);
  const double inputs = m * k * (task.batch_a == 0 ? 1 : batch) + k * n * (task.batch_b == 0 ? 1 : batch);
  return inputs * static_cast<double>(size_of(problem.type)) + stored_bytes(task);
}

// Groups for the tiles of one matrix.
inline std::int64_t tiles_of(const GemmProblem& problem, std::int64_t tile_m, std::int64_t tile_n) {
  return checked_multiply(divide_up(problem.m, tile_m), divide_up(problem.n, tile_n), "the tiles of a matrix");
}

// Why no GPU variant serves the task or the device; empty if one may.
inline std::string gemm_gpu_refusal(const GemmTask& task, const devices::Device& device) {
  if (device.kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
  if (task.problem.type == DataType::f64)
    return "f64 matrices are multiplied on the CPU, since not every GPU has double precision";
  if (task.prepared_a || task.prepared_b) return "has no prepared operands";
  if (task.images) return "columns are read out of images on the CPU alone";
  return {};
}

// The constants of gemm_elements.kernel.
inline std::vector<devices::Definition> gemm_definitions(const GemmTask& task) {
  const GemmProblem& problem = task.problem;
  const auto type = [](DataType stored) {
    return fmt::format("TYPE_{}", name(stored == DataType::tf32 ? DataType::f32 : stored));
  };
  std::vector<devices::Definition> definitions = {{"TYPE", type(problem.type)}, {"OUTPUT", type(task.output)}};
  const auto add = [&](const char* symbol, std::int64_t value) {
    definitions.push_back({symbol, fmt::format("{}L", value)});
  };
  add("GEMM_M", problem.m);
  add("GEMM_N", problem.n);
  add("GEMM_K", problem.k);
  add("LDA", task.lda);
  add("LDB", task.ldb);
  add("LDC", task.ldc);
  add("BATCH_A", task.batch_a);
  add("BATCH_B", task.batch_b);
  add("BATCH_C", task.batch_c);
  const auto choose = [&](const char* symbol, int value) { definitions.push_back({symbol, std::to_string(value)}); };
  choose("TRANSPOSED_A", problem.transpose_a ? 1 : 0);
  choose("TRANSPOSED_B", problem.transpose_b ? 1 : 0);
  choose("BIAS", task.bias == BiasAlong::rows ? 1 : task.bias == BiasAlong::columns ? 2 : 0);
  choose("ACCUMULATE", task.accumulate ? 1 : 0);
  choose("RELU", task.relu ? 1 : 0);
  return definitions;
}

// The arguments with which kernels begin: a, b, c and bias as buffers and offsets in elements, and alpha; and a
// kernel's own behind them. Without a bias some buffer stands in its place, which is not read.
template <typename... Own>
std::array<devices::KernelArgument, 9 + sizeof...(Own)> gemm_arguments(const GemmTask& task, const GemmArrays& arrays,
                                                                       const Own&... own) {
  const std::int64_t size = size_of(task.problem.type), size_c = size_of(task.output);
  const Operand& bias = task.bias == BiasAlong::none ? arrays.a : arrays.bias;
  return {arrays.a.buffer.impl().get(),
          arrays.a.offset_bytes / size,
          arrays.b.buffer.impl().get(),
          arrays.b.offset_bytes / size,
          arrays.c.buffer.impl().get(),
          arrays.c.offset_bytes / size_c,
          bias.buffer.impl().get(),
          bias.offset_bytes / size,
          arrays.alpha,
          own...};
}

// The matrices of the batch in as many launches as it takes: launch(first, how many), of `groups` groups for each
// matrix.
template <typename Launch>
void launch_batches(std::int64_t batch, std::int64_t groups, const Launch& launch) {
  const std::int64_t most = std::max<std::int64_t>(most_groups / groups, 1);
  for (std::int64_t done = 0; done < batch; done += most) launch(done, std::min(most, batch - done));
}

}  // namespace omniconv::operations
