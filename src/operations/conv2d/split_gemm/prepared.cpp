// Operands that runs give prepared: which, and what the text of their format says.
#include <fmt/format.h>

#include <algorithm>

#include "operations/conv2d/split_gemm/plans.h"

namespace omniconv::operations::split_gemm {
namespace {

std::string numbers_text(const Conv2dProblem& problem, const char* of) {
  const Numbers numbers = numbers_of(problem.type);
  return fmt::format("{} {} of {}{} {} {}", numbers.planes(), numbers.planes() == 1 ? "part" : "parts",
                     name(numbers.part), of, name(problem.type), problem.layout == Layout::nhwc ? "nhwc" : "nchw");
}

std::string class_text(const TapClass& of) {
  return fmt::format("; {}x{} taps from {},{} at {},{} in step {}", of.taps_h, of.taps_w, of.first_h, of.first_w,
                     of.offset_h, of.offset_w, of.step);
}

}  // namespace

std::variant<Prepared, std::string> prepared_of(const SolverOptions& request, const Numbers& numbers,
                                                std::string_view a, std::string_view b, std::string_view out) {
  Prepared prepared;
  if (numbers.products == 6 && request.prepared.size() + request.measured.size() > 0)
    return "has no prepared or measured forms of three parts of a number";
  for (const std::string& array : request.prepared) {
    if (array != a && array != b) return fmt::format("has prepared forms of {} and {} alone", a, b);
    (array == a ? prepared.a : prepared.b) = true;
  }
  if (!request.measured.empty() && !numbers.are_scaled)
    return fmt::format("takes no largest magnitudes of {}, which has no scale", name(numbers.part));
  for (const std::string& array : request.measured) {
    if (array != a && array != b && array != out)
      return fmt::format("takes largest magnitudes of {} and {} alone, and leaves that of {}", a, b,
                         out.empty() ? "nothing" : out);
    (array == a ? prepared.measured_a : array == b ? prepared.measured_b : prepared.measures) = true;
  }
  return prepared;
}

PreparedFormat measured_format(std::int64_t elements) {
  return {fmt::format("{} numbers of f32, {} bytes behind the largest magnitude", elements, measured_bytes),
          checked_add(measured_bytes, elements * size_of(DataType::f32), "a measured array")};
}

PreparedFormat format_of(const Planes& planes, const Conv2dProblem& problem, const PreparedOperand& operand) {
  std::string text = fmt::format("{} n{}c{}h{}w{}g{}: {}x{} pixels of {} channels", numbers_text(problem, " of "),
                                 planes.images, std::int64_t{planes.groups} * planes.source_channels, planes.source_h,
                                 planes.source_w, planes.groups, planes.h, planes.w, planes.padded);
  if (planes.have_taps() || planes.fold_dilation_w != 0)
    text += fmt::format(", {} of them of taps, {} a row, u{},{} d{},{} p{},{}", planes.channels, planes.folded_w,
                        planes.fold_stride_h, planes.fold_stride_w, planes.fold_dilation_h, planes.fold_dilation_w,
                        planes.fold_pad_h, planes.fold_pad_w);
  return {text, operand.bytes()};
}

PreparedFormat format_of(const PixelTask& task, const Conv2dProblem& problem, bool is_shared,
                         const PreparedOperand& operand) {
  std::string text = fmt::format(
      "{} k{}c{}r{}s{}g{}{} {}: {} steps of 64, {} channels at a time{}", numbers_text(problem, " of filters of "),
      problem.k, problem.c, problem.r, problem.s, problem.groups, problem.flip ? " flip" : "",
      problem.pass == Pass::forward ? "fwd" : "bwd_data", task.steps, task.box(), is_shared ? ", row by row" : "");
  if (task.is_merged()) text += fmt::format(", for blocks of {}x{}", task.block_h, task.block_w);
  if (problem.pass == Pass::forward && task.classes == 1)
    return {fmt::format("{}, {}x{} taps", text, task.of_class[0].taps_h, task.of_class[0].taps_w), operand.bytes()};
  text += fmt::format(", taps {},{} apart", task.class_tap_h, task.class_tap_w);
  for (std::int32_t i = 0; i < task.classes; ++i) text += class_text(task.of_class[static_cast<std::size_t>(i)]);
  if (task.is_merged()) {
    text += "; of them";
    for (std::int32_t i = 0; i < std::max(task.block_h, task.block_w); ++i)
      text += class_text(task.of_place[static_cast<std::size_t>(i)]);
  }
  return {text, operand.bytes()};
}

OperandMaps ProductPlan::maps_of(const devices::TensorMap& map, const Product& product, bool lies, const Operand& given,
                                 const std::optional<PreparedOperand>& prepared, std::int64_t planes_at,
                                 std::int64_t elements) const {
  if (prepared) {
    devices::TensorMap first = map;
    first.buffer = given.buffer.impl().get(), first.offset_bytes = given.offset_bytes + prepared->planes;
    return maps_of_planes(first, numbers_, elements);
  }
  return ProductLaunches::maps_of(map, product, lies, given, planes_at, elements);
}

void ProductPlan::append_look(devices::Sequence& sequence, const Product& product, std::int64_t a_count,
                              std::int64_t b_count, const Sampling& sampling) const {
  // The largest magnitude is a number like others.
  const auto before = [](const Operand& array) { return Operand{array.buffer, array.offset_bytes - measured_bytes}; };
  const Operand a = prepared_.measured_a ? before(product.a) : product.a,
                b = prepared_.measured_b ? before(product.b) : product.b;
  const Product looked_at{.a = a, .b = b, .out = product.out, .bias = product.bias, .workspace = product.workspace};
  const auto count_of = [](bool is_prepared, bool is_measured, std::int64_t count) {
    return is_prepared ? 0 : is_measured ? 1 : count;
  };
  append_scan(sequence, looked_at, count_of(prepared_.a, prepared_.measured_a, a_count),
              count_of(prepared_.b, prepared_.measured_b, b_count), sampling);
}

void ProductPlan::append_zero(devices::Sequence& sequence, const Operand& out) const {
  if (prepared_.measures) sequence.fill({*out.buffer.impl(), out.offset_bytes, measured_bytes}, 0);
}

void ProductPlan::append_keeping(devices::Sequence& sequence, const Operand& from, const Operand& to,
                                 const PreparedOperand& operand) const {
  const devices::KernelArgument arguments[] = {from.buffer.impl().get(),
                                               from.offset_bytes / size(),
                                               operand.elements,
                                               to.buffer.impl().get(),
                                               (to.offset_bytes + operand.maxima) / 4,
                                               (to.offset_bytes + operand.array) / size()};
  sequence.launch(passes_, "keep_array", {{maxima * pass_group, 1}, {pass_group, 1}}, arguments);
}

}  // namespace omniconv::operations::split_gemm
