// A model's layers as plans on a device, and a step as one recorded sequence.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "core/checked.h"
#include "core/philox.h"
#include "omniconv/activation.h"
#include "omniconv/bias_add.h"
#include "omniconv/conv2d.h"
#include "omniconv/error.h"
#include "omniconv/loss.h"
#include "omniconv/pool2d.h"
#include "omniconv/training.h"

namespace omniconv {
namespace {

using Kind = ModelLayer::Kind;

// Elements of an array of all parameters between the begins of two layers' arrays: 256 bytes.
constexpr std::int64_t alignment = 64;

// Where a layer's weights and biases are among all parameters.
struct Place {
  std::int64_t weights = 0, biases = 0;
};

Conv2dProblem convolution_of(const ModelLayer& layer, std::int64_t batch, Pass pass) {
  Conv2dProblem p;
  p.pass = pass;
  p.n = batch, p.c = layer.in.channels, p.h = layer.in.height, p.w = layer.in.width;
  p.k = layer.outputs, p.r = layer.rows, p.s = layer.columns;
  p.pad_top = p.pad_bottom = p.pad_left = p.pad_right = layer.pad;
  p.stride_h = layer.stride_h, p.stride_w = layer.stride_w;
  p.bias = pass == Pass::forward;
  return p;
}
ActivationProblem activation_of(const ModelLayer& layer, std::int64_t batch, bool backward) {
  const Activation function = layer.kind == Kind::relu      ? Activation::relu
                              : layer.kind == Kind::sigmoid ? Activation::sigmoid
                                                            : Activation::tanh;
  ActivationProblem p;
  p.function = function, p.backward = backward;
  p.n = batch, p.c = layer.out.channels, p.h = layer.out.height, p.w = layer.out.width;
  return p;
}
Pool2dProblem pooling_of(const ModelLayer& layer, std::int64_t batch, bool backward) {
  Pool2dProblem p;
  p.pooling = layer.kind == Kind::max_pool ? Pooling::maximum : Pooling::average;
  p.backward = backward;
  p.n = batch, p.c = layer.in.channels, p.h = layer.in.height, p.w = layer.in.width;
  p.r = layer.rows, p.s = layer.columns, p.stride_h = layer.stride_h, p.stride_w = layer.stride_w;
  return p;
}

// One of the operations of a step: its plan, appended when the workspace that all of them share is there.
struct Operation {
  std::int64_t workspace_bytes = 0;
  std::function<void(Sequence&, const Buffer& shared)> append;
};

}  // namespace

struct Network::State {
  State(const Context& of, Model given, const NetworkOptions& asked)
      : context(of), model(std::move(given)), options(asked), queue(context.make_queue({.timing = false})) {
    if (options.batch < 1) throw bad_input(fmt::format("a batch of {} images: must be at least 1", options.batch));
    place_parameters();
    require_memory();
    allocate_arrays();
    for (const Buffer& buffer : {w, g, m, v, stop}) zero(buffer);
    for (std::size_t i = 0; i < model.layers.size(); ++i) add_forward(i);
    const std::size_t of_forward = operations.size();
    if (options.trains) {
      add_loss();
      for (std::size_t i = model.layers.size(); i-- > first_trained;) add_backward(i);
      add_update();
    }
    std::int64_t most = 1;
    for (const Operation& operation : operations) most = std::max(most, operation.workspace_bytes);
    workspace = allocate(most);
    forward = recorded(of_forward);
    if (options.trains) training = recorded(operations.size());
  }

  Buffer allocate(std::int64_t bytes) {
    memory_bytes = checked_add(memory_bytes, bytes, "the network's memory");
    return context.allocate(bytes);
  }
  std::int64_t bytes_of(const ModelShape& shape) const {
    return checked_multiply(checked_multiply(options.batch, shape.elements(), "a batch's layer"), 4, "a batch's layer");
  }
  bool is_fused(std::size_t i) const {  // into the layer before it
    return i > 0 && model.layers[i].kind == Kind::relu && model.layers[i - 1].has_parameters();
  }

  void place_parameters() {
    first_trained = model.layers.size();
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const ModelLayer& layer = model.layers[i];
      places.push_back({parameters, parameters + round_up(layer.weights(), alignment)});
      if (!layer.has_parameters()) continue;
      first_trained = std::min(first_trained, i);
      parameters = checked_add(places.back().biases, round_up(layer.outputs, alignment), "the model's parameters");
    }
    if (parameters == 0) throw bad_input(fmt::format("{}: no layer has parameters", model.name));
  }

