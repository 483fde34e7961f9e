#include "train/onnx_layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/checked.h"
#include "omniconv/error.h"
#include "train/quoted.h"

namespace omniconv::training {
namespace {

using Kind = ModelLayer::Kind;

std::string print(const ModelShape& shape) {
  return fmt::format("{} x {} x {}", shape.channels, shape.height, shape.width);
}

// The layer that a line of a model's text makes of what comes in.
ModelLayer parsed(const OnnxNode& node, const ModelShape& in, const std::string& line) {
  const std::string source = "layer";
  try {
    return parse_model(fmt::format("input {} {} {}\n{}\n", in.channels, in.height, in.width, line), source)
        .layers.front();
  } catch (const Error& error) {
    const std::string_view what = error.what();
    const std::size_t before = source.size() + std::string_view(":2: ").size();
    node.refuse(fmt::format("'{}' behind {}: {}", line, print(in), what.substr(std::min(before, what.size()))));
  }
}

// One number for both axes, as a model's text has it.
std::int64_t one_stride(const OnnxNode& node, const std::vector<std::int64_t>& strides) {
  if (strides.size() != 2 || strides[0] != strides[1])
    node.refuse(fmt::format("strides [{}]: two of the same number are expected", fmt::join(strides, ", ")));
  return strides[0];
}

void require_written_pads(const OnnxNode& node) {
  const std::string how = node.text("auto_pad", "NOTSET");
  if (how != "NOTSET" && how != "VALID")
    node.refuse(fmt::format("auto_pad {}: pads must be written out", quoted_word(how)));
}

// In rows and columns.
std::vector<std::int64_t> window_of(const OnnxNode& node, const std::vector<std::int64_t>& otherwise) {
  const std::vector<std::int64_t> window = node.wholes("kernel_shape", otherwise);
  if (window.size() != 2)
    node.refuse(fmt::format("kernel_shape [{}]: rows and columns are expected", fmt::join(window, ", ")));
  return window;
}

}  // namespace

OnnxLayers::OnnxLayers(const std::string& path, const onnx::GraphProto& graph, const std::string& input,
                       const ModelShape& shape, std::int64_t batch)
    : path_(path), batch_(batch) {
  for (const onnx::TensorProto& tensor : graph.initializer()) values_.insert_or_assign(tensor.name(), &tensor);
  values_.insert_or_assign(input, Activation{.shape = shape});
  model_.input = shape;
}

const OnnxLayers::Value& OnnxLayers::value(const OnnxNode& node, int i) const {
  if (node.input(i).empty()) node.refuse(fmt::format("its input {} is missing", i));
  const auto found = values_.find(node.input(i));
  if (found == values_.end())
    node.refuse(fmt::format("its input {} is no output of a node before it, no initializer, and not the graph's input",
                            quoted_word(node.input(i))));
  return found->second;
}

bool OnnxLayers::is_activation(const OnnxNode& node, int i) const {
  return std::holds_alternative<Activation>(value(node, i));
}

OnnxLayers::Activation OnnxLayers::activation(const OnnxNode& node, int i) const {
  const auto* const found = std::get_if<Activation>(&value(node, i));
  if (found == nullptr)
    node.refuse(
        fmt::format("its input {} is a constant, and the output of a layer is expected", quoted_word(node.input(i))));
  if (found->is_shares) node.refuse("it follows a Softmax, which is the end of a network");
  if (found->layer >= 0 && model_.layers[static_cast<std::size_t>(found->layer)].has_bias != found->has_bias)
    node.refuse(fmt::format("its input {} is taken with a bias and without", quoted_word(node.input(i))));
  return *found;
}

OnnxLayers::Activation OnnxLayers::operand(const OnnxNode& node) const {
  const Activation x = activation(node, 0);
  if (x.is_shortcut)
    node.refuse(
        fmt::format("its input {} has been sliced or filled up, and only Add takes that", quoted_word(node.input(0))));
  if (x.layer + 1 != std::ssize(model_.layers))
    node.refuse(
        fmt::format("its input {} is not what the layer before it gives: a network is one chain of layers, and "
                    "only Add takes another one's output",
                    quoted_word(node.input(0))));
  return x;
}

OnnxConstant OnnxLayers::constant(const OnnxNode& node, int i) const {
  const Value& found = value(node, i);
  if (const auto* const made = std::get_if<OnnxConstant>(&found)) return *made;
  const auto* const initializer = std::get_if<Initializer>(&found);
  if (initializer == nullptr)
    node.refuse(fmt::format("its input {} is computed, and a constant is expected", quoted_word(node.input(i))));
  try {
    return read_constant(**initializer);
  } catch (const Error& error) {
    node.refuse(fmt::format("its input {}: {}", quoted_word(node.input(i)), error.what()));
  }
}

std::vector<std::int64_t> OnnxLayers::wholes(const OnnxNode& node, int i) const {
  OnnxConstant found = constant(node, i);
  if (!found.is_whole || found.extents.size() > 1)
    node.refuse(fmt::format("its input {} is no list of whole numbers", quoted_word(node.input(i))));
  return std::move(found.wholes);
}

std::vector<float> OnnxLayers::numbers(const OnnxNode& node, int i, const std::vector<std::int64_t>& extents) const {
  OnnxConstant found = constant(node, i);
  if (found.is_whole || found.extents != extents)
    node.refuse(fmt::format("its input {} has {} of the extents [{}]: FLOAT of [{}] is expected",
                            quoted_word(node.input(i)), found.is_whole ? "whole numbers" : "FLOAT",
                            fmt::join(found.extents, ", "), fmt::join(extents, ", ")));
  return std::move(found.reals);
}

void OnnxLayers::set(const OnnxNode& node, Value made) {
  values_.insert_or_assign(node.output(), std::move(made));
}

void OnnxLayers::append(const OnnxNode& node, const Activation& x, const std::string& line, bool is_flat) {
  const ModelLayer layer = parsed(node, x.shape, line);
  set(node,
      Activation{
          .layer = std::ssize(model_.layers), .shape = layer.out, .is_flat = is_flat, .has_bias = layer.has_bias});
  model_.layers.push_back(layer);
}

// Of the last layer. A tensor of the file may be that of many layers: what all of them take together is bounded.
void OnnxLayers::add_tensor(const OnnxNode& node, const char* which, std::vector<std::int64_t> extents,
                            std::vector<float> values) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  bytes_ += std::ssize(values) * 4;
  if (bytes_ > most) node.refuse(fmt::format("its layers have more than {} bytes of numbers", most));
  tensors_.push_back(
      {fmt::format("layers.{}.{}", model_.layers.size() - 1, which), std::move(extents), std::move(values)});
}

