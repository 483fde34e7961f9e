// cuDNN's older interface: a list of algorithms, and a function that times them all.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <mutex>
#include <span>

#include "vendor/cudnn/convolution.h"

namespace omniconv::vendor::cudnn {
namespace {

template <typename Raw>
class Owned {
 public:
  Owned(cudnnStatus_t (*create)(Raw*), cudnnStatus_t (*destroy)(Raw)) : destroy_(destroy) {
    check("a descriptor of cuDNN", create(&raw_));
  }
  ~Owned() { destroy_(raw_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Raw get() const { return raw_; }

 private:
  Raw raw_ = nullptr;
  cudnnStatus_t (*destroy_)(Raw);
};

// Extents, as this interface takes them.
int small(std::int64_t value) {
  if (value > std::numeric_limits<int>::max())
    throw bad_input(fmt::format("{} is more than cuDNN's older interface takes", value));
  return static_cast<int>(value);
}

class Descriptors {
 public:
  explicit Descriptors(const Conv2dProblem& p)
      : x(api().CreateTensorDescriptor, api().DestroyTensorDescriptor),
        y(api().CreateTensorDescriptor, api().DestroyTensorDescriptor),
        w(api().CreateFilterDescriptor, api().DestroyFilterDescriptor),
        convolution(api().CreateConvolutionDescriptor, api().DestroyConvolutionDescriptor) {
    const int type = data_type(p.type), layout = p.layout == Layout::nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    check("cudnnSetTensor4dDescriptor",
          api().SetTensor4dDescriptor(x.get(), layout, type, small(p.n), small(p.c), small(p.h), small(p.w)));
    check("cudnnSetTensor4dDescriptor",
          api().SetTensor4dDescriptor(y.get(), layout, type, small(p.n), small(p.k), small(P(p)), small(Q(p))));
    check("cudnnSetFilter4dDescriptor", api().SetFilter4dDescriptor(w.get(), type, layout, small(p.k),
                                                                    small(p.c / p.groups), small(p.r), small(p.s)));
    check("cudnnSetConvolution2dDescriptor",
          api().SetConvolution2dDescriptor(convolution.get(), small(p.pad_top), small(p.pad_left), small(p.stride_h),
                                           small(p.stride_w), small(p.dilation_h), small(p.dilation_w),
                                           p.flip ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    check("cudnnSetConvolutionGroupCount", api().SetConvolutionGroupCount(convolution.get(), small(p.groups)));
    check("cudnnSetConvolutionMathType",
          api().SetConvolutionMathType(convolution.get(), needs_fp32(p) ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH));
  }

  Owned<cudnnTensorDescriptor_t> x, y;
  Owned<cudnnFilterDescriptor_t> w;
  Owned<cudnnConvolutionDescriptor_t> convolution;
};

bool uses_tensor_cores(const AlgoPerf& found) {
  return found.mathType == CUDNN_TENSOR_OP_MATH || found.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
}

class Algorithm final : public Convolution {
 public:
  Algorithm(const Conv2dProblem& problem, CudnnHandle& handle, std::shared_ptr<const Descriptors> descriptors,
            const AlgoPerf& found)
      : handle_(handle),
        pass_(problem.pass),
        beta_(problem.accumulate ? 1.0F : 0.0F),
        descriptors_(std::move(descriptors)),
        found_(found) {
    if (!needs_fp32(problem))
      check("cudnnSetConvolutionMathType",
            api().SetConvolutionMathType(descriptors_->convolution.get(), found.mathType));
  }

  Run on(const Arrays& arrays) const override {
    return [this, arrays](CUstream stream) {
      const std::lock_guard one_at_a_time(handle_.mutex);
      check("cudnnSetStream", api().SetStream(handle_.raw, stream));
      return run(handle_.raw, arrays);
    };
  }
  std::int64_t workspace_bytes() const override { return static_cast<std::int64_t>(found_.memory); }
  operations::Tuning name() const override { return {{"algorithm", found_.algo}}; }
  bool is_deterministic() const override { return found_.determinism != 0; }

 private:
  cudnnStatus_t run(cudnnHandle_t handle, const Arrays& a) const {
    const Descriptors& d = *descriptors_;
    const float one = 1;
    const auto convolution = d.convolution.get();
    switch (pass_) {
      case Pass::backward_data:
        return api().ConvolutionBackwardData(handle, &one, d.w.get(), a.w, d.y.get(), a.y, convolution, found_.algo,
                                             a.workspace, found_.memory, &beta_, d.x.get(), a.x);
      case Pass::backward_filter:
        return api().ConvolutionBackwardFilter(handle, &one, d.x.get(), a.x, d.y.get(), a.y, convolution, found_.algo,
                                               a.workspace, found_.memory, &beta_, d.w.get(), a.w);
      case Pass::forward: break;
    }
    return api().ConvolutionForward(handle, &one, d.x.get(), a.x, d.w.get(), a.w, convolution, found_.algo, a.workspace,
                                    found_.memory, &beta_, d.y.get(), a.y);
  }

  CudnnHandle& handle_;
  Pass pass_;
  float beta_;
  std::shared_ptr<const Descriptors> descriptors_;
  AlgoPerf found_;
};

}  // namespace

Convolutions best_algorithm_for(const Conv2dProblem& problem, CudnnHandle& of_device, CUstream stream, const Arrays& a,
                                std::int64_t most_workspace) {
  if (problem.pad_top != problem.pad_bottom || problem.pad_left != problem.pad_right) return {};
  try {
    const std::lock_guard one_at_a_time(of_device.mutex);
    const cudnnHandle_t handle = of_device.raw;
    check("cudnnSetStream", api().SetStream(handle, stream));
    const auto descriptors = std::make_shared<const Descriptors>(problem);
    const Descriptors& d = *descriptors;
    const auto convolution = d.convolution.get();
    const auto bytes = static_cast<std::size_t>(most_workspace);
    std::array<AlgoPerf, 16> found{};
    const int room = static_cast<int>(found.size());
    int count = 0;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    switch (problem.pass) {
      case Pass::forward:
        status = api().FindConvolutionForwardAlgorithmEx(handle, d.x.get(), a.x, d.w.get(), a.w, convolution, d.y.get(),
                                                         a.y, room, &count, found.data(), a.workspace, bytes);
        break;
      case Pass::backward_data:
        status =
            api().FindConvolutionBackwardDataAlgorithmEx(handle, d.w.get(), a.w, d.y.get(), a.y, convolution, d.x.get(),
                                                         a.x, room, &count, found.data(), a.workspace, bytes);
        break;
      case Pass::backward_filter:
        status = api().FindConvolutionBackwardFilterAlgorithmEx(handle, d.x.get(), a.x, d.y.get(), a.y, convolution,
                                                                d.w.get(), a.w, room, &count, found.data(), a.workspace,
                                                                bytes);
        break;
    }
    if (status != CUDNN_STATUS_SUCCESS) return {};
    for (const AlgoPerf& one : std::span(found).first(static_cast<std::size_t>(count))) {  // the fastest first
      if (one.status != CUDNN_STATUS_SUCCESS || (needs_fp32(problem) && uses_tensor_cores(one))) continue;
      return {std::make_shared<const Algorithm>(problem, of_device, descriptors, one)};
    }
  } catch (const Error&) {  // it does not describe the problem
  }
  return {};
}

}  // namespace omniconv::vendor::cudnn
