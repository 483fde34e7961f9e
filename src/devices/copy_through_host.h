// Copies between devices that no driver copies between.
#pragma once

#include "devices/device.h"

namespace omniconv::devices {

// From a buffer to one of another device, after what was submitted to the queue of either, where it is given; a queue
// is made for a device whose queue is null. Through host memory, page-locked where the target's device can do that,
// unless one buffer is the host's own. Done when it returns; throws what the work throws.
Event copy_through_host(std::shared_ptr<Queue> to_queue, const std::shared_ptr<Buffer>& to, std::int64_t to_offset,
                        std::shared_ptr<Queue> from_queue, const std::shared_ptr<Buffer>& from,
                        std::int64_t from_offset, std::int64_t bytes);

// Returns when the event's work is done, if it has any, and throws its error.
void await_event(const Event& event);

}  // namespace omniconv::devices
