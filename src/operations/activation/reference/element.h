// The reference of activation: an element by itself, in double precision, as the formulas say.
#pragma once

#include "omniconv/activation.h"

namespace omniconv::reference {

double activated(Activation function, double x);
// dx of an element whose result is y.
double activation_gradient(Activation function, double y, double dy);

// relu, which keeps bits: the element `passed` where the one given is above 0 or NaN, else 0.
void choose(DataType type, const std::byte* given, const std::byte* passed, std::byte* to);

}  // namespace omniconv::reference
