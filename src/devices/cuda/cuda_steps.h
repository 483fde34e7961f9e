// The steps of a sequence on a CUDA stream.
#pragma once

#include "devices/cuda/cuda_device.h"
#include "devices/sequence.h"

namespace omniconv::devices::cuda {

// Throws bad_input where a step cannot be of the context's device.
void check_steps(const Sequence& sequence, const SharedContext& context, const std::string& device_id);

// Of a sequence that was checked and is about to be submitted, once or again and again: waits for the programs that
// were submitted before, or for all of them, until they have optimised code.
void prepare_programs(const Sequence& sequence, const SharedContext& context);
void await_optimised(const Sequence& sequence);

// Of a sequence that was checked, on a stream of the context, which is current.
void enqueue_step(const Sequence& sequence, const Sequence::Step& step, const SharedContext& context, CUstream stream);
inline void enqueue_steps(const Sequence& sequence, const SharedContext& context, CUstream stream) {
  for (const Sequence::Step& step : sequence.steps()) enqueue_step(sequence, step, context, stream);
}

}  // namespace omniconv::devices::cuda
