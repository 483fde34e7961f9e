#include "train/onnx_node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "core/checked.h"
#include "omniconv/error.h"
#include "train/quoted.h"

namespace omniconv::training {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers lie in the file as they do in memory");
using Type = onnx::TensorProto;

// From raw bytes, or from the numbers' own field.
template <typename To, typename From, typename Field>
std::vector<To> numbers_of(const onnx::TensorProto& tensor, std::int64_t elements, const Field& field) {
  std::vector<To> numbers;
  if (tensor.has_raw_data()) {
    const std::string& raw = tensor.raw_data();
    const auto size = static_cast<std::int64_t>(sizeof(From));
    if (std::ssize(raw) % size != 0 || std::ssize(raw) / size != elements)
      throw bad_input(fmt::format("it has {} bytes, and its extents [{}] are {} numbers of {}", raw.size(),
                                  fmt::join(tensor.dims(), ", "), elements, size));
    numbers.resize(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      From number{};
      std::memcpy(&number, raw.data() + i * sizeof(From), sizeof(From));
      numbers[i] = static_cast<To>(number);
    }
    return numbers;
  }
  if (field.size() != elements)
    throw bad_input(fmt::format("it has {} numbers, and its extents [{}] are {}", field.size(),
                                fmt::join(tensor.dims(), ", "), elements));
  numbers.assign(field.begin(), field.end());
  return numbers;
}

}  // namespace

OnnxConstant read_constant(const onnx::TensorProto& tensor) {
  if (tensor.data_location() == Type::EXTERNAL || tensor.external_data_size() > 0)
    throw bad_input("its numbers are in another file: only those in the file itself are read");
  if (tensor.has_segment()) throw bad_input("it is a segment of a tensor, and only whole ones are read");
  OnnxConstant made;
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.dims()) {
    if (extent < 0) throw bad_input(fmt::format("an extent of {}", extent));
    made.extents.push_back(extent);
    elements = checked_multiply(elements, extent, "the tensor");
  }
  made.is_whole = tensor.data_type() != Type::FLOAT;
  switch (tensor.data_type()) {
    case Type::FLOAT: made.reals = numbers_of<float, float>(tensor, elements, tensor.float_data()); break;
    case Type::INT64:
      made.wholes = numbers_of<std::int64_t, std::int64_t>(tensor, elements, tensor.int64_data());
      break;
    case Type::INT32:
      made.wholes = numbers_of<std::int64_t, std::int32_t>(tensor, elements, tensor.int32_data());
      break;
    case Type::BOOL: made.wholes = numbers_of<std::int64_t, std::uint8_t>(tensor, elements, tensor.int32_data()); break;
    default:
      throw bad_input(fmt::format("its type is {}: FLOAT is read, and INT64, INT32 and BOOL of shapes",
                                  Type::DataType_IsValid(tensor.data_type())
                                      ? Type::DataType_Name(static_cast<Type::DataType>(tensor.data_type()))
                                      : std::to_string(tensor.data_type())));
  }
  return made;
}

double decimal_of(float number) {
  const std::string text = fmt::format("{}", number);
  double value = number;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

OnnxNode::OnnxNode(const std::string& path, const onnx::NodeProto& node, int number)
    : node_(node),
      title_(fmt::format("{}: node {} ({})", path,
                         node.name().empty() ? std::to_string(number) : quoted_word(node.name()), [&] {
                           const std::string word = quoted_word(node.op_type());
                           return word.substr(1, word.size() - 2);
                         }())) {
  if (!node.domain().empty() && node.domain() != "ai.onnx")
    refuse(fmt::format("its operator is of {}, and only those of ONNX itself are known", quoted_word(node.domain())));
}

void OnnxNode::refuse(const std::string& what) const {
  throw bad_input(fmt::format("{}: {}", title_, what));
}

const std::string& OnnxNode::input(int i) const {
  static const std::string none;
  return i < node_.input_size() ? node_.input(i) : none;
}

const std::string& OnnxNode::output() const {
  if (node_.output_size() == 0 || node_.output(0).empty()) refuse("it has no output");
  return node_.output(0);
}

void OnnxNode::require_inputs(int least, int most) const {
  if (node_.input_size() < least || node_.input_size() > most)
    refuse(fmt::format("it has {} inputs: {} to {} are expected", node_.input_size(), least, most));
  for (int i = 0; i < least; ++i)
    if (node_.input(i).empty()) refuse(fmt::format("its input {} is missing", i));
}

void OnnxNode::require_attributes(std::initializer_list<std::string_view> known) const {
  for (const onnx::AttributeProto& attribute : node_.attribute())
    if (std::find(known.begin(), known.end(), attribute.name()) == known.end())
      refuse(fmt::format("its attribute {} is not known{}{}", quoted_word(attribute.name()),
                         known.size() > 0 ? ": known are " : "", fmt::join(known, ", ")));
}

const onnx::AttributeProto* OnnxNode::find(std::string_view name) const {
  for (const onnx::AttributeProto& attribute : node_.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

const onnx::AttributeProto* OnnxNode::find(std::string_view name, onnx::AttributeProto::AttributeType type) const {
  const onnx::AttributeProto* const found = find(name);
  if (found != nullptr && found->type() != type)
    refuse(fmt::format("its attribute {} is no {}", name, onnx::AttributeProto::AttributeType_Name(type)));
  return found;
}

std::int64_t OnnxNode::whole(std::string_view name, std::int64_t otherwise) const {
  const auto* const found = find(name, onnx::AttributeProto::INT);
  return found == nullptr ? otherwise : found->i();
}
float OnnxNode::real(std::string_view name, float otherwise) const {
  const auto* const found = find(name, onnx::AttributeProto::FLOAT);
  return found == nullptr ? otherwise : found->f();
}
std::string OnnxNode::text(std::string_view name, const std::string& otherwise) const {
  const auto* const found = find(name, onnx::AttributeProto::STRING);
  return found == nullptr ? otherwise : found->s();
}
std::vector<std::int64_t> OnnxNode::wholes(std::string_view name, const std::vector<std::int64_t>& otherwise) const {
  const auto* const found = find(name, onnx::AttributeProto::INTS);
  return found == nullptr ? otherwise : std::vector<std::int64_t>(found->ints().begin(), found->ints().end());
}
std::vector<float> OnnxNode::reals(std::string_view name) const {
  const auto* const found = find(name, onnx::AttributeProto::FLOATS);
  return found == nullptr ? std::vector<float>() : std::vector<float>(found->floats().begin(), found->floats().end());
}
std::optional<OnnxConstant> OnnxNode::tensor(std::string_view name) const {
  const auto* const found = find(name, onnx::AttributeProto::TENSOR);
  if (found == nullptr) return std::nullopt;
  try {
    return read_constant(found->t());
  } catch (const Error& error) {
    refuse(fmt::format("its attribute {}: {}", name, error.what()));
  }
}

void OnnxNode::require_whole(std::string_view name, std::int64_t wanted) const {
  const std::int64_t found = whole(name, wanted);
  if (found != wanted) refuse(fmt::format("{} {}: only {} is taken", name, found, wanted));
}
void OnnxNode::require_wholes(std::string_view name, std::int64_t wanted) const {
  const std::vector<std::int64_t> found = wholes(name, {});
  if (std::any_of(found.begin(), found.end(), [&](std::int64_t one) { return one != wanted; }))
    refuse(fmt::format("{} [{}]: each must be {}", name, fmt::join(found, ", "), wanted));
}

}  // namespace omniconv::training
