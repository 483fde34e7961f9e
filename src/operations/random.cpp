#include "operations/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "core/checked.h"
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"

namespace omniconv::operations {
namespace {

// A prime number: rows of no shape begin alike, and gigabytes are made by copying.
constexpr std::int64_t period = 1'048'583;

devices::CpuDevice& all_cores() {
  static const std::shared_ptr<devices::Device> device = devices::cpu_backend().open({}, {});
  return dynamic_cast<devices::CpuDevice&>(*device);
}

// Copies the first `bytes` again and again. Large arrays are filled by all cores: one alone takes longer to touch new
// memory than to copy.
void repeat(std::span<std::byte> data, std::int64_t bytes) {
  const auto size = static_cast<std::int64_t>(data.size()), copies = divide_up(size, bytes) - 1;
  const auto copy = [&](std::int64_t i, int = 0) {
    const std::int64_t at = (i + 1) * bytes;
    std::memcpy(data.data() + at, data.data(), static_cast<std::size_t>(std::min(bytes, size - at)));
  };
  if (copies < 4)
    for (std::int64_t i = 0; i < copies; ++i) copy(i);
  else
    all_cores().parallel_for(copies, copy);
}

double whole_number(std::uint64_t bits, int most) {
  return static_cast<double>(static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(2 * most + 1)) - most);
}

}  // namespace

void fill_by(DataType type, std::uint64_t seed, std::span<std::byte> data,
             const std::function<double(std::uint64_t)>& number) {
  std::mt19937_64 random(seed);
  const std::int64_t size = size_of(type), elements = static_cast<std::int64_t>(data.size()) / size;
  for (std::int64_t i = 0; i < std::min(elements, period); ++i)
    store_element(type, number(random()), data.data() + i * size);
  repeat(data.first(static_cast<std::size_t>(elements * size)), period * size);
}

double real_number(std::uint64_t bits) {
  return static_cast<double>(static_cast<std::int64_t>(bits >> 11)) * 0x1p-52 - 1;
}

void fill_random(DataType type, int most, std::uint64_t seed, std::span<std::byte> data) {
  fill_by(type, seed, data,
          [most](std::uint64_t bits) { return most > 0 ? whole_number(bits, most) : real_number(bits); });
}

void fill_reals(DataType type, std::span<const std::size_t> factors, std::size_t array, std::uint64_t seed,
                std::span<std::byte> data) {
  const double large = type == DataType::f16 ? 0x1p4 : 0x1p16;
  const double scale = array == factors[0] ? large : array == factors[1] ? 1 / large : 1;
  fill_by(type, seed, data, [scale](std::uint64_t bits) { return scale * real_number(bits); });
}

// Of two such arrays, each of them zero but for one in `sparse_ones` elements, about 2^22 products are not.
ExactIntegers exact_integers(double terms) {
  const double most = std::sqrt(0x1p24 / (terms + 2));
  if (most >= 1) return {static_cast<int>(std::min(most, 8.0)), 1};
  return {1, static_cast<std::int64_t>(std::ceil(std::sqrt(terms / 0x1p22)))};
}

void fill_integers(DataType type, const ExactIntegers& integers, std::uint64_t seed, std::span<std::byte> data) {
  if (integers.sparse_ones == 1) return fill_random(type, integers.most, seed, data);
  const auto sparse = static_cast<std::uint64_t>(integers.sparse_ones);
  fill_by(type, seed, data,
          [&](std::uint64_t bits) { return bits % sparse == 0 ? whole_number(bits / sparse, integers.most) : 0.0; });
}

}  // namespace omniconv::operations
