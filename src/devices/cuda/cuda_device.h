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
  // Lets its device reach the other's memory, where the hardware can. Elsewhere the driver copies by way of the host.
  void reach(const SharedContext& other);

 private:
  CUdevice device_;
  Capability capability_;
  bool has_overlap_;
  CUcontext context_ = nullptr;
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
  CudaDevice(DeviceFacts facts, CUdevice device, const Nvrtc& nvrtc, std::shared_ptr<ProgramCache> cache);

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
                                      const std::string& target, const std::string& key);
  std::string compile(std::string_view text, std::span<const Definition> definitions, const std::string& target) const;
  // What a program is made from, whole.
  std::string key_of(std::string_view text, std::span<const Definition> definitions, const std::string& target) const;

  const Nvrtc& nvrtc_;
  std::shared_ptr<SharedContext> context_;
  std::shared_ptr<ProgramCache> cache_;
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

class CudaProgram final : public Program {
 public:
  CudaProgram(std::shared_ptr<SharedContext> context, CUmodule module, double seconds)
      : context_(std::move(context)), module_(module), compile_seconds_(seconds) {}
  ~CudaProgram() override;
  double compile_seconds() const override { return compile_seconds_; }
  std::int64_t resident_groups(const char* kernel, std::int64_t group_items,
                               std::int64_t local_memory_bytes = 0) const override;
  const void* context() const override { return context_->get(); }
  // Throws where there is no such kernel, or it does not take `arguments`, given by their sizes in bytes, or so much
  // local memory besides its text's.
  CUfunction kernel(const char* name, std::span<const std::size_t> arguments, std::int64_t local_memory_bytes) const;

 private:
  struct Kernel {
    std::string name;
    CUfunction function = nullptr;
    std::vector<std::size_t> parameters;  // sizes in bytes
    bool parameters_known = false;
    mutable std::atomic<std::int64_t> local_memory_bytes = 0;  // that it may take, besides its text's
    std::unique_ptr<const Kernel> next = nullptr;
  };
  const Kernel& find(const char* name) const;
  void allow_local_memory(const Kernel& kernel, std::int64_t bytes) const;
  const Kernel* find_known(const char* name) const;

  std::shared_ptr<SharedContext> context_;
  CUmodule module_;
  double compile_seconds_;
  mutable std::mutex mutex_;  // of those who add a kernel, or its memory: the others read what there is
  mutable std::unique_ptr<const Kernel> owned_;
  mutable std::atomic<const Kernel*> first_ = nullptr;
};

}  // namespace omniconv::devices::cuda
