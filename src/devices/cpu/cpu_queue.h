// The CPU's queue: a bounded ring of host functions and one thread that runs them in order.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "devices/cpu/cpu_device.h"

namespace omniconv::devices {

class CpuQueue final : public Queue {
 public:
  explicit CpuQueue(std::shared_ptr<CpuDevice> device);
  ~CpuQueue() override;

  Event submit(HostTask task);
  Event upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) override;
  Event download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) override;
  Event copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
             std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) override;
  Event launch(const std::shared_ptr<Program>& program, const char* kernel, const Grid& grid,
               std::span<const KernelArgument> arguments) override;
  // At most 63 submissions from the first to the last.
  Event span(Event first, Event last) override;
  void finish() override;
  void wait(std::uint64_t token) override;
  double seconds(std::uint64_t token) override;
  void release(std::uint64_t) noexcept override {}

 private:
  static constexpr std::uint64_t capacity = 64;

  Event submit(HostTask task, std::uint64_t span_from);
  void work();
  void rethrow_up_to(std::uint64_t token) const;

  std::shared_ptr<CpuDevice> device_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::array<HostTask, capacity> ring_;
  std::array<double, capacity> seconds_{};
  std::array<std::chrono::steady_clock::time_point, capacity> begun_{};
  std::array<std::uint64_t, capacity> span_from_{};  // the token whose beginning a span counts from; 0: no span
  std::uint64_t submitted_ = 0, completed_ = 0;      // tokens count from 1; completed_ = n: tokens up to n are done
  std::exception_ptr error_;
  std::uint64_t error_token_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace omniconv::devices
