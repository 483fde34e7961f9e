// One event for a run of several submissions, so that its seconds are those of the whole run.
#pragma once

#include "devices/device.h"

namespace omniconv::devices {

// What a queue implements besides Queue if it can time a span: from the start of `first` to the end of `last`.
class SpanTimer {
 public:
  virtual ~SpanTimer() = default;
  virtual Event span(const Event& first, const Event& last) = 0;
};

// The event of `first` to `last`, both of `queue` and submitted in this order. Where the queue is no SpanTimer it is
// `last`, which is right for waiting.
Event span(Queue& queue, Event first, Event last);

}  // namespace omniconv::devices
