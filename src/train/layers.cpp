#include "train/layers.h"

#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "omniconv/activation.h"
#include "omniconv/add.h"
#include "omniconv/batch_norm.h"
#include "omniconv/bias_add.h"
#include "omniconv/conv2d.h"
#include "omniconv/dropout.h"
#include "omniconv/loss.h"
#include "omniconv/pool2d.h"

namespace omniconv::training {
namespace {

using Kind = ModelLayer::Kind;

// Whether a later layer adds what this one gives.
bool is_marked(const Model& model, std::size_t i) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [i](const ModelLayer& other) { return other.kind == Kind::add && other.from == i; });
}

// Adds the operations of one direction after the other.
class Layers {
 public:
  Layers(const Model& model, const LayerOptions& options, const NetworkArrays& arrays, bool trains)
      : model_(model),
        options_(options),
        arrays_(arrays),
        trains_(trains),
        is_made_(model.layers.size()),
        outputs_(model.layers.size()),
        gradients_(model.layers.size()),
        kept_(model.layers.size()) {}

  Place forward() {
    for (std::size_t i = 0; i < model_.layers.size(); ++i) add_forward(i);
    return outputs_.back();
  }
  void backward() {
    add_loss();
    const std::size_t first = first_trained(model_);
    for (std::size_t i = model_.layers.size(); i-- > first;) {
      add_shortcuts(i);
      add_backward(i, i > first);
    }
  }
  Steps steps() { return std::move(steps_); }

 private:
  // What a forward pass leaves for the backward one, beside its output.
  struct Kept {
    Place indices = {};                       // of max_pool
    Place mean = {}, inverse_deviation = {};  // of batch_norm
  };

  const ModelLayer& layer(std::size_t i) const { return model_.layers[i]; }
  // A relu that the layer before it computes with its own output.
  bool is_fused(std::size_t i) const {
    if (options_.is_unfused || i == 0 || i == model_.layers.size() || layer(i).kind != Kind::relu) return false;
    const ModelLayer& before = layer(i - 1);
    return (before.has_parameters() || before.kind == Kind::add) && !is_marked(model_, i - 1);
  }
  bool is_folded(std::size_t i) const { return options_.is_folded && can_fold(model_, i); }
  // An add that the filters of layer i, whose work ends just before it, add to the shortcut where that lies.
  bool is_added_in_place(std::size_t add, std::size_t i) const {
    if (!options_.is_folded || add == model_.layers.size() || layer(add).kind != Kind::add) return false;
    const ModelLayer& own = layer(add);
    const std::size_t shortcut = outputs_[own.from].passing;
    const auto reads_it = [&](std::size_t later) {
      return layer(later).kind == Kind::add && layer(later).from < add &&
             outputs_[layer(later).from].passing == shortcut;
    };
    if (is_marked(model_, add - 1) || own.stride_h != 1 || layer(own.from).out.channels != own.out.channels ||
        shortcut == Place::none || shortcut == input_of(i).passing)
      return false;
    for (std::size_t later = add + 1; later < model_.layers.size(); ++later)
      if (reads_it(later)) return false;
    return true;
  }
  Place array(const ModelShape& shape, DataType type) {
    return steps_.passing(checked_multiply(checked_multiply(options_.batch, shape.elements(), "a batch's layer"),
                                           size_of(type), "a batch's layer"));
  }
  Place array(const ModelShape& shape) { return array(shape, options_.type); }
  static Place lasting(const Operand& operand) { return {.lasting = operand}; }
  Place input_of(std::size_t i) const { return i == 0 ? lasting(arrays_.images) : outputs_[i - 1]; }
  void add(std::size_t i, const char* what, const Problem& problem, std::vector<NamedPlace> arrays,
           std::vector<NamedScalar> scalars = {}) {
    steps_.add({i, what, problem, std::move(arrays), std::move(scalars)});
  }
  template <typename Extents>
  void set_extents(Extents& problem, const ModelShape& shape) const {
    problem.n = options_.batch, problem.c = shape.channels, problem.h = shape.height, problem.w = shape.width;
    problem.type = options_.type;
  }

