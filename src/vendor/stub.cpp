// Stands for the solvers of other libraries where CUDA devices are not built.
#include "vendor/vendor.h"

namespace omniconv::vendor {

std::span<const operations::Solver* const> solvers_of(std::string_view) {
  return {};
}

std::map<std::string, std::string> versions() {
  return {};
}

}  // namespace omniconv::vendor
