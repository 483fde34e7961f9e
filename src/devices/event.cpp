// The handles of omniconv/context.h, out of line: they ask the device for everything.
#include <fmt/format.h>

#include <utility>

#include "devices/device.h"
#include "omniconv/context.h"
#include "omniconv/error.h"

namespace omniconv {

Event::Event(std::shared_ptr<devices::Queue> queue, std::uint64_t token) : queue_(std::move(queue)), token_(token) {}

Event::Event(Event&& other) noexcept : queue_(std::move(other.queue_)), token_(std::exchange(other.token_, 0)) {
  other.queue_ = nullptr;
}

Event& Event::operator=(Event&& other) noexcept {
  if (this == &other) return *this;
  if (queue_) queue_->release(token_);
  queue_ = std::move(other.queue_);
  other.queue_ = nullptr;
  token_ = std::exchange(other.token_, 0);
  return *this;
}

Event::~Event() {
  if (queue_) queue_->release(token_);
}

void Event::wait() {
  if (queue_) queue_->wait(token_);
}

double Event::seconds() const {
  return queue_ ? queue_->seconds(token_) : 0;
}

double Event::seconds_after(const Event& other) const {
  if (!queue_) return 0;
  // A queue is in order: what it does later does not overlap.
  if (!other.queue_ || other.queue_ == queue_) return seconds();
  return queue_->seconds_after(token_, *other.queue_, other.token_);
}

Scalar Scalar::changing(double value) {
  Scalar scalar(value);
  scalar.cell_ = std::make_shared<std::atomic<double>>(value);
  return scalar;
}

Scalar Scalar::complement(const Scalar& other) {
  Scalar complement = other;
  complement.is_complement_ = !other.is_complement_;
  return complement;
}

void Scalar::set(double value) {
  if (is_complement_)
    throw bad_input("a scalar that was made as the complement of another cannot be set: set the other one");
  if (!cell_) throw bad_input("a scalar that was made as a plain number cannot be set: make it by Scalar::changing");
  cell_->store(value);
}

std::int64_t Buffer::bytes() const {
  return impl_ ? impl_->bytes() : 0;
}

namespace {

// Here once, for the queues of every kind.
void check_made(const char* call, const void* queue, const Buffer& buffer) {
  if (!queue) throw bad_input(fmt::format("{}: the queue is empty; make one with Context::make_queue", call));
  if (!buffer) throw bad_input(fmt::format("{}: the buffer is empty; make one with Context::allocate", call));
}

void check_transfer(const char* call, const void* queue, const Buffer& buffer, std::int64_t offset_bytes,
                    const void* host, std::int64_t bytes) {
  check_made(call, queue, buffer);
  devices::check_range(call, {*buffer.impl(), offset_bytes, bytes});
  if (!host && bytes > 0) throw bad_input(fmt::format("{}: the host memory is a null pointer", call));
}

}  // namespace

Event Queue::upload(const Buffer& to, std::int64_t offset_bytes, const void* from, std::int64_t bytes) {
  check_transfer("upload", impl_.get(), to, offset_bytes, from, bytes);
  return impl_->upload(to.impl(), offset_bytes, from, bytes);
}

Event Queue::download(void* to, const Buffer& from, std::int64_t offset_bytes, std::int64_t bytes) {
  check_transfer("download", impl_.get(), from, offset_bytes, to, bytes);
  return impl_->download(to, from.impl(), offset_bytes, bytes);
}

Event Queue::copy(const Buffer& to, std::int64_t to_offset_bytes, const Buffer& from, std::int64_t from_offset_bytes,
                  std::int64_t bytes, const Event& after) {
  check_made("copy to a buffer", impl_.get(), to);
  check_made("copy from a buffer", impl_.get(), from);
  devices::check_copy({*to.impl(), to_offset_bytes, bytes}, {*from.impl(), from_offset_bytes, bytes});
  return impl_->copy(to.impl(), to_offset_bytes, from.impl(), from_offset_bytes, bytes, after);
}

void Queue::finish() {
  if (impl_) impl_->finish();
}

namespace {

void check_made(const char* call, const Sequence& sequence) {
  if (!sequence)
    throw bad_input(
        fmt::format("{}: the sequence was moved from, or never made; make one with Context::make_sequence", call));
}

}  // namespace

Event Queue::submit(Sequence sequence) {
  if (!impl_) throw bad_input("submit: the queue is empty; make one with Context::make_queue");
  check_made("submit", sequence);
  return impl_->submit(sequence.impl());
}

Event Recording::replay(Queue& queue) const {
  if (!queue.impl()) throw bad_input("replay: the queue is empty; make one with Context::make_queue");
  if (!impl_) throw bad_input("replay: the recording was moved from, or never made; make one with Context::record");
  return queue.impl()->replay(impl_);
}

Sequence Context::make_sequence() const {
  return Sequence(device_, std::make_shared<devices::Sequence>());
}

Recording Context::record(Sequence sequence) const {
  check_made("record", sequence);
  if (const std::string& of = sequence.device()->info().id; of != device_->info().id)
    throw bad_input(fmt::format("record: the sequence was made for device {}, and the context is of device {}", of,
                                device_->info().id));
  return Recording(device_->record(sequence.impl()));
}

Queue Context::make_queue(const QueueOptions& options) const {
  return Queue(device_->make_queue(options));
}

}  // namespace omniconv
