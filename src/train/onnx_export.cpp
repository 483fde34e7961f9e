// A checkpoint as an ONNX graph: a node or two for each layer, in their order.
#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/build_info.h"
#include "image/atomic_file.h"
#include "omniconv/error.h"
#include "omniconv/onnx.h"

namespace omniconv {
namespace {

using Kind = ModelLayer::Kind;
static_assert(std::endian::native == std::endian::little, "numbers lie in the file as they do in memory");

constexpr int opset = 13;
constexpr std::int64_t format = 7;  // of that opset

class Graph {
 public:
  Graph(const Checkpoint& checkpoint, onnx::GraphProto& graph) : checkpoint_(checkpoint), graph_(graph) {}

  void build() {
    const Model& model = checkpoint_.model;
    graph_.set_name(model.name);
    *graph_.add_input() =
        value("input", {0, model.input.channels, model.input.height, model.input.width});  // 0: left open
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      last_ = i;
      add_layer(i);
    }
    const Value logits = as_rows(outputs_.back());
    onnx::NodeProto& node = *graph_.add_node();
    set_node(node, "Identity", "logits");
    node.add_input(logits.name);
    *graph_.add_output() = value("logits", {0, model.classes()});
  }

 private:
  // N x c x h x w, or N x elements.
  struct Value {
    std::string name;
    ModelShape shape;
    bool is_flat = false;
  };

  static onnx::ValueInfoProto value(const std::string& name, const std::vector<std::int64_t>& extents) {
    onnx::ValueInfoProto made;
    made.set_name(name);
    onnx::TypeProto::Tensor& type = *made.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : extents) {
      onnx::TensorShapeProto::Dimension& dimension = *type.mutable_shape()->add_dim();
      if (extent == 0)
        dimension.set_dim_param("N");
      else
        dimension.set_dim_value(extent);
    }
    return made;
  }
  static void set_node(onnx::NodeProto& node, const char* op, const std::string& output) {
    node.set_op_type(op), node.set_name(output), node.add_output(output);
  }
  onnx::NodeProto& add_node(const char* op, const std::vector<std::string>& inputs, const std::string& output) {
    onnx::NodeProto& node = *graph_.add_node();
    set_node(node, op, output);
    for (const std::string& input : inputs) node.add_input(input);
    return node;
  }
  static void set(onnx::NodeProto& node, const char* name, std::int64_t number) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name), attribute.set_type(onnx::AttributeProto::INT), attribute.set_i(number);
  }
  static void set(onnx::NodeProto& node, const char* name, float number) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name), attribute.set_type(onnx::AttributeProto::FLOAT), attribute.set_f(number);
  }
  static void set(onnx::NodeProto& node, const char* name, const std::vector<std::int64_t>& numbers) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name), attribute.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t number : numbers) attribute.add_ints(number);
  }
  std::string add_whole_numbers(const std::string& name, const std::vector<std::int64_t>& numbers) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name), tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(std::ssize(numbers));
    tensor.set_raw_data(numbers.data(), numbers.size() * 8);
    return name;
  }
  std::string add_number(const std::string& name, float number) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name), tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.set_raw_data(&number, 4);
    return name;
  }

  // A tensor of the checkpoint, whose extents ONNX wants to be `extents`.
  std::string add_parameters(const char* which, const std::vector<std::int64_t>& extents) {
    const std::string name = fmt::format("layers.{}.{}", last_, which);
    const auto found = std::find_if(checkpoint_.tensors.begin(), checkpoint_.tensors.end(),
                                    [&](const NamedTensor& tensor) { return tensor.name == name; });
    if (found == checkpoint_.tensors.end())
      throw bad_input(fmt::format("the checkpoint of {} lacks {}", checkpoint_.model.name, name));
    std::int64_t elements = 1;
    for (const std::int64_t extent : extents) elements *= extent;
    if (std::ssize(found->values) != elements)
      throw bad_input(fmt::format("the checkpoint of {} has {} numbers of {}, and its layer has {}",
                                  checkpoint_.model.name, found->values.size(), name, elements));
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name), tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : extents) tensor.add_dims(extent);
    tensor.set_raw_data(found->values.data(), found->values.size() * 4);
    return name;
  }

  Value as_rows(const Value& x) {
    if (x.is_flat) return x;
    const std::string name = x.name + ".rows";
    if (made_.insert(name).second) set(add_node("Flatten", {x.name}, name), "axis", std::int64_t{1});
    return {name, x.shape, true};
  }
  Value as_images(const Value& x) {
    if (!x.is_flat) return x;
    const std::string name = x.name + ".images";
    if (made_.insert(name).second) {
      const ModelShape& s = x.shape;
      add_node("Reshape", {x.name, add_whole_numbers(name + ".shape", {0, s.channels, s.height, s.width})}, name);
    }
    return {name, x.shape, false};
  }

  void add_layer(std::size_t i) {
    const ModelLayer& layer = checkpoint_.model.layers[i];
    Value x = i == 0 ? Value{"input", checkpoint_.model.input} : outputs_[i - 1];
    if (layer.kind == Kind::dense)
      x = as_rows(x);
    else if (layer.kind == Kind::convolution || layer.kind == Kind::max_pool || layer.kind == Kind::average_pool ||
             layer.kind == Kind::add)
      x = as_images(x);
    const std::string name = fmt::format("layers.{}", i);
    switch (layer.kind) {
      case Kind::convolution: add_convolution(layer, x.name, name); break;
      case Kind::dense: add_dense(layer, x.name, name); break;
      case Kind::relu: add_node("Relu", {x.name}, name); break;
      case Kind::sigmoid: add_node("Sigmoid", {x.name}, name); break;
      case Kind::tanh: add_node("Tanh", {x.name}, name); break;
      case Kind::max_pool:
      case Kind::average_pool: {
        onnx::NodeProto& node = add_node(layer.kind == Kind::max_pool ? "MaxPool" : "AveragePool", {x.name}, name);
        set(node, "kernel_shape", {layer.rows, layer.columns});
        set(node, "strides", {layer.stride_h, layer.stride_w});
        break;
      }
      case Kind::batch_norm: add_batch_norm(layer, x.name, name); break;
      case Kind::dropout:
        add_node("Dropout", {x.name, add_number(name + ".rate", static_cast<float>(layer.rate))}, name);
        break;
      case Kind::add: add_node("Add", {x.name, shortcut(layer, name)}, name); break;
    }
    outputs_.push_back({name, layer.out, x.is_flat});
  }

  void add_convolution(const ModelLayer& layer, const std::string& x, const std::string& name) {
    std::vector<std::string> inputs = {
        x, add_parameters("weight", {layer.outputs, layer.in.channels, layer.rows, layer.columns})};
    if (layer.has_bias) inputs.push_back(add_parameters("bias", {layer.outputs}));
    onnx::NodeProto& node = add_node("Conv", inputs, name);
    set(node, "kernel_shape", {layer.rows, layer.columns});
    set(node, "pads", {layer.pad, layer.pad, layer.pad, layer.pad});
    set(node, "strides", {layer.stride_h, layer.stride_w});
  }
  // Weights are outputs x c x rows x columns: as Flatten orders what comes in.
  void add_dense(const ModelLayer& layer, const std::string& x, const std::string& name) {
    std::vector<std::string> inputs = {x, add_parameters("weight", {layer.outputs, layer.in.elements()})};
    if (layer.has_bias) inputs.push_back(add_parameters("bias", {layer.outputs}));
    set(add_node("Gemm", inputs, name), "transB", std::int64_t{1});
  }
  // The mean that ONNX keeps is multiplied by its momentum, ours by 1 - momentum.
  void add_batch_norm(const ModelLayer& layer, const std::string& x, const std::string& name) {
    std::vector<std::string> inputs = {x};
    for (const char* const which : {"weight", "bias", "running_mean", "running_var"})
      inputs.push_back(add_parameters(which, {layer.outputs}));
    onnx::NodeProto& node = add_node("BatchNormalization", inputs, name);
    set(node, "epsilon", static_cast<float>(layer.epsilon));
    set(node, "momentum", static_cast<float>(1 - layer.momentum));
  }
  // What is added: with a stride a slice, and with fewer channels one between channels of 0, as `add` has it.
  std::string shortcut(const ModelLayer& layer, const std::string& name) {
    const Value from = as_images(outputs_[layer.from]);
    std::string found = from.name;
    if (layer.stride_h > 1) {
      const std::string part = name + ".strided";
      const std::vector<std::string> numbers = {
          add_whole_numbers(part + ".starts", {0, 0}),
          add_whole_numbers(part + ".ends", {from.shape.height, from.shape.width}),
          add_whole_numbers(part + ".axes", {2, 3}),
          add_whole_numbers(part + ".steps", {layer.stride_h, layer.stride_w})};
      add_node("Slice", {found, numbers[0], numbers[1], numbers[2], numbers[3]}, part);
      found = part;
    }
    const std::int64_t more = layer.out.channels - from.shape.channels;
    if (more > 0) {
      const std::string part = name + ".filled";
      add_node("Pad", {found, add_whole_numbers(part + ".pads", {0, more / 2, 0, 0, 0, more - more / 2, 0, 0})}, part);
      found = part;
    }
    return found;
  }

  const Checkpoint& checkpoint_;
  onnx::GraphProto& graph_;
  std::size_t last_ = 0;  // the layer that is added
  std::vector<Value> outputs_;
  std::set<std::string> made_;
};