  Conv2dProblem convolution(const ModelLayer& own, Pass pass) const {
    Conv2dProblem p;
    p.pass = pass;
    set_extents(p, own.in);
    p.type = options_.products;
    p.k = own.outputs, p.r = own.rows, p.s = own.columns;
    p.pad_top = p.pad_bottom = p.pad_left = p.pad_right = own.pad;
    p.stride_h = own.stride_h, p.stride_w = own.stride_w;
    return p;
  }
  ActivationProblem activation(const ModelLayer& own, bool backward) const {
    ActivationProblem p;
    p.function = own.kind == Kind::sigmoid ? Activation::sigmoid
                 : own.kind == Kind::tanh  ? Activation::tanh
                                           : Activation::relu;
    p.backward = backward;
    set_extents(p, own.out);
    return p;
  }
  Pool2dProblem pooling(const ModelLayer& own, bool backward) const {
    Pool2dProblem p;
    p.pooling = own.kind == Kind::max_pool ? Pooling::maximum : Pooling::average;
    p.backward = backward;
    set_extents(p, own.in);
    p.r = own.rows, p.s = own.columns, p.stride_h = own.stride_h, p.stride_w = own.stride_w;
    return p;
  }
  AddProblem addition(const ModelLayer& own, bool backward) const {
    const ModelShape& from = layer(own.from).out;
    AddProblem p;
    p.backward = backward;
    set_extents(p, from);
    p.k = own.out.channels, p.stride = own.stride_h;
    return p;
  }

  void add_forward(std::size_t i) {
    const ModelLayer& own = layer(i);
    if (is_made_[i] || is_fused(i) || is_folded(i)) return;
    if (own.kind == Kind::dropout && !trains_) {
      outputs_[i] = input_of(i);
      return;
    }
    if (own.kind == Kind::convolution || own.kind == Kind::dense) return add_filters(i);
    const bool has_relu = is_fused(i + 1);
    const Place x = input_of(i), y = array(own.out);
    outputs_[has_relu ? i + 1 : i] = y;
    switch (own.kind) {
      case Kind::batch_norm: return add_batch_norm(i, x, y, has_relu);
      case Kind::max_pool:
      case Kind::average_pool: {
        std::vector<NamedPlace> places = {{"x", x}, {"y", y}};
        if (own.kind == Kind::max_pool) places.push_back({"indices", kept_[i].indices = array(own.out, DataType::s32)});
        return add(i, "forward", pooling(own, false), places);
      }
      case Kind::dropout: return add_dropout(i, "forward", x, y);
      case Kind::add: {
        AddProblem problem = addition(own, false);
        problem.relu = has_relu;
        return add(i, "forward", problem, {{"x", x}, {"s", outputs_[own.from]}, {"y", y}});
      }
      default: return add(i, "forward", activation(own, false), {{"x", x}, {"y", y}});
    }
  }

  // With the layers behind that it computes, too.
  void add_filters(std::size_t i) {
    const ModelLayer& own = layer(i);
    const LayerArrays& lasts = arrays_.layers[i];
    const bool has_own_bias = options_.is_unfused && own.has_bias;
    std::size_t last = is_folded(i + 1) ? i + 1 : i;
    Conv2dProblem problem = convolution(own, Pass::forward);
    problem.bias = (own.has_bias || last > i) && !has_own_bias;
    problem.accumulate = is_added_in_place(last + 1, i);
    const Place y = problem.accumulate ? outputs_[layer(last + 1).from] : array(own.out),
                sums = has_own_bias ? array(own.out) : y;
    if (problem.accumulate) ++last;
    problem.relu = is_fused(last + 1);
    if (problem.relu) ++last;
    outputs_[last] = y;
    for (std::size_t made = i; made <= last; ++made) is_made_[made] = true;
    std::vector<NamedPlace> places = {{"x", input_of(i)}, {"w", lasting(lasts.weights)}, {"y", sums}};
    if (problem.bias) places.push_back({"bias", lasting(lasts.biases)});
    add(i, "forward", problem, places);
    if (!has_own_bias) return;
    BiasAddProblem bias;
    set_extents(bias, own.out);
    add(i, "forward-bias", bias, {{"x", sums}, {"b", lasting(lasts.biases)}, {"y", y}});
  }

