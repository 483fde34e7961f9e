#include "devices/opencl/opencl_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "devices/copy_through_host.h"

namespace omniconv::devices::opencl {
namespace {

double seconds_between(cl_ulong start, cl_ulong end) {
  return end > start ? static_cast<double>(end - start) * 1e-9 : 0;
}

}  // namespace

OpenClQueue::OpenClQueue(std::shared_ptr<OpenClDevice> device, Owned<cl_command_queue> queue)
    : device_(std::move(device)), queue_(std::move(queue)) {
  slots_.reserve(capacity);
}

// What is still running writes to the caller's memory: wait for it.
OpenClQueue::~OpenClQueue() {
  if (swept_ < pushed_) api().Finish(queue_.get());
}

Event OpenClQueue::upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) {
  const cl_mem memory = own(to.get(), "upload").memory();
  return submit("an upload", {retain(memory)}, [&]() -> cl_event {
    if (bytes == 0) return marker();
    cl_event event = nullptr;
    check("clEnqueueWriteBuffer",
          api().EnqueueWriteBuffer(queue_.get(), memory, 0, static_cast<std::size_t>(offset_bytes),
                                   static_cast<std::size_t>(bytes), from, 0, nullptr, &event));
    return event;
  });
}

Event OpenClQueue::download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) {
  const OpenClBuffer& buffer = own(from.get(), "download");
  const cl_mem memory = buffer.memory();
  const auto offset = static_cast<std::size_t>(offset_bytes), size = static_cast<std::size_t>(bytes);
  return submit("a download", {retain(memory)}, [&]() -> cl_event {
    if (bytes == 0) return marker();
    cl_event event = nullptr;
    if (buffer.borrowed() && buffer.borrowed() + offset_bytes == to) {
      // Borrowed memory is brought up to date by mapping it, which costs nothing where the device works in it directly.
      cl_int code = CL_SUCCESS;
      void* mapped =
          api().EnqueueMapBuffer(queue_.get(), memory, 0, CL_MAP_READ, offset, size, 0, nullptr, nullptr, &code);
      check("clEnqueueMapBuffer", code);
      check("clEnqueueUnmapMemObject", api().EnqueueUnmapMemObject(queue_.get(), memory, mapped, 0, nullptr, &event));
    } else {
      check("clEnqueueReadBuffer",
            api().EnqueueReadBuffer(queue_.get(), memory, 0, offset, size, to, 0, nullptr, &event));
    }
    return event;
  });
}

Event OpenClQueue::copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
                        std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) {
  const OpenClBuffer *const target = find_own(to.get()), *const source = find_own(from.get());
  if (!target && !source)
    throw bad_input(fmt::format("copy: neither buffer is of the queue's device {}", device_->info().id));
  if (after.queue().get() != this) await_event(after);
  if (!target || !source)
    return copy_through_host(target ? shared_from_this() : nullptr, to, to_offset_bytes,
                             source ? shared_from_this() : nullptr, from, from_offset_bytes, bytes);
  return submit("a copy", {retain(target->memory()), retain(source->memory())}, [&]() -> cl_event {
    if (bytes == 0) return marker();
    cl_event event = nullptr;
    check("clEnqueueCopyBuffer", api().EnqueueCopyBuffer(queue_.get(), source->memory(), target->memory(),
                                                         static_cast<std::size_t>(from_offset_bytes),
                                                         static_cast<std::size_t>(to_offset_bytes),
                                                         static_cast<std::size_t>(bytes), 0, nullptr, &event));
    return event;
  });
}

