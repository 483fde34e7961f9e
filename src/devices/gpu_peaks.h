// What a GPU can do at most, measured with its own events and text that all kinds compile.
#pragma once

#include <memory>

#include "devices/device.h"

namespace omniconv::devices {

// `lanes`: floats of one native vector, 1, 2, 4, 8 or 16. Within `seconds` in all.
Device::Peaks measure_gpu_peaks(Device& device, int lanes, double seconds);

// What Device::busy_work asks for: one group of work items that multiply and add.
std::shared_ptr<const Sequence> gpu_busy_work(Device& device, int lanes, double seconds);

}  // namespace omniconv::devices