  void add_batch_norm(std::size_t i, const Place& x, const Place& y, bool has_relu) {
    const ModelLayer& own = layer(i);
    const LayerArrays& lasts = arrays_.layers[i];
    BatchNormProblem problem;
    set_extents(problem, own.out);
    problem.relu = has_relu;
    std::vector<NamedPlace> places = {{"x", x},
                                      {"gamma", lasting(lasts.weights)},
                                      {"beta", lasting(lasts.biases)},
                                      {"running_mean", lasting(lasts.running_mean)},
                                      {"running_var", lasting(lasts.running_variance)},
                                      {"y", y}};
    if (!trains_) {
      problem.pass = BatchNormProblem::Pass::inference;
      return add(i, "forward", problem, places, {{"epsilon", own.epsilon}});
    }
    const std::int64_t bytes = own.outputs * 4;
    places.push_back({"mean", kept_[i].mean = steps_.passing(bytes)});
    places.push_back({"invstd", kept_[i].inverse_deviation = steps_.passing(bytes)});
    add(i, "forward", problem, places, {{"epsilon", own.epsilon}, {"momentum", own.momentum}});
  }

  void add_dropout(std::size_t i, const char* what, const Place& x, const Place& y) {
    DropoutProblem problem;
    problem.type = options_.type;
    problem.n = options_.batch * layer(i).out.elements();
    const auto word = [&](int i_th) { return static_cast<double>(options_.seed >> 32 * i_th & 0xFFFFFFFF); };
    add(i, what, problem, {{"x", x}, {"y", y}},
        {{"rate", layer(i).rate},
         {"seed", word(0)},
         {"seed_high", word(1)},
         {"stream", static_cast<double>(i)},
         {"step", options_.step}});
  }

  void add_loss() {
    LossProblem problem;
    problem.type = options_.type;
    problem.n = options_.batch, problem.c = model_.classes();
    const std::size_t behind = model_.layers.size();
    const NamedPlace x = {"x", outputs_.back()}, labels = {"labels", lasting(arrays_.labels)},
                     losses = {"y", lasting(arrays_.losses)};
    const NamedScalar scale = {"scale", options_.loss_scale / static_cast<double>(options_.batch)};
    if (options_.is_unfused) add(behind, "loss", problem, {x, labels, losses});
    problem.backward = true, problem.sums = !options_.is_unfused;
    const NamedPlace dx = {"dx", gradients_.back() = array(layer(behind - 1).out)};
    if (problem.sums)
      add(behind, "loss", problem, {x, labels, dx, losses}, {scale});
    else
      add(behind, "loss, backward", problem, {x, labels, dx}, {scale});
  }

  // What layers further on add of this one's output, by its gradient.
  void add_shortcuts(std::size_t i) {
    for (std::size_t a = model_.layers.size(); a-- > i + 1;) {
      if (layer(a).kind != Kind::add || layer(a).from != i) continue;
      const Place sum = array(layer(i).out);
      add(a, "backward-data", addition(layer(a), true), {{"d", gradients_[i]}, {"dy", gradients_[a]}, {"ds", sum}});
      gradients_[i] = sum;
    }
  }

  // The gradient of what a layer gives, before the relu that is computed with it.
  Place before_relu(std::size_t i) {
    if (!is_fused(i + 1)) return gradients_[i];
    const Place dx = array(layer(i).out);
    add(i + 1, "backward-data", activation(layer(i + 1), true),
        {{"y", outputs_[i + 1]}, {"dy", gradients_[i + 1]}, {"dx", dx}});
    return dx;
  }

