// What is made of a network's parameters for its runs, where it does not train: filters with the batch_norm behind
// them, and solvers' own forms of filters.
#include <cmath>

#include "core/checked.h"
#include "train/network_state.h"

namespace omniconv {

// w' = w gamma / sqrt(variance + epsilon), b' = (b - mean) gamma / sqrt(variance + epsilon) + beta, in double precision
// and rounded once.
void Network::State::fold(std::size_t layer) {
  const ModelLayer &own = model.layers[layer], &norm = model.layers[layer + 1];
  std::vector<float> values = part_of(layer, &Group::w), of_norm = part_of(layer + 1, &Group::w);
  const auto outputs = static_cast<std::size_t>(own.outputs),
             inputs = static_cast<std::size_t>(own.weights()) / outputs;
  std::vector<float> means(outputs), variances(outputs);
  const std::int64_t at = parts[layer + 1].running, bytes = own.outputs * 4;
  queue.download(means.data(), running, at * 4, bytes).wait();
  queue.download(variances.data(), running, (at + round_up(own.outputs, parameter_alignment)) * 4, bytes).wait();
  std::vector<float> biases(outputs);
  for (std::size_t k = 0; k < outputs; ++k) {
    const double scale = of_norm[k] / std::sqrt(static_cast<double>(variances[k]) + norm.epsilon),
                 bias = own.has_bias ? values[static_cast<std::size_t>(own.weights()) + k] : 0;
    for (std::size_t i = 0; i < inputs; ++i)
      values[k * inputs + i] = static_cast<float>(values[k * inputs + i] * scale);
    biases[k] = static_cast<float>((bias - means[k]) * scale + of_norm[outputs + k]);
  }
  const std::int64_t to = parts[layer].folded;
  queue.upload(folded, to * 4, values.data(), own.weights() * 4).wait();
  queue.upload(folded, (to + round_up(own.weights(), parameter_alignment)) * 4, biases.data(), bytes).wait();
}

void Network::State::follow_parameters() {
  if (options.trains || !is_stale) return;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].folded >= 0) fold(i);
  if (prepare_recording) prepare_recording->replay(queue);
  is_stale = false;
}

}  // namespace omniconv
