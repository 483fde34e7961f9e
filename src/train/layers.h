// A model's layers as the operations of a step.
#pragma once

#include <vector>

#include "omniconv/model.h"
#include "omniconv/types.h"
#include "train/steps.h"

namespace omniconv::training {

// Of one layer, what lasts: its parameters, their gradients, and the means and variances that a batch_norm keeps.
// Empty where it has none.
struct LayerArrays {
  Operand weights = {}, biases = {}, weight_gradients = {}, bias_gradients = {}, running_mean = {},
          running_variance = {};
};

struct NetworkArrays {
  Operand images = {}, labels = {}, losses = {};  // losses: those of a step, or to which a step's are added
  std::vector<LayerArrays> layers = {};
};

struct LayerOptions {
  std::int64_t batch = 0;
  DataType type = DataType::f32;      // of what passes between layers
  DataType products = DataType::f32;  // type, or tf32
  double loss_scale = 1;              // gradients are of so many times the loss
  std::uint64_t seed = 0;             // of dropout
  Scalar step = 0;                    // which step it is: of dropout
  // Biases and relus are operations of their own, and the losses, which then are those of a step. Else the operation
  // that makes the loss's gradient adds the losses to what is there.
  bool is_unfused = false;
  // Forward alone: filters and biases of a layer before a batch_norm have that in them, and what adds a shortcut that
  // nobody else reads adds it to that.
  bool is_folded = false;
};

// Forward alone, as it is behind the training; the last layer's outputs are kept in `outputs`.
struct Evaluating {
  Steps steps;
  Place outputs;
};
Evaluating evaluating_steps(const Model& model, const LayerOptions& options, const NetworkArrays& arrays);

// Forward, the losses of the images, and backward: the gradients of all parameters.
Steps training_steps(const Model& model, const LayerOptions& options, const NetworkArrays& arrays);

// A batch_norm that filters and biases of the layer before it may have in them.
bool can_fold(const Model& model, std::size_t layer);

// The first layer with parameters: no gradient is asked for before it. The number of layers where none has.
std::size_t first_trained(const Model& model);

}  // namespace omniconv::training