  bool has_gradient(std::size_t i) const { return options.trains && i >= first_trained; }
  bool has_output(std::size_t i) const { return i + 1 == model.layers.size() || !is_fused(i + 1); }

  // Before anything is allocated: what parameters and a batch take, but for the workspace, beside the device's memory.
  void require_memory() const {
    const char* const what = "the network's memory";
    const std::int64_t arrays = !options.trains ? 1 : options.rule == UpdateProblem::Rule::adam ? 4 : 3;
    std::int64_t of_image = model.input.elements() + (options.trains ? 2 : 0);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const ModelLayer& layer = model.layers[i];
      const int times = has_output(i) + has_gradient(i) + (layer.kind == Kind::max_pool);
      of_image = checked_add(of_image, checked_multiply(times, layer.out.elements(), what), what);
    }
    const std::int64_t fixed = checked_multiply(parameters, 4 * arrays, what), has = context.device().memory_bytes,
                       image = checked_multiply(of_image, 4, what),
                       needed = checked_add(fixed, checked_multiply(image, options.batch, what), what);
    if (needed <= has) return;
    const std::string mend = fixed + image > has ? "not even one image fits"
                                                 : fmt::format("a batch of {} images fits", (has - fixed) / image);
    throw out_of_memory(fmt::format("{} in batches of {} images takes {} bytes and a workspace, and {} has {}: {}",
                                    model.name, options.batch, needed, context.device().id, has, mend));
  }

  void allocate_arrays() {
    const std::int64_t bytes = parameters * 4;
    images = allocate(bytes_of(model.input));
    w = allocate(bytes);
    outputs.resize(model.layers.size()), gradients.resize(model.layers.size()), indices.resize(model.layers.size());
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const ModelLayer& layer = model.layers[i];
      const std::int64_t own = bytes_of(layer.out);
      if (has_output(i)) outputs[i] = allocate(own);
      if (layer.kind == Kind::max_pool) indices[i] = allocate(own);
      if (has_gradient(i)) gradients[i] = allocate(own);
    }
    if (!options.trains) return;
    labels = allocate(options.batch * 4), losses = allocate(options.batch * 4), stop = allocate(4);
    g = allocate(bytes), m = allocate(bytes);
    if (options.rule == UpdateProblem::Rule::adam) v = allocate(bytes);
  }

  // What a layer reads.
  const Buffer& input_of(std::size_t i) const { return i == 0 ? images : outputs[i - 1]; }

  template <typename Plan, typename Problem, typename Run>
  void add(std::size_t layer, const char* what, const Problem& problem, Run run) {
    const Plan plan(context, problem, {.deterministic = options.deterministic});
    steps.push_back({layer, what, to_text(problem), plan.solver()});
    operations.push_back({plan.workspace_bytes(), [plan, run](Sequence& sequence, const Buffer& shared) mutable {
                            run.workspace = shared;
                            plan.append(sequence, run);
                          }});
  }

  void add_forward(std::size_t i) {
    const ModelLayer& layer = model.layers[i];
    if (is_fused(i)) return;
    if (layer.has_parameters()) {
      const bool has_relu = i + 1 < model.layers.size() && is_fused(i + 1);
      Conv2dProblem problem = convolution_of(layer, options.batch, Pass::forward);
      problem.relu = has_relu;
      add<Conv2dPlan>(i, "forward", problem,
                      Conv2dRun{.x = {input_of(i)},
                                .w = {w, places[i].weights * 4},
                                .y = {has_relu ? outputs[i + 1] : outputs[i]},
                                .bias = {w, places[i].biases * 4}});
    } else if (layer.kind == Kind::max_pool || layer.kind == Kind::average_pool) {
      Pool2dRun run{.x = {input_of(i)}, .y = {outputs[i]}};
      if (layer.kind == Kind::max_pool) run.indices = {indices[i]};
      add<Pool2dPlan>(i, "forward", pooling_of(layer, options.batch, false), run);
    } else {
      add<ActivationPlan>(i, "forward", activation_of(layer, options.batch, false),
                          ActivationRun{.x = {input_of(i)}, .y = {outputs[i]}});
    }
  }

  void add_loss() {
    LossProblem problem;
    problem.n = options.batch, problem.c = model.classes();
    const std::size_t behind = model.layers.size();
    add<LossPlan>(behind, "loss", problem, LossRun{.x = {outputs.back()}, .labels = {labels}, .y = {losses}});
    problem.backward = true;
    add<LossPlan>(behind, "loss, backward", problem,
                  LossRun{.x = {outputs.back()},
                          .labels = {labels},
                          .dx = {gradients.back()},
                          .scale = 1.0 / static_cast<double>(options.batch)});
  }

  void add_backward(std::size_t i) {
    const ModelLayer& layer = model.layers[i];
    const bool goes_on = i > first_trained;
    const Operand dy{gradients[i]}, dx = goes_on ? Operand{gradients[i - 1]} : Operand{};
    if (layer.has_parameters()) {
      BiasAddProblem bias;
      bias.backward = true;
      bias.n = options.batch, bias.c = layer.out.channels, bias.h = layer.out.height, bias.w = layer.out.width;
      add<BiasAddPlan>(i, "backward-bias", bias, BiasAddRun{.b = {g, places[i].biases * 4}, .y = dy});
      add<Conv2dPlan>(i, "backward-filter", convolution_of(layer, options.batch, Pass::backward_filter),
                      Conv2dRun{.x = {input_of(i)}, .w = {g, places[i].weights * 4}, .y = dy});
      if (goes_on)
        add<Conv2dPlan>(i, "backward-data", convolution_of(layer, options.batch, Pass::backward_data),
                        Conv2dRun{.x = dx, .w = {w, places[i].weights * 4}, .y = dy});
    } else if (goes_on && (layer.kind == Kind::max_pool || layer.kind == Kind::average_pool)) {
      Pool2dRun run{.x = dx, .y = dy};
      if (layer.kind == Kind::max_pool) run.indices = {indices[i]};
      add<Pool2dPlan>(i, "backward-data", pooling_of(layer, options.batch, true), run);
    } else if (goes_on) {
      add<ActivationPlan>(i, "backward-data", activation_of(layer, options.batch, true),
                          ActivationRun{.x = dx, .y = {outputs[i]}, .dy = dy});
    }
  }

  void add_update() {
    UpdateProblem problem;
    problem.rule = options.rule, problem.guarded = true, problem.n = parameters;
    UpdateRun run{.g = {g}, .w = {w}, .m = {m}, .stop = {stop}};
    if (options.rule == UpdateProblem::Rule::adam) run.v = {v};
    run.rate = rate, run.l1 = l1, run.l2 = l2, run.clip = clip, run.momentum = momentum;
    run.correction1 = correction1, run.correction2 = correction2;
    add<UpdatePlan>(model.layers.size(), "update", problem, run);
  }

  Recording recorded(std::size_t count) const {
    Sequence sequence = context.make_sequence();
    for (std::size_t i = 0; i < count; ++i) operations[i].append(sequence, workspace);
    return context.record(std::move(sequence));
  }

  void zero(const Buffer& buffer) {
    if (!buffer) return;
    constexpr std::int64_t at_once = 1 << 22;
    const std::vector<std::byte> zeros(static_cast<std::size_t>(std::min(buffer.bytes(), at_once)));
    for (std::int64_t at = 0; at < buffer.bytes(); at += at_once)
      queue.upload(buffer, at, zeros.data(), std::min(buffer.bytes() - at, at_once)).wait();
  }
  // What is under way reads and writes the caller's arrays: an error that leaves them waits for it.
  template <typename Work>
  auto settled(const Work& work) {
    try {
      return work();
    } catch (...) {
      try {
        queue.finish();
      } catch (const std::exception&) {  // the first error is thrown
      }
      throw;
    }
  }
  const ModelLayer& layer_at(std::size_t layer) const {
    if (layer >= model.layers.size())
      throw bad_input(fmt::format("layer {}: {} has layers 0 to {}", layer, model.name, model.layers.size() - 1));
    return model.layers[layer];
  }
  std::vector<float> part_of(const Buffer& all, std::size_t layer) {
    const ModelLayer& own = layer_at(layer);
    std::vector<float> values(static_cast<std::size_t>(own.parameters()));
    if (values.empty()) return values;
    queue.download(values.data(), all, places[layer].weights * 4, own.weights() * 4).wait();
    queue.download(values.data() + own.weights(), all, places[layer].biases * 4, own.outputs * 4).wait();
    return values;
  }

  Context context;
  Model model;
  NetworkOptions options;
  Queue queue;
  std::int64_t parameters = 0, memory_bytes = 0, updates = 0;  // parameters: elements of their array
  std::size_t first_trained = 0;  // the first layer with parameters: no gradient is asked for before it
  std::vector<Place> places;
  Buffer images, labels, w, g, m, v, losses, stop, workspace;
  std::vector<Buffer> outputs, gradients, indices;  // of each layer; gradients are of its output
  Scalar rate = Scalar::changing(0), momentum = Scalar::changing(0), l1 = Scalar::changing(0), l2 = Scalar::changing(0),
         clip = Scalar::changing(0), correction1 = Scalar::changing(1), correction2 = Scalar::changing(1);
  std::vector<Operation> operations;
  std::vector<NetworkStep> steps;
  Recording forward, training;
};

