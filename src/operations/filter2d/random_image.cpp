#include "operations/filter2d/random_image.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/half.h"

namespace omniconv {
namespace {

// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014): splitmix64.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  float unit() { return static_cast<float>(static_cast<std::int32_t>((*this)() >> 40) - (1 << 23)) * 0x1p-23f; }

 private:
  std::uint64_t state_;
};

template <typename T, typename Make>
void fill(std::span<std::byte> image, const Make& make) {
  for (std::size_t at = 0; at + sizeof(T) <= image.size(); at += sizeof(T)) {
    const T value = make();
    std::memcpy(image.data() + at, &value, sizeof value);
  }
}

// The same from a range that changes from run to run of elements: noise over the whole range of u8 would saturate most
// magnitudes of a pair.
template <typename T>
void fill_contrasts(SplitMix& random, std::span<std::byte> image) {
  constexpr int run = 100;
  int left = 0, shift = 0;
  fill<T>(image, [&] {
    if (left-- == 0) left = run - 1, shift = static_cast<int>(random() % (8 * sizeof(T)));
    const auto value = static_cast<T>(random() >> 8);
    return static_cast<T>(value >> shift);
  });
}

template <typename T>
void fill_integers(SplitMix& random, std::span<std::byte> image) {
  fill<T>(image, [&] {
    const std::uint64_t bits = random();
    if ((bits & 3) != 0) return static_cast<T>(bits >> 8);
    return (bits & 4) != 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
  });
}

double sum_of_magnitudes(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0, [](double sum, double w) { return sum + std::fabs(w); });
}

double s32_limit(const Filter2dTask& task) {
  double sum = sum_of_magnitudes(task.weights.values);
  if (task.second) sum = std::max(sum, sum_of_magnitudes(task.second->values));
  return std::clamp(std::floor(0x1p23 / std::max(1.0, sum)), 1.0, 0x1p20);
}

}  // namespace

void fill_random(const Filter2dTask& task, std::uint64_t seed, std::span<std::byte> image) {
  SplitMix random(seed);
  std::int64_t elements = 0;
  const auto opacity_or_color = [&](auto value) {
    return elements++ % task.problem.c == task.problem.alpha_channel && value < 0 ? 0 : value;
  };
  if (task.second && task.problem.input == DataType::u8) return fill_contrasts<std::uint8_t>(random, image);
  if (task.second && task.problem.input == DataType::u16) return fill_contrasts<std::uint16_t>(random, image);
  if (task.second && task.problem.input == DataType::s16) return fill_contrasts<std::int16_t>(random, image);
  switch (task.problem.input) {
    case DataType::u8: return fill_integers<std::uint8_t>(random, image);
    case DataType::u16: return fill_integers<std::uint16_t>(random, image);
    case DataType::s16: return fill_integers<std::int16_t>(random, image);
    case DataType::s32: {
      const auto limit = static_cast<std::uint64_t>(s32_limit(task));
      return fill<std::int32_t>(image, [&] {
        return static_cast<std::int32_t>(random() % (2 * limit + 1)) - static_cast<std::int32_t>(limit);
      });
    }
    case DataType::f16:
    case DataType::bf16:
      return fill<std::uint16_t>(image, [&] { return float_to_half(opacity_or_color(random.unit())); });
    case DataType::tf32:
    case DataType::f32: return fill<float>(image, [&] { return opacity_or_color(random.unit()); });
    case DataType::f64:
      return fill<double>(image, [&] { return opacity_or_color(random.unit() + random.unit() * 0x1p-24); });
  }
}

Filter centred(const Filter2dProblem& problem, Filter filter) {
  if (!is_integer(problem.output) || !filter.second_weights.empty()) return filter;
  const double sum = std::accumulate(filter.weights.begin(), filter.weights.end(), 0.0);
  const auto middle = [](DataType type) { return (lowest_value(type) + highest_value(type)) / 2; };
  const bool small_input = !is_integer(problem.input) || problem.input == DataType::s32;  // centred at zero
  filter.bias += std::round(middle(problem.output) - (small_input ? 0 : sum * middle(problem.input)));
  return filter;
}

}  // namespace omniconv
