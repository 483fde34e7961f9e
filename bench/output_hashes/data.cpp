#include "data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace omniconv::hashes {
namespace {

template <typename T>
void store(std::span<std::byte> data, std::size_t at, T value) {
  std::memcpy(data.data() + at, &value, sizeof value);
}

template <typename T>
void fill_integers(Random& random, std::span<std::byte> data) {
  for (std::size_t at = 0; at < data.size(); at += sizeof(T)) {
    const std::uint64_t bits = random();
    const T extreme = (bits & 4) != 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    store(data, at, (bits & 3) == 0 ? extreme : static_cast<T>(bits >> 8));
  }
}

// The bits of a float of the type T's size.
template <typename T>
struct FloatFormat {
  int exponent_bits, mantissa_bits;

  T bias() const { return static_cast<T>((T{1} << (exponent_bits - 1)) - 1); }
  T one() const { return static_cast<T>(bias() << mantissa_bits); }
  T random(Random& source) const {
    const std::uint64_t bits = source(), choice = source();
    const auto binade = static_cast<T>(1 + std::min(std::countr_zero(choice), 12));  // 1: from 1/2 to 1
    const auto mantissa = static_cast<T>(bits & ((std::uint64_t{1} << mantissa_bits) - 1));
    const auto sign = static_cast<T>((bits >> 63) << (exponent_bits + mantissa_bits));
    return static_cast<T>(sign | static_cast<T>(bias() - binade) << mantissa_bits | mantissa);
  }
  T opacity(Random& source) const {
    const std::int64_t kind = source.below(4);
    const T magnitude = static_cast<T>(random(source) & (std::numeric_limits<T>::max() >> 1));
    return kind == 0 ? T{0} : kind == 1 ? one() : magnitude;
  }
};

template <typename T>
void fill_floats(FloatFormat<T> format, Random& random, std::int64_t c, std::int64_t alpha_channel,
                 std::span<std::byte> data) {
  std::int64_t channel = 0;
  for (std::size_t at = 0; at < data.size(); at += sizeof(T)) {
    store(data, at, channel == alpha_channel ? format.opacity(random) : format.random(random));
    channel = channel + 1 == c ? 0 : channel + 1;
  }
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double magnitude_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double sum, double value) { return sum + std::abs(value); });
}

// A sum of magnitudes of about 0.9, so that few results of integer images saturate; one weight in four is negative.
std::vector<double> random_weights(std::size_t count, Random& random) {
  std::vector<double> weights(count);
  for (double& weight : weights) weight = static_cast<double>(4 * random.below(1 << 20) - (1 << 20)) + 0.5;
  const double scale = 0.9 / magnitude_of(weights);
  for (double& weight : weights) weight *= scale;
  return weights;
}

// From -4 to 4, never all alike.
std::vector<double> integer_weights(std::size_t count, Random& random) {
  std::vector<double> weights(count);
  for (double& weight : weights) weight = static_cast<double>(random.below(9) - 4);
  weights.front() = 3, weights.back() = 4;
  return weights;
}

// Odd multiples of 1/16, so that products of two are exact in fp32. Where they are `mixed`, one in eight is negative.
std::vector<double> short_factor(std::int64_t size, bool mixed, Random& random) {
  std::vector<double> factor(static_cast<std::size_t>(size));
  for (double& value : factor) {
    value = static_cast<double>(2 * random.below(8) + 1) / 16;
    if (random.below(8) == 0 && mixed) value = -value;
  }
  factor.front() = 3.0 / 16, factor.back() = 5.0 / 16;
  return factor;
}

std::vector<double> triangle(std::int64_t size) {
  std::vector<double> factor(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i)
    factor[static_cast<std::size_t>(i)] = static_cast<double>(std::min(i + 1, size - i));
  return factor;
}

