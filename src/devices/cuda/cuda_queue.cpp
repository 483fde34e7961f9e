#include "devices/cuda/cuda_queue.h"

#include <fmt/format.h>

#include "devices/copy_through_host.h"
#include "devices/cuda/cuda_recording.h"
#include "devices/cuda/cuda_steps.h"

namespace omniconv::devices::cuda {
namespace {

double seconds_between(CUevent start, CUevent end) {
  float milliseconds = 0;
  const CUresult code = api().EventElapsedTime(&milliseconds, start, end);
  if (code == CUDA_ERROR_NOT_READY) throw bad_input("the event has no times: wait for it first");
  check("cuEventElapsedTime", code);
  return milliseconds > 0 ? static_cast<double>(milliseconds) * 1e-3 : 0;
}

CUstream new_stream(const SharedContext& context) {
  const Current current(context.get());
  CUstream stream = nullptr;
  check("cuStreamCreate", api().StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

}  // namespace

CudaQueue::CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context, const QueueOptions& options)
    : CudaQueue(std::move(device_id), context, new_stream(*context), true, options) {}

CudaQueue::CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context, CUstream borrowed,
                     const QueueOptions& options)
    : CudaQueue(std::move(device_id), std::move(context), borrowed, false, options) {}

CudaQueue::CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context, CUstream stream, bool owns_stream,
                     const QueueOptions& options)
    : RingQueue(device_id, fmt::format("device {}: ", device_id), options.timing),
      context_(std::move(context)),
      stream_(stream),
      owns_stream_(owns_stream) {}

// What is still running writes to the caller's memory: wait for it, and for nothing that others put behind it.
CudaQueue::~CudaQueue() {
  if (api().CtxPushCurrent(context_->get()) != CUDA_SUCCESS) return;
  if (swept_ < pushed_) api().EventSynchronize(ring_[(pushed_ - 1) % capacity].timer->times.end);
  for (const Timer& timer : timers_) {
    if (timer.times.start) api().EventDestroy(timer.times.start);
    if (timer.times.end) api().EventDestroy(timer.times.end);
  }
  if (owns_stream_) api().StreamDestroy(stream_);
  leave();
}

void CudaQueue::leave() noexcept {
  CUcontext popped = nullptr;
  api().CtxPopCurrent(&popped);
}

void CudaQueue::record(CUevent& event) {
  const unsigned flags = is_timed_ ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  if (!event) check("cuEventCreate", api().EventCreate(&event, flags));
  check("cuEventRecord", api().EventRecord(event, stream_));
}

void CudaQueue::begin(CudaTimes& times) {
  if (is_timed_) record(times.start);
}

void CudaQueue::end(CudaTimes& times) {
  record(times.end);
}

void CudaQueue::prepare(const Sequence& sequence) const {
  check_steps(sequence, *context_, device_id_);
  prepare_programs(sequence, *context_);
}

void CudaQueue::enqueue(const Sequence& sequence, CudaTimes&) {
  enqueue_steps(sequence, *context_, stream_);
}

void CudaQueue::enqueue_recording(const Recording& recording, CudaTimes&) {
  static_cast<const CudaRecording&>(recording).enqueue(stream_);
}

bool CudaQueue::is_done(const CudaTimes& times) const {
  const CUresult code = api().EventQuery(times.end);
  if (code == CUDA_ERROR_NOT_READY) return false;
  if (code != CUDA_SUCCESS) throw Error(kind_of(code), error_name(code));
  return true;
}

void CudaQueue::await(const CudaTimes& times) {
  check("cuEventSynchronize", api().EventSynchronize(times.end));
}

double CudaQueue::seconds_of(const CudaTimes& first, const CudaTimes& last) const {
  return seconds_between(first.start, last.end);
}

double CudaQueue::seconds_between_ends(const CudaTimes& earlier, const CudaTimes& later) const {
  return seconds_between(earlier.end, later.end);
}

bool CudaQueue::shares_clock(const RingQueue& other) const {
  return static_cast<const CudaQueue&>(other).context_->get() == context_->get();
}

