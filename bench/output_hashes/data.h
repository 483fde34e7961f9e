// Inputs that are the same for every commit and machine: bits from integers alone, and weights from few, exact steps.
#pragma once

#include <omniconv/filter2d.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omniconv::hashes {

// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014): splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>((*this)() % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_;
};

// Every kind of weights that a solver treats in a way of its own. Another word of a problem's kernel (gaussian:5,1.1)
// is answered by a product of two triangles, and those of gradients by their pairs.
inline constexpr std::string_view weight_kinds[] = {"random", "integer", "rank1", "rank2", "equal"};

// Integers: any value, one in four the lowest or the highest. Floats: in (-1, 1), half as many in each binade below 1/2
// as in the one above it, never subnormal. Of `alpha_channel` of c interleaved channels (negative: none) the floats are
// opacities instead: in [0, 1], one in four 0 and one in four 1.
void fill_random(DataType type, std::uint64_t seed, std::int64_t c, std::int64_t alpha_channel,
                 std::span<std::byte> data);

// Of the kind that problem.kernel says. `scaled`: with the scale and the bias that take the input's range into the
// output's; else without any.
Filter filter_for(const Filter2dProblem& problem, bool scaled);

// Its weights are a pair, whose magnitude is taken.
bool is_gradient(const Filter2dProblem& problem);

// FNV-1a, 64 bits.
std::uint64_t hash(std::span<const std::byte> data, std::uint64_t state = 0xCBF29CE484222325u);

}  // namespace omniconv::hashes
