#include "plot.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

#include "core/build_info.h"
#include "image/atomic_file.h"
#include "image/formats/extension.h"
#include "image/formats/module.h"
#include "omniconv/context.h"
#include "omniconv/error.h"

namespace omniconv::cli {
namespace {

const PlotModule& plot_module() {
  std::string reason =
      OMNICONV_HAS_CAIRO ? "there is no omniconv_plot.so beside the library" : "this omniconv was built without it";
  for (const std::filesystem::path& file : image::module_files("omniconv_plot.so")) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) continue;
    // Never closed: fonts and what draws them are kept for the process.
    void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      reason = fmt::format("it cannot be loaded: {}", ::dlerror());
      continue;
    }
    const auto entry = reinterpret_cast<PlotModuleEntry>(::dlsym(handle, plot_module_entry));
    const PlotModule* const module = entry == nullptr ? nullptr : entry();
    if (module != nullptr && std::string_view(module->version) == build_version()) return *module;
    reason = fmt::format("{} is of another version", file.string());
  }
  throw environment_error(
      fmt::format("--plot needs omniconv's module that draws, and {}; install cairo (Debian: libcairo2-dev) and build "
                  "again, or leave --plot out: --log writes the same numbers",
                  reason));
}

}  // namespace

PlotOutput::PlotOutput(const std::string& path) {
  if (path.empty()) return;
  if (image::extension_of(path) != "png")
    throw bad_input(fmt::format("--plot '{}': a plot is a PNG file: let its name end in .png", path));
  module_ = &plot_module();
  file_ = std::make_unique<image::AtomicFile>(path);
}

PlotOutput::~PlotOutput() = default;

void PlotOutput::write(const TrainingPicture& picture) {
  if (!file_) return;
  const std::string bytes = module_->draw(picture);
  file_->write_at(0, bytes.data(), std::ssize(bytes));
  file_->commit();
}

}  // namespace omniconv::cli
