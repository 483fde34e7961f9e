#include <fmt/format.h>

#include <memory>
#include <string>

#include "common.h"
#include "devices/device.h"
#include "omniconv/error.h"
#include "report.h"

namespace omniconv::cli {
namespace {

constexpr double seconds_in_all = 2;

int run(const Common& common, Json& json) {
  // Throws for one that is not there, listing those that are.
  const std::string wanted = common.device == "auto" ? "" : Context({.device = common.device}).device().id;
  const DeviceListing listing = list_devices();
  std::vector<std::vector<std::string>> table = {{"device", "name", "units", "memory", "TFLOP/s", "GB/s", "launch us"}};
  json["devices"] = Json::array();
  json["missing"] = Json::array();
  for (const DeviceInfo& info : listing.found) {
    if (!wanted.empty() && wanted != info.id) continue;
    ContextOptions options = context_options(common);
    options.device = info.id;
    const Context context(options);
    const auto peaks = context.impl()->measure_peaks(seconds_in_all / static_cast<double>(listing.found.size()));
    Json entry = describe(context.device());
    if (context.impl()->kind() == devices::DeviceKind::cuda) entry["peers"] = context.device().peers;
    entry["peak_tflops"] = peaks.tflops;
    entry["peak_gbps"] = peaks.gbps;
    entry["launch_seconds"] = peaks.launch_seconds;
    json["devices"].push_back(entry);
    table.push_back({info.id, info.name, std::to_string(context.device().compute_units), print_bytes(info.memory_bytes),
                     fmt::format("{:.3f}", peaks.tflops), fmt::format("{:.1f}", peaks.gbps),
                     fmt::format("{:.3g}", peaks.launch_seconds * 1e6)});
  }
  for (const auto& [id, reason] : listing.missing) json["missing"].push_back({{"id", id}, {"reason", reason}});
  if (common.quiet || common.json == "-") return 0;
  print_table(table);
  fmt::print(
      "Measured: fp32 multiply-adds (two operations each), a copy (bytes read + written), and the time from one small "
      "launch to the next that needs it (on the CPU a host task's).\n");
  for (const auto& [id, reason] : listing.missing) fmt::print("not found: {}: {}\n", id, reason);
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, Body& body) {
  CLI::App* const command =
      app.add_subcommand("devices", "list what can be used, how fast it is, and what was not found");
  command->footer("Example: omniconv devices");
  const auto common = std::make_shared<Common>();
  add_common(*command, *common);
  command->callback([common, &body] {
    body = [common] {
      return with_report(common->json, "omniconv-devices/1", [&](Json& json) { return run(*common, json); });
    };
  });
}

}  // namespace omniconv::cli
