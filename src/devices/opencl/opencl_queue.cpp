#include "devices/opencl/opencl_queue.h"

#include <fmt/format.h>

#include <algorithm>

namespace omniconv::devices::opencl {
namespace {

std::vector<Owned<cl_mem>> hold(cl_mem memory) {
  std::vector<Owned<cl_mem>> held;
  held.push_back(retain(memory));
  return held;
}

}  // namespace

OpenClQueue::OpenClQueue(std::shared_ptr<OpenClDevice> device, Owned<cl_command_queue> queue)
    : device_(std::move(device)), queue_(std::move(queue)) {}

// What is still running writes to the caller's memory: wait for it.
OpenClQueue::~OpenClQueue() {
  if (!pending_.empty()) api().Finish(queue_.get());
}

Event OpenClQueue::upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) {
  const cl_mem memory = own(to.get(), "upload").memory();
  return submit("an upload", hold(memory), [&]() -> cl_event {
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
  return submit("a download", hold(memory), [&]() -> cl_event {
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
  std::vector<Owned<cl_mem>> held;
  for (const KernelArgument& argument : arguments) {
    const Buffer* const* const buffer = std::get_if<const Buffer*>(&argument);
    if (!buffer) continue;
    const OpenClBuffer& memory = own(*buffer, kernel);
    if (memory.bytes() > device_->info().max_buffer_bytes)
      throw bad_input(
          fmt::format("launch of {}: a buffer of {} bytes is larger than {} takes ({} bytes); use smaller parts",
                      kernel, memory.bytes(), device_->info().id, device_->info().max_buffer_bytes));
    held.push_back(retain(memory.memory()));
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
  const Timed &from = timed(first.token()), &to = timed(last.token());
  Timed both;
  if (from.first && to.last) both = {retain(from.first.get()), retain(to.last.get())};
  return give_token(std::move(both));
}

void OpenClQueue::finish() {
  const cl_int code = api().Finish(queue_.get());
  const std::lock_guard lock(mutex_);
  sweep();
  if (code != CL_SUCCESS) fail(call_error("clFinish", code));
  throw_failure();
}

void OpenClQueue::wait(std::uint64_t token) {
  Owned<cl_event> event;
  {
    const std::lock_guard lock(mutex_);
    if (const cl_event last = timed(token).last.get()) event = retain(last);
  }
  cl_int code = CL_SUCCESS;
  if (event) {
    const cl_event awaited = event.get();
    code = api().WaitForEvents(1, &awaited);
  }
  const std::lock_guard lock(mutex_);
  sweep();
  if (code != CL_SUCCESS) fail(call_error("clWaitForEvents", code));
  throw_failure();
}

double OpenClQueue::seconds(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  throw_failure();
  const Timed& events = timed(token);
  cl_ulong start = 0, end = 0;
  cl_int code =
      api().GetEventProfilingInfo(events.first.get(), CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr);
  if (code == CL_SUCCESS)
    code = api().GetEventProfilingInfo(events.last.get(), CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr);
  if (code == CL_PROFILING_INFO_NOT_AVAILABLE)
    throw bad_input(
        "the event has no times: wait for it first, and make a queue that is borrowed with profiling enabled");
  check("clGetEventProfilingInfo", code);
  return end > start ? static_cast<double>(end - start) * 1e-9 : 0;
}

void OpenClQueue::release(std::uint64_t token) noexcept {
  const std::lock_guard lock(mutex_);
  tokens_.erase(token);
}

Event OpenClQueue::submit(std::string what, std::vector<Owned<cl_mem>> memory,
                          const std::function<cl_event()>& enqueue) {
  const std::lock_guard lock(mutex_);
  sweep();
  Timed timed;
  if (!failure_) {
    try {
      Owned<cl_event> event(enqueue());
      timed = {retain(event.get()), retain(event.get())};
      pending_.push_back({std::move(what), std::move(event), std::move(memory)});
      check("clFlush", api().Flush(queue_.get()));
    } catch (const Error& error) {
      fail(error);
    }
  }
  return give_token(std::move(timed));
}

Event OpenClQueue::give_token(Timed timed) {
  tokens_.emplace(++last_token_, std::move(timed));
  return Event(shared_from_this(), last_token_);
}

const OpenClQueue::Timed& OpenClQueue::timed(std::uint64_t token) const {
  const auto found = tokens_.find(token);
  if (found == tokens_.end()) throw bad_input(fmt::format("event {} is none of this queue", token));
  return found->second;
}

void OpenClQueue::sweep() {
  while (!pending_.empty()) {
    const Pending& oldest = pending_.front();
    cl_int status = CL_COMPLETE;
    const cl_int code =
        api().GetEventInfo(oldest.event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (code != CL_SUCCESS) status = code;
    if (status > CL_COMPLETE) return;
    if (status < CL_COMPLETE)
      fail(environment_error(fmt::format("{} failed on the device: {}", oldest.what, error_name(status))));
    pending_.pop_front();
  }
}

void OpenClQueue::fail(const Error& error) {
  if (!failure_) failure_ = Error(error.kind(), fmt::format("device {}: {}", device_->info().id, error.what()));
}

void OpenClQueue::throw_failure() const {
  if (failure_) throw Error(*failure_);
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

const OpenClBuffer& OpenClQueue::own(const Buffer* buffer, const char* call) const {
  const auto* const found = dynamic_cast<const OpenClBuffer*>(buffer);
  if (!found || found->context() != device_->context())
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
