#include "devices/copy_through_host.h"

#include <algorithm>

#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

std::shared_ptr<Queue> queue_for(const Buffer& buffer) {
  const std::shared_ptr<Device> device = buffer.device();
  if (!device) throw bad_input("copy: a buffer belongs to no device; make it with Context::allocate");
  return device->make_queue();
}

// Waits for what reads the pieces, whatever became of it, before they go.
struct Drained {
  Queue& queue;
  ~Drained() {
    try {
      queue.finish();
    } catch (const std::exception&) {
    }
  }
};

}  // namespace

Event copy_through_host(std::shared_ptr<Queue> to_queue, const std::shared_ptr<Buffer>& to, std::int64_t to_offset,
                        std::shared_ptr<Queue> from_queue, const std::shared_ptr<Buffer>& from,
                        std::int64_t from_offset, std::int64_t bytes) {
  if (!to->host() && !to_queue) to_queue = queue_for(*to);
  if (!from->host() && !from_queue) from_queue = queue_for(*from);
  if (to->host() || from->host()) {
    Event done = to->host() ? from_queue->download(to->host() + to_offset, from, from_offset, bytes)
                            : to_queue->upload(to, to_offset, from->host() + from_offset, bytes);
    done.wait();
    return done;
  }
  // One piece is read while the other is written.
  constexpr std::int64_t most = std::int64_t{16} << 20;
  struct Piece {
    std::shared_ptr<HostMemory> memory;
    Event written;
  };
  std::array<Piece, 2> pieces;
  const Drained drained{*to_queue};
  Event last = to_queue->upload(to, to_offset, nullptr, 0);
  for (std::int64_t done = 0; done < bytes; done += most) {
    auto& [memory, written] = pieces[static_cast<std::size_t>(done / most % 2)];
    if (!memory) memory = to->device()->allocate_host(std::min(most, bytes));
    written.wait();
    const std::int64_t part = std::min(most, bytes - done);
    from_queue->download(memory->data(), from, from_offset + done, part).wait();
    written = to_queue->upload(to, to_offset + done, memory->data(), part);
  }
  for (Piece& piece : pieces) piece.written.wait();
  last = to_queue->span(std::move(last), to_queue->upload(to, to_offset, nullptr, 0));
  last.wait();
  return last;
}

void await_event(const Event& event) {
  if (event.queue()) event.queue()->wait(event.token());
}

}  // namespace omniconv::devices
