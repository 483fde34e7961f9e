// The reference of activation: an element by itself, in double precision, as the formulas say.
#pragma once

#include "omniconv/activation.h"

namespace omniconv::reference {

double activated(Activation function, double x);
// dx of an element whose result is y.
double activation_gradient(Activation function, double y, double dy);

}  // namespace omniconv::reference
