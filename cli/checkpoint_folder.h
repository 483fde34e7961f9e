// The folder where a training keeps its checkpoints.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "omniconv/checkpoint.h"

namespace omniconv::cli {

// Made before the work begins, so that one that cannot be written stops it in time, and removed again where nothing
// came of it.
class CheckpointFolder {
 public:
  // None for an empty path.
  explicit CheckpointFolder(const std::string& path)
      : path_(path), is_new_(!path.empty() && make_checkpoint_folder(path)) {}
  ~CheckpointFolder() {
    std::error_code ignored;
    if (is_new_) std::filesystem::remove(path_, ignored);  // where it is empty
  }
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

 private:
  const std::string path_;
  const bool is_new_;
};

}  // namespace omniconv::cli
