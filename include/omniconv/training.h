// Training: a network of a model's layers for a batch, its gradients, and the loop over a data set.
//
//   const Context context({.device = "auto"});
//   Network network(context, load_model("mnist-conv"), {.batch = 64, .trains = true});
//   network.initialise(1);
//   train(network, dataset, {.epochs = 5}, {});
//   Evaluation result = evaluate(network, dataset, dataset.test);
//
// Everything that a step does is recorded once and replayed: forward, loss, backward, and the update of all parameters,
// which lie in one array. docs/training.md says what is computed.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "omniconv/context.h"
#include "omniconv/dataset.h"
#include "omniconv/model.h"
#include "omniconv/update.h"

namespace omniconv {

struct NetworkOptions {
  std::int64_t batch = 64;  // images of a step
  bool trains = true;       // else it has no gradients
  UpdateProblem::Rule rule = UpdateProblem::Rule::sgd;
  bool deterministic = false;  // the same bits in every run
};

// One of a network's operations, as it was planned.
struct NetworkStep {
  std::size_t layer = 0;  // of the model; the number of its layers: the loss and the update
  std::string what;       // "forward", "backward-data", ...
  std::string problem, solver;
};

// A model on a device, for batches of one size: x is batch x c x h x w in f32. Parameters and momenta are 0 at first.
// Not for several threads at once; one that was moved from can only be assigned to and destroyed.
class Network {
 public:
  Network(const Context& context, Model model, const NetworkOptions& options = {});
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const Context& context() const;
  const Model& model() const;
  const NetworkOptions& options() const;
  std::int64_t memory_bytes() const;  // on the device
  const std::vector<NetworkStep>& steps() const;

  // Weights uniform between -b and b, b = sqrt(6 / inputs of one output) (He), biases 0, momenta 0. The same numbers on
  // every device: Philox4x32-10 of the seed, counted by element, 24 bits each.
  void initialise(std::uint64_t seed);
  // Momenta 0, the count of Adam's steps 0, and what stopped the training forgotten; parameters stay. For parameters
  // that are set from elsewhere.
  void reset_optimiser();
  // The parameters of one layer: its weights (outputs x c x rows x columns), then its biases.
  std::vector<float> parameters(std::size_t layer) const;
  void set_parameters(std::size_t layer, const std::vector<float>& values);
  // As the last step found them; of a network that trains.
  std::vector<float> gradients(std::size_t layer) const;

  // Of the update; kept from step to step.
  struct Rates {
    double rate = 0.01, momentum = 0.9, l1 = 0, l2 = 0;
    double clip = std::numeric_limits<double>::infinity();
  };
  // A step on a batch of images, standardised (Standard), and their classes, of which one that the model has not makes
  // the step's gradients NaN. The losses of its images go to `losses`, and what stops the training (UpdateRun::stop) to
  // `stop`, when the event is over; all arrays must stay until then. Where it throws, nothing of it is under way.
  Event step(const float* images, const std::int32_t* labels, const Rates& rates, float* losses, std::int32_t* stop);
  // The last layer's outputs of a batch, batch x classes.
  std::vector<float> outputs(const float* images);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Pixels as numbers of mean 0 and deviation 1 for each channel, of the images for training: (p / 255 - mean) /
// deviation. A channel whose pixels are all alike is 0. Sums are of integers, and so the same everywhere.
struct Standard {
  std::vector<double> mean, deviation;  // of each channel, of p / 255
};
Standard standard_of(const Dataset& dataset);

// Throws where a model cannot learn the set in such batches: other extents, fewer outputs than classes, too few images.
void require_fit(const Model& model, const Dataset& dataset, std::int64_t batch);

struct TrainingOptions {
  std::int64_t epochs = 5;
  Network::Rates rates = {};
  std::uint64_t seed = 1;  // of the order of images
};

struct EpochReport {
  std::int64_t epoch = 0, steps = 0;  // from 1; of an epoch
  double loss = 0;                    // the mean over its images
  double seconds = 0, images_a_second = 0;
};

struct TrainingHooks {
  // Behind each epoch; false stops the training.
  std::function<bool(const EpochReport&)> epoch = {};
  // Now and then, of the epoch at hand; false stops the training.
  std::function<bool(std::int64_t steps_done, std::int64_t all_steps)> progress = {};
};

// Images of an incomplete last batch are left out of an epoch, others in each one. Their order is of the seed and the
// epoch (Philox, Fisher and Yates). Throws environment_error at the first gradient that is not finite, with its step.
void train(Network& network, const Dataset& dataset, const TrainingOptions& options, const TrainingHooks& hooks);

struct Evaluation {
  std::int64_t images = 0, right = 0;
  std::vector<std::int64_t> confusion;  // classes x classes: of which class an image is, and which one was found

  double accuracy() const { return images > 0 ? static_cast<double>(right) / static_cast<double>(images) : 0; }
};
// Every image of `examples`; the class is that of the largest output, the first of equal ones, among the set's classes.
// Throws environment_error where an output is not finite.
Evaluation evaluate(Network& network, const Dataset& dataset, const Examples& examples);

}  // namespace omniconv