void OnnxLayers::add(const OnnxNode& node) {
  const std::string& op = node.op();
  if (op == "Constant") return add_constant(node);
  if (op == "Identity") return set(node, Value(value(node, 0)));
  if (op == "Shape") {
    node.require_attributes({}), node.require_inputs(1, 1);
    const Activation x = activation(node, 0);
    OnnxConstant made{.extents = {2}, .is_whole = true, .wholes = {batch_mark, x.shape.elements()}};
    if (!x.is_flat) made = {{4}, true, {}, {batch_mark, x.shape.channels, x.shape.height, x.shape.width}};
    return set(node, std::move(made));
  }
  if (is_of_constants(op) && !is_activation(node, 0)) {
    std::vector<OnnxConstant> operands;
    for (int i = 0; !node.input(i).empty() || !node.input(i + 1).empty(); ++i)
      operands.push_back(node.input(i).empty() ? OnnxConstant{.is_whole = true} : constant(node, i));
    return set(node, computed_constant(node, operands));
  }
  struct Entry {
    std::string_view op;
    void (OnnxLayers::*add)(const OnnxNode&);
  };
  static constexpr Entry entries[] = {{"Add", &OnnxLayers::add_sum},
                                      {"AveragePool", &OnnxLayers::add_pool},
                                      {"BatchNormalization", &OnnxLayers::add_batch_norm},
                                      {"Conv", &OnnxLayers::add_convolution},
                                      {"Dropout", &OnnxLayers::add_dropout},
                                      {"Flatten", &OnnxLayers::add_reshape},
                                      {"Gemm", &OnnxLayers::add_dense},
                                      {"GlobalAveragePool", &OnnxLayers::add_whole_mean},
                                      {"LogSoftmax", &OnnxLayers::add_shares},
                                      {"MatMul", &OnnxLayers::add_dense},
                                      {"MaxPool", &OnnxLayers::add_pool},
                                      {"Pad", &OnnxLayers::add_pad},
                                      {"ReduceMean", &OnnxLayers::add_whole_mean},
                                      {"Relu", &OnnxLayers::add_function},
                                      {"Reshape", &OnnxLayers::add_reshape},
                                      {"Sigmoid", &OnnxLayers::add_function},
                                      {"Slice", &OnnxLayers::add_slice},
                                      {"Softmax", &OnnxLayers::add_shares},
                                      {"Tanh", &OnnxLayers::add_function}};
  for (const Entry& entry : entries)
    if (entry.op == op) return (this->*entry.add)(node);
  std::vector<std::string_view> known;
  for (const Entry& entry : entries) known.push_back(entry.op);
  node.refuse(fmt::format("no layer is like it: known are {}, and Constant, Identity, Shape and what computes shapes",
                          fmt::join(known, ", ")));
}

