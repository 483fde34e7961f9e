// Random numbers by counting: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// 2011). Four words for each counter and key, the same on every machine.
#pragma once

#include <array>
#include <cstdint>

namespace omniconv::training {

using Words = std::array<std::uint32_t, 4>;

inline Words philox(Words counter, std::array<std::uint32_t, 2> key) {
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

// What the numbers are for, so that no two uses share any.
enum class Use : std::uint32_t { weights, order, split };

// The words of a seed, for one use of it: word `i` of stream `of` (a layer, an epoch).
class Stream {
 public:
  Stream(std::uint64_t seed, Use use, std::uint32_t of)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        use_(static_cast<std::uint32_t>(use)),
        of_(of) {}
  std::uint32_t word(std::uint64_t i) {
    const std::uint64_t block = i / 4;
    if (!has_block_ || block != block_) {
      words_ = philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), of_, use_}, key_);
      block_ = block, has_block_ = true;
    }
    return words_[i % 4];
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t use_, of_;
  bool has_block_ = false;
  std::uint64_t block_ = 0;
  Words words_{};
};

}  // namespace omniconv::training
