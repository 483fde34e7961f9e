// A convolution by cuDNN, in one of the many ways that it knows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "omniconv/conv2d.h"
#include "operations/tuning.h"
#include "vendor/cudnn/cudnn_api.h"
#include "vendor/handles.h"

namespace omniconv::vendor::cudnn {

// Addresses in the device's memory.
struct Arrays {
  void *x, *w, *y, *workspace;
};

using CudnnHandle = Handle<cudnnHandle_t>;
// What a run still has to do, of a convolution that outlives it.
using Run = std::function<cudnnStatus_t(CUstream)>;

// With its CUDA context current, all of it.
class Convolution {
 public:
  virtual ~Convolution() = default;
  // Whatever can be made before it: between the events of a timing stands the rest alone.
  virtual Run on(const Arrays& arrays) const = 0;
  virtual std::int64_t workspace_bytes() const = 0;
  // Which it is: "engine=15", "algorithm=6".
  virtual operations::Tuning name() const = 0;
  virtual bool is_deterministic() const = 0;
};

using Convolutions = std::vector<std::shared_ptr<const Convolution>>;

// Whether products and sums are fp32, which the problem's type alone says.
inline bool needs_fp32(const Conv2dProblem& problem) {
  return problem.type == DataType::f32;
}
inline int data_type(DataType type) {
  return type == DataType::f16 ? CUDNN_DATA_HALF : type == DataType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

// What the backend's heuristics list for the problem, each once, in their order: the engines of cuDNN's frontend. Each
// function makes one, or nothing where it cannot be had within the workspace; that may compile device text. All of it
// is of this handle, which is locked meanwhile: by handles of their own several threads work side by side, and find the
// same list.
using MakeConvolution = std::function<std::shared_ptr<const Convolution>(std::int64_t most_workspace)>;
std::vector<MakeConvolution> engines_for(const Conv2dProblem& problem, CudnnHandle& handle);
// The fastest of the older interface's algorithms, by that interface's own search on these arrays; empty where it has
// none.
Convolutions best_algorithm_for(const Conv2dProblem& problem, CudnnHandle& handle, CUstream stream,
                                const Arrays& arrays, std::int64_t most_workspace);

}  // namespace omniconv::vendor::cudnn
