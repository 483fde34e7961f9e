// What the tests of commands on arrays share: .npy files of small numbers.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "command.h"
#include "core/half.h"
#include "image/formats/npy/npy.h"

namespace omniconv {

class ArrayCommand : public Command {
 protected:
  using Shape = std::vector<std::int64_t>;
  static std::int64_t elements(const Shape& shape) {
    std::int64_t all = 1;
    for (const std::int64_t extent : shape) all *= extent;
    return all;
  }
  // Small integers, others for each seed.
  static std::vector<double> integers(const Shape& shape, int seed) {
    std::vector<double> values(static_cast<std::size_t>(elements(shape)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>((i * 7 + i / 5 + static_cast<std::size_t>(seed)) % 9) - 4;
    return values;
  }
  template <typename T, typename Convert>
  static std::string stored(const std::vector<double>& values, const Convert& convert) {
    std::string bytes(values.size() * sizeof(T), '\0');
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value = convert(values[i]);
      std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
    return bytes;
  }
  static std::string array(DataType type, const Shape& shape, const std::vector<double>& values) {
    std::string file = image::npy_header_text(type, shape);
    if (type == DataType::f64) return file + stored<double>(values, [](double v) { return v; });
    if (type == DataType::f16)
      return file + stored<std::uint16_t>(values, [](double v) { return float_to_half(static_cast<float>(v)); });
    if (type == DataType::s32)
      return file + stored<std::int32_t>(values, [](double v) { return static_cast<std::int32_t>(v); });
    return file + stored<float>(values, [](double v) { return static_cast<float>(v); });
  }
  // The values of a file that must have this type and shape.
  std::vector<double> values_of(const std::string& content, DataType type, const Shape& shape) const {
    const std::string header = image::npy_header_text(type, shape);
    EXPECT_EQ(content.substr(0, header.size()), header);
    const auto size = static_cast<std::size_t>(size_of(type));
    EXPECT_EQ(content.size(), header.size() + static_cast<std::size_t>(elements(shape)) * size);
    std::vector<double> values;
    for (std::size_t at = header.size(); at + size <= content.size(); at += size) {
      double d = 0;
      float f = 0;
      std::uint16_t h = 0;
      std::int32_t i = 0;
      const char* const from = content.data() + at;
      if (type == DataType::f64)
        std::memcpy(&d, from, sizeof d), values.push_back(d);
      else if (type == DataType::f16)
        std::memcpy(&h, from, sizeof h), values.push_back(half_to_float(h));
      else if (type == DataType::s32)
        std::memcpy(&i, from, sizeof i), values.push_back(i);
      else
        std::memcpy(&f, from, sizeof f), values.push_back(f);
    }
    return values;
  }
};

}  // namespace omniconv
