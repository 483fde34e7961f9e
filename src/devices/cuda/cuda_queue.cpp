#include "devices/cuda/cuda_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "devices/copy_through_host.h"

namespace omniconv::devices::cuda {
namespace {

constexpr std::int64_t most_groups[2] = {2'147'483'647, 65'535};  // CUDA's limits of a grid
constexpr std::size_t most_arguments = 32;

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

CudaQueue::CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context)
    : CudaQueue(std::move(device_id), context, new_stream(*context), true) {}

CudaQueue::CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context, CUstream borrowed)
    : CudaQueue(std::move(device_id), std::move(context), borrowed, false) {}

CudaQueue::CudaQueue(std::string device_id, std::shared_ptr<SharedContext> context, CUstream stream, bool owns_stream)
    : device_id_(std::move(device_id)), context_(std::move(context)), stream_(stream), owns_stream_(owns_stream) {
  slots_.reserve(capacity);
  for (std::uint64_t i = 0; i < capacity + capacity / 4; ++i) add_timer();
}

// What is still running writes to the caller's memory: wait for it, and for nothing that others put behind it.
CudaQueue::~CudaQueue() {
  if (api().CtxPushCurrent(context_->get()) != CUDA_SUCCESS) return;
  if (swept_ < pushed_) api().EventSynchronize(ring_[(pushed_ - 1) % capacity].timer->end);
  for (const Timer& timer : timers_) {
    if (timer.start) api().EventDestroy(timer.start);
    if (timer.end) api().EventDestroy(timer.end);
  }
  if (owns_stream_) api().StreamDestroy(stream_);
  CUcontext popped = nullptr;
  api().CtxPopCurrent(&popped);
}

Event CudaQueue::upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) {
  const std::shared_ptr<const Memory>& memory = own(to.get(), "upload").memory();
  const bool is_itself = memory->borrowed && memory->borrowed + offset_bytes == from;
  return submit("an upload", {{memory}, nullptr}, [&] {
    if (bytes == 0 || is_itself) return;
    check("cuMemcpyHtoDAsync", api().MemcpyHtoDAsync(memory->address + static_cast<CUdeviceptr>(offset_bytes), from,
                                                     static_cast<std::size_t>(bytes), stream_));
  });
}

Event CudaQueue::download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) {
  const std::shared_ptr<const Memory>& memory = own(from.get(), "download").memory();
  const bool is_itself = memory->borrowed && memory->borrowed + offset_bytes == to;
  return submit("a download", {{memory}, nullptr}, [&] {
    if (bytes == 0 || is_itself) return;
    check("cuMemcpyDtoHAsync", api().MemcpyDtoHAsync(to, memory->address + static_cast<CUdeviceptr>(offset_bytes),
                                                     static_cast<std::size_t>(bytes), stream_));
  });
}

Event CudaQueue::copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
                      std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) {
  const auto *const target = dynamic_cast<const CudaBuffer*>(to.get()), *const source =
                                                                            dynamic_cast<const CudaBuffer*>(from.get());
  const bool writes_own = is_own(target), reads_own = is_own(source);
  if (!writes_own && !reads_own)
    throw bad_input(fmt::format("copy: neither buffer is of the queue's device {}", device_id_));
  start_after(after);
  const bool both_own = writes_own && reads_own;
  // Memory of the host that is mapped for one device is not known to be there for others.
  const bool both_on_devices = target && source && !target->memory()->borrowed && !source->memory()->borrowed;
  if (both_own || both_on_devices)
    return copy_on_devices(target->memory(), to_offset_bytes, source->memory(), from_offset_bytes, bytes);
  await_event(after);
  return copy_through_host(writes_own ? shared_from_this() : nullptr, to, to_offset_bytes,
                           reads_own ? shared_from_this() : nullptr, from, from_offset_bytes, bytes);
}

