#include "checking/transfers.h"

#include <algorithm>

namespace omniconv::checking {
namespace {

constexpr std::byte poison{0xFF};  // NaN in every floating type
constexpr std::int64_t piece_bytes = std::int64_t{16} << 20;

}  // namespace

Buffer Transfers::put(const std::byte* data, std::int64_t bytes, std::int64_t guard) {
  const Buffer buffer = context_.allocate(bytes + 2 * guard);
  if (data && bytes <= piece_bytes) {  // at once: Oclgrind takes a buffer that is written in parts for unwritten
    std::vector<std::byte> whole(static_cast<std::size_t>(buffer.bytes()), poison);
    std::copy_n(data, bytes, whole.begin() + guard);
    queue_.upload(buffer, 0, whole.data(), buffer.bytes()).wait();
    return buffer;
  }
  spread_poison(buffer, 0, data ? guard : buffer.bytes());
  if (!data) return buffer;
  queue_.upload(buffer, guard, data, bytes).wait();
  spread_poison(buffer, guard + bytes, guard);
  return buffer;
}

std::vector<std::byte> Transfers::get(const Buffer& buffer, std::int64_t first, std::int64_t bytes) {
  std::vector<std::byte> data(static_cast<std::size_t>(bytes));
  queue_.download(data.data(), buffer, first, bytes).wait();
  return data;
}

bool Transfers::are_guards_intact(const Buffer& buffer) {
  return is_guard_intact(buffer, 0) && is_end_intact(buffer);
}
bool Transfers::is_end_intact(const Buffer& buffer) {
  return is_guard_intact(buffer, buffer.bytes() - guard_bytes);
}
bool Transfers::is_guard_intact(const Buffer& buffer, std::int64_t first) {
  const std::vector<std::byte> guard = get(buffer, first, guard_bytes);
  return std::all_of(guard.begin(), guard.end(), [](std::byte b) { return b == poison; });
}

bool Transfers::holds(const Buffer& buffer, const std::vector<std::byte>& data) {
  const auto size = static_cast<std::int64_t>(data.size());
  for (std::int64_t at = 0; at < size; at += piece_bytes) {
    const std::vector<std::byte> piece = get(buffer, guard_bytes + at, std::min(piece_bytes, size - at));
    if (!std::equal(piece.begin(), piece.end(), data.begin() + at)) return false;
  }
  return are_guards_intact(buffer);
}

void Transfers::spread_poison(const Buffer& buffer, std::int64_t first, std::int64_t bytes) {
  const std::vector<std::byte> piece(static_cast<std::size_t>(std::min(piece_bytes, bytes)), poison);
  for (std::int64_t at = 0; at < bytes; at += piece_bytes)
    queue_.upload(buffer, first + at, piece.data(), std::min(piece_bytes, bytes - at)).wait();
}

}  // namespace omniconv::checking