void set_metadata(onnx::ModelProto& file, const char* key, const std::string& text) {
  onnx::StringStringEntryProto& entry = *file.add_metadata_props();
  entry.set_key(key), entry.set_value(text);
}

}  // namespace

void export_onnx(const Checkpoint& checkpoint, const std::string& path) {
  using nlohmann::json;
  image::AtomicFile to(path);
  std::int64_t bytes = 0;
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (tensor.name.starts_with("layers.")) bytes += std::ssize(tensor.values) * 4;
  constexpr std::int64_t most = std::numeric_limits<int>::max();  // of a message
  if (bytes > most)
    throw bad_input(
        fmt::format("{}: the network has {} bytes of numbers, and an ONNX file at most {}", path, bytes, most));
  onnx::ModelProto file;
  file.set_ir_version(format);
  file.set_producer_name("omniconv"), file.set_producer_version(std::string(build_version()));
  onnx::OperatorSetIdProto& operators = *file.add_opset_import();
  operators.set_domain(""), operators.set_version(opset);
  Graph(checkpoint, *file.mutable_graph()).build();
  set_metadata(file, "omniconv.dataset", checkpoint.dataset);
  // What is no UTF-8 in a name would stop the JSON library.
  const auto text_of = [](const json& of) { return of.dump(-1, ' ', false, json::error_handler_t::replace); };
  set_metadata(file, "omniconv.classes", text_of(checkpoint.classes));
  set_metadata(file, "omniconv.mean", text_of(checkpoint.standard.mean));
  set_metadata(file, "omniconv.deviation", text_of(checkpoint.standard.deviation));
  std::string text;
  if (!file.SerializeToString(&text))
    throw bad_input(fmt::format("{}: the network does not fit into an ONNX file of {} bytes", path, most));
  to.write_at(0, text.data(), std::ssize(text));
  to.commit();
}

}  // namespace omniconv