void OnnxLayers::add_convolution(const OnnxNode& node) {
  node.require_attributes({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  node.require_inputs(2, 3);
  const Activation x = operand(node);
  OnnxConstant filters = constant(node, 1);
  if (filters.is_whole || filters.extents.size() != 4)
    node.refuse(fmt::format("its filters have the extents [{}]: FLOAT of four extents is expected",
                            fmt::join(filters.extents, ", ")));
  const std::vector<std::int64_t> e = filters.extents, window = window_of(node, {e[2], e[3]});
  node.require_wholes("dilations", 1), node.require_whole("group", 1), require_written_pads(node);
  if (x.is_flat || e[1] != x.shape.channels || window[0] != e[2] || window[1] != e[3])
    node.refuse(fmt::format("filters of [{}] and a kernel_shape of [{}] for what comes in, {}", fmt::join(e, ", "),
                            fmt::join(window, ", "), print(x.shape)));
  const std::vector<std::int64_t> pads = node.wholes("pads", {0, 0, 0, 0});
  if (pads.size() != 4 || std::any_of(pads.begin(), pads.end(), [&](std::int64_t pad) { return pad != pads[0]; }))
    node.refuse(fmt::format("pads [{}]: four of the same number are expected", fmt::join(pads, ", ")));
  const bool has_bias = !node.input(2).empty();
  append(node, x,
         fmt::format("conv {} {}x{} pad {} stride {}{}", e[0], e[2], e[3], pads[0],
                     one_stride(node, node.wholes("strides", {1, 1})), has_bias ? "" : " nobias"),
         false);
  add_tensor(node, "weight", e, std::move(filters.reals));
  if (has_bias) add_tensor(node, "bias", {e[0]}, numbers(node, 2, {e[0]}));
}

// Gemm with or without a bias, and MatMul.
void OnnxLayers::add_dense(const OnnxNode& node) {
  const bool is_gemm = node.op() == "Gemm";
  node.require_attributes({"alpha", "beta", "transA", "transB"}), node.require_inputs(2, is_gemm ? 3 : 2);
  const Activation x = operand(node);
  for (const char* const factor : {"alpha", "beta"})
    if (node.real(factor, 1) != 1) node.refuse(fmt::format("{} {}: only 1 is taken", factor, node.real(factor, 1)));
  node.require_whole("transA", 0);
  const bool is_turned = is_gemm && node.whole("transB", 0) != 0;  // outputs x inputs
  OnnxConstant w = constant(node, 1);
  if (!x.is_flat || w.is_whole || w.extents.size() != 2 || w.extents[is_turned ? 1 : 0] != x.shape.elements())
    node.refuse(fmt::format("a table of [{}] for what comes in, {}{}: FLOAT of {} inputs is expected, behind a Flatten",
                            fmt::join(w.extents, ", "), print(x.shape), x.is_flat ? ", flat" : "", x.shape.elements()));
  const std::int64_t inputs = x.shape.elements(), outputs = w.extents[is_turned ? 0 : 1];
  if (!is_turned) {
    std::vector<float> turned;
    turned.reserve(w.reals.size());
    for (std::int64_t k = 0; k < outputs; ++k)
      for (std::int64_t i = 0; i < inputs; ++i) turned.push_back(w.reals[static_cast<std::size_t>(i * outputs + k)]);
    w.reals = std::move(turned);
  }
  append(node, x, fmt::format("dense {} nobias", outputs), true);
  add_tensor(node, "weight", {outputs, x.shape.channels, x.shape.height, x.shape.width}, std::move(w.reals));
  if (!node.input(2).empty()) add_bias(node, std::get<Activation>(values_.at(node.output())), 2);
}

// Of the last layer, whose output `x` is.
void OnnxLayers::add_bias(const OnnxNode& node, const Activation& x, int bias) {
  ModelLayer& layer = model_.layers.back();
  const OnnxConstant found = constant(node, bias);
  const bool is_row = found.extents.size() == 2 && found.extents[0] == 1;
  add_tensor(node, "bias", {layer.outputs},
             numbers(node, bias, is_row ? std::vector<std::int64_t>{1, layer.outputs} : std::vector{layer.outputs}));
  layer.has_bias = true;
  Activation with = x;
  with.has_bias = true;
  set(node, with);
}

void OnnxLayers::add_pool(const OnnxNode& node) {
  node.require_attributes(
      {"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "storage_order", "strides"});
  node.require_inputs(1, 1);
  const Activation x = operand(node);
  if (x.is_flat) node.refuse("rows of numbers come in, and images are expected");
  node.require_wholes("dilations", 1), node.require_wholes("pads", 0), require_written_pads(node);
  const std::vector<std::int64_t> window = window_of(node, {}), strides = node.wholes("strides", {1, 1});
  const std::string own = strides == window ? "" : fmt::format(" stride {}", one_stride(node, strides));
  append(node, x, fmt::format("{} {}x{}{}", node.op() == "MaxPool" ? "maxpool" : "avgpool", window[0], window[1], own),
         false);
  const auto has_rest = [&](std::int64_t extent, std::size_t axis) {
    return (extent - window[axis]) % strides[axis] != 0;
  };
  if (node.whole("ceil_mode", 0) != 0 && (has_rest(x.shape.height, 0) || has_rest(x.shape.width, 1)))
    node.refuse("ceil_mode 1 with windows that reach beyond what comes in: only whole ones are taken");
}

// Over all rows and columns.
void OnnxLayers::add_whole_mean(const OnnxNode& node) {
  const bool is_reduction = node.op() == "ReduceMean";
  node.require_inputs(1, is_reduction ? 2 : 1);
  const Activation x = operand(node);
  if (x.is_flat) node.refuse("rows of numbers come in, and images are expected");
  if (is_reduction) {
    node.require_attributes({"axes", "keepdims"});
    std::vector<std::int64_t> axes = node.input(1).empty() ? node.wholes("axes", {}) : wholes(node, 1);
    for (std::int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
    std::sort(axes.begin(), axes.end());
    if (axes != std::vector<std::int64_t>{2, 3})
      node.refuse(fmt::format("axes [{}]: 2 and 3 are expected, the rows and the columns", fmt::join(axes, ", ")));
  } else {
    node.require_attributes({});
  }
  append(node, x, fmt::format("avgpool {}x{}", x.shape.height, x.shape.width),
         is_reduction && node.whole("keepdims", 1) == 0);
}

// Numbers in f32 are read as the shortest decimal ones. The share of what is kept of the running mean is ONNX's
// momentum.
void OnnxLayers::add_batch_norm(const OnnxNode& node) {
  node.require_attributes({"epsilon", "momentum", "spatial", "training_mode"}), node.require_inputs(5, 5);
  const Activation x = operand(node);
  node.require_whole("training_mode", 0), node.require_whole("spatial", 1);
  if (x.is_flat && x.shape.height * x.shape.width != 1)
    node.refuse(fmt::format("{} come in flat, and images are expected", print(x.shape)));
  const double kept = decimal_of(node.real("momentum", 0.9f));
  if (!(kept >= 0 && kept <= 1)) node.refuse(fmt::format("momentum {}: from 0 to 1 is expected", kept));
  const double momentum = std::min(decimal_of(static_cast<float>(1 - kept)), 0.999999);
  const std::vector<std::int64_t> extents = {x.shape.channels};
  append(node, x, fmt::format("batchnorm epsilon {} momentum {}", decimal_of(node.real("epsilon", 1e-5f)), momentum),
         x.is_flat);
  const char* const names[] = {"weight", "bias", "running_mean", "running_var"};
  for (int i = 0; i < 4; ++i) add_tensor(node, names[i], extents, numbers(node, i + 1, extents));
}

void OnnxLayers::add_function(const OnnxNode& node) {
  node.require_attributes({}), node.require_inputs(1, 1);
  const Activation x = operand(node);
  append(node, x, node.op() == "Relu" ? "relu" : node.op() == "Sigmoid" ? "sigmoid" : "tanh", x.is_flat);
}

void OnnxLayers::add_dropout(const OnnxNode& node) {
  node.require_attributes({"ratio", "seed"}), node.require_inputs(1, 3);
  const Activation x = operand(node);
  float rate = node.real("ratio", 0.5f);
  if (!node.input(1).empty()) {
    const OnnxConstant found = constant(node, 1);
    if (found.is_whole || found.elements() != 1) node.refuse("its ratio is no FLOAT");
    rate = found.reals[0];
  }
  if (!node.input(2).empty()) {
    const OnnxConstant found = constant(node, 2);
    if (!found.is_whole || found.elements() != 1 || found.wholes[0] != 0)
      node.refuse("training_mode: only false is taken, as other programs run the network");
  }
  append(node, x, fmt::format("dropout {}", decimal_of(rate)), x.is_flat);
}

// Of the chain and an earlier layer's output, in any order, or a bias.
void OnnxLayers::add_sum(const OnnxNode& node) {
  node.require_attributes({}), node.require_inputs(2, 2);
  const bool is_first = is_activation(node, 0), is_second = is_activation(node, 1);
  if (!is_first || !is_second) {
    if (!is_first && !is_second) node.refuse("two constants");
    const Activation x = activation(node, is_first ? 0 : 1);
    const bool is_last = x.layer >= 0 && x.layer + 1 == std::ssize(model_.layers) && !x.is_shortcut;
    if (!is_last || model_.layers.back().kind != Kind::dense || model_.layers.back().has_bias)
      node.refuse("a constant is added only to a MatMul, as its bias");
    return add_bias(node, x, is_first ? 1 : 0);
  }
  const auto is_last = [&](const Activation& of) {
    return of.layer + 1 == std::ssize(model_.layers) && !of.is_shortcut;
  };
  Activation x = activation(node, 0), s = activation(node, 1);
  if (!is_last(x)) std::swap(x, s);
  if (!is_last(x)) node.refuse("none of its inputs is what the layer before it gives");
  if (s.layer < 0) node.refuse("it adds the graph's input: only the output of a layer is added");
  const ModelShape& from = model_.layers[static_cast<std::size_t>(s.layer)].out;
  if (s.shape != x.shape || (s.is_flat != x.is_flat && x.shape.height * x.shape.width != 1))
    node.refuse(fmt::format("{} is added to {}: they must be the same", print(s.shape), print(x.shape)));
  const std::int64_t step = divide_up(from.height, x.shape.height);
  const bool is_one = x.shape.height == 1 && x.shape.width == 1;
  if (!is_one && (s.step_h != step || s.step_w != step))
    node.refuse(fmt::format("every {} rows and {} columns of {} are added: the same of both, {}, are expected",
                            s.step_h, s.step_w, print(from), step));
  if (s.channels_before != (x.shape.channels - from.channels) / 2)
    node.refuse(
        fmt::format("{} channels of 0 before the {} that are added to {}: half of those that are missing are "
                    "expected, {}",
                    s.channels_before, from.channels, x.shape.channels, (x.shape.channels - from.channels) / 2));
  set(node, Activation{.layer = std::ssize(model_.layers), .shape = x.shape, .is_flat = x.is_flat, .has_bias = true});
  model_.layers.push_back({.kind = Kind::add,
                           .stride_h = step,
                           .stride_w = step,
                           .from = static_cast<std::size_t>(s.layer),
                           .in = x.shape,
                           .out = x.shape});
}

void OnnxLayers::add_slice(const OnnxNode& node) {
  node.require_attributes({}), node.require_inputs(3, 5);
  Activation x = activation(node, 0);
  const std::vector<std::int64_t> starts = wholes(node, 1), ends = wholes(node, 2);
  std::vector<std::int64_t> axes, steps(starts.size(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (!node.input(3).empty()) axes = wholes(node, 3);
  if (!node.input(4).empty()) steps = wholes(node, 4);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
    node.refuse("its starts, ends, axes and steps are not as many");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t axis = axes[i] + (axes[i] < 0 ? x.is_flat ? 2 : 4 : 0), step = steps[i];
    std::int64_t* const extent = x.is_flat || axis < 2 || axis > 3 ? nullptr
                                 : axis == 2                       ? &x.shape.height
                                                                   : &x.shape.width;
    const bool is_whole = starts[i] == 0 && step >= 1 && step < INT64_MAX / 2;
    const std::int64_t all = axis == 0           ? INT64_MAX / 2  // images, as many as there are
                             : x.is_flat         ? x.shape.elements()
                             : axis == 1         ? x.shape.channels
                             : extent != nullptr ? *extent
                                                 : INT64_MAX;
    if (!is_whole || ends[i] < all || (extent == nullptr && step != 1))
      node.refuse(
          fmt::format("axis {} from {} to {} by {}: rows and columns are taken from the first to the last, by a "
                      "step, and other axes whole",
                      axes[i], starts[i], ends[i], step));
    if (step == 1) continue;
    const std::int64_t taken = std::min(step, *extent);  // the first one alone, of all steps that pass the last
    *extent = (*extent - 1) / step + 1;
    std::int64_t& own = axis == 2 ? x.step_h : x.step_w;
    own *= taken, x.is_shortcut = true;
  }
  set(node, x);
}

// Of channels alone.
void OnnxLayers::add_pad(const OnnxNode& node) {
  node.require_attributes({"mode", "pads", "value"}), node.require_inputs(1, 3);
  Activation x = activation(node, 0);
  const std::vector<std::int64_t> pads = node.input(1).empty() ? node.wholes("pads", {}) : wholes(node, 1);
  const std::size_t axes = x.is_flat ? 2 : 4;
  if (pads.size() != 2 * axes) node.refuse(fmt::format("pads [{}]: {} are expected", fmt::join(pads, ", "), 2 * axes));
  if (std::all_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad == 0; })) return set(node, x);
  const std::string mode = node.text("mode", "constant");
  float value = node.real("value", 0);
  if (!node.input(2).empty()) {
    const OnnxConstant found = constant(node, 2);
    if (found.is_whole || found.elements() != 1) node.refuse("its value is no FLOAT");
    value = found.reals[0];
  }
  if (mode != "constant" || value != 0)
    node.refuse(fmt::format("mode {} with {}: only zeros are taken", quoted_word(mode), value));
  constexpr std::int64_t most = 1 << 24;
  for (std::size_t i = 0; i < pads.size(); ++i)
    if (pads[i] < 0 || pads[i] > most || x.is_flat || (i % axes != 1 && pads[i] != 0))
      node.refuse(
          fmt::format("pads [{}]: only channels are filled up: write those of rows and columns as pads of the Conv",
                      fmt::join(pads, ", ")));
  x.channels_before += pads[1], x.is_shortcut = true;
  if ((x.shape.channels += pads[1] + pads[5]) > most)
    node.refuse(fmt::format("{} channels: {} at most", x.shape.channels, most));
  set(node, x);
}

// Reshape and Flatten: to rows of numbers, and of single pixels back to images.
void OnnxLayers::add_reshape(const OnnxNode& node) {
  Activation x = activation(node, 0);
  const ModelShape& s = x.shape;
  std::vector<std::int64_t> shape;
  if (node.op() == "Flatten") {
    node.require_attributes({"axis"}), node.require_inputs(1, 1), node.require_whole("axis", 1);
    shape = {batch_mark, -1};
  } else {
    node.require_attributes({"allowzero"}), node.require_inputs(2, 2), node.require_whole("allowzero", 0);
    shape = wholes(node, 1);
  }
  const std::vector<std::int64_t> own = x.is_flat ? std::vector<std::int64_t>{0, s.elements()}
                                                  : std::vector<std::int64_t>{0, s.channels, s.height, s.width};
  const auto refuse = [&] {
    for (std::int64_t& extent : shape) extent = extent == batch_mark ? 0 : extent;
    node.refuse(
        fmt::format("extents of [{}] for what comes in, {}: only all numbers of an image in a row, or the image "
                    "itself, are taken",
                    fmt::join(shape, ", "), print(s)));
  };
  const bool keeps_images = !shape.empty() && (shape[0] == batch_mark || shape[0] == 0 || shape[0] == -1 ||
                                               (batch_ > 0 && shape[0] == batch_));
  if (!keeps_images || (shape.size() != 2 && shape.size() != 4)) refuse();
  const bool is_open = shape[0] == -1;  // then no other one is
  const std::vector<std::int64_t> wanted = shape.size() == 2
                                               ? std::vector<std::int64_t>{0, s.elements()}
                                               : std::vector<std::int64_t>{0, s.channels, s.height, s.width};
  int open = is_open ? 1 : 0;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    open += shape[i] == -1;
    const std::int64_t extent = shape[i] == -1 ? wanted[i] : shape[i] == 0 && i < own.size() ? own[i] : shape[i];
    if (extent != wanted[i] || open > 1) refuse();
  }
  if (x.is_shortcut && shape.size() == 2 && s.height * s.width != 1) refuse();
  x.is_flat = shape.size() == 2;
  set(node, x);
}

// Softmax at the end makes shares of the logits, as `predict` does itself.
void OnnxLayers::add_shares(const OnnxNode& node) {
  node.require_attributes({"axis"}), node.require_inputs(1, 1);
  Activation x = operand(node);
  const std::int64_t axis = node.whole("axis", x.is_flat ? -1 : 1);
  if (!x.is_flat || (axis != 1 && axis != -1)) node.refuse("only over the classes at the end is it taken");
  x.is_shares = true;
  set(node, x);
}

void OnnxLayers::add_constant(const OnnxNode& node) {
  node.require_attributes({"value", "value_float", "value_floats", "value_int", "value_ints"});
  OnnxConstant made{.is_whole = true};
  if (std::optional<OnnxConstant> tensor = node.tensor("value")) {
    made = std::move(*tensor);
  } else if (node.has("value_int")) {
    made.wholes = {node.whole("value_int", 0)};
  } else if (node.has("value_ints")) {
    made.wholes = node.wholes("value_ints", {}), made.extents = {std::ssize(made.wholes)};
  } else if (node.has("value_float")) {
    made.is_whole = false, made.reals = {node.real("value_float", 0)};
  } else if (node.has("value_floats")) {
    made.is_whole = false, made.reals = node.reals("value_floats"), made.extents = {std::ssize(made.reals)};
  } else {
    node.refuse("it has no value");
  }
  set(node, std::move(made));
}

Model OnnxLayers::model(const std::string& output, const std::string& name) const {
  const auto found = values_.find(output);
  const auto* const made = found == values_.end() ? nullptr : std::get_if<Activation>(&found->second);
  const auto refuse = [&](const std::string& what) {
    throw bad_input(fmt::format("{}: the graph's output {} {}", path_, quoted_word(output), what));
  };
  if (made == nullptr) refuse("is no output of a layer");
  if (made->layer < 0) refuse("is its input: no node makes a layer");
  if (made->layer + 1 != std::ssize(model_.layers) || made->is_shortcut ||
      made->has_bias != model_.layers.back().has_bias)
    refuse("is not what the last layer gives");
  if (!made->is_flat && made->shape.height * made->shape.width != 1)
    refuse(fmt::format("is {}: a number for each class is expected", print(made->shape)));
  return parse_model(to_text(model_), name);
}

}  // namespace omniconv::training
