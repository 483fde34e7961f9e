// Arrays of fp32 numbers for tests of solvers: drawn, measured, and put on a device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/convert.h"
#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "operations/random.h"

namespace omniconv {

inline std::vector<float> randoms(std::int64_t count, std::uint64_t seed, float scale) {
  std::vector<float> values(static_cast<std::size_t>(count));
  operations::fill_random(DataType::f32, 0, seed, std::as_writable_bytes(std::span(values)));
  for (float& value : values) value *= scale;
  return values;
}

inline float largest(const std::vector<float>& values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  return most;
}

// As elements of a type, and back.
inline std::vector<std::byte> stored(const std::vector<float>& values, DataType type) {
  const auto size = static_cast<std::size_t>(size_of(type));
  std::vector<std::byte> bytes(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(type, static_cast<double>(values[i]), bytes.data() + i * size);
  return bytes;
}
inline std::vector<float> loaded(const std::vector<std::byte>& bytes, DataType type) {
  const auto size = static_cast<std::size_t>(size_of(type));
  std::vector<float> values(bytes.size() / size);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(load_element(type, bytes.data() + i * size));
  return values;
}

inline Operand uploaded(const Context& context, Queue& queue, const std::vector<float>& values,
                        DataType type = DataType::f32) {
  const std::vector<std::byte> bytes = stored(values, type);
  const Buffer buffer = context.allocate(static_cast<std::int64_t>(bytes.size()));
  queue.upload(buffer, 0, bytes.data(), buffer.bytes()).wait();
  return Operand{buffer};
}
inline std::vector<float> downloaded(Queue& queue, const Buffer& buffer, DataType type = DataType::f32) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.bytes()));
  queue.download(bytes.data(), buffer, 0, buffer.bytes()).wait();
  return loaded(bytes, type);
}

}  // namespace omniconv