Event OpenClQueue::launch(const std::shared_ptr<Program>& program, const char* kernel, const Grid& grid,
                          std::span<const KernelArgument> arguments) {
  const auto* const own_program = dynamic_cast<const OpenClProgram*>(program.get());
  if (!own_program || own_program->context() != device_->context())
    throw bad_input(
        fmt::format("launch of {}: its program was not built for the queue's device {}", kernel, device_->info().id));
  std::size_t global[2], local[2];
  for (std::size_t d = 0; d < 2; ++d) {
    if (grid.local[d] < 1 || grid.global[d] < 0 || grid.global[d] % grid.local[d] != 0)
      throw bad_input(fmt::format("launch of {}: {} work items in dimension {} are no multiple of groups of {}", kernel,
                                  grid.global[d], d, grid.local[d]));
    global[d] = static_cast<std::size_t>(grid.global[d]);
    local[d] = static_cast<std::size_t>(grid.local[d]);
  }
  Held held;
  std::size_t buffers = 0;
  for (const KernelArgument& argument : arguments) {
    const Buffer* const* const buffer = std::get_if<const Buffer*>(&argument);
    if (!buffer) continue;
    const OpenClBuffer& memory = own(*buffer, kernel);
    if (memory.bytes() > device_->info().max_buffer_bytes)
      throw bad_input(
          fmt::format("launch of {}: a buffer of {} bytes is larger than {} takes ({} bytes); use smaller parts",
                      kernel, memory.bytes(), device_->info().id, device_->info().max_buffer_bytes));
    if (buffers == held.size())
      throw bad_input(fmt::format("launch of {}: more than {} of its arguments are buffers; put several in one", kernel,
                                  held.size()));
    held[buffers++] = retain(memory.memory());
  }
  return submit(kernel, std::move(held), [&]() -> cl_event {
    if (global[0] == 0 || global[1] == 0) return marker();
    const cl_kernel object = kernel_of(program, kernel);
    cl_uint index = 0;
    for (const KernelArgument& argument : arguments) {
      const cl_int code = std::visit(
          [&]<typename Value>(const Value& value) {
            if constexpr (std::is_same_v<Value, const Buffer*>) {
              const cl_mem memory = static_cast<const OpenClBuffer*>(value)->memory();
              return api().SetKernelArg(object, index, sizeof memory, &memory);
            } else if constexpr (requires { value.size_bytes(); }) {
              return api().SetKernelArg(object, index, value.size_bytes(), value.data());
            } else {
              return api().SetKernelArg(object, index, sizeof value, &value);
            }
          },
          argument);
      if (code != CL_SUCCESS) throw call_error(fmt::format("clSetKernelArg ({}, argument {})", kernel, index), code);
      ++index;
    }
    cl_event event = nullptr;
    const cl_int code = api().EnqueueNDRangeKernel(queue_.get(), object, 2, nullptr, global, local, 0, nullptr, &event);
    if (code != CL_SUCCESS)
      throw call_error(fmt::format("clEnqueueNDRangeKernel ({}, groups of {} x {})", kernel, local[0], local[1]), code);
    return event;
  });
}

Event OpenClQueue::span(Event first, Event last) {
  if (first.queue().get() != this || last.queue().get() != this)
    throw bad_input("a span of events needs two events of this queue");
  const std::lock_guard lock(mutex_);
  reserve_slot();
  const Slot &from = slot(first.token()), &to = slot(last.token());
  if (!from.first || !to.last) return take_slot(to.number, nullptr, nullptr);
  return take_slot(to.number, retain(from.first.get()), retain(to.last.get()));
}

void OpenClQueue::finish() {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = submitted_;
  lock.unlock();
  const cl_int code = api().Finish(queue_.get());
  lock.lock();
  sweep();
  if (code != CL_SUCCESS) fail(number, call_error("clFinish", code));
  throw_failure_up_to(number);
}

void OpenClQueue::wait(std::uint64_t token) {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = slot(token).number;
  wait_for(number, lock);
  throw_failure_up_to(number);
}

double OpenClQueue::seconds(std::uint64_t token) {
  const Times found = times(token);
  return seconds_between(found.start, found.end);
}

double OpenClQueue::seconds_after(std::uint64_t token, Queue& other, std::uint64_t other_token) {
  const Times own = times(token);
  const auto* const others = dynamic_cast<const OpenClQueue*>(&other);
  if (!others || others->device_->context() != device_->context()) return seconds_between(own.start, own.end);
  return seconds_between(std::max(own.start, others->times(other_token).end), own.end);
}

OpenClQueue::Times OpenClQueue::times(std::uint64_t token) const {
  const std::lock_guard lock(mutex_);
  const Slot& events = slot(token);
  throw_failure_up_to(events.number);
  Times found;
  cl_int code = api().GetEventProfilingInfo(events.first.get(), CL_PROFILING_COMMAND_START, sizeof found.start,
                                            &found.start, nullptr);
  if (code == CL_SUCCESS)
    code =
        api().GetEventProfilingInfo(events.last.get(), CL_PROFILING_COMMAND_END, sizeof found.end, &found.end, nullptr);
  if (code == CL_PROFILING_INFO_NOT_AVAILABLE)
    throw bad_input(
        "the event has no times: wait for it first, and make a queue that is borrowed with profiling enabled");
  check("clGetEventProfilingInfo", code);
  return found;
}

void OpenClQueue::release(std::uint64_t token) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t index = token - 1;
  slots_[index] = Slot();
  slots_[index].next_free = first_free_;
  first_free_ = index;
}

template <typename Enqueue>
Event OpenClQueue::submit(const char* what, Held memory, const Enqueue& enqueue) {
  std::unique_lock lock(mutex_);
  wait_for_room(lock);
  reserve_slot();
  const std::uint64_t number = ++submitted_;
  Owned<cl_event> first, last;
  if (!failure_) {
    try {
      Owned<cl_event> event(enqueue());
      first = retain(event.get());
      last = retain(event.get());
      push(number, what, std::move(event), std::move(memory));
      check("clFlush", api().Flush(queue_.get()));
    } catch (const Error& error) {
      fail(number, error);
    }
  }
  return take_slot(number, std::move(first), std::move(last));
}

