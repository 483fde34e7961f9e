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
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/context.h"
#include "omniconv/dataset.h"
#include "omniconv/model.h"
#include "omniconv/update.h"

namespace omniconv {

// f32: all of it. tf32: its products by TF32 units, if the device has them. bf16, f16: what passes between layers,
// products and their gradients; parameters and their updates stay f32, and so do batch_norm's. Gradients of f16 are
// those of 128 times the loss, so that small ones are not lost below f16's range; the update divides them.
enum class Precision : std::uint8_t { f32, tf32, bf16, f16 };

// Which kernels compute, as docs/study.md has them. The first three are those of a classic study of OpenCL kernels, on
// OpenCL and CUDA devices, in f32, a launch for each function: naive, through tiles in local memory, and with several
// results a work item. Where an operation has no such kernels our own serves. vendor: convolutions by cuDNN, on CUDA.
enum class Rung : std::uint8_t { naive, tiled, work_per_thread, own, vendor };
std::string_view name(Rung rung);  // "work-per-thread"

struct RungOptions {
  Rung rung = Rung::own;
  // Of tiled and work_per_thread: results of a group of work items, 4, 8, 16, 32 or 64 each way.
  std::int64_t tile_rows = 16, tile_columns = 16;
  std::int64_t work_per_thread = 4;  // results of a work item: 1, 2, 4 or 8
};

struct NetworkOptions {
  std::int64_t batch = 64;  // images of a step
  // Else it has no gradients, filters in their solvers' own forms and, of f32, batch_norms in the filters before them.
  bool trains = true;
  UpdateProblem::Rule rule = UpdateProblem::Rule::sgd;
  bool clips_norm = false;     // steps clip the gradient of all parameters by its norm: Network::Rates::clip_norm
  bool deterministic = false;  // the same bits in every run
  Precision precision = Precision::f32;
  std::uint64_t seed = 1;  // of dropout
  // Of an operation by its name ("conv2d"), or of one problem by its text: a solver's id, or what it begins with.
  std::map<std::string, std::string> solvers = {};
  RungOptions rungs = {};  // of operations whose solver is not named
};

// One of a network's operations, as it was planned.
struct NetworkStep {
  std::size_t layer = 0;  // of the model; the number of its layers: the loss, the norm and the update
  std::string what;       // "forward", "backward-data", ...
  std::string problem, solver;
};

// Numbers of a network by their name: "layers.3.weight", "layers.3.bias", of batch_norm "layers.4.running_mean" and
// "layers.4.running_var"; of the optimiser "momentum.layers.3.weight" and of adam "second_moment.layers.3.weight".
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> extents;
  std::vector<float> values;
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

  // All that steps change, of a network that trains the optimiser's too; the values are there when the event is over,
  // and `to` stays until then.
  Event read_tensors(std::vector<NamedTensor>& to) const;
  // Of some of them; the others stay. Throws for a name or extents that it has not, and then has changed nothing.
  void set_tensors(const std::vector<NamedTensor>& tensors);
  // How many steps it has taken: of Adam and of dropout.
  std::int64_t updates() const;
  void set_updates(std::int64_t updates);

  // Seconds that each of steps() takes by itself, the mean of several runs, of which each is made `at_once` times in
  // one submission. It changes parameters and all else: for the end.
  std::vector<double> measure(int at_once = 8);

  // Of the update; kept from step to step.
  struct Rates {
    double rate = 0.01, momentum = 0.9, l1 = 0, l2 = 0;
    double clip = std::numeric_limits<double>::infinity();  // the largest magnitude of a gradient's number
    // The largest 2-norm of the gradient of all parameters, before that; for networks that clip norms.
    double clip_norm = std::numeric_limits<double>::infinity();
  };
  // A step on a batch of images, standardised (Standard), and their classes, of which one that the model has not makes
  // the step's gradients NaN. Parameters whose gradient is not finite keep their values. The losses of its images go to
  // `losses`, and what stops the training (UpdateRun::stop) to `stop`, when the event is over; all arrays must stay
  // until then. Where it throws, nothing of it is under way. Not from hooks of train(), whose sums of losses are lost
  // by it.
  Event step(const float* images, const std::int32_t* labels, const Rates& rates, float* losses, std::int32_t* stop);
  // The last layer's outputs of a batch, batch x classes.
  std::vector<float> outputs(const float* images);

