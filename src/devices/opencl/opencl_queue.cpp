#include "devices/opencl/opencl_queue.h"

#include <fmt/format.h>

#include "devices/copy_through_host.h"
#include "devices/opencl/opencl_steps.h"

namespace omniconv::devices::opencl {
namespace {

cl_ulong time_of(cl_event event, cl_uint what) {
  cl_ulong time = 0;
  const cl_int code = api().GetEventProfilingInfo(event, what, sizeof time, &time, nullptr);
  if (code == CL_PROFILING_INFO_NOT_AVAILABLE)
    throw bad_input(
        "the event has no times: wait for it first, and make a queue that is borrowed with profiling enabled");
  check("clGetEventProfilingInfo", code);
  return time;
}

double seconds_between(cl_ulong start, cl_ulong end) {
  return end > start ? static_cast<double>(end - start) * 1e-9 : 0;
}

cl_mem memory_of(const Buffer& buffer) {
  return static_cast<const OpenClBuffer&>(buffer).memory();
}

}  // namespace

OpenClQueue::OpenClQueue(std::shared_ptr<OpenClDevice> device, Owned<cl_command_queue> queue,
                         const QueueOptions& options)
    : RingQueue(device->info().id, fmt::format("device {}: ", device->info().id), options.timing),
      device_(std::move(device)),
      queue_(std::move(queue)) {}

// What is still running writes to the caller's memory: wait for it.
OpenClQueue::~OpenClQueue() {
  if (swept_ < pushed_) api().Finish(queue_.get());
}

// What failed in its midst, or has no command, ends with a marker.
void OpenClQueue::end(OpenClTimes& times) {
  if (!times.end) times.end = marker();
  if (is_timed_ && !times.start) times.start = retain(times.end.get());
  check("clFlush", api().Flush(queue_.get()));
}

void OpenClQueue::prepare(const Sequence& sequence) const {
  check_steps(sequence, *device_);
}

bool OpenClQueue::is_done(const OpenClTimes& times) const {
  cl_int status = CL_COMPLETE;
  const cl_int code =
      api().GetEventInfo(times.end.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  if (code != CL_SUCCESS) status = code;
  if (status < CL_COMPLETE) throw Error(kind_of(status), error_name(status));
  return status == CL_COMPLETE;
}

void OpenClQueue::await(const OpenClTimes& times) {
  const cl_event awaited = times.end.get();
  check("clWaitForEvents", api().WaitForEvents(1, &awaited));
}

double OpenClQueue::seconds_of(const OpenClTimes& first, const OpenClTimes& last) const {
  const cl_ulong start = time_of(first.start.get(), CL_PROFILING_COMMAND_START);
  return seconds_between(start, time_of(last.end.get(), CL_PROFILING_COMMAND_END));
}

double OpenClQueue::seconds_between_ends(const OpenClTimes& earlier, const OpenClTimes& later) const {
  const cl_ulong start = time_of(earlier.end.get(), CL_PROFILING_COMMAND_END);
  return seconds_between(start, time_of(later.end.get(), CL_PROFILING_COMMAND_END));
}

bool OpenClQueue::shares_clock(const RingQueue& other) const {
  return static_cast<const OpenClQueue&>(other).device_->context() == device_->context();
}

Event OpenClQueue::upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) {
  const cl_mem memory = own_buffer(*to, *device_, "upload").memory();
  return add("an upload", {nullptr, {to}}, [&](OpenClTimes& times) {
    if (bytes == 0) return;
    cl_event event = nullptr;
    check("clEnqueueWriteBuffer",
          api().EnqueueWriteBuffer(queue_.get(), memory, 0, static_cast<std::size_t>(offset_bytes),
                                   static_cast<std::size_t>(bytes), from, 0, nullptr, &event));
    times.end = Owned<cl_event>(event);
  });
}

Event OpenClQueue::download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) {
  const OpenClBuffer& buffer = own_buffer(*from, *device_, "download");
  const cl_mem memory = buffer.memory();
  const auto offset = static_cast<std::size_t>(offset_bytes), size = static_cast<std::size_t>(bytes);
  return add("a download", {nullptr, {from}}, [&](OpenClTimes& times) {
    if (bytes == 0) return;
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
    times.end = Owned<cl_event>(event);
  });
}

Event OpenClQueue::copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
                        std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) {
  const bool writes_own = is_own(*to), reads_own = is_own(*from);
  if (!writes_own && !reads_own)
    throw bad_input(fmt::format("copy: neither buffer is of the queue's device {}", device_id_));
  if (after.queue().get() != this) await_event(after);
  if (!writes_own || !reads_own)
    return copy_through_host(writes_own ? shared_from_this() : nullptr, to, to_offset_bytes,
                             reads_own ? shared_from_this() : nullptr, from, from_offset_bytes, bytes);
  const std::shared_ptr<Sequence> sequence = take_sequence();
  sequence->copy({*to, to_offset_bytes, bytes}, {*from, from_offset_bytes, bytes});
  return submit(sequence);
}

