#include "image/formats/module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "image/formats/extension.h"
#include "omniconv/error.h"
#ifdef OMNICONV_IMAGE_MODULE
#include "libraries_in_order.h"
#endif

namespace omniconv::image {

std::vector<std::filesystem::path> module_files(const char* file_name) {
  std::vector<std::filesystem::path> result;
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&image_module), &here) != 0 && here.dli_fname != nullptr) {
    std::error_code error;
    const std::filesystem::path library = std::filesystem::canonical(here.dli_fname, error);
    if (!error) {
      const std::filesystem::path folder = library.parent_path();
      result.push_back(folder / file_name);
      result.push_back(folder / "omniconv" / file_name);
      result.push_back(folder.parent_path() / "lib" / file_name);
      result.push_back(folder.parent_path() / "lib" / "omniconv" / file_name);
    }
  }
  result.emplace_back(std::filesystem::path(OMNICONV_MODULE_FOLDER) / file_name);
  return result;
}

namespace {

struct Loaded {
  const Module* module = nullptr;
  std::string reason;
};

// The loader looks for each symbol in all libraries of one dlopen, some 260 of them. Opened beforehand, each behind
// those that it needs, a library is searched for among its own few: half the time. What cannot be opened so is left to
// the module's own dlopen.
void load_libraries_in_order() {
#ifdef OMNICONV_IMAGE_MODULE
  for (const char* const library : libraries_in_order) ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
#endif
}

Loaded load(const char* file_name, void (*load_its_libraries)()) {
  Loaded result;
  for (const std::filesystem::path& candidate : module_files(file_name)) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(candidate, error)) continue;
    load_its_libraries();
    // Never closed: readers and writers of the module may live as long as the process.
    void* const handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      result.reason = fmt::format("it cannot be loaded: {}", ::dlerror());
      continue;
    }
    const auto entry = reinterpret_cast<ModuleEntry>(::dlsym(handle, module_entry_name));
    const Module* const module = entry == nullptr ? nullptr : entry();
    if (module == nullptr || std::string_view(module->version) != OMNICONV_VERSION) {
      result.reason = fmt::format("{} is of another version", candidate.string());
      continue;
    }
    result.module = module;
    return result;
  }
  if (result.reason.empty()) result.reason = fmt::format("there is no {} beside the library", file_name);
  return result;
}

}  // namespace

const Module& image_module(const std::string& path) {
  static const Loaded loaded = load("omniconv_image_oiio.so", load_libraries_in_order);
  if (loaded.module == nullptr)
    throw environment_error(
        fmt::format("{} needs omniconv's image module, and {}; PNM, PAM, PFM and .npy work without it; install the "
                    "module or build with OMNICONV_IMAGE_MODULE=ON and OpenImageIO (Debian: libopenimageio-dev)",
                    path, loaded.reason));
  return *loaded.module;
}

const Module* plain_module() {
  static const Loaded loaded = load("omniconv_image_plain.so", [] {});
  return loaded.module;
}

bool is_named_plain(std::string_view extension) {
  return extension == "png" || is_tiff_extension(extension) || is_jpeg_extension(extension);
}

bool may_be_plain(const std::vector<std::byte>& beginning) {
  const std::string_view text(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  return text.starts_with("\x89PNG") || text.starts_with("\xFF\xD8\xFF") || text.starts_with("II") ||
         text.starts_with("MM");
}

}  // namespace omniconv::image
