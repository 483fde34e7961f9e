// Shapes that an ONNX graph computes: PyTorch writes out what leads to the pads of a Pad, or to the shape of a Reshape.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/checked.h"
#include "omniconv/error.h"
#include "train/onnx_layers.h"

namespace omniconv::training {
namespace {

constexpr std::int64_t most_elements = 1 << 16;

std::int64_t multiplied(const OnnxNode& node, std::int64_t a, std::int64_t b) {
  try {
    return checked_multiply(a, b, "the tensor");
  } catch (const Error& error) {
    node.refuse(error.what());
  }
}

// Of a tensor that is there, whose extents have been multiplied before.
std::int64_t product(const std::vector<std::int64_t>& extents, std::size_t begin, std::size_t end) {
  std::int64_t all = 1;
  for (std::size_t i = begin; i < end; ++i) all *= extents[i];
  return all;
}

// Those of one axis at these places.
OnnxConstant taken(const OnnxConstant& from, std::size_t axis, const std::vector<std::int64_t>& places) {
  OnnxConstant made{.extents = from.extents, .is_whole = true};
  made.extents[axis] = std::ssize(places);
  if (from.elements() == 0) return made;
  const std::int64_t outer = product(from.extents, 0, axis), extent = from.extents[axis],
                     inner = product(from.extents, axis + 1, from.extents.size());
  for (std::int64_t o = 0; o < outer; ++o)
    for (const std::int64_t place : places) {
      const auto begin = from.wholes.begin() + (o * extent + place) * inner;
      made.wholes.insert(made.wholes.end(), begin, begin + inner);
    }
  return made;
}

std::size_t axis_of(const OnnxNode& node, std::int64_t axis, std::size_t rank) {
  const auto of = static_cast<std::int64_t>(rank);
  if (axis < -of || axis >= of) node.refuse(fmt::format("axis {} of a tensor of {} axes", axis, rank));
  return static_cast<std::size_t>(axis < 0 ? axis + of : axis);
}

void require_list(const OnnxNode& node, const OnnxConstant& of, const char* what) {
  if (of.extents.size() > 1) node.refuse(fmt::format("{} have {} axes, and are a list", what, of.extents.size()));
}

OnnxConstant reshaped(const OnnxNode& node, OnnxConstant x, const OnnxConstant& shape) {
  require_list(node, shape, "the extents");
  std::int64_t known = 1;
  std::ptrdiff_t open = -1;
  std::vector<std::int64_t> extents = shape.wholes;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0 && i < x.extents.size()) extents[i] = x.extents[i];
    if (extents[i] == -1 && open < 0)
      open = static_cast<std::ptrdiff_t>(i);
    else if (extents[i] < 0)
      node.refuse(fmt::format("an extent of {}", extents[i]));
    else
      known = multiplied(node, known, extents[i]);
  }
  if (open >= 0 && known == 0) node.refuse("an extent that follows from none");
  if (open >= 0) known *= extents[static_cast<std::size_t>(open)] = x.elements() / known;
  if (known != x.elements()) node.refuse(fmt::format("extents that do not hold its {} numbers", x.elements()));
  x.extents = extents;
  return x;
}

OnnxConstant transposed(const OnnxNode& node, const OnnxConstant& x) {
  node.require_attributes({"perm"});
  const std::vector<std::int64_t> order = node.wholes("perm", {1, 0});
  if (x.extents.size() != 2 || order != std::vector<std::int64_t>{1, 0})
    node.refuse("only tables are transposed, perm [1, 0]");
  const std::int64_t rows = x.extents[0], columns = x.extents[1];
  OnnxConstant made{.extents = {columns, rows}, .is_whole = true};
  if (x.elements() == 0) return made;
  for (std::int64_t q = 0; q < columns; ++q)
    for (std::int64_t p = 0; p < rows; ++p) made.wholes.push_back(x.wholes[static_cast<std::size_t>(p * columns + q)]);
  return made;
}

// Of one axis, with a step that may go back. Ends beyond the axis are its own.
std::vector<std::int64_t> places_of(const OnnxNode& node, std::int64_t start, std::int64_t end, std::int64_t step,
                                    std::int64_t extent) {
  if (step == 0 || step == INT64_MIN) node.refuse(fmt::format("a step of {}", step));
  const auto bounded = [&](std::int64_t at, std::int64_t least, std::int64_t most) {
    if (at < 0) at = at < -extent ? -1 : at + extent;
    return std::clamp(at, least, most);
  };
  std::vector<std::int64_t> places;
  if (step > 0)
    for (std::int64_t at = bounded(start, 0, extent); at < bounded(end, 0, extent); at += std::min(step, extent + 1))
      places.push_back(at);
  else
    for (std::int64_t at = bounded(start, -1, extent - 1); at > bounded(end, -1, extent - 1);
         at -= std::min(-step, extent + 1))
      places.push_back(at);
  return places;
}

