#include "checking/host.h"

#include "devices/cpu/cpu_device.h"
#include "devices/device.h"
#include "omniconv/error.h"

namespace omniconv::checking {
namespace {

// The system may refuse to lock more pages; copies are slower then, and right all the same.
std::shared_ptr<devices::HostMemory> locked_memory(devices::Device& device, std::int64_t bytes) {
  try {
    return device.allocate_host(bytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::environment && error.kind() != ErrorKind::out_of_memory) throw;
    return device.Device::allocate_host(bytes);
  }
}

}  // namespace

Host::Host(const Context& context) : device_(context.impl()) {}
Host::~Host() = default;

devices::CpuDevice& Host::cpu() {
  if (!cpu_) cpu_ = std::dynamic_pointer_cast<devices::CpuDevice>(devices::cpu_backend().open({}, {}));
  return *cpu_;
}

Host::Memory::~Memory() {
  if (host_ != nullptr) host_->give_back(std::move(buffer_));
}

// The smallest that will do. Where none does, the largest goes: what is kept is never more than what was used at once.
Host::Memory Host::take(std::int64_t bytes) {
  Memory taken;
  const auto best = std::min_element(free_.begin(), free_.end(), [&](const Buffer& a, const Buffer& b) {
    const bool a_holds = a.bytes() >= bytes, b_holds = b.bytes() >= bytes;
    return a_holds != b_holds ? a_holds : a_holds ? a.bytes() < b.bytes() : a.bytes() > b.bytes();
  });
  if (best != free_.end()) {
    if (best->bytes() >= bytes) taken.buffer_ = *best;
    free_.erase(best);
  }
  if (!taken.buffer_) taken.buffer_ = Buffer(cpu().allocate(bytes));
  taken.host_ = this;
  taken.bytes_ = {taken.buffer_.impl()->host(), static_cast<std::size_t>(bytes)};
  return taken;
}

void Host::give_back(Buffer buffer) {
  free_.push_back(std::move(buffer));
}

std::byte* Host::piece(std::size_t i) {
  if (!pieces_[i]) pieces_[i] = locked_memory(*device_, piece_bytes);
  return pieces_[i]->data();
}

void Host::in_parts(std::int64_t count, std::int64_t part,
                    const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (count <= part) {
    if (count > 0) body(0, count);
    return;
  }
  cpu().parallel_for((count + part - 1) / part,
                     [&](std::int64_t i, int) { body(i * part, std::min(part, count - i * part)); });
}

}  // namespace omniconv::checking
