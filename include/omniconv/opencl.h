// OpenCL objects that the caller already owns, used in place. Handles are passed as void*, so that this header needs
// none of OpenCL's. Each function takes references of its own (clRetain...): the caller may release his at any time.
#pragma once

#include "omniconv/context.h"

namespace omniconv::opencl {

// A context over one device of a cl_context. Throws bad_input where a handle is null or the device is none of the
// context's, or cannot be used (OpenCL below 1.2, no compiler), an environment error in a build without OpenCL.
Context borrow_context(void* cl_context, void* cl_device_id);

// The whole of a cl_mem that is a buffer, or a sub-buffer, of the context. A part of it is said by the offsets of a
// run. Runs refuse to write what was made CL_MEM_READ_ONLY, and to read what was made CL_MEM_WRITE_ONLY; workspaces are
// both, and so is what a convolution with `acc` writes.
Buffer borrow_buffer(const Context& context, void* cl_mem);

// An in-order cl_command_queue on the context's device. Event::seconds needs a queue made with profiling.
Queue borrow_queue(const Context& context, void* cl_command_queue);

}  // namespace omniconv::opencl
