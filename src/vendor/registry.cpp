// The solvers of other libraries, one line each.
#include <array>

#include "vendor/vendor.h"

namespace omniconv::vendor {

std::span<const operations::Solver* const> solvers_of(std::string_view operation) {
  static const std::array<const operations::Solver*, 1> of_conv2d = {&cudnn_conv2d()};
  static const std::array<const operations::Solver*, 1> of_gemm = {&cublas_gemm()};
  if (operation == "conv2d") return of_conv2d;
  if (operation == "gemm") return of_gemm;
  return {};
}

std::map<std::string, std::string> versions() {
  std::map<std::string, std::string> all = {{"cuDNN", cudnn_version()}, {"cuBLAS", cublas_version()}};
  std::erase_if(all, [](const auto& one) { return one.second.empty(); });
  return all;
}

}  // namespace omniconv::vendor