  void add_backward(std::size_t i, bool goes_on) {
    const ModelLayer& own = layer(i);
    if (is_fused(i)) return;
    const auto dx = [&] { return gradients_[i - 1] = array(own.in); };
    switch (own.kind) {
      case Kind::convolution:
      case Kind::dense: return add_filter_gradients(i, goes_on);
      case Kind::batch_norm: {
        const LayerArrays& lasts = arrays_.layers[i];
        BatchNormProblem problem;
        problem.pass = BatchNormProblem::Pass::backward;
        set_extents(problem, own.out);
        problem.relu = is_fused(i + 1);
        return add(i, "backward", problem,
                   {{"x", input_of(i)},
                    {"dy", gradients_[problem.relu ? i + 1 : i]},
                    {"gamma", lasting(lasts.weights)},
                    {"beta", lasting(lasts.biases)},
                    {"mean", kept_[i].mean},
                    {"invstd", kept_[i].inverse_deviation},
                    {"dx", goes_on ? dx() : array(own.in)},
                    {"dgamma", lasting(lasts.weight_gradients)},
                    {"dbeta", lasting(lasts.bias_gradients)}});
      }
      case Kind::max_pool:
      case Kind::average_pool: {
        std::vector<NamedPlace> places = {{"dx", dx()}, {"dy", gradients_[i]}};
        if (own.kind == Kind::max_pool) places.push_back({"indices", kept_[i].indices});
        return add(i, "backward-data", pooling(own, true), places);
      }
      case Kind::dropout: return add_dropout(i, "backward-data", gradients_[i], dx());
      case Kind::add: gradients_[i] = gradients_[i - 1] = before_relu(i); return;
      default:
        return add(i, "backward-data", activation(own, true),
                   {{"y", outputs_[i]}, {"dy", gradients_[i]}, {"dx", dx()}});
    }
  }

  // Returns the gradient of what the layer gives, before a relu that is computed with it.
  Place add_bias_gradients(std::size_t i) {
    const NamedPlace db = {"db", lasting(arrays_.layers[i].bias_gradients)};
    BiasAddProblem bias;
    bias.backward = true, bias.relu = is_fused(i + 1);
    set_extents(bias, layer(i).out);
    if (!bias.relu) {
      add(i, "backward-bias", bias, {db, {"dy", gradients_[i]}});
      return gradients_[i];
    }
    const Place dx = array(layer(i).out);
    add(i, "backward-bias", bias, {db, {"dy", gradients_[i + 1]}, {"dx", dx}, {"y", outputs_[i + 1]}});
    return dx;
  }

  void add_filter_gradients(std::size_t i, bool goes_on) {
    const ModelLayer& own = layer(i);
    const LayerArrays& lasts = arrays_.layers[i];
    const NamedPlace dy = {"dy", own.has_bias ? add_bias_gradients(i) : before_relu(i)};
    add(i, "backward-filter", convolution(own, Pass::backward_filter),
        {{"x", input_of(i)}, {"dw", lasting(lasts.weight_gradients)}, dy});
    if (!goes_on) return;
    gradients_[i - 1] = array(own.in);
    add(i, "backward-data", convolution(own, Pass::backward_data),
        {{"dx", gradients_[i - 1]}, {"w", lasting(lasts.weights)}, dy});
  }

  const Model& model_;
  const LayerOptions& options_;
  const NetworkArrays& arrays_;
  bool trains_;
  Steps steps_;
  std::vector<bool> is_made_;               // by a layer before
  std::vector<Place> outputs_, gradients_;  // of each layer; gradients are of its output
  std::vector<Kept> kept_;
};

}  // namespace

Evaluating evaluating_steps(const Model& model, const LayerOptions& options, const NetworkArrays& arrays) {
  Layers layers(model, options, arrays, false);
  Evaluating made;
  made.outputs = layers.forward();
  made.steps = layers.steps();
  made.steps.keep(made.outputs);
  return made;
}

Steps training_steps(const Model& model, const LayerOptions& options, const NetworkArrays& arrays) {
  Layers layers(model, options, arrays, true);
  layers.forward();
  layers.backward();
  return layers.steps();
}

bool can_fold(const Model& model, std::size_t layer) {
  if (layer == 0 || layer >= model.layers.size() || model.layers[layer].kind != Kind::batch_norm) return false;
  const ModelLayer& before = model.layers[layer - 1];
  return (before.kind == Kind::convolution || before.kind == Kind::dense) && !is_marked(model, layer - 1);
}

std::size_t first_trained(const Model& model) {
  const auto found = std::find_if(model.layers.begin(), model.layers.end(),
                                  [](const ModelLayer& layer) { return layer.has_parameters(); });
  return static_cast<std::size_t>(found - model.layers.begin());
}

}  // namespace omniconv::training
