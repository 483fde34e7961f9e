// The CPU's queue: sequences are run in order, by a thread of its own or by one that waits for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "devices/cpu/cpu_device.h"
#include "devices/ring_queue.h"

namespace omniconv::devices {

struct CpuTimes {
  std::chrono::steady_clock::time_point start, end;
  std::vector<double> scalars;  // of the sequence, when it was submitted
  bool is_done = false;
};

// Throws bad_input where a step cannot be the CPU's.
void check_cpu_steps(const Sequence& sequence);

class CpuQueue final : public RingQueue<CpuTimes> {
 public:
  CpuQueue(std::shared_ptr<CpuDevice> device, const QueueOptions& options);
  ~CpuQueue() override;

  Event upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) override;
  Event download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) override;
  Event copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
             std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) override;

 private:
  const void* context() const override { return nullptr; }
  void prepare(const Sequence& sequence) const override { check_cpu_steps(sequence); }
  void begin(CpuTimes& times) override { times.is_done = false; }
  void enqueue(const Sequence& sequence, CpuTimes& times) override;  // the thread finds it in the ring
  void end(CpuTimes&) override {}
  void pushed() override {
    if (thread_.joinable()) changed_.notify_all();
  }
  bool is_done(const CpuTimes& times) const override { return times.is_done; }
  void await(const CpuTimes& times) override;
  double seconds_of(const CpuTimes& first, const CpuTimes& last) const override;
  double seconds_between_ends(const CpuTimes& earlier, const CpuTimes& later) const override;
  bool shares_clock(const RingQueue&) const override { return true; }

  void work();
  bool can_run_next() const { return !is_running_ && begun_ < pushed_; }
  void run_next(std::unique_lock<std::mutex>& lock);
  void run(const Sequence& sequence, std::span<const double> scalars) const;

  const std::shared_ptr<CpuDevice> device_;
  mutable std::condition_variable changed_;
  std::uint64_t begun_ = 0;  // positions in the ring, as of pushed_
  bool is_running_ = false, stopping_ = false;
  std::thread thread_;  // none, where work begins when somebody waits
};

}  // namespace omniconv::devices
