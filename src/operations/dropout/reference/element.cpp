#include "operations/dropout/reference/element.h"

#include "core/convert.h"

namespace omniconv::reference {

void dropped(DataType type, const operations::DropoutNumbers& numbers, std::uint32_t word, const std::byte* x,
             std::byte* to) {
  if (word < numbers.threshold) return store_element(type, 0.0, to);
  const double value = load_element(type, x);
  if (type == DataType::f64) return store_element(type, value * numbers.scale, to);
  store_element(type, static_cast<float>(value) * static_cast<float>(numbers.scale), to);
}

}  // namespace omniconv::reference
