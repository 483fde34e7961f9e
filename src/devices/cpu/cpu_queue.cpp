#include "devices/cpu/cpu_queue.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "devices/copy_through_host.h"
#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

// Copies in pieces, so that the arena's threads share the memory's bandwidth.
void copy_memory(CpuDevice& device, std::byte* to, const std::byte* from, std::int64_t bytes) {
  constexpr std::int64_t piece = std::int64_t{1} << 20;
  device.parallel_for((bytes + piece - 1) / piece, [=](std::int64_t i, int) {
    const std::int64_t first = i * piece;
    std::memcpy(to + first, from + first, static_cast<std::size_t>(std::min(piece, bytes - first)));
  });
}

std::byte* checked_range(const Buffer& buffer, std::int64_t offset, std::int64_t bytes) {
  if (!buffer.host() && buffer.bytes() > 0)
    throw bad_input(fmt::format("a copy by the queue of cpu: the buffer is memory of {}; take a queue of that device",
                                buffer.device() ? buffer.device()->info().id : "another device"));
  if (offset < 0 || bytes < 0 || offset > buffer.bytes() - bytes)
    throw bad_input(
        fmt::format("copy of {} bytes at offset {} does not fit a buffer of {} bytes", bytes, offset, buffer.bytes()));
  return buffer.host() + offset;
}

}  // namespace

CpuQueue::CpuQueue(std::shared_ptr<CpuDevice> device) : device_(std::move(device)), thread_([this] { work(); }) {}

CpuQueue::~CpuQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Event CpuQueue::submit(HostTask task) {
  return submit(std::move(task), 0);
}

Event CpuQueue::submit(HostTask task, std::uint64_t span_from) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return submitted_ - completed_ < capacity; });
  if (span_from > 0 && span_from + capacity <= submitted_ + 1)
    throw environment_error(
        fmt::format("a span of {} submissions: a CPU queue remembers {}", submitted_ + 1 - span_from, capacity - 1));
  ring_[submitted_ % capacity] = std::move(task);
  span_from_[submitted_ % capacity] = span_from;
  const std::uint64_t token = ++submitted_;
  lock.unlock();
  changed_.notify_all();
  return Event(shared_from_this(), token);
}

void CpuQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || completed_ < submitted_; });
    if (completed_ == submitted_) return;  // stopping, and nothing left
    HostTask task = std::move(ring_[completed_ % capacity]);
    const bool skip = error_ != nullptr;
    const std::uint64_t from = span_from_[completed_ % capacity];
    const auto start = from > 0 ? begun_[(from - 1) % capacity] : std::chrono::steady_clock::now();
    begun_[completed_ % capacity] = start;
    lock.unlock();
    std::exception_ptr error;
    if (!skip) {
      try {
        task();
      } catch (...) {
        error = std::current_exception();
      }
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    task = HostTask();  // lets go of buffers before anyone is told
    lock.lock();
    seconds_[completed_ % capacity] = elapsed.count();
    ++completed_;
    if (error != nullptr) {
      error_ = error;
      error_token_ = completed_;
    }
    changed_.notify_all();
  }
}

void CpuQueue::rethrow_up_to(std::uint64_t token) const {
  if (error_ != nullptr && token >= error_token_) std::rethrow_exception(error_);
}

void CpuQueue::wait(std::uint64_t token) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return completed_ >= token; });
  rethrow_up_to(token);
}

void CpuQueue::finish() {
  std::unique_lock lock(mutex_);
  const std::uint64_t token = submitted_;
  changed_.wait(lock, [&] { return completed_ >= token; });
  rethrow_up_to(token);
}

double CpuQueue::seconds(std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  if (token > completed_ || token + capacity <= submitted_)
    throw bad_input("the time of a queue's event is known from its completion until 64 later submissions");
  return seconds_[(token - 1) % capacity];
}

Event CpuQueue::upload(std::shared_ptr<Buffer> to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) {
  std::byte* const target = checked_range(*to, offset_bytes, bytes);
  return submit(HostTask([device = device_.get(), keep = std::move(to), target, from, bytes] {
    copy_memory(*device, target, static_cast<const std::byte*>(from), bytes);
  }));
}

Event CpuQueue::download(void* to, std::shared_ptr<Buffer> from, std::int64_t offset_bytes, std::int64_t bytes) {
  const std::byte* const source = checked_range(*from, offset_bytes, bytes);
  return submit(HostTask([device = device_.get(), keep = std::move(from), to, source, bytes] {
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
  std::byte* const target = checked_range(*to, to_offset_bytes, bytes);
  const std::byte* const source = checked_range(*from, from_offset_bytes, bytes);
  return submit(HostTask([device = device_.get(), keep = std::move(to), keep_too = std::move(from), target, source,
                          bytes] { copy_memory(*device, target, source, bytes); }));
}

Event CpuQueue::launch(const std::shared_ptr<Program>&, const char* kernel, const Grid&,
                       std::span<const KernelArgument>) {
  throw environment_error(fmt::format("the CPU device runs host functions, not the device kernel {}", kernel));
}

Event CpuQueue::span(Event first, Event) {
  return submit(HostTask([] {}), first.token());
}

Event submit(Queue& queue, HostTask task) {
  auto* const own = dynamic_cast<CpuQueue*>(&queue);
  if (!own)
    throw bad_input("work of the device cpu was submitted to a queue of another device; make one of its context");
  return own->submit(std::move(task));
}

}  // namespace omniconv::devices
