// Where the data sets lie that come with omniconv.
#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "omniconv/dataset.h"

namespace omniconv {

// As installed, and where libraries and data do not lie as deep as each other; a build's folder is like an installed
// one.
std::string bundled_datasets() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&bundled_datasets), &here) == 0 || here.dli_fname == nullptr) return {};
  std::error_code error;
  const std::filesystem::path library = std::filesystem::canonical(here.dli_fname, error);
  if (error) return {};
  for (const char* const way : {OMNICONV_LIBRARY_TO_DATA, "../share/omniconv"}) {
    const std::filesystem::path folder = (library.parent_path() / way).lexically_normal();
    if (std::filesystem::is_directory(folder, error)) return folder.string();
  }
  return {};
}

}  // namespace omniconv
