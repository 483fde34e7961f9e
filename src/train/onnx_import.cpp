// An ONNX file as a checkpoint: what lies around its nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "image/input_file.h"
#include "omniconv/error.h"
#include "omniconv/onnx.h"
#include "train/onnx_layers.h"
#include "train/quoted.h"

namespace omniconv {
namespace {

using nlohmann::json;

constexpr std::string_view own_producer = "omniconv";
constexpr std::int64_t least_opset = 7;  // from which on operators broadcast as they do now

onnx::ModelProto read_file(const std::string& path) {
  const image::InputFile file(path);
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (file.size() > most)
    throw bad_input(fmt::format("{}: it has {} bytes, and an ONNX file at most {}", path, file.size(), most));
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, text.data(), file.size());
  onnx::ModelProto found;
  if (!found.ParseFromString(text)) throw bad_input(fmt::format("{}: it is no ONNX file, or a damaged one", path));
  if (!found.has_graph()) throw bad_input(fmt::format("{}: an ONNX file without a graph", path));
  return found;
}

void require_operators(const std::string& path, const onnx::ModelProto& file) {
  for (const onnx::OperatorSetIdProto& one : file.opset_import()) {
    if (!one.domain().empty() && one.domain() != "ai.onnx") continue;  // its nodes are refused by name
    if (one.version() < least_opset)
      throw bad_input(
          fmt::format("{}: its operators are of opset {}: {} or newer is read", path, one.version(), least_opset));
    return;
  }
  throw bad_input(fmt::format("{}: it does not say which opset its operators are of", path));
}

struct Input {
  std::string name;
  ModelShape shape;
  std::int64_t batch = -1;
};

Input input_of(const std::string& path, const onnx::GraphProto& graph) {
  std::set<std::string_view> constants;
  for (const onnx::TensorProto& tensor : graph.initializer()) constants.insert(tensor.name());
  const onnx::ValueInfoProto* found = nullptr;
  for (const onnx::ValueInfoProto& one : graph.input()) {
    if (constants.contains(one.name())) continue;
    if (found != nullptr)
      throw bad_input(fmt::format("{}: two inputs, {} and {}: one is expected", path, quoted_word(found->name()),
                                  quoted_word(one.name())));
    found = &one;
  }
  if (found == nullptr) throw bad_input(fmt::format("{}: the graph has no input", path));
  const auto& type = found->type().tensor_type();
  const auto refuse = [&](const std::string& what) {
    throw bad_input(fmt::format("{}: the input {} {}", path, quoted_word(found->name()), what));
  };
  if (type.elem_type() != onnx::TensorProto::FLOAT) refuse("is not of FLOAT, the only type that is taken");
  if (type.shape().dim_size() != 4)
    refuse(fmt::format("has {} extents: images, channels, rows and columns are expected", type.shape().dim_size()));
  for (int i = 1; i < 4; ++i)
    if (type.shape().dim(i).dim_value() < 1)
      refuse(fmt::format("leaves its extent {} open: only that of images may be", i));
  const auto extent = [&](int i) { return type.shape().dim(i).dim_value(); };
  return {found->name(), {extent(1), extent(2), extent(3)}, extent(0)};
}

// What omniconv has written there, in each of its files; null in those of others.
json metadata(const std::string& path, const onnx::ModelProto& file, const char* key) {
  for (const onnx::StringStringEntryProto& entry : file.metadata_props()) {
    if (entry.key() != key) continue;
    json found = json::parse(entry.value(), nullptr, false);
    if (!found.is_array()) throw bad_input(fmt::format("{}: {} of its metadata is no list", path, key));
    return found;
  }
  if (file.producer_name() == own_producer)
    throw bad_input(fmt::format("{}: its metadata lacks {}: the file is cut off, or damaged", path, key));
  return nullptr;
}

std::vector<std::string> classes_of(const std::string& path, const onnx::ModelProto& file, std::int64_t outputs) {
  std::vector<std::string> classes;
  const json found = metadata(path, file, "omniconv.classes");
  for (std::int64_t i = 0; found.is_null() && i < outputs; ++i) classes.push_back(std::to_string(i));
  if (found.is_null()) return classes;
  for (const json& one : found) {
    if (!one.is_string()) throw bad_input(fmt::format("{}: omniconv.classes of its metadata are no names", path));
    classes.push_back(one);
  }
  if (classes.empty() || std::ssize(classes) > outputs)
    throw bad_input(fmt::format("{}: it has {} classes, and {} outputs", path, classes.size(), outputs));
  return classes;
}

std::vector<double> numbers_of(const std::string& path, const onnx::ModelProto& file, const char* key,
                               std::int64_t channels, double otherwise) {
  const json found = metadata(path, file, key);
  if (found.is_null()) return std::vector<double>(static_cast<std::size_t>(channels), otherwise);
  std::vector<double> numbers;
  for (const json& one : found) {
    const double number = one.is_number() ? one.get<double>() : std::nan("");
    if (!std::isfinite(number)) throw bad_input(fmt::format("{}: {} of its metadata has no numbers", path, key));
    numbers.push_back(number);
  }
  if (std::ssize(numbers) != channels)
    throw bad_input(fmt::format("{}: {} of its metadata has {} numbers, and there are {} channels", path, key,
                                numbers.size(), channels));
  return numbers;
}

bool is_utf8(const std::string& text) {
  try {
    return !json(text).dump().empty();
  } catch (const json::exception&) {
    return false;
  }
}

// What goes on into a checkpoint and onto a terminal.
const std::string& required_text(const std::string& path, const char* what, const std::string& text) {
  const bool is_control =
      std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; });
  if (is_control || !is_utf8(text))
    throw bad_input(fmt::format("{}: {} {} is no line of UTF-8", path, what, quoted_word(text)));
  return text;
}

std::string dataset_of(const std::string& path, const onnx::ModelProto& file) {
  for (const onnx::StringStringEntryProto& entry : file.metadata_props())
    if (entry.key() == "omniconv.dataset") return required_text(path, "omniconv.dataset", entry.value());
  return {};
}

// Of one that omniconv wrote its own; other programs call theirs "main_graph" and the like.
std::string name_of(const std::string& path, const onnx::ModelProto& file) {
  const std::string& own = file.graph().name();
  if (file.producer_name() == own_producer && !own.empty()) return required_text(path, "the graph's name", own);
  return std::filesystem::path(path).stem().string();
}

}  // namespace

Checkpoint import_onnx(const std::string& path) {
  const onnx::ModelProto file = read_file(path);
  const onnx::GraphProto& graph = file.graph();
  require_operators(path, file);
  if (graph.sparse_initializer_size() > 0)
    throw bad_input(fmt::format("{}: it has sparse initializers, and only dense ones are read", path));
  const Input input = input_of(path, graph);
  if (graph.output_size() != 1)
    throw bad_input(fmt::format("{}: the graph has {} outputs: one is expected", path, graph.output_size()));
  training::OnnxLayers layers(path, graph, input.name, input.shape, input.batch);
  for (int i = 0; i < graph.node_size(); ++i) layers.add(training::OnnxNode(path, graph.node(i), i));
  Checkpoint made;
  made.model = layers.model(graph.output(0).name(), name_of(path, file));
  made.tensors = std::move(layers).tensors();
  made.dataset = dataset_of(path, file);
  made.classes = classes_of(path, file, made.model.classes());
  made.standard.mean = numbers_of(path, file, "omniconv.mean", input.shape.channels, 0);
  made.standard.deviation = numbers_of(path, file, "omniconv.deviation", input.shape.channels, 1);
  return made;
}

}  // namespace omniconv