void OpenClQueue::enqueue(const Sequence& sequence, OpenClTimes& times) {
  const std::span<const Sequence::Step> steps = sequence.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool is_first = i == 0 && is_timed_, is_last = i + 1 == steps.size();
    cl_event event = nullptr;
    cl_event* const wanted = is_first || is_last ? &event : nullptr;
    if (const auto* const launch = std::get_if<Sequence::Launch>(&steps[i])) {
      enqueue(sequence, *launch, wanted);
    } else if (const auto* const copy = std::get_if<Sequence::Copy>(&steps[i])) {
      enqueue(*copy, wanted);
    } else if (const auto* const fill = std::get_if<Sequence::Fill>(&steps[i])) {
      enqueue(*fill, wanted);
    } else if (const auto* const native = std::get_if<Sequence::Native>(&steps[i])) {
      if (is_first) times.start = marker();
      native->call(queue_.get());
    }
    Owned<cl_event> made(event);
    if (is_first && !times.start) times.start = made ? retain(made.get()) : marker();
    if (is_last) times.end = std::move(made);
  }
}

void OpenClQueue::enqueue(const Sequence& sequence, const Sequence::Launch& launch, cl_event* event) {
  if (launch.is_empty()) return;
  const cl_kernel kernel = kernel_of(launch.program, launch.kernel);
  cl_uint index = 0;
  for (const Sequence::Argument& argument : sequence.arguments_of(launch))
    set_argument(kernel, index++, sequence, argument, launch.kernel);
  std::size_t global[3], local[3];
  for (std::size_t d = 0; d < 3; ++d) {
    global[d] = static_cast<std::size_t>(launch.grid.global[d]);
    local[d] = static_cast<std::size_t>(launch.grid.local[d]);
  }
  const cl_int code = api().EnqueueNDRangeKernel(queue_.get(), kernel, 3, nullptr, global, local, 0, nullptr, event);
  if (code != CL_SUCCESS)
    throw call_error(
        fmt::format("clEnqueueNDRangeKernel ({}, groups of {} x {} x {})", launch.kernel, local[0], local[1], local[2]),
        code);
}

void OpenClQueue::set_argument(cl_kernel kernel, cl_uint index, const Sequence& sequence,
                               const Sequence::Argument& argument, const char* name) {
  const auto set = [&](std::size_t bytes, const void* value) {
    const cl_int code = api().SetKernelArg(kernel, index, bytes, value);
    if (code != CL_SUCCESS) throw call_error(fmt::format("clSetKernelArg ({}, argument {})", name, index), code);
  };
  if (const auto* const buffer = std::get_if<std::shared_ptr<const Buffer>>(&argument.value)) {
    const cl_mem memory = memory_of(**buffer);
    set(sizeof memory, &memory);
  } else if (const auto* const bytes = std::get_if<Sequence::Bytes>(&argument.value)) {
    set(argument.bytes, sequence.bytes_of(*bytes));
  } else {
    const auto value = static_cast<float>(std::get<Scalar>(argument.value).value());
    set(sizeof value, &value);
  }
}

void OpenClQueue::enqueue(const Sequence::Copy& copy, cl_event* event) {
  if (copy.bytes == 0) return;
  check("clEnqueueCopyBuffer", api().EnqueueCopyBuffer(queue_.get(), memory_of(*copy.from), memory_of(*copy.to),
                                                       static_cast<std::size_t>(copy.from_offset_bytes),
                                                       static_cast<std::size_t>(copy.to_offset_bytes),
                                                       static_cast<std::size_t>(copy.bytes), 0, nullptr, event));
}

void OpenClQueue::enqueue(const Sequence::Fill& fill, cl_event* event) {
  if (fill.bytes == 0) return;
  check("clEnqueueFillBuffer", api().EnqueueFillBuffer(queue_.get(), memory_of(*fill.buffer), &fill.value,
                                                       sizeof fill.value, static_cast<std::size_t>(fill.offset_bytes),
                                                       static_cast<std::size_t>(fill.bytes), 0, nullptr, event));
}

cl_kernel OpenClQueue::kernel_of(const std::shared_ptr<const Program>& program, const char* name) {
  const auto is_program = [&](const std::weak_ptr<const Program>& other) {
    return !program.owner_before(other) && !other.owner_before(program);
  };
  for (const CachedKernel& cached : kernels_)
    if (is_program(cached.program) && cached.name == name) return cached.kernel.get();
  std::erase_if(kernels_, [](const CachedKernel& cached) { return cached.program.expired(); });
  kernels_.push_back({program, name, static_cast<const OpenClProgram&>(*program).make_kernel(name)});
  return kernels_.back().kernel.get();
}

Owned<cl_event> OpenClQueue::marker() const {
  cl_event event = nullptr;
  check("clEnqueueMarkerWithWaitList", api().EnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &event));
  return Owned<cl_event>(event);
}

}  // namespace omniconv::devices::opencl
