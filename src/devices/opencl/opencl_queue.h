// An in-order OpenCL queue. Submitting allocates nothing of ours once the queue knows the kernels.
#pragma once

#include "devices/opencl/opencl_device.h"
#include "devices/ring_queue.h"

namespace omniconv::devices::opencl {

struct OpenClTimes {
  Owned<cl_event> start, end;  // of the first command and the last, which may be one; no start without timing
};

class OpenClQueue final : public RingQueue<OpenClTimes> {
 public:
  OpenClQueue(std::shared_ptr<OpenClDevice> device, Owned<cl_command_queue> queue, const QueueOptions& options);
  ~OpenClQueue() override;

  Event upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) override;
  Event download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) override;
  Event copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
             std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) override;

 private:
  // Each queue has kernel objects of its own: their arguments are set under its mutex.
  struct CachedKernel {
    std::weak_ptr<const Program> program;
    std::string name;
    Owned<cl_kernel> kernel;
  };

  const void* context() const override { return device_->context(); }
  void prepare(const Sequence& sequence) const override;
  void begin(OpenClTimes&) override {}
  void enqueue(const Sequence& sequence, OpenClTimes& times) override;
  void end(OpenClTimes& times) override;
  bool is_done(const OpenClTimes& times) const override;
  void await(const OpenClTimes& times) override;
  void forget(OpenClTimes& times) noexcept override { times = OpenClTimes(); }
  double seconds_of(const OpenClTimes& first, const OpenClTimes& last) const override;
  double seconds_between_ends(const OpenClTimes& earlier, const OpenClTimes& later) const override;
  bool shares_clock(const RingQueue& other) const override;

  // Each returns its command's event where one is asked for and there is a command.
  void enqueue(const Sequence& sequence, const Sequence::Launch& launch, cl_event* event);
  void enqueue(const Sequence::Copy& copy, cl_event* event);
  void enqueue(const Sequence::Fill& fill, cl_event* event);
  void set_argument(cl_kernel kernel, cl_uint index, const Sequence& sequence, const Sequence::Argument& argument,
                    const char* name);
  cl_kernel kernel_of(const std::shared_ptr<const Program>& program, const char* name);
  bool is_own(const Buffer& buffer) const { return buffer.context() == device_->context(); }
  Owned<cl_event> marker() const;

  const std::shared_ptr<OpenClDevice> device_;
  const Owned<cl_command_queue> queue_;
  std::vector<CachedKernel> kernels_;
};

}  // namespace omniconv::devices::opencl
