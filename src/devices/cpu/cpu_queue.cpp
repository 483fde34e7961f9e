#include "devices/cpu/cpu_queue.h"

#include <fmt/format.h>

#include <cfenv>
#include <cstring>

#include "devices/copy_through_host.h"
#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::max(std::chrono::duration<double>(end - start).count(), 0.0);
}

// Calls body(first, bytes) for pieces, so that the device's threads share the memory's bandwidth.
template <typename Body>
void in_pieces(CpuDevice& device, std::int64_t bytes, const Body& body) {
  constexpr std::int64_t piece = std::int64_t{1} << 20;
  device.parallel_for((bytes + piece - 1) / piece, [&](std::int64_t i, int) {
    body(i * piece, static_cast<std::size_t>(std::min(piece, bytes - i * piece)));
  });
}

void copy_memory(CpuDevice& device, std::byte* to, const std::byte* from, std::int64_t bytes) {
  in_pieces(device, bytes,
            [&](std::int64_t first, std::size_t count) { std::memcpy(to + first, from + first, count); });
}

// Reads the steps, which another core wrote: an event's time begins with the work, not with its way to this core.
void bring_here(const Sequence& sequence) {
  constexpr std::size_t cache_line = 64;
  const std::span<const std::byte> bytes = std::as_bytes(sequence.steps());
  for (std::size_t i = 0; i < bytes.size(); i += cache_line) {
    [[maybe_unused]] const std::byte read = *static_cast<const volatile std::byte*>(&bytes[i]);
  }
}

// Rounding and subnormal numbers are as in a program that asks for nothing, whatever the thread has set for itself.
class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&own_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&own_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t own_;
};

void check_memory(const char* what, const Buffer& buffer) {
  if (!buffer.host() && buffer.bytes() > 0)
    throw bad_input(fmt::format("{} by the queue of cpu: the buffer is memory of {}; take a queue of that device", what,
                                buffer.device() ? buffer.device()->info().id : "another device"));
}

}  // namespace

void check_cpu_steps(const Sequence& sequence) {
  for (const Sequence::Step& step : sequence.steps()) {
    if (const auto* const launch = std::get_if<Sequence::Launch>(&step))
      throw bad_input(fmt::format("the CPU device runs host functions, not the device kernel {}", launch->kernel));
    if (std::holds_alternative<Sequence::Native>(step))
      throw bad_input("a native call was submitted to a queue of cpu, which has no stream: submit a host function");
    if (const auto* const copy = std::get_if<Sequence::Copy>(&step)) {
      check_memory("a copy", *copy->to);
      check_memory("a copy", *copy->from);
    } else if (const auto* const fill = std::get_if<Sequence::Fill>(&step)) {
      check_memory("a fill", *fill->buffer);
    }
  }
}

CpuQueue::CpuQueue(std::shared_ptr<CpuDevice> device, const QueueOptions& options)
    : RingQueue("cpu", "", options.timing), device_(std::move(device)) {
  if (!options.begins_at_wait) thread_ = std::thread([this] { work(); });
}

CpuQueue::~CpuQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.joinable() ? thread_.join() : work();
}

// The next work in the ring, while no other is run. `lock` is released meanwhile.
void CpuQueue::run_next(std::unique_lock<std::mutex>& lock) {
  Pending& work = ring_[begun_++ % capacity];
  const bool skip = failure_ != nullptr;
  CpuTimes& times = work.timer->times;
  is_running_ = true;
  lock.unlock();
  std::exception_ptr error;
  bring_here(*work.held.sequence);
  times.start = Clock::now();
  if (!skip) {
    try {
      run(*work.held.sequence, times.scalars);
    } catch (...) {
      error = std::current_exception();
    }
  }
  times.end = Clock::now();
  lock.lock();
  if (error != nullptr) fail(work.number, error);
  let_go(std::exchange(work.held, {}), lock);  // before anyone is told, or runs what follows
  is_running_ = false;
  times.is_done = true;
  changed_.notify_all();
}

void CpuQueue::work() {
  const DefaultArithmetic arithmetic;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return can_run_next() || (stopping_ && begun_ == pushed_); });
    if (!can_run_next()) return;  // stopping, and nothing left
    run_next(lock);
  }
}

void CpuQueue::enqueue(const Sequence& sequence, CpuTimes& times) {
  times.scalars.clear();
  for (const Scalar& scalar : sequence.scalars()) times.scalars.push_back(scalar.value());
}

void CpuQueue::run(const Sequence& sequence, std::span<const double> scalars) const {
  for (const Sequence::Step& step : sequence.steps()) {
    if (const auto* const call = std::get_if<Sequence::Call>(&step)) {
      call->task(scalars.subspan(call->first_scalar, call->scalars));
    } else if (const auto* const copy = std::get_if<Sequence::Copy>(&step)) {
      copy_memory(*device_, copy->to->host() + copy->to_offset_bytes, copy->from->host() + copy->from_offset_bytes,
                  copy->bytes);
    } else if (const auto* const fill = std::get_if<Sequence::Fill>(&step)) {
      std::byte* const memory = fill->buffer->host() + fill->offset_bytes;
      in_pieces(*device_, fill->bytes,
                [&](std::int64_t first, std::size_t count) { std::memset(memory + first, fill->value, count); });
    }
  }
}

// Who waits runs what has not begun: the queue's thread needs longer to wake up than small work takes.
void CpuQueue::await(const CpuTimes& times) {
  const DefaultArithmetic arithmetic;
  std::unique_lock lock(mutex_);
  while (!times.is_done) {
    if (can_run_next())
      run_next(lock);
    else
      changed_.wait(lock, [&] { return times.is_done || can_run_next(); });
  }
}

double CpuQueue::seconds_of(const CpuTimes& first, const CpuTimes& last) const {
  if (!last.is_done) throw bad_input("the event has no times: wait for it first");
  return seconds_between(first.start, last.end);
}

double CpuQueue::seconds_between_ends(const CpuTimes& earlier, const CpuTimes& later) const {
  return seconds_between(earlier.end, later.end);
}

Event CpuQueue::upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) {
  check_memory("a copy", *to);
  std::byte* const target = to->host() + offset_bytes;
  return devices::submit(*this, HostTask([device = device_.get(), keep = std::move(to), target, from, bytes] {
    copy_memory(*device, target, static_cast<const std::byte*>(from), bytes);
  }));
}

Event CpuQueue::download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) {
  check_memory("a copy", *from);
  const std::byte* const source = from->host() + offset_bytes;
  return devices::submit(*this, HostTask([device = device_.get(), keep = std::move(from), to, source, bytes] {
    copy_memory(*device, static_cast<std::byte*>(to), source, bytes);
  }));
}

Event CpuQueue::copy(std::shared_ptr<Buffer> to, std::int64_t to_offset_bytes, std::shared_ptr<Buffer> from,
                     std::int64_t from_offset_bytes, std::int64_t bytes, const Event& after) {
  if (!to->host() && !from->host()) throw bad_input("copy: neither buffer is of the queue's device cpu");
  if (after.queue().get() != this) await_event(after);
  if (!to->host() || !from->host()) {
    finish();
    return copy_through_host(nullptr, to, to_offset_bytes, nullptr, from, from_offset_bytes, bytes);
  }
  const std::shared_ptr<Sequence> sequence = take_sequence();
  sequence->copy({*to, to_offset_bytes, bytes}, {*from, from_offset_bytes, bytes});
  return submit(sequence);
}

}  // namespace omniconv::devices
