#include "vendor/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace omniconv::vendor {

SharedLibrary::SharedLibrary(std::span<const char* const> names) {
  for (const char* const name : names) {
    library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) {
      name_ = name;
      why_not_.clear();
      return;
    }
    const char* const reason = dlerror();
    if (why_not_.empty()) why_not_ = fmt::format("{} was not found ({})", name, reason ? reason : "no reason given");
  }
}

void* SharedLibrary::find(const char* function) {
  void* const found = library_ != nullptr ? dlsym(library_, function) : nullptr;
  if (found == nullptr && why_not_.empty()) why_not_ = fmt::format("{} has no {}", name_, function);
  return found;
}

}  // namespace omniconv::vendor
