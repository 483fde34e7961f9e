// What is the same for the queues and the devices of every kind.
#include "devices/device.h"

namespace omniconv::devices {

std::shared_ptr<Sequence> Queue::take_sequence() {
  return std::make_shared<Sequence>();
}

Event Queue::replay(const std::shared_ptr<const Recording>& recording) {
  return submit(recording->sequence());
}

std::shared_ptr<const Recording> Device::record(std::shared_ptr<const Sequence> sequence) {
  return std::make_shared<Recording>(std::move(sequence), info().id, nullptr);
}

std::shared_ptr<const Sequence> Device::busy_work(double) {
  return nullptr;
}

Event Queue::launch(const std::shared_ptr<Program>& program, const char* kernel, const Grid& grid,
                    std::span<const KernelArgument> arguments) {
  const std::shared_ptr<Sequence> sequence = take_sequence();
  sequence->launch(program, kernel, grid, arguments);
  return submit(sequence);
}

double Queue::seconds_after(std::uint64_t token, Queue&, std::uint64_t) {
  return seconds(token);
}

Event submit(Queue& queue, HostTask task) {
  const std::shared_ptr<Sequence> sequence = queue.take_sequence();
  sequence->call(std::move(task));
  return queue.submit(sequence);
}

}  // namespace omniconv::devices