// Added to `weights`.
void add_product(const std::vector<double>& column, const std::vector<double>& row, std::vector<double>& weights) {
  weights.resize(column.size() * row.size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += column[i / row.size()] * row[i % row.size()];
}

// Divided by the power of two that takes the sum of magnitudes into [1/2, 1).
void shorten(std::vector<double>& weights) {
  const int exponent = std::ilogb(magnitude_of(weights)) + 1;
  for (double& weight : weights) weight = std::ldexp(weight, -exponent);
}

// How much the middle row or column of a gradient's pair counts against its neighbours; 0: it is no gradient.
struct Gradient {
  double side = 0, middle = 0;
};
Gradient gradient_of(std::string_view kernel) {
  if (kernel == "sobel") return {1, 2};
  if (kernel == "prewitt") return {1, 1};
  if (kernel == "scharr") return {3, 10};
  return {};
}

std::vector<double> weights_for(const Filter2dProblem& problem) {
  Random random(static_cast<std::uint64_t>(problem.r * 4099 + problem.s));
  const auto count = static_cast<std::size_t>(problem.r * problem.s);
  if (problem.kernel == "random") return random_weights(count, random);
  if (problem.kernel == "integer") return integer_weights(count, random);
  if (problem.kernel == "equal") return std::vector<double>(count, 1 / static_cast<double>(count));
  std::vector<double> weights;
  if (problem.kernel != "rank1" && problem.kernel != "rank2") {
    add_product(triangle(problem.r), triangle(problem.s), weights);
    const double sum = sum_of(weights);
    for (double& weight : weights) weight /= sum;
    return weights;
  }
  // Products of both signs could cancel, and no solver takes such weights apart.
  const bool is_sum = problem.kernel == "rank2";
  for (int rank = 0; rank < (is_sum ? 2 : 1); ++rank) {
    const std::vector<double> column = short_factor(problem.r, !is_sum, random),
                              row = short_factor(problem.s, !is_sum, random);
    add_product(column, row, weights);
  }
  shorten(weights);
  return weights;
}

double middle_of(DataType type) {
  return is_integer(type) ? (lowest_value(type) + highest_value(type)) / 2 : 0;
}
double reach_of(DataType type) {
  return is_integer(type) ? (highest_value(type) - lowest_value(type)) / 2 : 1;
}

}  // namespace

void fill_random(DataType type, std::uint64_t seed, std::int64_t c, std::int64_t alpha_channel,
                 std::span<std::byte> data) {
  Random random(seed);
  switch (type) {
    case DataType::u8: return fill_integers<std::uint8_t>(random, data);
    case DataType::u16: return fill_integers<std::uint16_t>(random, data);
    case DataType::s16: return fill_integers<std::int16_t>(random, data);
    case DataType::s32: return fill_integers<std::int32_t>(random, data);
    case DataType::f16: return fill_floats<std::uint16_t>({5, 10}, random, c, alpha_channel, data);
    case DataType::bf16: return fill_floats<std::uint16_t>({8, 7}, random, c, alpha_channel, data);
    case DataType::tf32:
    case DataType::f32: return fill_floats<std::uint32_t>({8, 23}, random, c, alpha_channel, data);
    case DataType::f64: return fill_floats<std::uint64_t>({11, 52}, random, c, alpha_channel, data);
  }
}

bool is_gradient(const Filter2dProblem& problem) {
  return gradient_of(problem.kernel).side != 0 && problem.r == 3 && problem.s == 3;
}

Filter filter_for(const Filter2dProblem& problem, bool scaled) {
  Filter filter;
  if (is_gradient(problem)) {
    const auto [a, b] = gradient_of(problem.kernel);
    filter.weights = {-a, 0, a, -b, 0, b, -a, 0, a};
    filter.second_weights = {-a, -b, -a, 0, 0, 0, a, b, a};
  } else {
    filter.weights = weights_for(problem);
  }
  if (!scaled) return filter;
  filter.scale = reach_of(problem.output) / (reach_of(problem.input) * magnitude_of(filter.weights));
  filter.bias = middle_of(problem.output) - filter.scale * sum_of(filter.weights) * middle_of(problem.input);
  return filter;
}

std::uint64_t hash(std::span<const std::byte> data, std::uint64_t state) {
  for (const std::byte one : data) state = (state ^ static_cast<std::uint64_t>(one)) * 0x100000001B3u;
  return state;
}

}  // namespace omniconv::hashes
