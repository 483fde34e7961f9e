// CUDA devices: a GPU's primary context, its memory, its programs.
#pragma once

#include <atomic>
#include <mutex>

#include "devices/built_programs.h"
#include "devices/cuda/cuda_api.h"
#include "devices/cuda/nvrtc.h"
#include "devices/device.h"
#include "devices/program_cache.h"

namespace omniconv::devices::cuda {

// The primary context, which CUDA's runtime API uses too: what CuPy or PyTorch allocated in this process can be
// borrowed. Buffers, programs and queues share it.
class SharedContext {
 public:
  SharedContext(CUdevice device, const DeviceFacts& facts);
  ~SharedContext();
  SharedContext(const SharedContext&) = delete;
  SharedContext& operator=(const SharedContext&) = delete;
  CUcontext get() const { return context_; }
  CUdevice device() const { return device_; }
  Capability capability() const { return capability_; }
  bool has_overlap() const { return has_overlap_; }  // of launches
  // Numbers submissions, from 1 on.
  std::uint64_t next_submission() const { return ++submissions_; }
  // Lets its device reach the other's memory, where the hardware can. Elsewhere the driver copies by way of the host.
  void reach(const SharedContext& other);

 private:
  CUdevice device_;
  Capability capability_;
  bool has_overlap_;
  CUcontext context_ = nullptr;
  mutable std::atomic<std::uint64_t> submissions_ = 0;
  std::mutex mutex_;
  std::vector<CUcontext> reached_;  // or found to be out of reach
};

// Memory that lasts as long as the last of those that use it: a buffer, or work that was submitted.
struct Memory {
  virtual ~Memory() = default;
  CUdeviceptr address = 0;
  std::byte* borrowed = nullptr;  // the host memory behind it, or null
  std::shared_ptr<SharedContext> context;
};

class CudaDevice final : public Device {
 public:
  // `cache` may be null.
  CudaDevice(DeviceFacts facts, CUdevice device, const Nvrtc& nvrtc, std::shared_ptr<ProgramCache> cache,
             bool starts_quickly);

  std::shared_ptr<Buffer> allocate(std::int64_t bytes) override;
  // Page-locks the memory and maps it: kernels read and write it over the bus, and see it as it is.
  std::shared_ptr<Buffer> borrow(void* memory, std::int64_t bytes) override;
  std::shared_ptr<Queue> make_queue(const QueueOptions& options = {}) override;
  // As a graph.
  std::shared_ptr<const Recording> record(std::shared_ptr<const Sequence> sequence) override;
  std::shared_ptr<Program> build(std::string_view text, std::span<const Definition> definitions,
                                 const BuildOptions& options) override;
  Peaks measure_peaks(double seconds) override;
  std::shared_ptr<const Sequence> busy_work(double seconds) override;
  std::int64_t free_bytes() override;
  std::shared_ptr<HostMemory> allocate_host(std::int64_t bytes) override;

  // The caller's memory and stream, of this device's primary context (omniconv/cuda.h).
  std::shared_ptr<Buffer> borrow_memory(CUdeviceptr address, std::int64_t bytes);
  std::shared_ptr<Queue> borrow_stream(CUstream stream, const QueueOptions& options);

  const std::shared_ptr<SharedContext>& context() const { return context_; }

 private:
  void run_builds(std::span<const std::function<void()>> builds) override;
  std::shared_ptr<Program> build_anew(std::string_view text, std::span<const Definition> definitions,
                                      const BuildOptions& options, const std::string& key);
  // What a program is made from, whole.
  std::string key_of(std::string_view text, std::span<const Definition> definitions, const std::string& target) const;

  const Nvrtc& nvrtc_;
  std::shared_ptr<SharedContext> context_;
  std::shared_ptr<ProgramCache> cache_;
  const bool starts_quickly_;
  BuiltPrograms programs_;
};

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(std::shared_ptr<Device> device, std::shared_ptr<const Memory> memory, std::int64_t bytes)
      : device_(std::move(device)), memory_(std::move(memory)), bytes_(bytes) {}
  std::int64_t bytes() const override { return bytes_; }
  const void* context() const override { return memory_->context->get(); }
  std::shared_ptr<Device> device() const override { return device_; }
  Place place() const override {
    return {nullptr, memory_->borrowed ? reinterpret_cast<std::uintptr_t>(memory_->borrowed)
                                       : static_cast<std::uintptr_t>(memory_->address)};
  }
  const std::shared_ptr<const Memory>& memory() const { return memory_; }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<const Memory> memory_;
  std::int64_t bytes_;
};

}  // namespace omniconv::devices::cuda
