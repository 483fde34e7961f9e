#include "operations/activation/reference/element.h"

#include <cmath>

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

}  // namespace omniconv::reference