Network::Network(const Context& context, Model model, const NetworkOptions& options)
    : state_(std::make_unique<State>(context, std::move(model), options)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

const Context& Network::context() const {
  return state_->context;
}
const Model& Network::model() const {
  return state_->model;
}
const NetworkOptions& Network::options() const {
  return state_->options;
}
std::int64_t Network::memory_bytes() const {
  return state_->memory_bytes;
}
const std::vector<NetworkStep>& Network::steps() const {
  return state_->steps;
}

void Network::initialise(std::uint64_t seed) {
  State& s = *state_;
  reset_optimiser();
  for (std::size_t i = 0; i < s.model.layers.size(); ++i) {
    const ModelLayer& layer = s.model.layers[i];
    if (!layer.has_parameters()) continue;
    const std::int64_t inputs = layer.in.channels * layer.rows * layer.columns;
    const double bound = std::sqrt(6.0 / static_cast<double>(inputs));
    PhiloxStream stream(seed, PhiloxUse::weights, static_cast<std::uint32_t>(i));
    std::vector<float> values(static_cast<std::size_t>(layer.parameters()), 0);
    for (std::int64_t k = 0; k < layer.weights(); ++k) {
      const double unit = static_cast<double>(stream.word(static_cast<std::uint64_t>(k)) >> 8) * 0x1p-23 - 1;
      values[static_cast<std::size_t>(k)] = static_cast<float>(unit * bound);
    }
    set_parameters(i, values);
  }
}

void Network::reset_optimiser() {
  State& s = *state_;
  for (const Buffer& buffer : {s.m, s.v, s.stop}) s.zero(buffer);
  s.updates = 0;
}

std::vector<float> Network::parameters(std::size_t layer) const {
  return state_->part_of(state_->w, layer);
}
std::vector<float> Network::gradients(std::size_t layer) const {
  if (!state_->options.trains) throw bad_input("a network that does not train has no gradients");
  return state_->part_of(state_->g, layer);
}
void Network::set_parameters(std::size_t layer, const std::vector<float>& values) {
  State& s = *state_;
  const ModelLayer& own = s.layer_at(layer);
  if (static_cast<std::int64_t>(values.size()) != own.parameters())
    throw bad_input(fmt::format("layer {} ({}) has {} parameters, and {} are given", layer, own.text(),
                                own.parameters(), values.size()));
  if (values.empty()) return;
  s.queue.upload(s.w, s.places[layer].weights * 4, values.data(), own.weights() * 4).wait();
  s.queue.upload(s.w, s.places[layer].biases * 4, values.data() + own.weights(), own.outputs * 4).wait();
}

Event Network::step(const float* images, const std::int32_t* labels, const Rates& rates, float* losses,
                    std::int32_t* stop) {
  State& s = *state_;
  if (!s.options.trains) throw bad_input("a network that does not train takes no steps");
  ++s.updates;
  s.rate.set(rates.rate), s.momentum.set(rates.momentum), s.l1.set(rates.l1), s.l2.set(rates.l2),
      s.clip.set(rates.clip);
  if (s.options.rule == UpdateProblem::Rule::adam) {
    const AdamCorrections corrections = adam_corrections(s.updates);
    s.correction1.set(corrections.first), s.correction2.set(corrections.second);
  }
  return s.settled([&] {
    s.queue.upload(s.images, 0, images, s.images.bytes());
    s.queue.upload(s.labels, 0, labels, s.labels.bytes());
    s.training.replay(s.queue);
    s.queue.download(losses, s.losses, 0, s.losses.bytes());
    return s.queue.download(stop, s.stop, 0, 4);
  });
}

std::vector<float> Network::outputs(const float* images) {
  State& s = *state_;
  std::vector<float> values(static_cast<std::size_t>(s.options.batch * s.model.classes()));
  s.settled([&] {
    s.queue.upload(s.images, 0, images, s.images.bytes());
    s.forward.replay(s.queue);
    s.queue.download(values.data(), s.outputs.back(), 0, s.outputs.back().bytes()).wait();
  });
  return values;
}

}  // namespace omniconv
