// Random numbers by counting: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// 2011). Four words for each counter and key, the same on every machine.
#pragma once

#include <array>
#include <cstdint>

namespace omniconv {

using PhiloxWords = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

inline PhiloxWords philox(PhiloxWords counter, PhiloxKey key) {
  constexpr std::uint64_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
  constexpr std::uint32_t step_0 = 0x9E3779B9, step_1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = multiplier_0 * counter[0], b = multiplier_1 * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += step_0, key[1] += step_1;
  }
  return counter;
}

inline PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

// What the numbers are for, so that no two uses share any: four bits.
enum class PhiloxUse : std::uint32_t { weights, order, dropout, batch, split, shapes };

// The words of a seed, for one use of it: word `i` of stream `of` (a layer, an epoch), of a step below 2^28 where there
// are any. Its counter is i / 4 in two words, the stream, and the use with the step above it.
class PhiloxStream {
 public:
  PhiloxStream(std::uint64_t seed, PhiloxUse use, std::uint32_t of, std::uint32_t step = 0)
      : key_(philox_key(seed)), use_(static_cast<std::uint32_t>(use) | step << 4), of_(of) {}
  std::uint32_t word(std::uint64_t i) {
    const std::uint64_t block = i / 4;
    if (!has_block_ || block != block_) {
      words_ = philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), of_, use_}, key_);
      block_ = block, has_block_ = true;
    }
    return words_[i % 4];
  }

 private:
  PhiloxKey key_;
  std::uint32_t use_, of_;
  bool has_block_ = false;
  std::uint64_t block_ = 0;
  PhiloxWords words_{};
};

}  // namespace omniconv
