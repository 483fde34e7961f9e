// The picture that train --plot writes.
#pragma once

#include <memory>
#include <string>

#include "plot/plot.h"

namespace omniconv::image {
class AtomicFile;
}

namespace omniconv::cli {

// Made before the work begins: what is missing to draw, and a file that cannot be written, are found then. It appears
// whole or not at all. With an empty path it does nothing.
class PlotOutput {
 public:
  explicit PlotOutput(const std::string& path);
  ~PlotOutput();
  void write(const TrainingPicture& picture);

 private:
  const PlotModule* module_ = nullptr;
  std::unique_ptr<image::AtomicFile> file_;
};

}  // namespace omniconv::cli
