#include "checking/transfers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "devices/device.h"

namespace omniconv::checking {
namespace {

constexpr std::uint8_t poison = 0xFF;  // NaN in every floating type
// Below, one copy costs no more than several.
constexpr std::int64_t small_bytes = std::int64_t{1} << 20;
// What the host's cores copy or compare in turn.
constexpr std::int64_t part_bytes = std::int64_t{1} << 20;
// In the time of a copy of its own so much of a large one is copied.
constexpr std::int64_t bytes_of_a_copy = std::int64_t{1} << 15;

// The pieces of so many bytes.
struct Piece {
  std::int64_t first, bytes;
};
std::vector<Piece> pieces_of(std::int64_t bytes) {
  std::vector<Piece> pieces;
  for (std::int64_t at = 0; at < bytes; at += Host::piece_bytes)
    pieces.push_back({at, std::min(Host::piece_bytes, bytes - at)});
  return pieces;
}

}  // namespace

Buffer Transfers::put(const std::byte* data, std::int64_t bytes, std::int64_t guard) {
  const Buffer buffer = context_.allocate(bytes + 2 * guard);
  if (buffer.bytes() <= small_bytes) {  // at once: Oclgrind takes a buffer that is written in parts for unwritten
    std::vector<std::byte> whole(static_cast<std::size_t>(buffer.bytes()), std::byte{poison});
    if (data) std::copy_n(data, bytes, whole.begin() + guard);
    queue_.upload(buffer, 0, whole.data(), buffer.bytes()).wait();
    return buffer;
  }
  if (!data) {
    fill(buffer, 0, buffer.bytes(), poison);
    return buffer;
  }
  fill(buffer, 0, guard, poison);
  upload(buffer, guard, data, bytes);
  fill(buffer, guard + bytes, guard, poison);
  return buffer;
}

// While the device copies one piece, the host writes the next.
double Transfers::upload(const Buffer& to, std::int64_t first, const std::byte* data, std::int64_t bytes) {
  if (bytes <= small_bytes || to.impl()->host() != nullptr) {
    Event event = queue_.upload(to, first, data, bytes);
    event.wait();
    return event.seconds();
  }
  double seconds = 0;
  std::array<Event, Host::pieces> copied;
  const auto await = [&](Event& event) {
    if (!event.queue()) return;
    event.wait();
    seconds += event.seconds();
  };
  std::size_t next = 0;
  for (const Piece& piece : pieces_of(bytes)) {
    await(copied[next]);
    std::byte* const memory = host_.piece(next);
    host_.in_parts(piece.bytes, part_bytes, [&](std::int64_t at, std::int64_t count) {
      std::memcpy(memory + at, data + piece.first + at, static_cast<std::size_t>(count));
    });
    copied[next] = queue_.upload(to, first + piece.first, memory, piece.bytes);
    next = (next + 1) % Host::pieces;
  }
  for (std::size_t i = 0; i < Host::pieces; ++i) await(copied[(next + i) % Host::pieces]);
  return seconds;
}

std::vector<std::byte> Transfers::get(const Buffer& buffer, std::int64_t first, std::int64_t bytes) {
  std::vector<std::byte> data(static_cast<std::size_t>(bytes));
  queue_.download(data.data(), buffer, first, bytes).wait();
  return data;
}

std::vector<std::byte> Transfers::get_elements(const Buffer& buffer, std::int64_t size,
                                               std::span<const std::int64_t> places) {
  std::vector<std::byte> elements(places.size() * static_cast<std::size_t>(size));
  const std::int64_t bytes = buffer.bytes() - 2 * guard_bytes;
  const auto element = [&](std::size_t i) { return elements.data() + i * static_cast<std::size_t>(size); };
  if (const auto count = static_cast<std::int64_t>(places.size());
      count * bytes_of_a_copy < bytes && count * size <= Host::piece_bytes) {
    std::byte* const memory = host_.piece(0);
    for (std::int64_t i = 0; i < count; ++i)
      queue_.download(memory + i * size, buffer, guard_bytes + places[static_cast<std::size_t>(i)] * size, size);
    queue_.finish();
    std::copy_n(memory, elements.size(), elements.begin());
    return elements;
  }
  const std::vector<std::byte> whole = get(buffer, guard_bytes, bytes);
  for (std::size_t i = 0; i < places.size(); ++i)
    std::memcpy(element(i), whole.data() + places[i] * size, static_cast<std::size_t>(size));
  return elements;
}

bool Transfers::are_guards_intact(const Buffer& buffer) {
  return is_guard_intact(buffer, 0) && is_end_intact(buffer);
}
bool Transfers::is_end_intact(const Buffer& buffer) {
  return is_guard_intact(buffer, buffer.bytes() - guard_bytes);
}
bool Transfers::is_guard_intact(const Buffer& buffer, std::int64_t first) {
  const std::vector<std::byte> guard = get(buffer, first, guard_bytes);
  return std::all_of(guard.begin(), guard.end(), [](std::byte b) { return b == std::byte{poison}; });
}

bool Transfers::equals(const std::byte* a, const std::byte* b, std::int64_t bytes) {
  std::atomic<bool> equal = true;
  host_.in_parts(bytes, part_bytes, [&](std::int64_t at, std::int64_t count) {
    if (std::memcmp(a + at, b + at, static_cast<std::size_t>(count)) != 0) equal = false;
  });
  return equal;
}

bool Transfers::holds(const Buffer& buffer, std::span<const std::byte> data) {
  return holds_between_guards(buffer, data) && are_guards_intact(buffer);
}

// While the device copies one piece, the host compares the one before.
bool Transfers::holds_between_guards(const Buffer& buffer, std::span<const std::byte> data) {
  const auto bytes = static_cast<std::int64_t>(data.size());
  if (const std::byte* const memory = buffer.impl()->host()) return equals(memory + guard_bytes, data.data(), bytes);
  if (bytes <= small_bytes) return equals(get(buffer, guard_bytes, bytes).data(), data.data(), bytes);
  const std::vector<Piece> pieces = pieces_of(bytes);
  std::array<Event, Host::pieces> copied;
  const auto copy = [&](std::size_t i) {
    if (i < pieces.size())
      copied[i % Host::pieces] =
          queue_.download(host_.piece(i % Host::pieces), buffer, guard_bytes + pieces[i].first, pieces[i].bytes);
  };
  copy(0);
  bool equal = true;
  for (std::size_t i = 0; i < pieces.size() && equal; ++i) {
    copy(i + 1);
    copied[i % Host::pieces].wait();
    equal = equals(host_.piece(i % Host::pieces), data.data() + pieces[i].first, pieces[i].bytes);
  }
  queue_.finish();  // what was not compared any more is still being written
  return equal;
}

void Transfers::fill(const Buffer& buffer, std::int64_t first, std::int64_t bytes, std::uint8_t value) {
  if (bytes == 0) return;
  devices::Queue& queue = *queue_.impl();
  const std::shared_ptr<devices::Sequence> sequence = queue.take_sequence();
  sequence->fill({*buffer.impl(), first, bytes}, value);
  queue.submit(sequence).wait();
}

}  // namespace omniconv::checking
