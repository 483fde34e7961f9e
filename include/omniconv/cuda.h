// CUDA memory and streams that the caller already owns, used in place. Nothing of CUDA's headers is needed here: memory
// is what cuMemAlloc (a number) or cudaMalloc (a pointer) gave, and a CUstream or cudaStream_t becomes a void* by
// itself.
//
// omniconv works in a device's primary context, which is that of CUDA's runtime API, and so of CuPy's, PyTorch's and
// most programs' memory and streams. What is of a context by cuCtxCreate is refused. No context need be current: each
// call makes the primary one so, and at its end again what was current before.
#pragma once

#include <cstdint>

#include "omniconv/context.h"

namespace omniconv::cuda {

// `bytes` of a device's memory from `device_pointer` on, anywhere within an allocation. Nothing is copied or freed: the
// memory must outlive the buffer, and the work that uses it. Runs want arrays at a multiple of their elements' size,
// and a workspace at one of 64 bytes.
//
// Throws bad_input where the context's device is no CUDA device, and where the pointer is null, none of a device's
// memory, or of another device or context, or the allocation ends before `bytes`; an environment error in a build
// without CUDA.
Buffer borrow_buffer(const Context& context, unsigned long long device_pointer, std::int64_t bytes);
inline Buffer borrow_buffer(const Context& context, void* device_pointer, std::int64_t bytes) {
  return borrow_buffer(context, static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(device_pointer)),
                       bytes);
}

// The caller's stream as a queue: what is submitted follows what the stream was given before. It must outlive the
// queue, which does not destroy it, and waits at its end for its own work alone. Null is the default stream (of
// PyTorch, the usual one). It waits for streams that were made to block, not for queues of Context::make_queue, nor
// these for it: wait for their events. The default stream of each thread, which is no one stream, is refused, and so is
// a stream of another device or context. A stream whose work is being captured into a graph cannot be used.
Queue borrow_queue(const Context& context, void* stream, const QueueOptions& options = {});

}  // namespace omniconv::cuda
