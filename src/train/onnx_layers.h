// The nodes of an ONNX graph, one after the other, as a model's layers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "omniconv/model.h"
#include "omniconv/training.h"
#include "train/onnx_node.h"

namespace omniconv::training {

// Stands for the number of images in shapes.
constexpr std::int64_t batch_mark = INT64_MIN;

// What a node makes of whole numbers alone: shapes, pads and the like. `operands` are its inputs, those that are
// missing empty.
bool is_of_constants(const std::string& op);
OnnxConstant computed_constant(const OnnxNode& node, const std::vector<OnnxConstant>& operands);

class OnnxLayers {
 public:
  // `batch` is what the file says of it; below 1 where it is open.
  OnnxLayers(const std::string& path, const onnx::GraphProto& graph, const std::string& input, const ModelShape& shape,
             std::int64_t batch);

  void add(const OnnxNode& node);
  // Of the graph's output, whose name it is.
  Model model(const std::string& output, const std::string& name) const;
  std::vector<NamedTensor> tensors() && { return std::move(tensors_); }

 private:
  // What a layer gives, or the graph's input: N x c x h x w, or N x elements.
  struct Activation {
    std::ptrdiff_t layer = -1;  // -1: the input
    ModelShape shape = {};
    bool is_flat = false, has_bias = false;
    // On the way to an addition: of how many rows and columns one is taken, and the channels of 0 before its own.
    bool is_shortcut = false;
    std::int64_t step_h = 1, step_w = 1, channels_before = 0;
    bool is_shares = false;  // by Softmax, behind the last layer
  };
  using Initializer = const onnx::TensorProto*;
  using Value = std::variant<Activation, OnnxConstant, Initializer>;

  const Value& value(const OnnxNode& node, int i) const;
  bool is_activation(const OnnxNode& node, int i) const;
  Activation activation(const OnnxNode& node, int i) const;
  // As a layer takes it: what the layer before gives.
  Activation operand(const OnnxNode& node) const;
  OnnxConstant constant(const OnnxNode& node, int i) const;
  std::vector<std::int64_t> wholes(const OnnxNode& node, int i) const;
  std::vector<float> numbers(const OnnxNode& node, int i, const std::vector<std::int64_t>& extents) const;
  void set(const OnnxNode& node, Value made);
  void append(const OnnxNode& node, const Activation& x, const std::string& line, bool is_flat);
  void add_tensor(const OnnxNode& node, const char* which, std::vector<std::int64_t> extents,
                  std::vector<float> values);

  void add_convolution(const OnnxNode& node);
  void add_dense(const OnnxNode& node);
  void add_pool(const OnnxNode& node);
  void add_whole_mean(const OnnxNode& node);
  void add_batch_norm(const OnnxNode& node);
  void add_function(const OnnxNode& node);
  void add_dropout(const OnnxNode& node);
  void add_sum(const OnnxNode& node);
  void add_bias(const OnnxNode& node, const Activation& x, int bias);
  void add_slice(const OnnxNode& node);
  void add_pad(const OnnxNode& node);
  void add_reshape(const OnnxNode& node);
  void add_shares(const OnnxNode& node);
  void add_constant(const OnnxNode& node);

  std::string path_;
  std::int64_t batch_;
  std::map<std::string, Value> values_;
  Model model_;
  std::vector<NamedTensor> tensors_;
  std::int64_t bytes_ = 0;
};

}  // namespace omniconv::training
