// An in-order OpenCL queue with profiling. Submissions are numbered from 1; a token stands for one, or for a span of
// them. Submitting allocates nothing once the queue knows the kernel: what runs is kept in a ring, as in the CPU's
// queue, and tokens in slots that are used again.
#pragma once

#include <array>
#include <mutex>
#include <optional>

#include "devices/opencl/opencl_device.h"

namespace omniconv::devices::opencl {

class OpenClQueue final : public Queue {
 public:
  OpenClQueue(std::shared_ptr<OpenClDevice> device, Owned<cl_command_queue> queue);
  ~OpenClQueue() override;

  Event upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) override;
  Event download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) override;
  Event copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
             std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) override;
  // At most 16 of the arguments are buffers.
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
  using Held = std::array<Owned<cl_mem>, 16>;
  // A submission that may still run.
  struct Pending {
    std::uint64_t number = 0;
    std::array<char, 64> what{};  // for errors, cut where it is longer: the caller's text may be gone by then
    Owned<cl_event> event;
    Held memory;
  };
  // What a token, its index + 1, stands for: submission `number`, and the time from the start of `first` to the end of
  // `last`. The events are null where the queue had failed before.
  struct Slot {
    std::uint64_t number = 0;  // 0: free
    Owned<cl_event> first, last;
    std::size_t next_free = 0;
  };
  struct CachedKernel {
    std::weak_ptr<Program> program;
    std::string name;
    Owned<cl_kernel> kernel;
  };

  // Calls `enqueue`, which returns the command's event; an error of it becomes the queue's.
  template <typename Enqueue>
  Event submit(const char* what, Held memory, const Enqueue& enqueue);
  // Until there is room in the ring, or the queue has failed.
  void wait_for_room(std::unique_lock<std::mutex>& lock);
  // Returns when submission `number` and all before it are done; notes their first error.
  void wait_for(std::uint64_t number, std::unique_lock<std::mutex>& lock);
  void push(std::uint64_t number, const char* what, Owned<cl_event> event, Held memory);
  // Makes sure that take_slot, which cannot fail, finds one.
  void reserve_slot();
  Event take_slot(std::uint64_t number, Owned<cl_event> first, Owned<cl_event> last) noexcept;
  const Slot& slot(std::uint64_t token) const;
  // On the device's clock, in nanoseconds.
  struct Times {
    cl_ulong start = 0, end = 0;
  };
  Times times(std::uint64_t token) const;
  // Drops what has ended from the front of the ring, and takes note of errors.
  void sweep();
  // Keeps the error of the earliest submission.
  void fail(std::uint64_t number, const Error& error);
  void throw_failure_up_to(std::uint64_t number) const;
  cl_kernel kernel_of(const std::shared_ptr<Program>& program, const char* name);
  // Null where the buffer is another device's.
  const OpenClBuffer* find_own(const Buffer* buffer) const;
  const OpenClBuffer& own(const Buffer* buffer, const char* call) const;
  cl_event marker() const;

  const std::shared_ptr<OpenClDevice> device_;
  const Owned<cl_command_queue> queue_;
  mutable std::mutex mutex_;  // guards what follows, and the arguments of the kernels
  std::array<Pending, capacity> ring_;
  std::uint64_t pushed_ = 0, swept_ = 0;  // positions in the ring, modulo its capacity
  std::uint64_t submitted_ = 0;
  std::vector<Slot> slots_;
  std::size_t first_free_ = 0;  // slots_.size(): none
  std::vector<CachedKernel> kernels_;
  std::optional<Error> failure_;
  std::uint64_t failure_number_ = 0;
};

}  // namespace omniconv::devices::opencl