void OpenClQueue::wait_for_room(std::unique_lock<std::mutex>& lock) {
  sweep();
  while (!failure_ && pushed_ - swept_ == capacity) wait_for(ring_[swept_ % capacity].number, lock);
}

void OpenClQueue::wait_for(std::uint64_t number, std::unique_lock<std::mutex>& lock) {
  // The last in the ring that is not later: a submission that failed has no event to wait for, those before it have.
  std::uint64_t end = pushed_;
  while (end > swept_ && ring_[(end - 1) % capacity].number > number) --end;
  cl_int code = CL_SUCCESS;
  if (end > swept_) {
    const Owned<cl_event> event = retain(ring_[(end - 1) % capacity].event.get());
    const cl_event awaited = event.get();
    lock.unlock();
    code = api().WaitForEvents(1, &awaited);
    lock.lock();
  }
  sweep();
  if (code != CL_SUCCESS) fail(number, call_error("clWaitForEvents", code));
}

void OpenClQueue::push(std::uint64_t number, const char* what, Owned<cl_event> event, Held memory) {
  Pending& newest = ring_[pushed_++ % capacity];
  newest.number = number;
  std::strncpy(newest.what.data(), what, newest.what.size() - 1);
  newest.event = std::move(event);
  newest.memory = std::move(memory);
}

void OpenClQueue::reserve_slot() {
  if (first_free_ < slots_.size()) return;
  slots_.emplace_back();
  slots_.back().next_free = slots_.size();
}

Event OpenClQueue::take_slot(std::uint64_t number, Owned<cl_event> first, Owned<cl_event> last) noexcept {
  const std::size_t index = first_free_;
  Slot& taken = slots_[index];
  first_free_ = taken.next_free;
  taken.number = number;
  taken.first = std::move(first);
  taken.last = std::move(last);
  return Event(shared_from_this(), index + 1);
}

const OpenClQueue::Slot& OpenClQueue::slot(std::uint64_t token) const {
  if (token < 1 || token > slots_.size() || slots_[token - 1].number == 0)
    throw bad_input(fmt::format("event {} is none of this queue", token));
  return slots_[token - 1];
}

void OpenClQueue::sweep() {
  for (; swept_ < pushed_; ++swept_) {
    Pending& oldest = ring_[swept_ % capacity];
    cl_int status = CL_COMPLETE;
    const cl_int code =
        api().GetEventInfo(oldest.event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (code != CL_SUCCESS) status = code;
    if (status > CL_COMPLETE) return;
    if (status < CL_COMPLETE)
      fail(oldest.number,
           Error(kind_of(status), fmt::format("{} failed on the device: {}", oldest.what.data(), error_name(status))));
    oldest.event.reset();
    for (Owned<cl_mem>& memory : oldest.memory) memory.reset();
  }
}

void OpenClQueue::fail(std::uint64_t number, const Error& error) {
  if (failure_ && failure_number_ <= number) return;
  failure_ = Error(error.kind(), fmt::format("device {}: {}", device_->info().id, error.what()));
  failure_number_ = number;
}

void OpenClQueue::throw_failure_up_to(std::uint64_t number) const {
  if (failure_ && failure_number_ <= number) throw Error(*failure_);
}

cl_kernel OpenClQueue::kernel_of(const std::shared_ptr<Program>& program, const char* name) {
  std::erase_if(kernels_, [](const CachedKernel& cached) { return cached.program.expired(); });
  for (const CachedKernel& cached : kernels_)
    if (cached.program.lock() == program && cached.name == name) return cached.kernel.get();
  cl_int code = CL_SUCCESS;
  Owned<cl_kernel> kernel(api().CreateKernel(static_cast<const OpenClProgram&>(*program).program(), name, &code));
  if (code != CL_SUCCESS) throw call_error(fmt::format("clCreateKernel ({})", name), code);
  kernels_.push_back({program, name, std::move(kernel)});
  return kernels_.back().kernel.get();
}

const OpenClBuffer* OpenClQueue::find_own(const Buffer* buffer) const {
  const auto* const found = dynamic_cast<const OpenClBuffer*>(buffer);
  return found && found->context() == device_->context() ? found : nullptr;
}

const OpenClBuffer& OpenClQueue::own(const Buffer* buffer, const char* call) const {
  const OpenClBuffer* const found = find_own(buffer);
  if (!found)
    throw bad_input(fmt::format("{}: a buffer is {} of the queue's device {}", call,
                                buffer ? "none" : "missing, instead of one", device_->info().id));
  return *found;
}

cl_event OpenClQueue::marker() const {
  cl_event event = nullptr;
  check("clEnqueueMarkerWithWaitList", api().EnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &event));
  return event;
}

}  // namespace omniconv::devices::opencl
