#include "operations/activation/reference/element.h"

#include <cmath>
#include <cstring>

#include "core/convert.h"

namespace omniconv::reference {

double activated(Activation function, double x) {
  switch (function) {
    case Activation::relu: return x <= 0 ? 0 : x;
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::tanh: return std::tanh(x);
  }
  return 0;
}

double activation_gradient(Activation function, double y, double dy) {
  switch (function) {
    case Activation::relu: return y <= 0 ? 0 : dy;
    case Activation::sigmoid: return dy * (y * (1 - y));
    case Activation::tanh: return dy * std::fma(-y, y, 1.0);
  }
  return 0;
}

void choose(DataType type, const std::byte* given, const std::byte* passed, std::byte* to) {
  if (load_element(type, given) <= 0)
    store_element(type, 0.0, to);
  else
    std::memcpy(to, passed, static_cast<std::size_t>(size_of(type)));
}

}  // namespace omniconv::reference