OnnxConstant sliced(const OnnxNode& node, OnnxConstant x, const std::vector<OnnxConstant>& operands) {
  node.require_attributes({});
  const std::vector<std::int64_t>&starts = operands[1].wholes, &ends = operands[2].wholes;
  std::vector<std::int64_t> axes, steps(starts.size(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (operands.size() > 3 && !operands[3].extents.empty()) axes = operands[3].wholes;
  if (operands.size() > 4 && !operands[4].extents.empty()) steps = operands[4].wholes;
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
    node.refuse("its starts, ends, axes and steps are not as many");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = axis_of(node, axes[i], x.extents.size());
    x = taken(x, axis, places_of(node, starts[i], ends[i], steps[i], x.extents[axis]));
  }
  return x;
}

OnnxConstant gathered(const OnnxNode& node, const OnnxConstant& x, const OnnxConstant& indices) {
  node.require_attributes({"axis"});
  require_list(node, x, "the numbers"), require_list(node, indices, "the indices");
  axis_of(node, node.whole("axis", 0), 1);
  if (x.extents.empty()) node.refuse("it gathers from a single number");
  std::vector<std::int64_t> places;
  for (const std::int64_t index : indices.wholes)
    places.push_back(static_cast<std::int64_t>(axis_of(node, index, x.wholes.size())));
  OnnxConstant made = taken(x, 0, places);
  made.extents = indices.extents;
  return made;
}

OnnxConstant joined(const OnnxNode& node, const std::vector<OnnxConstant>& operands) {
  node.require_attributes({"axis"});
  axis_of(node, node.whole("axis", 0), 1);
  OnnxConstant made{.extents = {0}, .is_whole = true};
  for (const OnnxConstant& one : operands) {
    if (one.extents.size() != 1) node.refuse("only lists are joined");
    made.wholes.insert(made.wholes.end(), one.wholes.begin(), one.wholes.end());
    if (std::ssize(made.wholes) > most_elements) node.refuse(fmt::format("more than {} numbers", most_elements));
  }
  made.extents[0] = std::ssize(made.wholes);
  return made;
}

OnnxConstant filled(const OnnxNode& node, const OnnxConstant& shape) {
  node.require_attributes({"value"});
  require_list(node, shape, "the extents");
  const std::optional<OnnxConstant> value = node.tensor("value");
  if (!value || !value->is_whole || value->elements() != 1) node.refuse("only whole numbers are computed");
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape.wholes) {
    if (extent < 0) node.refuse(fmt::format("an extent of {}", extent));
    elements = multiplied(node, elements, extent);
  }
  if (elements > most_elements) node.refuse(fmt::format("more than {} numbers", most_elements));
  return {.extents = shape.wholes,
          .is_whole = true,
          .wholes = std::vector<std::int64_t>(static_cast<std::size_t>(elements), value->wholes[0])};
}

// Extents of 1 between the others, or without them.
OnnxConstant with_axes(const OnnxNode& node, OnnxConstant x, const std::vector<OnnxConstant>& operands) {
  node.require_attributes({"axes"});
  const bool has_list = operands.size() > 1 && !operands[1].extents.empty();
  const std::vector<std::int64_t> axes = has_list ? operands[1].wholes : node.wholes("axes", {0});
  if (axes.size() != 1) node.refuse("one axis is expected");
  if (node.op() == "Unsqueeze") {
    const std::size_t axis = axis_of(node, axes[0], x.extents.size() + 1);
    x.extents.insert(x.extents.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  } else {
    const std::size_t axis = axis_of(node, axes[0], x.extents.size());
    if (x.extents[axis] != 1) node.refuse(fmt::format("an extent of {}, and not of 1", x.extents[axis]));
    x.extents.erase(x.extents.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return x;
}

}  // namespace

bool is_of_constants(const std::string& op) {
  constexpr std::string_view ops[] = {"Cast",    "Concat", "ConstantOfShape", "Gather",   "Reshape",
                                      "Squeeze", "Slice",  "Transpose",       "Unsqueeze"};
  return std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

OnnxConstant computed_constant(const OnnxNode& node, const std::vector<OnnxConstant>& operands) {
  const std::string& op = node.op();
  const std::size_t least = op == "Slice" ? 3 : op == "Reshape" || op == "Gather" ? 2 : 1;
  if (operands.size() < least) node.refuse(fmt::format("it has {} inputs: {} are expected", operands.size(), least));
  for (const OnnxConstant& one : operands) {
    if (!one.is_whole) node.refuse("only whole numbers are computed");
    if (one.elements() > most_elements) node.refuse(fmt::format("more than {} numbers", most_elements));
  }
  const OnnxConstant& x = operands[0];
  if (op == "Concat") return joined(node, operands);
  if (op == "ConstantOfShape") return filled(node, x);
  if (op == "Gather") return gathered(node, x, operands[1]);
  if (op == "Reshape") return reshaped(node, x, operands[1]);
  if (op == "Slice") return sliced(node, x, operands);
  if (op == "Transpose") return transposed(node, x);
  if (op == "Squeeze" || op == "Unsqueeze") return with_axes(node, x, operands);
  const std::int64_t to = node.whole("to", 0);  // Cast
  if (to != onnx::TensorProto::INT64 && to != onnx::TensorProto::INT32) node.refuse("only whole numbers are computed");
  return x;
}

}  // namespace omniconv::training