Event CudaQueue::upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) {
  const Memory& memory = own(*to, "upload");
  const bool is_itself = memory.borrowed && memory.borrowed + offset_bytes == from;
  return add("an upload", {nullptr, {to}}, [&](CudaTimes&) {
    if (bytes == 0 || is_itself) return;
    check("cuMemcpyHtoDAsync", api().MemcpyHtoDAsync(memory.address + static_cast<CUdeviceptr>(offset_bytes), from,
                                                     static_cast<std::size_t>(bytes), stream_));
  });
}

Event CudaQueue::download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) {
  const Memory& memory = own(*from, "download");
  const bool is_itself = memory.borrowed && memory.borrowed + offset_bytes == to;
  return add("a download", {nullptr, {from}}, [&](CudaTimes&) {
    if (bytes == 0 || is_itself) return;
    check("cuMemcpyDtoHAsync", api().MemcpyDtoHAsync(to, memory.address + static_cast<CUdeviceptr>(offset_bytes),
                                                     static_cast<std::size_t>(bytes), stream_));
  });
}

Event CudaQueue::copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
                      std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) {
  const bool writes_own = is_own(*to), reads_own = is_own(*from);
  if (!writes_own && !reads_own)
    throw bad_input(fmt::format("copy: neither buffer is of the queue's device {}", device_id_));
  start_after(after);
  const bool both_own = writes_own && reads_own;
  // Memory of the host that is mapped for one device is not known to be there for others.
  const auto is_on_a_device = [](const Buffer& buffer) {
    const auto* const found = dynamic_cast<const CudaBuffer*>(&buffer);
    return found && !found->memory()->borrowed;
  };
  if (both_own || (is_on_a_device(*to) && is_on_a_device(*from)))
    return copy_on_devices(std::move(to), to_offset_bytes, std::move(from), from_offset_bytes, bytes);
  await_event(after);
  return copy_through_host(writes_own ? shared_from_this() : nullptr, to, to_offset_bytes,
                           reads_own ? shared_from_this() : nullptr, from, from_offset_bytes, bytes);
}

Event CudaQueue::copy_on_devices(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
                                 std::int64_t from_offset_bytes, std::int64_t bytes) {
  const Memory &target = *static_cast<const CudaBuffer&>(*to).memory(),
               &source = *static_cast<const CudaBuffer&>(*from).memory();
  const bool one_context = target.context->get() == source.context->get();
  if (!one_context) {
    target.context->reach(*source.context);
    source.context->reach(*target.context);
  }
  return add("a copy", {nullptr, {to, from}}, [&](CudaTimes&) {
    if (bytes == 0) return;
    const CUdeviceptr first = target.address + static_cast<CUdeviceptr>(to_offset_bytes),
                      second = source.address + static_cast<CUdeviceptr>(from_offset_bytes);
    const auto size = static_cast<std::size_t>(bytes);
    if (one_context)
      check("cuMemcpyAsync", api().MemcpyAsync(first, second, size, stream_));
    else
      check("cuMemcpyPeerAsync",
            api().MemcpyPeerAsync(first, target.context->get(), second, source.context->get(), size, stream_));
  });
}

void CudaQueue::start_after(const Event& event) {
  if (!event.queue() || event.queue().get() == this) return;
  const auto* const others = dynamic_cast<const CudaQueue*>(event.queue().get());
  if (!others) return await_event(event);
  const CUevent awaited = others->end_of(event.token()).end;
  add("a wait for another queue", {},
      [&](CudaTimes&) { check("cuStreamWaitEvent", api().StreamWaitEvent(stream_, awaited, 0)); });
}

const Memory& CudaQueue::own(const Buffer& buffer, const char* call) const {
  if (!is_own(buffer)) throw bad_input(fmt::format("{}: a buffer is none of the queue's device {}", call, device_id_));
  return *static_cast<const CudaBuffer&>(buffer).memory();
}

}  // namespace omniconv::devices::cuda
