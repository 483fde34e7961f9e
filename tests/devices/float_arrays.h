// Arrays of fp32 numbers for tests of solvers: drawn, measured, and put on a device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

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

inline Operand uploaded(const Context& context, Queue& queue, const std::vector<float>& values) {
  const Buffer buffer = context.allocate(static_cast<std::int64_t>(values.size() * 4));
  queue.upload(buffer, 0, values.data(), buffer.bytes()).wait();
  return Operand{buffer};
}

}  // namespace omniconv
