// A CUDA stream, with an event before and after each submission. Submissions are numbered from 1; a token stands for
// one, or for a span of them. Submitting allocates nothing but the driver's events, each at its first use: what runs is
// kept in a ring, as in the other queues, and events and tokens in slots that are used again.
#pragma once

#include <array>
#include <deque>
#include <mutex>
#include <optional>

#include "devices/cuda/cuda_device.h"

namespace omniconv::devices::cuda {

class CudaQueue final : public Queue {
 public:
  // A stream of its own, or the caller's, which is not destroyed; null is the context's default stream.
  CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context);
  CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context, CUstream borrowed);
  ~CudaQueue() override;

  // Memory that is not page-locked is copied before the call returns, or waited for: the driver stages it.
  Event upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) override;
  Event download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) override;
  Event copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
             std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) override;
  // At most 16 of the arguments are buffers, and at most 32 arguments; at most 65535 groups in the second dimension.
  Event launch(const std::shared_ptr<Program>& program, const char* kernel, const Grid& grid,
               std::span<const KernelArgument> arguments) override;
  Event span(Event first, Event last) override;
  void finish() override;

  void wait(std::uint64_t token) override;
  double seconds(std::uint64_t token) override;
  double seconds_after(std::uint64_t token, Queue& other, std::uint64_t other_token) override;
  void release(std::uint64_t token) noexcept override;

 private:
  static constexpr std::uint64_t capacity = 64;  // submissions under way; the next one waits for the oldest

  // What a submission needs alive.
  struct Held {
    std::array<std::shared_ptr<const Memory>, 16> memory;
    std::shared_ptr<Program> program;
  };
  // The events around a submission, shared by the ring and the slots, and used again when nobody needs them.
  struct Timer {
    CUevent start = nullptr, end = nullptr;
    int users = 0;
    Timer* next_free = nullptr;
  };
  // A submission that may still run.
  struct Pending {
    std::uint64_t number = 0;
    std::array<char, 64> what{};  // for errors, cut where it is longer: the caller's text may be gone by then
    Timer* timer = nullptr;
    Held held;
  };
  // What a token, its index + 1, stands for: submission `number`, and the time from the start of `first` to the end of
  // `last`, null where the queue had failed before.
  struct Slot {
    std::uint64_t number = 0;  // 0: free
    Timer *first = nullptr, *last = nullptr;
    std::size_t next_free = 0;
  };

  CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context, CUstream stream, bool owns_stream);

  // Calls `enqueue` between two events; an error of it becomes the queue's.
  template <typename Enqueue>
  Event submit(const char* what, Held held, const Enqueue& enqueue);
  // By the driver, between two buffers of CUDA devices.
  Event copy_on_devices(const std::shared_ptr<const Memory>& to, std::int64_t to_offset_bytes,
                        const std::shared_ptr<const Memory>& from, std::int64_t from_offset_bytes, std::int64_t bytes);
  // What is submitted from now on starts after the event's work, of any queue.
  void start_after(const Event& event);
  // Until there is room in the ring, or the queue has failed.
  void wait_for_room(std::unique_lock<std::mutex>& lock);
  // Returns when submission `number` and all before it are done; notes their first error.
  void wait_for(std::uint64_t number, std::unique_lock<std::mutex>& lock);
  void add_timer();
  // With one user, and its events made.
  Timer* take_timer();
  void drop(Timer* timer) noexcept;
  // Makes sure that take_slot, which cannot fail, finds one.
  void reserve_slot();
  // Becomes a user of both timers.
  Event take_slot(std::uint64_t number, Timer* first, Timer* last) noexcept;
  const Slot& slot(std::uint64_t token) const;
  // The event at the end of what a token stands for.
  CUevent end_of(std::uint64_t token) const;
  // Drops what has ended from the front of the ring, and takes note of errors.
  void sweep();
  // Keeps the error of the earliest submission.
  void fail(std::uint64_t number, const Error& error);
  void throw_failure_up_to(std::uint64_t number) const;
  bool is_own(const CudaBuffer* buffer) const;
  const CudaBuffer& own(const Buffer* buffer, const char* call) const;

  const std::string device_id_;
  const std::shared_ptr<SharedContext> context_;
  const CUstream stream_;
  const bool owns_stream_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Timer> timers_;
  Timer* free_timer_ = nullptr;
  std::array<Pending, capacity> ring_;
  std::uint64_t pushed_ = 0, swept_ = 0;  // positions in the ring, modulo its capacity
  std::uint64_t submitted_ = 0;
  std::vector<Slot> slots_;
  std::size_t first_free_ = 0;  // slots_.size(): none
  std::optional<Error> failure_;
  std::uint64_t failure_number_ = 0;
};

}  // namespace omniconv::devices::cuda
