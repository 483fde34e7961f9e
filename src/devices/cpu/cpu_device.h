// The CPU as a device: a crew of threads for work, and queues that take host functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "devices/cpu/crew.h"
#include "devices/device.h"
#include "devices/host_task.h"

namespace omniconv::devices {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads);

  std::shared_ptr<Buffer> allocate(std::int64_t bytes) override;
  std::shared_ptr<Buffer> borrow(void* memory, std::int64_t bytes) override;
  std::shared_ptr<Queue> make_queue(const QueueOptions& options = {}) override;
  std::shared_ptr<const Recording> record(std::shared_ptr<const Sequence> sequence) override;
  std::shared_ptr<Program> build(std::string_view text, std::span<const Definition> definitions,
                                 const BuildOptions& options) override;
  Peaks measure_peaks(double seconds) override;

  int threads() const { return info().compute_units; }

  // Calls body(i, slot) for every i in [0, count) on the crew's threads, at most threads() at once; calls that run at
  // the same time have different slots in [0, threads()). Returns when all are done; the first exception is rethrown.
  template <typename Body>
  void parallel_for(std::int64_t count, const Body& body) {
    crew_.run(
        count, [](const void* context, std::int64_t i, int slot) { (*static_cast<const Body*>(context))(i, slot); },
        &body);
  }

 private:
  Crew crew_;
};

}  // namespace omniconv::devices
