// The CPU in the part of a device with memory of its own: it copies what it is given, as a GPU does, and gives no more
// memory than a test allows.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>

#include "choice/filter2d.h"
#include "choice/plan_record.h"
#include "devices/cpu/cpu_device.h"
#include "omniconv/error.h"
#include "omniconv/filter2d.h"
#include "operations/filter2d/filter2d.h"
#include "recording_device.h"

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
  std::shared_ptr<devices::Queue> make_queue(const QueueOptions& options) override { return cpu_->make_queue(options); }
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
};

// A body as a plan of the fake's own, of the task that another plan has.
inline Filter2dPlan plan_on(const std::shared_ptr<FakeGpu>& fake, const Filter2dPlan& of,
                            std::shared_ptr<const operations::Filter2dPlanBody> body) {
  choice::PlanRecord record = of.plan().record();
  record.device = fake;
  record.body = std::move(body);
  return Filter2dPlan(Plan(std::make_shared<const choice::PlanRecord>(std::move(record))));
}

// The CPU's work, as a body of the fake's own: each run on a device with a thread of its own.
class FakePlan final : public operations::Filter2dPlanBody {
 public:
  FakePlan(const std::shared_ptr<FakeGpu>& fake, const Filter2dProblem& problem, const Filter& filter,
           const std::string& solver = "auto")
      : FakePlan(filter, Filter2dPlan(Context(fake->cpu()), problem, filter, {.solver = solver})) {}
  const Filter2dPlan& of_cpu() const { return plan_; }
  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    if (++runs == fail_at) throw environment_error("device fake: a kernel failed; the device is lost to this process");
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] {
      const Context own(std::make_shared<devices::CpuDevice>(1));
      Queue queue = own.make_queue();
      Filter2dPlan(own, task().problem, filter_, {.solver = plan_.solver()}).run(queue, run).wait();
    }));
  }
  mutable std::atomic<int> runs = 0;
  int fail_at = -1;

 private:
  FakePlan(const Filter& filter, const Filter2dPlan& plan)
      : Filter2dPlanBody(choice::task_of(plan)), filter_(filter), plan_(plan) {}

  Filter filter_;
  Filter2dPlan plan_;
};

}  // namespace omniconv
