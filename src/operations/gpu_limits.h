// What a GPU takes in one launch and what a launch costs, whatever the operation.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "devices/device.h"

namespace omniconv::operations {

// Why a kernel whose groups have so many work items cannot run there; empty if it can.
inline std::string group_refusal(const devices::Device& device, std::int64_t items) {
  const std::int64_t most = device.facts().max_group_items;
  return items <= most ? "" : fmt::format("a group has {} work items, and the device takes {} at most", items, most);
}

// Why a kernel whose groups share `bytes` of local memory, between barriers in loops, cannot run there; empty if it
// can.
inline std::string local_memory_refusal(const devices::Device& device, std::int64_t bytes) {
  const DeviceInfo& info = device.info();
  if (bytes > info.local_memory_bytes)
    return fmt::format("a group takes {} bytes of local memory, and the device has {}", bytes, info.local_memory_bytes);
  // PoCL 5.0 stops the process in an assertion when it compiles such loops; 3.1 compiles them.
  constexpr std::string_view pocl = "Portable Computing Language", driver = ", driver ";
  const std::size_t version = info.driver.rfind(driver);
  if (info.driver.starts_with(pocl) && version != std::string::npos &&
      std::atoi(info.driver.c_str() + version + driver.size()) > 3)
    return "PoCL newer than 3.1 cannot be trusted to compile barriers in loops";
  return {};
}

// Groups of one launch at most: their numbers are 32-bit integers in the kernels, times a few rows or parts.
constexpr std::int64_t most_groups = std::int64_t{1} << 28;

// So many groups in as many launches as it takes: launch(first, how many).
template <typename Launch>
void launch_groups(std::int64_t groups, const Launch& launch) {
  for (std::int64_t first = 0; first < groups; first += most_groups)
    launch(first, std::min(most_groups, groups - first));
}

// A launch in multiply-adds: 3 microseconds of an H200's peak, on CPU cores 50 of two.
inline double launch_cost(const devices::Device& device) {
  return device.info().is_gpu ? 9e7 : 4e6;
}

// What costs so much on the device, by so many launches: no less than the host takes for these, which is 5 to 9
// microseconds for each through NVIDIA's OpenCL.
inline double launched(const devices::Device& device, double launches, double cost) {
  const bool is_nvidias = device.info().is_gpu && device.facts().compute_capability > 0;
  constexpr double of_host = 2.4e8;
  return device.kind() == devices::DeviceKind::opencl && is_nvidias ? std::max(cost, launches * of_host) : cost;
}

}  // namespace omniconv::operations