  struct State;  // its inside, of the library alone
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// The set's own, or that of its images for training. Sums are of integers, and so the same everywhere.
Standard standard_of(const Dataset& dataset);

// Throws where a model cannot learn the set in such batches: other extents, fewer outputs than classes, too few images
// beside those for validation.
void require_fit(const Model& model, const Dataset& dataset, std::int64_t batch, std::int64_t validation = 0);

// How the learning rate goes over the steps of a training: it rises from nothing in the first `warm_up` epochs, and
// then
//   constant   stays
//   step       is multiplied by `factor` every `every` epochs
//   cosine     falls to `least` times itself as half a cosine
struct Schedule {
  enum class Kind : std::uint8_t { constant, step, cosine };

  Kind kind = Kind::constant;
  double warm_up = 0, every = 1, factor = 0.1, least = 0;
};
// "cosine", "cosine:0.01", "step:30,0.1", "constant"; before it "warm-up:5,". Throws with what it says.
Schedule parse_schedule(std::string_view text);
// Of step `step`, counted from 0, of `steps` an epoch and `epochs` of them.
double rate_at(const Schedule& schedule, double rate, std::int64_t step, std::int64_t steps, std::int64_t epochs);

// What happens to images of the training, anew in each epoch.
struct Augmentation {
  bool flip = false;       // left to right, every second one
  std::int64_t shift = 0;  // up to so many pixels in each direction, as a crop of the image within a black border
};

struct TrainingOptions {
  std::int64_t epochs = 5;
  Network::Rates rates = {};
  Schedule schedule = {};
  std::uint64_t seed = 1;       // of the order of images, of those for validation, and of the augmentation
  std::int64_t validation = 0;  // so many images of those for training are kept apart, and looked at after each epoch
  std::int64_t early_stop = 0;  // epochs without a better validation accuracy after which it ends; 0: never
  Augmentation augmentation = {};
  std::int64_t checkpoint_every = 0;  // steps; 0: at the end of each epoch
  std::int64_t chunk = 0;             // chunk_images()
};

struct EpochReport {
  std::int64_t epoch = 0, steps = 0;  // from 1; of an epoch
  double loss = 0;                    // the mean over its images
  double rate = 0;                    // of its last step
  double seconds = 0, images_a_second = 0;
  std::int64_t validation_images = 0;
  double validation_loss = 0, validation_accuracy = 0;
};

// Where a training is: `step` steps of epoch `epoch` are done. All that comes after follows from it, from the network's
// tensors and updates, and from `losses`, the sums of the epoch's losses until then.
struct TrainingProgress {
  std::int64_t epoch = 1, step = 0, updates = 0;
  std::vector<float> losses = {};
  std::vector<EpochReport> epochs = {};  // those that are over
};

struct TrainingHooks {
  // Behind each epoch; false stops the training.
  std::function<bool(const EpochReport&)> epoch = {};
  // Now and then, of the epoch at hand; false stops the training.
  std::function<bool(std::int64_t steps_done, std::int64_t all_steps)> progress = {};
  // At each checkpoint, and where the training is stopped: what a later one needs to go on.
  std::function<void(const TrainingProgress&, std::vector<NamedTensor>&&)> checkpoint = {};
};

// So many images of a part of a set are brought to the device at a time, in the order in which they are needed, while
// it works on those before; 0: all lie there. The bits do not depend on it. `chunk` asks for a number, of which whole
// batches are taken; with 0 all lie there if the device's memory has room for them beside the network. Throws where a
// chunk holds no batch.
std::int64_t chunk_images(const Network& network, const Examples& examples, std::int64_t chunk = 0);

// Images of an incomplete last batch are left out of an epoch, others in each one. Their order is of the seed and the
// epoch (Philox, Fisher and Yates). Throws environment_error at the first number that is not finite, with its step and
// layer; parameters whose gradient was finite in that step are those behind it then, the others those before it, so
// that they are of no use: no hook saw them, and the last checkpoint has those of an earlier step. `begin` is what a
// checkpoint had; the network has its tensors and updates then.
void train(Network& network, const Dataset& dataset, const TrainingOptions& options, const TrainingHooks& hooks,
           const TrainingProgress& begin = {});

struct Evaluation {
  std::int64_t images = 0, right = 0;
  double loss = 0;                      // the mean of their cross entropies
  std::vector<std::int64_t> confusion;  // classes x classes: of which class an image is, and which one was found

  double accuracy() const { return images > 0 ? static_cast<double>(right) / static_cast<double>(images) : 0; }
};
// Every image of `examples`; the class is that of the largest output, the first of equal ones, among the set's classes.
// Throws environment_error where an output is not finite. chunk: chunk_images().
Evaluation evaluate(Network& network, const Dataset& dataset, const Examples& examples, std::int64_t chunk = 0);

}  // namespace omniconv
