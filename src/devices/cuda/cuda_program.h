// Programs of CUDA devices: code on the device, and its kernels.
#pragma once

#include <atomic>
#include <future>
#include <mutex>

#include "devices/cuda/cuda_device.h"

namespace omniconv::devices::cuda {

// Code that the driver has taken.
class CudaCode {
 public:
  // Throws what the driver says of an image that it does not take. `origin` says of what device and by what compiler it
  // is. The context is current.
  CudaCode(std::shared_ptr<SharedContext> context, const std::string& image, std::string origin);
  ~CudaCode();
  CudaCode(const CudaCode&) = delete;
  CudaCode& operator=(const CudaCode&) = delete;
  // Throws where there is no such kernel, or it does not take `arguments`, given by their sizes in bytes, or so much
  // local memory besides its text's.
  CUfunction kernel(const char* name, std::span<const std::size_t> arguments, std::int64_t local_memory_bytes) const;
  std::int64_t resident_groups(const char* name, std::int64_t group_items, std::int64_t local_memory_bytes) const;
  const std::shared_ptr<SharedContext>& context() const { return context_; }
  const std::string& origin() const { return origin_; }

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
  std::string origin_;
  CUmodule module_ = nullptr;
  mutable std::mutex mutex_;  // of those who add a kernel, or its memory: the others read what there is
  mutable std::unique_ptr<const Kernel> owned_;
  mutable std::atomic<const Kernel*> first_ = nullptr;
};

// One text, and its code: at once the optimised one, or first one that was compiled quickly, which only the program's
// first submission runs, while the optimised one is being compiled.
class CudaProgram final : public Program {
 public:
  // `optimised` becomes the image of the optimised code, where `code` is not that.
  CudaProgram(std::unique_ptr<const CudaCode> code, double seconds, std::shared_future<std::string> optimised = {});
  double compile_seconds() const override { return compile_seconds_; }
  // Of the optimised code, for which it waits.
  std::int64_t resident_groups(const char* kernel, std::int64_t group_items,
                               std::int64_t local_memory_bytes = 0) const override;
  const void* context() const override { return quick_or_only_->context()->get(); }
  const CudaCode& code() const { return *code_.load(std::memory_order_acquire); }

  bool is_optimised() const { return !image_.valid() || &code() != quick_or_only_.get(); }
  // Throws the error that compiling ended with.
  void await_optimised() const;
  // A submission, by its number, is about to launch it: all but the first wait for the optimised code.
  void prepare(std::uint64_t submission) const;

 private:
  const double compile_seconds_;
  const std::unique_ptr<const CudaCode> quick_or_only_;
  mutable std::atomic<std::uint64_t> first_submission_ = 0;
  mutable std::mutex mutex_;  // of what follows
  mutable std::unique_ptr<const CudaCode> optimised_;
  mutable std::atomic<const CudaCode*> code_;
  const std::shared_future<std::string> image_;  // last: its end waits for the thread
};

}  // namespace omniconv::devices::cuda
