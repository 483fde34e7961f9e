#include "vendor/cudnn/cudnn_api.h"

#include <fmt/format.h>

#include "omniconv/error.h"
#include "vendor/shared_library.h"

namespace omniconv::vendor::cudnn {
namespace {

struct Loader {
  Api api{};
  std::string why_not;  // empty: usable
};

Loader open_loader() {
  static constexpr const char* names[] = {"libcudnn.so.9"};
  SharedLibrary library(names);
  Loader loader;
  Api& api = loader.api;
  library.bind("cudnnGetVersion", api.GetVersion);
  library.bind("cudnnGetErrorString", api.GetErrorString);
  library.bind("cudnnCreate", api.Create);
  library.bind("cudnnSetStream", api.SetStream);
  library.bind("cudnnBackendCreateDescriptor", api.BackendCreateDescriptor);
  library.bind("cudnnBackendDestroyDescriptor", api.BackendDestroyDescriptor);
  library.bind("cudnnBackendFinalize", api.BackendFinalize);
  library.bind("cudnnBackendSetAttribute", api.BackendSetAttribute);
  library.bind("cudnnBackendGetAttribute", api.BackendGetAttribute);
  library.bind("cudnnBackendExecute", api.BackendExecute);
  library.bind("cudnnCreateTensorDescriptor", api.CreateTensorDescriptor);
  library.bind("cudnnDestroyTensorDescriptor", api.DestroyTensorDescriptor);
  library.bind("cudnnSetTensor4dDescriptor", api.SetTensor4dDescriptor);
  library.bind("cudnnCreateFilterDescriptor", api.CreateFilterDescriptor);
  library.bind("cudnnDestroyFilterDescriptor", api.DestroyFilterDescriptor);
  library.bind("cudnnSetFilter4dDescriptor", api.SetFilter4dDescriptor);
  library.bind("cudnnCreateConvolutionDescriptor", api.CreateConvolutionDescriptor);
  library.bind("cudnnDestroyConvolutionDescriptor", api.DestroyConvolutionDescriptor);
  library.bind("cudnnSetConvolution2dDescriptor", api.SetConvolution2dDescriptor);
  library.bind("cudnnSetConvolutionGroupCount", api.SetConvolutionGroupCount);
  library.bind("cudnnSetConvolutionMathType", api.SetConvolutionMathType);
  library.bind("cudnnFindConvolutionForwardAlgorithmEx", api.FindConvolutionForwardAlgorithmEx);
  library.bind("cudnnFindConvolutionBackwardDataAlgorithmEx", api.FindConvolutionBackwardDataAlgorithmEx);
  library.bind("cudnnFindConvolutionBackwardFilterAlgorithmEx", api.FindConvolutionBackwardFilterAlgorithmEx);
  library.bind("cudnnConvolutionForward", api.ConvolutionForward);
  library.bind("cudnnConvolutionBackwardData", api.ConvolutionBackwardData);
  library.bind("cudnnConvolutionBackwardFilter", api.ConvolutionBackwardFilter);
  loader.why_not = library.why_not();
  return loader;
}

const Loader& loader() {
  static const Loader loaded = open_loader();
  return loaded;
}

}  // namespace

const Api* find_api(std::string* why_not) {
  *why_not = loader().why_not;
  return why_not->empty() ? &loader().api : nullptr;
}

const Api& api() {
  return loader().api;
}

void check(const char* call, cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw environment_error(fmt::format("{} failed: {} ({})", call, api().GetErrorString(status), status));
}

}  // namespace omniconv::vendor::cudnn
