// Which steps of a sequence an OpenCL device takes.
#pragma once

#include "devices/opencl/opencl_device.h"
#include "devices/sequence.h"

namespace omniconv::devices::opencl {

// Throws bad_input where a step cannot be the device's.
void check_steps(const Sequence& sequence, const OpenClDevice& device);

// Throws bad_input, naming the call, where the buffer is another device's or context's.
const OpenClBuffer& own_buffer(const Buffer& buffer, const OpenClDevice& device, const char* call);

}  // namespace omniconv::devices::opencl