Event CudaQueue::copy_on_devices(const std::shared_ptr<const Memory>& to, std::int64_t to_offset_bytes,
                                 const std::shared_ptr<const Memory>& from, std::int64_t from_offset_bytes,
                                 std::int64_t bytes) {
  const bool one_context = to->context->get() == from->context->get();
  if (!one_context) {
    to->context->reach(*from->context);
    from->context->reach(*to->context);
  }
  return submit("a copy", {{to, from}, nullptr}, [&] {
    if (bytes == 0) return;
    const CUdeviceptr target = to->address + static_cast<CUdeviceptr>(to_offset_bytes),
                      source = from->address + static_cast<CUdeviceptr>(from_offset_bytes);
    const auto size = static_cast<std::size_t>(bytes);
    if (one_context)
      check("cuMemcpyAsync", api().MemcpyAsync(target, source, size, stream_));
    else
      check("cuMemcpyPeerAsync",
            api().MemcpyPeerAsync(target, to->context->get(), source, from->context->get(), size, stream_));
  });
}

void CudaQueue::start_after(const Event& event) {
  if (!event.queue() || event.queue().get() == this) return;
  const auto* const others = dynamic_cast<const CudaQueue*>(event.queue().get());
  if (!others) return await_event(event);
  const CUevent awaited = others->end_of(event.token());
  submit("a wait for another queue", {},
         [&] { check("cuStreamWaitEvent", api().StreamWaitEvent(stream_, awaited, 0)); });
}

Event CudaQueue::launch(const std::shared_ptr<Program>& program, const char* kernel, const Grid& grid,
                        std::span<const KernelArgument> arguments) {
  const auto* const own_program = dynamic_cast<const CudaProgram*>(program.get());
  if (!own_program || own_program->context()->get() != context_->get())
    throw bad_input(
        fmt::format("launch of {}: its program was not built for the queue's device {}", kernel, device_id_));
  unsigned groups[2], local[2];
  for (std::size_t d = 0; d < 2; ++d) {
    if (grid.local[d] < 1 || grid.global[d] < 0 || grid.global[d] % grid.local[d] != 0)
      throw bad_input(fmt::format("launch of {}: {} work items in dimension {} are no multiple of groups of {}", kernel,
                                  grid.global[d], d, grid.local[d]));
    if (grid.global[d] / grid.local[d] > most_groups[d])
      throw bad_input(fmt::format("launch of {}: {} groups in dimension {}: CUDA takes {} at most; launch parts of it",
                                  kernel, grid.global[d] / grid.local[d], d, most_groups[d]));
    if (grid.local[d] > 1024)
      throw bad_input(fmt::format("launch of {}: groups of {} work items in dimension {}: CUDA takes 1024 at most",
                                  kernel, grid.local[d], d));
    groups[d] = static_cast<unsigned>(grid.global[d] / grid.local[d]);
    local[d] = static_cast<unsigned>(grid.local[d]);
  }
  Held held{{}, program};
  std::size_t buffers = 0;
  std::array<CUdeviceptr, std::tuple_size_v<decltype(held.memory)>> addresses;
  std::array<void*, most_arguments> values{};
  std::array<std::size_t, most_arguments> sizes{};
  if (arguments.size() > most_arguments)
    throw bad_input(
        fmt::format("launch of {}: {} arguments: {} is the most", kernel, arguments.size(), most_arguments));
  for (std::size_t i = 0; i < arguments.size(); ++i)
    std::visit(
        [&]<typename Value>(const Value& value) {
          sizes[i] = sizeof value;
          if constexpr (std::is_same_v<Value, const Buffer*>) {
            const CudaBuffer& buffer = own(value, kernel);
            if (buffers == held.memory.size())
              throw bad_input(fmt::format("launch of {}: more than {} of its arguments are buffers; put several in one",
                                          kernel, held.memory.size()));
            held.memory[buffers] = buffer.memory();
            addresses[buffers] = buffer.memory()->address;
            values[i] = &addresses[buffers++];
          } else if constexpr (requires { value.size_bytes(); }) {
            sizes[i] = value.size_bytes();
            values[i] = const_cast<std::remove_const_t<typename Value::element_type>*>(value.data());
          } else {
            values[i] = const_cast<Value*>(&value);  // the driver only reads it
          }
        },
        arguments[i]);
  return submit(kernel, std::move(held), [&] {
    if (groups[0] == 0 || groups[1] == 0) return;
    const CUfunction function = own_program->kernel(kernel, std::span(sizes).first(arguments.size()));
    const CUresult code = api().LaunchKernel(function, groups[0], groups[1], 1, local[0], local[1], 1, 0, stream_,
                                             values.data(), nullptr);
    if (code != CUDA_SUCCESS)
      throw call_error(fmt::format("cuLaunchKernel ({}, groups of {} x {})", kernel, local[0], local[1]), code);
  });
}

