// Results as JSON (docs/cli.md) and as tables.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "devices/device.h"
#include "omniconv/context.h"

namespace omniconv::image {
class AtomicFile;
}

namespace omniconv::cli {

// Keys stay in the order in which they are set.
using Json = nlohmann::ordered_json;

// The envelope: schema, version, commit, date, host, device.
Json report_head(std::string_view schema, const DeviceInfo& device, const devices::Device::Peaks* peaks);
Json describe(const DeviceInfo& device);
// Where --json writes: nowhere for an empty path, to stdout for "-", else to a file that appears whole or not at all.
// Made before the work begins, so that a target that cannot be written stops it in time.
class JsonOutput {
 public:
  explicit JsonOutput(const std::string& path);
  ~JsonOutput();
  void write(const Json& json);

 private:
  std::string path_;
  std::unique_ptr<image::AtomicFile> file_;
};

// Columns as wide as their widest cell; numbers (cells that begin with a digit or a minus) to the right. The last cell
// of a row that is shorter than others, a reason, may run over the columns that the row lacks.
void print_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace omniconv::cli
