// A sequence that is run again and again.
#pragma once

#include <memory>
#include <string>

#include "devices/sequence.h"

namespace omniconv::devices {

// Keeps the sequence, and so its buffers and programs, alive. A queue that replays it runs the sequence's steps; some
// kinds of devices make a form of their own of it, which is submitted faster. Changing scalars are read at each replay.
class Recording {
 public:
  // `context` is the CUcontext or cl_context that it is of; null for the CPU. Refuses an empty sequence.
  Recording(std::shared_ptr<const Sequence> sequence, std::string device_id, const void* context);
  virtual ~Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  const std::shared_ptr<const Sequence>& sequence() const { return sequence_; }
  const std::string& device_id() const { return device_id_; }
  const void* context() const { return context_; }

 private:
  const std::shared_ptr<const Sequence> sequence_;
  const std::string device_id_;
  const void* const context_;
};

// Throws bad_input where the recording is of another device, or another context, than a queue.
void check_replay(const Recording& recording, const std::string& queue_device_id, const void* queue_context);

}  // namespace omniconv::devices