Event CudaQueue::span(Event first, Event last) {
  if (first.queue().get() != this || last.queue().get() != this)
    throw bad_input("a span of events needs two events of this queue");
  const std::lock_guard lock(mutex_);
  reserve_slot();
  const Slot &from = slot(first.token()), &to = slot(last.token());
  if (!from.first || !to.last) return take_slot(to.number, nullptr, nullptr);
  return take_slot(to.number, from.first, to.last);
}

void CudaQueue::finish() {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = submitted_;
  wait_for(number, lock);
  throw_failure_up_to(number);
}

void CudaQueue::wait(std::uint64_t token) {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = slot(token).number;
  wait_for(number, lock);
  throw_failure_up_to(number);
}

double CudaQueue::seconds(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  const Slot& events = slot(token);
  throw_failure_up_to(events.number);
  const Current current(context_->get());
  return seconds_between(events.first->start, events.last->end);
}

double CudaQueue::seconds_after(std::uint64_t token, Queue& other, std::uint64_t other_token) {
  const double all = seconds(token);
  const auto* const others = dynamic_cast<const CudaQueue*>(&other);
  if (!others || others->context_->get() != context_->get()) return all;
  const Current current(context_->get());
  return std::min(all, seconds_between(others->end_of(other_token), end_of(token)));
}

CUevent CudaQueue::end_of(std::uint64_t token) const {
  const std::lock_guard lock(mutex_);
  const Slot& events = slot(token);
  throw_failure_up_to(events.number);
  return events.last->end;
}

void CudaQueue::release(std::uint64_t token) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t index = token - 1;
  drop(slots_[index].first);
  drop(slots_[index].last);
  slots_[index] = Slot();
  slots_[index].next_free = first_free_;
  first_free_ = index;
}

template <typename Enqueue>
Event CudaQueue::submit(const char* what, Held held, const Enqueue& enqueue) {
  std::unique_lock lock(mutex_);
  const Current current(context_->get());
  wait_for_room(lock);
  reserve_slot();
  const std::uint64_t number = ++submitted_;
  Timer* timer = nullptr;
  if (!failure_) {
    try {
      timer = take_timer();
      check("cuEventRecord", api().EventRecord(timer->start, stream_));
      enqueue();
      check("cuEventRecord", api().EventRecord(timer->end, stream_));
      Pending& newest = ring_[pushed_++ % capacity];
      newest.number = number;
      std::strncpy(newest.what.data(), what, newest.what.size() - 1);
      newest.timer = timer;
      ++timer->users;
      newest.held = std::move(held);
    } catch (const Error& error) {
      drop(timer);
      timer = nullptr;
      fail(number, error);
    }
  }
  Event event = take_slot(number, timer, timer);
  drop(timer);
  return event;
}

void CudaQueue::wait_for_room(std::unique_lock<std::mutex>& lock) {
  sweep();
  while (!failure_ && pushed_ - swept_ == capacity) wait_for(ring_[swept_ % capacity].number, lock);
}

