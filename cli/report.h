// Results as JSON (docs/cli.md) and as tables.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "devices/device.h"
#include "omniconv/context.h"

namespace omniconv::cli {

// Keys stay in the order in which they are set.
using Json = nlohmann::ordered_json;

// The envelope: schema, version, commit, date, host, device.
Json report_head(std::string_view schema, const DeviceInfo& device, const devices::Device::Peaks* peaks);
Json describe(const DeviceInfo& device);
// Whole or not at all; "-" is stdout.
void write_json(const Json& json, const std::string& path);

// Columns as wide as their widest cell; numbers (cells that begin with a digit or a minus) to the right.
void print_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace omniconv::cli
