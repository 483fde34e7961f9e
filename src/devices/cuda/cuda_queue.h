// A CUDA stream, with an event behind each submission, and one before it where times are asked for. Submitting
// allocates nothing but the driver's events, each at its first use.
#pragma once

#include "devices/cuda/cuda_device.h"
#include "devices/ring_queue.h"

namespace omniconv::devices::cuda {

struct CudaTimes {
  CUevent start = nullptr, end = nullptr;  // made at their first use; no start in queues without timing
};

class CudaQueue final : public RingQueue<CudaTimes> {
 public:
  // A stream of its own, or the caller's, which is not destroyed; null is the context's default stream.
  CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context, const QueueOptions& options);
  CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context, CUstream borrowed,
            const QueueOptions& options);
  ~CudaQueue() override;

  // Memory that is not page-locked is copied before the call returns, or waited for: the driver stages it.
  Event upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) override;
  Event download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) override;
  Event copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
             std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) override;

 private:
  CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context, CUstream stream, bool owns_stream,
            const QueueOptions& options);

  void enter() override { check("cuCtxPushCurrent", api().CtxPushCurrent(context_->get())); }
  void leave() noexcept override;
  const void* context() const override { return context_->get(); }
  void prepare(const Sequence& sequence) const override;
  void begin(CudaTimes& times) override;
  void enqueue(const Sequence& sequence, CudaTimes& times) override;
  void enqueue_recording(const Recording& recording, CudaTimes& times) override;
  void end(CudaTimes& times) override;
  bool is_done(const CudaTimes& times) const override;
  void await(const CudaTimes& times) override;
  bool errors_stay() const override { return true; }
  double seconds_of(const CudaTimes& first, const CudaTimes& last) const override;
  double seconds_between_ends(const CudaTimes& earlier, const CudaTimes& later) const override;
  bool shares_clock(const RingQueue& other) const override;

  // By the driver, between two buffers of CUDA devices.
  Event copy_on_devices(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
                        std::int64_t from_offset_bytes, std::int64_t bytes);
  // What is submitted from now on starts after the event's work, of any queue.
  void start_after(const Event& event);
  // Makes the event where it is missing, and puts it behind what the stream has.
  void record(CUevent& event);
  bool is_own(const Buffer& buffer) const { return buffer.context() == context_->get(); }
  const Memory& own(const Buffer& buffer, const char* call) const;

  const std::shared_ptr<SharedContext> context_;
  const CUstream stream_;
  const bool owns_stream_;
};

}  // namespace omniconv::devices::cuda
