// What is known of a device without asking it again, as one value.
#pragma once

#include <cstdint>

#include "omniconv/context.h"

namespace omniconv::devices {

enum class DeviceKind : std::uint8_t { cpu, cuda, opencl };

// How matrix units add up products of 16-bit numbers in fp32: so many at a time, with the sum before, of which each is
// cut so many bits behind the leading one of the largest.
struct MatrixUnits {
  int terms = 0, bits = 0;  // 0: there are none
  bool truncates = true;    // toward zero; else they round to the nearest

  friend bool operator==(const MatrixUnits&, const MatrixUnits&) = default;
};

struct DeviceFacts {
  DeviceKind kind = DeviceKind::cpu;
  DeviceInfo info = {};                 // its local memory: what the text of a group may declare
  bool has_denormals = true;            // fp32 numbers below the normal range are computed with, and not taken for zero
  bool has_byte_dots = false;           // one instruction adds four products of unsigned and signed bytes to an integer
  bool takes_occupancy = false;         // its compiler keeps to an occupancy
  std::int64_t max_group_items = 1024;  // work items of a group, at most
  // Local memory of a group with what its launch asks for (LaunchOptions), and of a compute unit, which its groups
  // share; 0 where that is not known.
  std::int64_t most_local_memory_bytes = 0, unit_local_memory_bytes = 0;
  int compute_capability = 0;  // of NVIDIA's devices, of either kind: 90 for 9.0
  bool has_clusters = false;   // of groups (LaunchOptions::cluster)
  bool has_overlap = false;    // of launches (LaunchOptions::overlaps)
  bool has_meetings = false;   // of all groups of a launch (LaunchOptions::meets)
  bool has_tensor_maps = false;
  MatrixUnits matrix_units = {};  // as known (matrix_units.h), which Device::probe_matrix_units finds out
};

}  // namespace omniconv::devices