void CudaQueue::wait_for(std::uint64_t number, std::unique_lock<std::mutex>& lock) {
  const Current current(context_->get());
  // The last in the ring that is not later: a submission that failed has no event to wait for, those before it have.
  std::uint64_t end = pushed_;
  while (end > swept_ && ring_[(end - 1) % capacity].number > number) --end;
  CUresult code = CUDA_SUCCESS;
  if (end > swept_) {
    Timer* const awaited = ring_[(end - 1) % capacity].timer;
    ++awaited->users;
    lock.unlock();
    code = api().EventSynchronize(awaited->end);
    lock.lock();
    drop(awaited);
  }
  sweep();
  if (code != CUDA_SUCCESS) fail(number, call_error("cuEventSynchronize", code));
}

void CudaQueue::add_timer() {
  Timer& added = timers_.emplace_back();
  added.next_free = free_timer_;
  free_timer_ = &added;
}

CudaQueue::Timer* CudaQueue::take_timer() {
  if (!free_timer_) add_timer();
  for (CUevent* const event : {&free_timer_->start, &free_timer_->end})
    if (!*event) check("cuEventCreate", api().EventCreate(event, CU_EVENT_DEFAULT));
  Timer* const taken = free_timer_;
  free_timer_ = taken->next_free;
  taken->users = 1;
  return taken;
}

void CudaQueue::drop(Timer* timer) noexcept {
  if (!timer || --timer->users > 0) return;
  timer->next_free = free_timer_;
  free_timer_ = timer;
}

void CudaQueue::reserve_slot() {
  if (first_free_ < slots_.size()) return;
  slots_.emplace_back();
  slots_.back().next_free = slots_.size();
}

Event CudaQueue::take_slot(std::uint64_t number, Timer* first, Timer* last) noexcept {
  const std::size_t index = first_free_;
  Slot& taken = slots_[index];
  first_free_ = taken.next_free;
  taken.number = number;
  taken.first = first;
  taken.last = last;
  for (Timer* const timer : {first, last})
    if (timer) ++timer->users;
  return Event(shared_from_this(), index + 1);
}

const CudaQueue::Slot& CudaQueue::slot(std::uint64_t token) const {
  if (token < 1 || token > slots_.size() || slots_[token - 1].number == 0)
    throw bad_input(fmt::format("event {} is none of this queue", token));
  return slots_[token - 1];
}

void CudaQueue::sweep() {
  if (swept_ == pushed_) return;
  const Current current(context_->get());
  for (; swept_ < pushed_; ++swept_) {
    Pending& oldest = ring_[swept_ % capacity];
    const CUresult code = api().EventQuery(oldest.timer->end);
    if (code == CUDA_ERROR_NOT_READY) return;
    if (code != CUDA_SUCCESS)
      fail(oldest.number,
           Error(kind_of(code), fmt::format("{} failed on the device: {}", oldest.what.data(), error_name(code))));
    drop(oldest.timer);
    oldest.timer = nullptr;
    oldest.held = Held();
  }
}

void CudaQueue::fail(std::uint64_t number, const Error& error) {
  if (failure_ && failure_number_ <= number) return;
  failure_ = Error(error.kind(), fmt::format("device {}: {}", device_id_, error.what()));
  failure_number_ = number;
}

void CudaQueue::throw_failure_up_to(std::uint64_t number) const {
  if (failure_ && failure_number_ <= number) throw Error(*failure_);
}

bool CudaQueue::is_own(const CudaBuffer* buffer) const {
  return buffer && buffer->memory()->context->get() == context_->get();
}

const CudaBuffer& CudaQueue::own(const Buffer* buffer, const char* call) const {
  const auto* const found = dynamic_cast<const CudaBuffer*>(buffer);
  if (!is_own(found))
    throw bad_input(fmt::format("{}: a buffer is {} of the queue's device {}", call,
                                buffer ? "none" : "missing, instead of one", device_id_));
  return *found;
}

}  // namespace omniconv::devices::cuda
