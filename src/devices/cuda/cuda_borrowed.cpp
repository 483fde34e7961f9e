// The caller's memory and streams: omniconv/cuda.h.
#include <fmt/format.h>

#include "devices/buffer_size.h"
#include "devices/cuda/cuda_device.h"
#include "devices/cuda/cuda_queue.h"
#include "omniconv/cuda.h"

namespace omniconv::devices::cuda {
namespace {

const CUstream per_thread_stream = reinterpret_cast<CUstream>(2);  // CU_STREAM_PER_THREAD

struct BorrowedMemory final : Memory {};

// False where the driver does not say it of this memory.
template <typename Value>
bool ask(int attribute, CUdeviceptr address, Value& value) {
  return api().PointerGetAttribute(&value, attribute, address) == CUDA_SUCCESS;
}

std::string home_of(CUdevice device) {
  return fmt::format("cuda:{}", device);
}

// Why the memory is none that the context's kernels may be given; empty if they may.
std::string refusal(CUdeviceptr address, std::int64_t bytes, const SharedContext& context) {
  unsigned type = 0;
  int device = -1;
  CUcontext owner = nullptr;
  CUdeviceptr begin = 0;
  std::size_t size = 0;
  if (!ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address, type))
    return "CUDA knows no memory there; give an address that cuMemAlloc or cudaMalloc gave, or of a byte behind it";
  if (type == CU_MEMORYTYPE_HOST) return "it is memory of the host; borrow it by Context::borrow";
  if (ask(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, device) && device != context.device())
    return fmt::format("it is memory of the device {}; make a context of that device, or copy it", home_of(device));
  // Memory of pools and mapped memory have no context.
  if (ask(CU_POINTER_ATTRIBUTE_CONTEXT, address, owner) && owner && owner != context.get())
    return "it belongs to a CUDA context that is not the device's primary one; allocate it with that one current";
  if (ask(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address, begin) &&
      ask(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address, size) && begin + size - address < static_cast<CUdeviceptr>(bytes))
    return fmt::format("its allocation ends {} bytes from there", begin + size - address);
  return {};
}

CudaDevice& device_of(const Context& context, const char* what) {
  auto* const device = dynamic_cast<CudaDevice*>(context.impl().get());
  if (!device)
    throw bad_input(
        fmt::format("borrowing a CUDA {}: the context's device {} is no CUDA device", what, context.device().id));
  return *device;
}

}  // namespace

std::shared_ptr<Buffer> CudaDevice::borrow_memory(CUdeviceptr address, std::int64_t bytes) {
  check_buffer_size(bytes, info());
  if (bytes == 0) return allocate(0);
  const std::string what = fmt::format("device {}: borrowing {} bytes of device memory", info().id, bytes);
  if (address == 0) throw bad_input(what + " at a null pointer");
  const Current current(context_->get());
  if (const std::string reason = refusal(address, bytes, *context_); !reason.empty())
    throw bad_input(fmt::format("{} at {:#x}: {}", what, address, reason));
  auto memory = std::make_shared<BorrowedMemory>();
  memory->address = address;
  memory->context = context_;
  return std::make_shared<CudaBuffer>(shared_from_this(), std::move(memory), bytes);
}

std::shared_ptr<Queue> CudaDevice::borrow_stream(CUstream stream, const QueueOptions& options) {
  if (stream == per_thread_stream)
    throw bad_input(
        fmt::format("device {}: borrowing CUDA's default stream of each thread, which is another one in "
                    "another thread; make a stream",
                    info().id));
  const Current current(context_->get());
  CUcontext owner = nullptr;
  check("cuStreamGetCtx", api().StreamGetCtx(stream, &owner));
  if (owner != context_->get())
    throw bad_input(
        fmt::format("device {}: borrowing a CUDA stream that belongs to another device, or to a CUDA "
                    "context that is not the device's primary one; make it with that one current",
                    info().id));
  return std::make_shared<CudaQueue>(info().id, context_, stream, options);
}

}  // namespace omniconv::devices::cuda

namespace omniconv::cuda {

namespace impl = devices::cuda;

Buffer borrow_buffer(const Context& context, unsigned long long device_pointer, std::int64_t bytes) {
  return Buffer(impl::device_of(context, "pointer").borrow_memory(device_pointer, bytes));
}

Queue borrow_queue(const Context& context, void* stream, const QueueOptions& options) {
  return Queue(impl::device_of(context, "stream").borrow_stream(static_cast<impl::CUstream>(stream), options));
}

}  // namespace omniconv::cuda
