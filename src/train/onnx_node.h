// A node of an ONNX graph and constant tensors, as a hostile file has them.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace omniconv::training {

// Whole numbers where the tensor's type is INT64, INT32 or BOOL, else those of FLOAT.
struct OnnxConstant {
  std::vector<std::int64_t> extents = {};
  bool is_whole = false;
  std::vector<float> reals = {};
  std::vector<std::int64_t> wholes = {};

  std::int64_t elements() const { return is_whole ? std::ssize(wholes) : std::ssize(reals); }
};

// Throws bad_input with what is wrong: the sizes that it says and those that it has, or its type.
OnnxConstant read_constant(const onnx::TensorProto& tensor);

// The number as people write it: 0.1 for the float that is nearest to it.
double decimal_of(float number);

class OnnxNode {
 public:
  OnnxNode(const std::string& path, const onnx::NodeProto& node, int number);

  [[noreturn]] void refuse(const std::string& what) const;
  const std::string& op() const { return node_.op_type(); }

  // Its operands' names; empty where it has none of that number.
  const std::string& input(int i) const;
  const std::string& output() const;
  void require_inputs(int least, int most) const;

  // Its attributes, of which it may have these alone.
  void require_attributes(std::initializer_list<std::string_view> known) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t whole(std::string_view name, std::int64_t otherwise) const;
  float real(std::string_view name, float otherwise) const;
  std::string text(std::string_view name, const std::string& otherwise) const;
  std::vector<std::int64_t> wholes(std::string_view name, const std::vector<std::int64_t>& otherwise) const;
  std::optional<OnnxConstant> tensor(std::string_view name) const;
  std::vector<float> reals(std::string_view name) const;
  // Refuses every other value: what it should be is said.
  void require_whole(std::string_view name, std::int64_t wanted) const;
  void require_wholes(std::string_view name, std::int64_t wanted) const;  // each of them

 private:
  const onnx::AttributeProto* find(std::string_view name) const;
  const onnx::AttributeProto* find(std::string_view name, onnx::AttributeProto::AttributeType type) const;

  const onnx::NodeProto& node_;
  std::string title_;
};

}  // namespace omniconv::training
