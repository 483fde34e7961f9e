// What the module that draws gives: it is opened when a plot is asked for, since cairo and what it needs take longer to
// load than most commands take.
#pragma once

#include <string>
#include <vector>

#include "omniconv/training.h"

namespace omniconv::cli {

struct TrainingPicture {
  std::string title;
  std::vector<EpochReport> epochs;
  std::vector<std::string> classes;  // their names
  Evaluation test;
};

struct PlotModule {
  const char* version;  // of the build, which must be the command's
  // The bytes of a PNG file.
  std::string (*draw)(const TrainingPicture& picture);
};
using PlotModuleEntry = const PlotModule* (*)();
inline constexpr const char* plot_module_entry = "omniconv_plot_module";

}  // namespace omniconv::cli
