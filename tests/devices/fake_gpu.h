// The CPU in the part of a device with memory of its own: it copies what it is given, as a GPU does, and gives no more
// memory than a test allows.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "devices/cpu/cpu_device.h"
#include "omniconv/error.h"
#include "omniconv/filter2d.h"
#include "recording_device.h"
#include "solvers/solver.h"

namespace omniconv {

class FakeGpu final : public devices::Device {
 public:
  static constexpr const char* lost =
      "device fake: cuMemAlloc failed; the device is lost to this process: start it again";

  FakeGpu() : Device({.kind = devices::DeviceKind::opencl}), cpu_(std::make_shared<devices::CpuDevice>(1)) {
    facts_.info = cpu_->info();
    facts_.info.id = "fake";
    facts_.info.is_gpu = true;
    facts_.info.memory_bytes = facts_.info.max_buffer_bytes = std::int64_t{1} << 40;
  }
  std::int64_t free = std::int64_t{1} << 40;   // as it is told
  std::int64_t given = std::int64_t{1} << 40;  // what one buffer may really take
  bool page_locks = true;
  int lost_at = 0;  // the allocation at which it is lost; 0: never
  std::atomic<int> allocations = 0, refusals = 0;

  void set_max_buffer_bytes(std::int64_t bytes) { facts_.info.max_buffer_bytes = bytes; }
  std::shared_ptr<devices::Buffer> allocate(std::int64_t bytes) override {
    if (++allocations == lost_at) throw environment_error(lost);
    if (bytes <= given) return cpu_->allocate(bytes);
    ++refusals;
    throw out_of_memory("device fake has no room for a buffer of " + std::to_string(bytes) + " bytes");
  }
  std::shared_ptr<devices::Buffer> borrow(void*, std::int64_t) override { throw bad_input("the fake borrows nothing"); }
  // Each with a thread of its own that does all the work: what oneTBB hands from thread to thread, the thread sanitizer
  // does not see.
  std::shared_ptr<devices::Queue> make_queue(const QueueOptions&) override {
    const auto own = std::make_shared<devices::CpuDevice>(1);
    auto queue = own->make_queue();
    const std::lock_guard lock(mutex_);
    devices_[queue.get()] = own;
    return queue;
  }
  std::shared_ptr<devices::CpuDevice> device_of(const devices::Queue& queue) const {
    const std::lock_guard lock(mutex_);
    return devices_.at(&queue);
  }
  std::shared_ptr<devices::Program> build(std::string_view, std::span<const devices::Definition>,
                                          const devices::BuildOptions&) override {
    throw bad_input("the fake compiles nothing");
  }
  Peaks measure_peaks(double) override { return {}; }
  std::int64_t free_bytes() override { return free; }
  std::shared_ptr<devices::HostMemory> allocate_host(std::int64_t bytes) override {
    return std::make_shared<devices::ClaimedMemory>(bytes, page_locks);
  }
  const std::shared_ptr<devices::CpuDevice>& cpu() const { return cpu_; }

 private:
  std::shared_ptr<devices::CpuDevice> cpu_;
  mutable std::mutex mutex_;
  std::map<const devices::Queue*, std::shared_ptr<devices::CpuDevice>> devices_;
};

// The CPU's plan, as one of the fake's own.
class FakePlan final : public solvers::Filter2dPlanBody {
 public:
  FakePlan(const std::shared_ptr<FakeGpu>& fake, const Filter2dProblem& problem, const Filter& filter,
           const std::string& solver = "auto")
      : fake_(fake), filter_(filter), plan_(Context(fake->cpu()), problem, filter, {.solver = solver}) {
    task = plan_.impl()->task;
    solver_id = plan_.solver();
    device = fake;
  }
  std::int64_t workspace_bytes() const override { return plan_.workspace_bytes(); }
  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    if (++runs == fail_at) throw environment_error("device fake: a kernel failed; the device is lost to this process");
    const Filter2dPlan own(Context(fake_->device_of(queue)), task.problem, filter_, {.solver = solver_id});
    return own.impl()->run(queue, run);
  }
  mutable std::atomic<int> runs = 0;
  int fail_at = -1;

 private:
  std::shared_ptr<FakeGpu> fake_;
  Filter filter_;
  Filter2dPlan plan_;
};

}  // namespace omniconv
