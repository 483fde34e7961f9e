// Arrays of numbers on a device, for tests that compute what every element must be.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/convert.h"
#include "omniconv/context.h"
#include "omniconv/plan.h"

namespace omniconv::elements_testing {

// The number of the type that is nearest.
inline double stored(DataType type, double value) {
  std::byte bytes[8];
  store_element(type, value, bytes);
  return load_element(type, bytes);
}
// The same of a sum or product, which is rounded to f32 first where the type is not f64.
inline double computed(DataType type, double value) {
  return type == DataType::f64 ? value : stored(type, stored(DataType::f32, value));
}

// An array that begins so many elements behind its buffer's begin.
inline Operand placed(const Context& context, Queue& queue, DataType type, const std::vector<double>& values,
                      std::int64_t before = 0) {
  const std::int64_t size = size_of(type);
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(type, values[i], bytes.data() + static_cast<std::int64_t>(i) * size);
  const Operand operand{context.allocate(std::ssize(bytes) + before * size), before * size};
  queue.upload(operand.buffer, operand.offset_bytes, bytes.data(), std::ssize(bytes)).wait();
  return operand;
}

inline std::vector<double> taken(Queue& queue, DataType type, const Operand& operand, std::int64_t elements) {
  const std::int64_t size = size_of(type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements * size));
  queue.download(bytes.data(), operand.buffer, operand.offset_bytes, std::ssize(bytes)).wait();
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements; ++i) values.push_back(load_element(type, bytes.data() + i * size));
  return values;
}

// The bits of equal numbers; NaN is any NaN.
inline void expect_bits(const std::vector<double>& found, const std::vector<double>& expected,
                        const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i]) && std::isnan(expected[i])) continue;
    ASSERT_TRUE(found[i] == expected[i] && std::signbit(found[i]) == std::signbit(expected[i]))
        << what << '[' << i << "] is " << found[i] << " and must be " << expected[i];
  }
}

}  // namespace omniconv::elements_testing
