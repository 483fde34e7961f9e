// Runs the groups of a launch of compiled kernel text, one after the other, each work item as a fibre.
#pragma once

#include <cstddef>
#include <functional>

#include "engine.h"

namespace omniconv::by_processor {

// All that a text has, whose addresses begin at 1024, and in it what launches ask for.
struct LocalMemory {
  std::byte *begin = nullptr, *end = nullptr, *of_launch = nullptr;
  static constexpr std::size_t first_address = 1024, most_of_launch = 227 << 10;
};
struct Launch {
  LocalMemory local;
  std::size_t local_bytes = 0;  // that the launch asks for
  int items[3] = {1, 1, 1};
  long groups[3] = {1, 1, 1};
  std::function<void()> kernel;
};

const Engine& engine();
// Ends the process, with a message, where work items wait for each other for good, or do together what differs.
void run(const Launch& launch);

}  // namespace omniconv::by_processor
