// An in-order OpenCL queue with profiling. Tokens of events stand for the cl_events of a submission.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "devices/opencl/opencl_device.h"

namespace omniconv::devices::opencl {

class OpenClQueue final : public Queue {
 public:
  OpenClQueue(std::shared_ptr<OpenClDevice> device, Owned<cl_command_queue> queue);
  ~OpenClQueue() override;

  Event upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) override;
  Event download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) override;
  Event launch(const std::shared_ptr<Program>& program, const char* kernel, const Grid& grid,
               std::span<const KernelArgument> arguments) override;
  Event span(Event first, Event last) override;
  void finish() override;

  void wait(std::uint64_t token) override;
  double seconds(std::uint64_t token) override;
  void release(std::uint64_t token) noexcept override;

 private:
  // What a token stands for: from the start of `first` to the end of `last`. Null where the queue had failed before.
  struct Timed {
    Owned<cl_event> first, last;
  };
  // A submission that may still run, oldest first, with what it needs alive.
  struct Pending {
    std::string what;  // for errors
    Owned<cl_event> event;
    std::vector<Owned<cl_mem>> memory;
  };
  struct CachedKernel {
    std::weak_ptr<Program> program;
    std::string name;
    Owned<cl_kernel> kernel;
  };

  // Calls `enqueue`, which returns the command's event; an error of it becomes the queue's.
  Event submit(std::string what, std::vector<Owned<cl_mem>> memory, const std::function<cl_event()>& enqueue);
  Event give_token(Timed timed);
  const Timed& timed(std::uint64_t token) const;
  // Drops what has ended from the front of pending_, and takes note of the first error.
  void sweep();
  void fail(const Error& error);
  void throw_failure() const;
  cl_kernel kernel_of(const std::shared_ptr<Program>& program, const char* name);
  const OpenClBuffer& own(const Buffer* buffer, const char* call) const;
  cl_event marker() const;

  const std::shared_ptr<OpenClDevice> device_;
  const Owned<cl_command_queue> queue_;
  mutable std::mutex mutex_;  // guards what follows, and the arguments of the kernels
  std::deque<Pending> pending_;
  std::unordered_map<std::uint64_t, Timed> tokens_;
  std::uint64_t last_token_ = 0;
  std::vector<CachedKernel> kernels_;
  std::optional<Error> failure_;
};

}  // namespace omniconv::devices::opencl
