// A library's handles for each device: made for good, since making one takes a while, used by one thread at a time.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "devices/cuda/cuda_device.h"
#include "omniconv/plan.h"

namespace omniconv::vendor {

// The solvers' only kind of device.
inline bool is_cuda(const devices::Device& device) {
  return dynamic_cast<const devices::cuda::CudaDevice*>(&device) != nullptr;
}

template <typename Raw>
struct Handle {
  std::mutex mutex;
  Raw raw = nullptr;
};

// `make` gives the handle of the context that is current. Of a CUDA device; `number` from 0: of several threads that
// work side by side each takes its own.
template <typename Raw, typename Make>
Handle<Raw>& handle_of(const devices::Device& device, const Make& make, int number = 0) {
  static std::mutex mutex;
  static std::map<std::pair<devices::cuda::CUdevice, int>, Handle<Raw>> handles;
  const devices::cuda::SharedContext& context = *static_cast<const devices::cuda::CudaDevice&>(device).context();
  const std::lock_guard lock(mutex);
  Handle<Raw>& handle = handles[{context.device(), number}];
  if (handle.raw == nullptr) {
    const devices::cuda::Current current(context.get());
    handle.raw = make();
  }
  return handle;
}

// In the device's memory; null of no buffer.
inline void* address_of(const Operand& operand) {
  const std::shared_ptr<devices::Buffer>& buffer = operand.buffer.impl();
  return buffer == nullptr ? nullptr : reinterpret_cast<std::byte*>(buffer->place().address) + operand.offset_bytes;
}

}  // namespace omniconv::vendor
