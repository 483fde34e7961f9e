#include "devices/recording.h"

#include <fmt/format.h>

#include "omniconv/error.h"

namespace omniconv::devices {

Recording::Recording(std::shared_ptr<const Sequence> sequence, std::string device_id, const void* context)
    : sequence_(std::move(sequence)), device_id_(std::move(device_id)), context_(context) {
  if (!sequence_ || sequence_->is_empty())
    throw bad_input(fmt::format("an empty sequence was recorded on device {}: append a step to it", device_id_));
}

void check_replay(const Recording& recording, const std::string& queue_device_id, const void* queue_context) {
  if (recording.context() == queue_context) return;
  throw bad_input(fmt::format(
      "a recording of device {} was replayed on a queue of {} {}: record it there too", recording.device_id(),
      recording.device_id() == queue_device_id ? "another context of device" : "device", queue_device_id));
}

}  // namespace omniconv::devices
