// The part of cuDNN's API that we call, declared by ourselves so that nothing of it is needed to build. Names, values
// and signatures are those of NVIDIA's cuDNN API reference, version 9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "devices/cuda/cuda_api.h"

namespace omniconv::vendor::cudnn {

using devices::cuda::CUstream;
using cudnnHandle_t = struct cudnnContext*;
using cudnnStatus_t = int;
using cudnnTensorDescriptor_t = struct cudnnTensorStruct*;
using cudnnFilterDescriptor_t = struct cudnnFilterStruct*;
using cudnnConvolutionDescriptor_t = struct cudnnConvolutionStruct*;
using cudnnBackendDescriptor_t = void*;

inline constexpr cudnnStatus_t CUDNN_STATUS_SUCCESS = 0;
inline constexpr int CUDNN_DATA_FLOAT = 0, CUDNN_DATA_HALF = 2, CUDNN_DATA_BFLOAT16 = 9;
inline constexpr int CUDNN_TENSOR_OP_MATH = 1, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2, CUDNN_FMA_MATH = 3;
inline constexpr int CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1;
inline constexpr int CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1;

// Kinds of descriptors.
inline constexpr int CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
                     CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
                     CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR = 7,
                     CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
                     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11,
                     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12,
                     CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
                     CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17;
// Types of attributes.
inline constexpr int CUDNN_TYPE_HANDLE = 0, CUDNN_TYPE_DATA_TYPE = 1, CUDNN_TYPE_INT64 = 3, CUDNN_TYPE_FLOAT = 4,
                     CUDNN_TYPE_VOID_PTR = 6, CUDNN_TYPE_CONVOLUTION_MODE = 7, CUDNN_TYPE_HEUR_MODE = 8,
                     CUDNN_TYPE_KNOB_TYPE = 9, CUDNN_TYPE_NUMERICAL_NOTE = 11, CUDNN_TYPE_BACKEND_DESCRIPTOR = 15;
// Attributes. Those of the three operations follow each other: alpha, beta, the convolution, then the arrays.
inline constexpr int CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100, CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101,
                     CUDNN_ATTR_CONVOLUTION_DILATIONS = 102, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103,
                     CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105,
                     CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106, CUDNN_ATTR_ENGINEHEUR_MODE = 200,
                     CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201, CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
                     CUDNN_ATTR_ENGINECFG_ENGINE = 300, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES = 302,
                     CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
                     CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE = 600,
                     CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE = 601, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 701,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717, CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
                     CUDNN_ATTR_OPERATIONGRAPH_OPS = 801, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
                     CUDNN_ATTR_TENSOR_DATA_TYPE = 901, CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
                     CUDNN_ATTR_TENSOR_STRIDES = 903, CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
                     CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
                     CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003, CUDNN_ATTR_ENGINE_GLOBAL_INDEX = 1301,
                     CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303;
inline constexpr int CUDNN_HEUR_MODE_B = 1, CUDNN_HEUR_MODE_FALLBACK = 2, CUDNN_HEUR_MODE_A = 3;
inline constexpr int CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1,
                     CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,
                     CUDNN_NUMERICAL_NOTE_TYPE_COUNT = 10;

// Of the three passes alike: cudnnConvolutionFwdAlgoPerf_t and its two sisters.
struct AlgoPerf {
  int algo;
  cudnnStatus_t status;
  float time;
  std::size_t memory;
  int determinism, mathType;
  int reserved[3];
};

// The functions, named without their prefix "cudnn".
struct Api {
  std::size_t (*GetVersion)();
  const char* (*GetErrorString)(cudnnStatus_t);
  cudnnStatus_t (*Create)(cudnnHandle_t*);
  cudnnStatus_t (*SetStream)(cudnnHandle_t, CUstream);
  cudnnStatus_t (*BackendCreateDescriptor)(int, cudnnBackendDescriptor_t*);
  cudnnStatus_t (*BackendDestroyDescriptor)(cudnnBackendDescriptor_t);
  cudnnStatus_t (*BackendFinalize)(cudnnBackendDescriptor_t);
  cudnnStatus_t (*BackendSetAttribute)(cudnnBackendDescriptor_t, int, int, std::int64_t, const void*);
  cudnnStatus_t (*BackendGetAttribute)(cudnnBackendDescriptor_t, int, int, std::int64_t, std::int64_t*, void*);
  cudnnStatus_t (*BackendExecute)(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t);
  cudnnStatus_t (*CreateTensorDescriptor)(cudnnTensorDescriptor_t*);
  cudnnStatus_t (*DestroyTensorDescriptor)(cudnnTensorDescriptor_t);
  cudnnStatus_t (*SetTensor4dDescriptor)(cudnnTensorDescriptor_t, int, int, int, int, int, int);
  cudnnStatus_t (*CreateFilterDescriptor)(cudnnFilterDescriptor_t*);
  cudnnStatus_t (*DestroyFilterDescriptor)(cudnnFilterDescriptor_t);
  cudnnStatus_t (*SetFilter4dDescriptor)(cudnnFilterDescriptor_t, int, int, int, int, int, int);
  cudnnStatus_t (*CreateConvolutionDescriptor)(cudnnConvolutionDescriptor_t*);
  cudnnStatus_t (*DestroyConvolutionDescriptor)(cudnnConvolutionDescriptor_t);
  cudnnStatus_t (*SetConvolution2dDescriptor)(cudnnConvolutionDescriptor_t, int, int, int, int, int, int, int, int);
  cudnnStatus_t (*SetConvolutionGroupCount)(cudnnConvolutionDescriptor_t, int);
  cudnnStatus_t (*SetConvolutionMathType)(cudnnConvolutionDescriptor_t, int);
  cudnnStatus_t (*FindConvolutionForwardAlgorithmEx)(cudnnHandle_t, cudnnTensorDescriptor_t, const void*,
                                                     cudnnFilterDescriptor_t, const void*, cudnnConvolutionDescriptor_t,
                                                     cudnnTensorDescriptor_t, void*, int, int*, AlgoPerf*, void*,
                                                     std::size_t);
  cudnnStatus_t (*FindConvolutionBackwardDataAlgorithmEx)(cudnnHandle_t, cudnnFilterDescriptor_t, const void*,
                                                          cudnnTensorDescriptor_t, const void*,
                                                          cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t, void*,
                                                          int, int*, AlgoPerf*, void*, std::size_t);
  cudnnStatus_t (*FindConvolutionBackwardFilterAlgorithmEx)(cudnnHandle_t, cudnnTensorDescriptor_t, const void*,
                                                            cudnnTensorDescriptor_t, const void*,
                                                            cudnnConvolutionDescriptor_t, cudnnFilterDescriptor_t,
                                                            void*, int, int*, AlgoPerf*, void*, std::size_t);
  cudnnStatus_t (*ConvolutionForward)(cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*,
                                      cudnnFilterDescriptor_t, const void*, cudnnConvolutionDescriptor_t, int, void*,
                                      std::size_t, const void*, cudnnTensorDescriptor_t, void*);
  cudnnStatus_t (*ConvolutionBackwardData)(cudnnHandle_t, const void*, cudnnFilterDescriptor_t, const void*,
                                           cudnnTensorDescriptor_t, const void*, cudnnConvolutionDescriptor_t, int,
                                           void*, std::size_t, const void*, cudnnTensorDescriptor_t, void*);
  cudnnStatus_t (*ConvolutionBackwardFilter)(cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*,
                                             cudnnTensorDescriptor_t, const void*, cudnnConvolutionDescriptor_t, int,
                                             void*, std::size_t, const void*, cudnnFilterDescriptor_t, void*);
};

// The library of this process, opened at the first call; null where there is none, or another version, with the reason
// in `why_not`.
const Api* find_api(std::string* why_not);
// Where it is known to be there.
const Api& api();

// Throws, naming the call, unless it succeeded.
void check(const char* call, cudnnStatus_t status);

}  // namespace omniconv::vendor::cudnn
